"""Measures a job of 16 chains of a small exported network without and with `vmap`, from its submission to its end, in turn.

    CHAINFLEET_BIN=build/release/bin /usr/bin/python3 -B tests/bench/vmap_job.py
"""
import os
import sys
import time

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, os.path.join(ROOT, "tests", "support"))

import fleet as fleets

CHAINS, STEPS, ROUNDS = 16, 1500, 3
JOB = f"""
name: shared-calls
model: {{exported: mlp}}
dataset: {{name: wide}}
prior: {{gaussian: {{precision: 1}}}}
sampler: {{sgld: {{}}}}
step_size: {{constant: 1.0e-3}}
batch_size: 32
num_steps: {STEPS}
chains: {CHAINS}
collect: {{every_steps: 500}}
seed: 7
"""


def main():
    fleet = fleets.Fleet()
    try:
        fleet.up()
        path = fleet.path("wide.csv")
        with open(path, "w") as file:  # class: which of three sums of inputs is largest
            for i in range(300):
                row = [(i * (7 + 3 * j) % 31) / 31 - 0.5 for j in range(6)]
                sums = [row[k] + row[k + 1] for k in range(3)]
                print(*row, sums.index(max(sums)), sep=",", file=file)
        fleet.run("dataset", "put", "wide", path, check=True)
        fleet.run("model", "put", "mlp", os.path.join(ROOT, "tests", "data", "exported", "mlp.pt2"), check=True)
        for _ in range(ROUNDS):
            rates = []
            for vmap in ("false", "true"):
                start = time.time()
                fleet.run("wait", fleet.submit(JOB + f"vmap: {vmap}\n"), "--timeout", "300s", check=True)
                rates.append(CHAINS * STEPS / (time.time() - start))
            print(f"chain-steps/s: {rates[0]:,.0f} without vmap, {rates[1]:,.0f} with it, {rates[1] / rates[0]:.2f} times", flush=True)
    finally:
        fleet.close()


if __name__ == "__main__":
    main()
