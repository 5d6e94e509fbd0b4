#!/usr/bin/env python3
"""Latency of predictions by client: the Python package, tritonclient over gRPC, and over HTTP with binary tensors and JSON.

  CHAINFLEET_BIN=build/release/bin tests/bench/clients.py

One worker, softmax regression on Fashion-MNIST, 80 draws. The clients take turns, so the ratios are from one
run. Each call ends with both outputs as NumPy arrays.
"""
import os
import statistics
import sys
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


def main():
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
    finally:
        fleet.close()


if __name__ == "__main__":
    main()
