#!/usr/bin/env python3
"""The console's first view on a server with 1,000 jobs: bytes of the page and its replies, and the time until its rows are painted.

  CHAINFLEET_BIN=build/release/bin tests/bench/console_jobs.py [JOBS [LOADS]]

The jobs are PENDING, because the server has no worker. Every load has a new browser with an empty cache. Exits 1 if a load
takes 400 KB or more, or the median takes 1 s or more.
"""
import json
import os
import statistics
import sys
import urllib.request

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "support"))
os.environ.setdefault("CHAINFLEET_BIN", os.path.join(HERE, "..", "..", "build", "release", "bin"))

import fleet as fleets
from chromium import Chromium

SPEC = {"name": "fashion-emcmc", "model": {"builtin": "lenet5"}, "dataset": {"name": "fashion"}, "prior": {"gaussian": {"precision": 25}},
        "sampler": {"emcmc": {"eta": 4e-4}}, "learning_rate": {"cyclical": {"initial": 0.2, "cycles": 4}}, "temperature": 1e-4,
        "batch_size": 128, "num_epochs": 12, "burn_in": {"cycles": 2}, "chains": 4,
        "collect": {"last_epochs_of_cycle": 1, "kinds": ["theta", "theta_a"]}}
# Notes the time since the navigation began at the first frame after the one that shows rows.
NOTE_ROWS = """
window.rowsShown = new Promise(done => new MutationObserver((_, observer) => {
  if (!document.querySelector('main tbody tr')) return;
  observer.disconnect();
  requestAnimationFrame(() => setTimeout(() => done(performance.now())));
}).observe(document, {subtree: true, childList: true}));
"""
LOADED = """
rowsShown.then(ms => ({ms, rows: document.querySelectorAll('main tbody tr').length,
  bytes: Object.fromEntries(performance.getEntries().filter(e => e.transferSize > 0)
    .map(e => [new URL(e.name).pathname, e.transferSize]))}))
"""


def fill(address, jobs):
    for _ in range(jobs):
        request = urllib.request.Request(f"http://{address}/v1/jobs", json.dumps({"spec": SPEC}).encode(), {"Content-Type": "application/json"})
        urllib.request.urlopen(request).close()


def load(address):
    browser = Chromium(width=1400, reaches="127.0.0.1")
    try:
        browser.call("Page.addScriptToEvaluateOnNewDocument", source=NOTE_ROWS)
        browser.open(f"http://{address}/")
        return browser.evaluate(LOADED)
    finally:
        browser.close()


def main(jobs=1000, loads=7):
    fleet = fleets.Fleet(workers=0)
    try:
        fleet.up()
        fleet.put_fashion("fashion", 500)
        fill(fleet.http_address, jobs)
        found = [load(fleet.http_address) for _ in range(loads)]
    finally:
        fleet.close()
    times = sorted(one["ms"] for one in found)
    largest = max(found, key=lambda one: sum(one["bytes"].values()))
    total = sum(largest["bytes"].values())
    for path, size in largest["bytes"].items():
        print(f"{size:8d} bytes  {path}")
    print(f"{total:8d} bytes in all; {largest['rows']} rows of {jobs} jobs after {statistics.median(times):.0f} ms "
          f"({times[0]:.0f} to {times[-1]:.0f}, {loads} loads)")
    return 0 if total < 400_000 and statistics.median(times) < 1000 else 1


if __name__ == "__main__":
    sys.exit(main(*map(int, sys.argv[1:])))
