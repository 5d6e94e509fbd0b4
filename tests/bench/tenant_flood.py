#!/usr/bin/env python3
"""Predictions of a quiet tenant: p50 and p99 in ms alone, beside programs that only compute, and beside the flood of
another tenant, and the ratio of the p99 beside the flood to each of the others.

  CHAINFLEET_BIN=build/release/bin /usr/bin/python3 -B tests/bench/tenant_flood.py [--model lenet5] [--rows-per-second N]
                                                                                  [--method ListJobs]

The quiet tenant predicts one row at a time, the flood 64 calls of 16 rows at once, or with --method 64 calls of this
method, from a program that runs only on processors that nobody else uses. So do the programs that only compute, one for each
processor: they tell what busy processors cost on this machine, whoever keeps them busy. Without --rows-per-second (the server's
--tenant-rows-per-second) the flood has no bound but the turns of tenants. One worker with one thread serves both.
"""
import argparse
import json
import os
import subprocess
import sys
import threading

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "support"))
os.environ.setdefault("CHAINFLEET_BIN", os.path.join(HERE, "..", "..", "build", "release", "bin"))

import fleet as fleets
import started_fleet
from coordinator import Caller, message

QUIET, FLOOD, WORKER = "The-token-of-a-quiet-tenant", "The-token-of-a-loud-tenant", "The-token-of-the-workers"
JOB = """
name: walk
model: {{builtin: {model}}}
dataset: {{name: clothes}}
sampler: {{sgld: {{}}}}
learning_rate: {{constant: 0.01}}
num_steps: 16
chains: 2
collect: {{every_steps: 2}}
"""


class Tenant:
    def __init__(self, fleet, token, rows, width):
        self.port, self.token = fleet.address.rpartition(":")[2], token
        self.command = [os.path.join(fleets.BIN, "chainfleet-predict-load"), "--address", fleet.address, "--token", token, "--job", "walk",
                        "--inputs", fleet.path("rows"), "--rows", str(rows), "--concurrency", str(width)]

    def predict(self, seconds):
        line = json.loads(subprocess.run([*self.command, "--seconds", str(seconds)], capture_output=True, check=True).stdout)
        if line["failed"]:
            raise AssertionError(line)
        return line

    def flood(self, method):
        command = [sys.executable, "-B", __file__, "--call", method, self.port, self.token] if method else [*self.command, "--seconds", "600"]
        return idle_priority(command)


def idle_priority(command):
    return subprocess.Popen(["chrt", "-i", "0", *command], stdout=subprocess.DEVNULL)


def call_without_end(method, port, token):
    def call():
        caller = Caller(port, token)
        while True:
            caller.code(method, b"" if method.startswith("List") else message(f1="walk"))

    for _ in range(64):
        threading.Thread(target=call).start()


def measure(fleet, rounds, seconds, method):
    quiet, loud = Tenant(fleet, QUIET, 1, 1), Tenant(fleet, FLOOD, 16, 64)
    quiet.predict(1)


    def beside(processes):
        try:
            quiet.predict(1)  # until the flood's calls fill the queue
            return quiet.predict(seconds)
        finally:
            for process in processes:
                process.kill()
                process.wait()

    ratios = []
    for _ in range(rounds):
        alone = quiet.predict(seconds)
        busy = beside([idle_priority([sys.executable, "-c", "while True: pass"]) for _ in range(os.cpu_count())])
        flood = beside([loud.flood(method)])
        ratios.append([flood["p99_ms"] / other["p99_ms"] for other in (alone, busy)])
        lines = (("alone", alone), ("busy", busy), ("flood", flood))
        print("  ".join(f"{name} {line['p50_ms']:.2f} {line['p99_ms']:.2f}" for name, line in lines),
              " ratios of the p99 {:.2f} {:.2f}".format(*ratios[-1]), flush=True)
    print("median ratios of the p99:", *(f"{sorted(column)[rounds // 2]:.2f}" for column in zip(*ratios)))
    if not method:
        print("the flood alone:", loud.predict(seconds))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", default="softmax_regression", choices=["softmax_regression", "lenet5"])
    parser.add_argument("--rows-per-second", help="the server's --tenant-rows-per-second")
    parser.add_argument("--method", choices=["ListJobs", "GetJob"], help="the flood calls this instead of predicting")
    parser.add_argument("--call", nargs=3, help=argparse.SUPPRESS)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--seconds", type=float, default=4)
    options = parser.parse_args()
    if options.call:
        return call_without_end(*options.call)
    flags = ["--tenant-rows-per-second", options.rows_per_second] if options.rows_per_second else []
    fleet = started_fleet.StartedFleet()
    try:
        tokens = fleet.path("tokens")
        with open(tokens, "w") as f:
            f.write(f"{QUIET} quiet\n{FLOOD} loud\n{WORKER} worker\n")
        with open(fleet.path("rows"), "wb") as f:
            f.write(bytes(value % 251 for value in range(64 * 784)))
        fleet.start_server(0, *flags, environment={"CHAINFLEET_TOKEN_FILE": tokens})
        fleet.environment = {"CHAINFLEET_TOKEN": QUIET}
        fleet.wait_until_served()
        fleet.start_worker(0, environment={"CHAINFLEET_TOKEN": "", "CHAINFLEET_WORKER_TOKEN": WORKER})
        for token in (QUIET, FLOOD):
            fleet.environment = {"CHAINFLEET_TOKEN": token}
            fleet.put_fashion("clothes", 200)
            fleet.run("wait", fleet.submit(JOB.format(model=options.model)), check=True)
        measure(fleet, options.rounds, options.seconds, options.method)
    finally:
        fleet.close()


if __name__ == "__main__":
    main()
