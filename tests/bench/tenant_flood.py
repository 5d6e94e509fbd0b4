#!/usr/bin/env python3
"""Predictions of a quiet tenant, alone and beside the flood of another: p50 and p99 in ms, and the ratio of the p99.

  CHAINFLEET_BIN=build/release/bin /usr/bin/python3 -B tests/bench/tenant_flood.py [ROWS_PER_SECOND]

The quiet tenant predicts one row at a time, the flood 64 calls of 16 rows at once, from programs of the lowest priority
that take turns with the quiet one's. ROWS_PER_SECOND is the server's --tenant-rows-per-second; without it the flood has
no bound but the turns of tenants. One worker with one thread serves both.
"""
import os
import subprocess
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "support"))
os.environ.setdefault("CHAINFLEET_BIN", os.path.join(HERE, "..", "..", "build", "release", "bin"))

import python_package  # noqa: F401, first: it says where the next one is
import chainfleet as cf
import numpy
import started_fleet

QUIET, FLOOD, WORKER = "The-token-of-a-quiet-tenant", "The-token-of-a-loud-tenant", "The-token-of-the-workers"
JOB = """
name: walk
model: {builtin: softmax_regression}
dataset: {name: clothes}
sampler: {sgld: {}}
learning_rate: {constant: 0.01}
num_steps: 60
chains: 2
collect: {every_steps: 2}
"""
ROUNDS, CALLS = 5, 200
SEND = """import concurrent.futures, sys
sys.path.insert(0, {support!r})
import python_package
import chainfleet as cf, numpy
x = numpy.zeros((16, 1, 28, 28), numpy.uint8)
job = cf.connect({address!r}, token={token!r}).job("walk")
def send(_):
    while True:
        try:
            job.predict(x)
        except cf.errors.ResourceExhausted:
            pass
with concurrent.futures.ThreadPoolExecutor(64) as pool:
    list(pool.map(send, range(64)))
"""


def latencies(job):
    row = numpy.zeros((1, 1, 28, 28), numpy.uint8)
    taken = []
    for _ in range(CALLS):
        begin = time.perf_counter()
        job.predict(row)
        taken.append(1000 * (time.perf_counter() - begin))
    return taken


def main():
    flags = ["--tenant-rows-per-second", sys.argv[1]] if len(sys.argv) > 1 else []
    fleet = started_fleet.StartedFleet()
    try:
        tokens = fleet.path("tokens")
        with open(tokens, "w") as f:
            f.write(f"{QUIET} quiet\n{FLOOD} loud\n{WORKER} worker\n")
        fleet.start_server(0, *flags, environment={"CHAINFLEET_TOKEN_FILE": tokens})
        fleet.environment = {"CHAINFLEET_TOKEN": QUIET}
        fleet.wait_until_served()
        fleet.start_worker(0, environment={"CHAINFLEET_TOKEN": "", "CHAINFLEET_WORKER_TOKEN": WORKER})
        for token in (QUIET, FLOOD):
            fleet.environment = {"CHAINFLEET_TOKEN": token}
            fleet.put_fashion("clothes", 200)
            fleet.run("wait", fleet.submit(JOB), check=True)
        job = cf.connect(fleet.address, token=QUIET).job("walk")
        latencies(job)
        alone, beside = [], []
        program = SEND.format(support=os.path.join(HERE, "..", "support"), address=fleet.address, token=FLOOD)
        for _ in range(ROUNDS):
            alone += latencies(job)
            flood = subprocess.Popen(["nice", "-n", "19", sys.executable, "-c", program])
            time.sleep(3)  # until its calls fill the queue
            beside += latencies(job)
            flood.kill()
            flood.wait()
        p99 = {}
        for name, taken in (("alone", alone), ("beside the flood", beside)):
            p99[name] = numpy.quantile(taken, 0.99)
            print(f"{name:17} p50 {numpy.median(taken):7.2f} ms  p99 {p99[name]:7.2f} ms")
        print(f"p99 beside the flood is {p99['beside the flood'] / p99['alone']:.2f} of that alone")
    finally:
        fleet.close()


if __name__ == "__main__":
    main()
