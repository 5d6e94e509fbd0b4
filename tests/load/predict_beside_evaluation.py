#!/usr/bin/env python3
"""How long one-row predictions take on two busy workers, alone and during an evaluation with all corruptions.

    CHAINFLEET_BIN=build/release/bin python3 -B tests/load/predict_beside_evaluation.py [SECONDS]

Chains of another job step all the while. Both kinds of seconds go in turn, so that what else the machine does meets them
alike. Fails when the median or the 99th percentile during the evaluation is more than three times that without one.
"""
import os
import subprocess
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
import fleet as fleets  # noqa: E402
from public_client import tensor, triton  # noqa: E402
import numpy  # noqa: E402

MOST = 3
JOB = """
name: {name}
model: {{builtin: lenet5}}
dataset: {{name: fashion}}
prior: {{gaussian: {{precision: 25}}}}
sampler: {{emcmc: {{eta: 4.0e-4}}}}
learning_rate: {{constant: 0.02}}
temperature: 1.0e-4
batch_size: 64
num_epochs: {epochs}
chains: {chains}
collect: {{{collect}}}
seed: 7
"""


class Latencies:
    """Measures one-row requests, one after the other, for some seconds."""

    def __init__(self, address, job):
        self.client = triton.InferenceServerClient(address)
        self.job = job
        self.row = tensor(numpy.random.default_rng(1).integers(0, 256, (1, 1, 28, 28), dtype=numpy.uint8), "UINT8")

    def measure(self, seconds):
        taken, end = [], time.monotonic() + seconds
        while (began := time.monotonic()) < end:
            self.client.infer(self.job, [self.row])
            taken.append(1e3 * (time.monotonic() - began))
        return taken


def percentile(values, share):
    return sorted(values)[min(int(share * len(values)), len(values) - 1)]


def evaluation_of(fleet, job):
    """Starts an evaluation, which the server cancels when this client ends."""
    return subprocess.Popen([os.path.join(fleets.BIN, "chainfleet"), "evaluate", job, "--dataset", "test", "--corruptions", "all"],
                            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env={**os.environ, "CHAINFLEET_ADDRESS": fleet.address})


def measure(fleet, seconds):
    fleet.put_fashion("fashion", 6400)
    fleet.put_fashion("test", 2000)
    served = fleet.submit(JOB.format(name="served", epochs=4, chains=4, collect="every_steps: 16"))
    fleet.run("wait", served, "--timeout", "600s", check=True, timeout=700)
    busy = fleet.submit(JOB.format(name="busy", epochs=10000, chains=4, collect="last_epochs_of_cycle: 1"))
    while fleet.json("describe", busy)["steps_done"] in ("0", 0):
        time.sleep(0.5)
    latencies = Latencies(fleet.address, "served")
    latencies.measure(3)
    quiet, beside = [], []
    for _ in range(2):
        quiet += latencies.measure(seconds / 2)
        evaluation = evaluation_of(fleet, served)
        time.sleep(2)
        beside += latencies.measure(seconds / 2)
        if evaluation.poll() is not None:
            sys.exit("the evaluation was over before the predictions: measure for fewer seconds")
        evaluation.terminate()
        evaluation.wait(30)
        latencies.measure(2)
    return quiet, beside


def main():
    seconds = float(sys.argv[1]) if len(sys.argv) > 1 else 40
    fleet = fleets.Fleet(workers=2, lease_seconds=15)
    try:
        fleet.up()
        quiet, beside = measure(fleet, seconds)
    finally:
        fleet.close()
    worst = 0
    print(f"{'ms':6} {'alone':>10} {'beside':>10} {'ratio':>8}   of {len(quiet)} and {len(beside)} requests")
    for name, share in (("p50", 0.5), ("p90", 0.9), ("p99", 0.99)):
        alone, with_it = percentile(quiet, share), percentile(beside, share)
        worst = max(worst, with_it / alone if name != "p90" else 0)
        print(f"{name:6} {alone:10.1f} {with_it:10.1f} {with_it / alone:8.2f}")
    if worst > MOST:
        sys.exit(f"beside an evaluation predictions took {worst:.1f} times as long, at most {MOST} are allowed")


if __name__ == "__main__":
    main()
