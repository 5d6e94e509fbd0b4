#!/usr/bin/env python3
"""Latency and rate of predictions by client: the Python package, tritonclient over gRPC, over HTTP with binary tensors, and JSON.

  CHAINFLEET_BIN=build/release/bin tests/bench/clients.py

One worker, softmax regression on Fashion-MNIST, 80 draws. The clients take turns, so the ratios are from one
run. Each call ends with both outputs as NumPy arrays. The rate is that of eight threads, each with a client of its own.
Exits 1 if the package takes more than 1.1 times tritonclient's time over gRPC, or binary HTTP has less than 0.8 of its rate.
"""
import os
import statistics
import sys
import threading
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [os.path.join(HERE, "..", "support"), os.path.join(HERE, "..", "e2e")]
os.environ.setdefault("CHAINFLEET_BIN", os.path.join(HERE, "..", "..", "build", "release", "bin"))

import bad_input_test
import fleet as fleets
from public_client import tensor, triton  # first: it says where the others are
import numpy
import python_package
import tritonclient.http as triton_http

cf = python_package.chainfleet
REPEATS = {1: 200, 64: 100, 4096: 8}
THREADS, ROUNDS, CALLS, ROWS = 8, 5, 20, 64  # when rates are measured
MOST_TIME, LEAST_RATE = 1.1, 0.8  # relative to tritonclient over gRPC
OUTPUTS = ("mean_probability", "mutual_information")


def clients(fleet, job, x):
    """{name: a function that predicts x}."""
    by_grpc = triton.InferenceServerClient(fleet.address)
    by_http = triton_http.InferenceServerClient(fleet.http_address)
    by_package = cf.connect(fleet.address).job(job)

    def grpc():
        reply = by_grpc.infer("small", [tensor(x, "UINT8")], outputs=[triton.InferRequestedOutput(name) for name in OUTPUTS])
        return [reply.as_numpy(name) for name in OUTPUTS]

    def http(binary):
        given = triton_http.InferInput("x", list(x.shape), "UINT8")
        given.set_data_from_numpy(x, binary_data=binary)
        asked = [triton_http.InferRequestedOutput(name, binary_data=binary) for name in OUTPUTS]
        reply = by_http.infer("small", [given], outputs=asked)
        return [reply.as_numpy(name) for name in OUTPUTS]

    def package():
        made = by_package.predict(x)
        return [made.score(name) for name in OUTPUTS]

    return {"tritonclient gRPC": grpc, "chainfleet (Python)": package,
            "tritonclient HTTP, binary": lambda: http(True), "tritonclient HTTP, JSON": lambda: http(False)}


def rate(fleet, job, x, name):
    """Rows/s of THREADS threads that call one client each; a client stays in the thread that made it."""
    calls, gate = CALLS // 5 if "JSON" in name else CALLS, threading.Barrier(THREADS + 1)

    def work():
        call = clients(fleet, job, x)[name]
        call()
        gate.wait()
        for _ in range(calls):
            call()

    threads = [threading.Thread(target=work) for _ in range(THREADS)]
    for thread in threads:
        thread.start()
    gate.wait()
    begin = time.perf_counter()
    for thread in threads:
        thread.join()
    return THREADS * calls * len(x) / (time.perf_counter() - begin)


def print_rates(fleet, job):
    """Returns {name of a client: its rate for that of tritonclient over gRPC}."""
    x = numpy.random.default_rng(1).integers(0, 256, (ROWS, 1, 28, 28), dtype=numpy.uint8)
    names = list(clients(fleet, job, x))
    rounds = [{name: rate(fleet, job, x, name) for name in names} for _ in range(ROUNDS)]
    shares = {name: statistics.median(rates[name] / rates["tritonclient gRPC"] for rates in rounds) for name in names}
    for name, share in shares.items():
        taken = statistics.median(rates[name] for rates in rounds)
        print(f"{THREADS} open   {name:26s} {taken:9.0f} rows/s {share:5.2f} of tritonclient's gRPC")
    return shares


def main():
    slowest = 0
    fleet = fleets.Fleet(workers=1, lease_seconds=15)
    try:
        fleet.up(threads=2)
        fleet.put_fashion("fashion", 500)
        job = fleet.submit(bad_input_test.GOOD.replace("last_epochs_of_cycle: 2", "every_steps: 1"))
        fleet.run("wait", job, "--timeout", "120s", check=True)
        for rows, repeats in REPEATS.items():
            x = numpy.random.default_rng(1).integers(0, 256, (rows, 1, 28, 28), dtype=numpy.uint8)
            calls, times = clients(fleet, job, x), {}
            for call in calls.values():
                call()
            for _ in range(repeats):
                for name, call in calls.items():
                    begin = time.perf_counter()
                    call()
                    times.setdefault(name, []).append(time.perf_counter() - begin)
            first = statistics.median(times["tritonclient gRPC"])
            for name, taken in times.items():
                median = statistics.median(taken)
                print(f"{rows:5d} rows  {name:26s} {1e3 * median:9.2f} ms  {median / first:5.2f} of tritonclient's gRPC")
            slowest = max(slowest, statistics.median(times["chainfleet (Python)"]) / first)
        shares = print_rates(fleet, job)
    finally:
        fleet.close()
    return 0 if slowest <= MOST_TIME and shares["tritonclient HTTP, binary"] >= LEAST_RATE else 1


if __name__ == "__main__":
    sys.exit(main())
