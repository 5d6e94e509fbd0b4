#!/usr/bin/env python3
"""Does the time of a refusal tell whether another tenant has what was asked for? Medians in ms of calls for names and
ids that another tenant has and that nobody has, in random order, and how often the former take longer (0.5: as often).

  CHAINFLEET_BIN=build/release/bin /usr/bin/python3 -B tests/bench/tenant_timing.py [--calls N]

The server is one that is not loaded, on this host: over a network the times differ more.
"""
import argparse
import math
import os
import random
import statistics
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "support"))
os.environ.setdefault("CHAINFLEET_BIN", os.path.join(HERE, "..", "..", "build", "release", "bin"))

import fleet as fleets
import started_fleet
from coordinator import Caller, message

ASKING, OWNING = "The-token-of-a-tenant-that-asks", "The-token-of-a-tenant-that-owns"
JOBS, PREDICT = "chainfleet.v1.JobService", "chainfleet.v1.PredictService"


def share_above(those, these):
    """The share of pairs in which one of `those` is above one of `these`, and its standard error if they are alike."""
    ranked = sorted([(x, 1) for x in those] + [(x, 0) for x in these])
    ranks = sum(rank for rank, (_, is_those) in enumerate(ranked, 1) if is_those)
    n, m = len(those), len(these)
    return (ranks - n * (n + 1) / 2) / (n * m), math.sqrt((n + m + 1) / (12 * n * m))


def measure(caller, service, method, requests, calls):
    """Seconds of `calls` calls with each of the two requests; every answer is NOT_FOUND."""
    taken = ([], [])
    for _ in range(2 * calls):
        which = random.randrange(2)
        began = time.perf_counter()
        code, text = caller.code(method, requests[which], service=service)
        taken[which].append(time.perf_counter() - began)
        if code != "NOT_FOUND":
            raise AssertionError(f"{method}: {code} {text}")
    return taken


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--calls", type=int, default=5000)
    calls = parser.parse_args().calls
    fleet = started_fleet.StartedFleet()
    try:
        tokens = fleet.path("tokens")
        with open(tokens, "w") as f:
            f.write(f"{ASKING} asking\n{OWNING} owning\n")
        fleet.start_server(0, environment={"CHAINFLEET_TOKEN_FILE": tokens})
        fleet.environment = {"CHAINFLEET_TOKEN": OWNING}
        fleet.wait_until_served()
        fleet.put_fashion("clothes", 200)
        job = fleet.submit(fleets.walk())
        nobodys = job[:-6] + "".join(random.choices("abcdefghijkmnpqrstuvwxyz", k=6))
        caller = Caller(fleet.addresses[0].rpartition(":")[2], ASKING)
        print("| call | theirs, ms | nobody's, ms | theirs takes longer |\n| --- | --- | --- | --- |")
        for service, method, theirs, none in (
                (JOBS, "GetJob", message(f1=job), message(f1=nobodys)),
                (JOBS, "GetJob", message(f1="walk"), message(f1="wolk")),
                (JOBS, "ListSegments", message(f1=job), message(f1=nobodys)),
                (JOBS, "ReadRows", message(f1="owning/clothes"), message(f1="owning/closets")),
                (JOBS, "DeleteDataset", message(f1="owning/clothes"), message(f1="owning/closets")),
                (PREDICT, "Predict", message(f1=job), message(f1=nobodys))):
            first, second = measure(caller, service, method, (theirs, none), calls)
            share, error = share_above(first, second)
            print(f"| {method} | {1000 * statistics.median(first):.3f} | {1000 * statistics.median(second):.3f} | "
                  f"{share:.3f} ± {error:.3f} |", flush=True)
    finally:
        fleet.close()


if __name__ == "__main__":
    main()
