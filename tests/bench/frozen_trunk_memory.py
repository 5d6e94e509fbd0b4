"""The most memory that a worker takes with 16 chains that sample the last layer of a network of 108 MB over 2,000 rows.

    CHAINFLEET_BIN=build/release/bin /usr/bin/python3 -B tests/bench/frozen_trunk_memory.py

The memory of a worker with a narrow network in its place is subtracted. Exits with 1 above 1.5 times the network.
"""
import contextlib
import os
import re
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))  # before this folder
import fleet as fleets
from real_torch import torch

WIDTH = 3670  # two square layers of 54 MB
MOST = 1.5
JOB = """
name: head
model: {exported: trunk}
sample: ["6.*"]
init: {model: true}
dataset: {name: rows}
prior: {gaussian: {precision: 1}}
sampler: {sgld: {}}
learning_rate: {constant: 0.001}
batch_size: 50
num_epochs: 50
chains: 16
collect: {last_epochs_of_cycle: 1}
"""


def write_network(path, width):
    wide = [torch.nn.Linear(16, width), torch.nn.ReLU()]
    for _ in range(2):
        wide += [torch.nn.Linear(width, width), torch.nn.ReLU()]
    network = torch.nn.Sequential(*wide, torch.nn.Linear(width, 3)).eval()
    batch = {0: torch.export.Dim("batch")}
    torch.export.save(torch.export.export(network, (torch.zeros(3, 16),), dynamic_shapes=(batch,)), path)
    return sum(parameter.nbytes for parameter in network.parameters())


def measure(folder, width):
    """Bytes of the network, and of a fresh worker: the most, and while the chains step."""
    path = os.path.join(folder, f"{width}.pt2")
    size = write_network(path, width)
    with contextlib.closing(fleets.Fleet(workers=1)) as fleet:
        fleet.up()
        with open(fleet.path("rows.csv"), "w") as file:
            for i in range(2000):
                print(*((i * (7 + 3 * j) % 31) / 31 - 0.5 for j in range(16)), i % 3, sep=",", file=file)
        fleet.run("dataset", "put", "rows", fleet.path("rows.csv"), check=True)
        fleet.run("model", "put", "trunk", path, check=True)
        job = fleet.submit(JOB)
        fleet.wait_for_draws(job, 1)
        with open(f"/proc/{fleet.pid('worker-0')}/status") as status:
            of = dict(re.findall(r"(VmHWM|VmRSS):\s+(\d+) kB", status.read()))
        return size, int(of["VmHWM"]) * 1024, int(of["VmRSS"]) * 1024


def main():
    with tempfile.TemporaryDirectory() as folder:
        _, small_peak, small = measure(folder, 16)
        size, peak, stepping = measure(folder, WIDTH)
    print(f"network {size / 2**20:.0f} MiB; narrow {small / 2**20:.0f} MiB, {small_peak / 2**20:.0f} at most; "
          f"wide {stepping / 2**20:.0f} MiB, {peak / 2**20:.0f} at most")
    print(f"{(stepping - small) / size:.2f} networks, {(peak - small) / size:.2f} at most")
    return 0 if (peak - small) / size < MOST else 1


if __name__ == "__main__":
    sys.exit(main())
