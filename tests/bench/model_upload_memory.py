"""The most memory that a server takes while it checks and stores a file of 1 GB: a .pt2 network and weights as safetensors,
uploaded or read from their URI, into a folder or into S3.

    CHAINFLEET_BIN=build/release/bin /usr/bin/python3 -B tests/bench/model_upload_memory.py

Exits with 1 above 200 MB.
"""
import contextlib
import json
import os
import re
import struct
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))  # before this folder
import fleet as fleets
import with_s3
from real_torch import torch

WIDTH = 15_800  # a square layer of 998 MB
MOST_BYTES = 200_000_000


def write_network(path):
    network = torch.nn.Sequential(torch.nn.Linear(WIDTH, WIDTH, bias=False), torch.nn.Linear(WIDTH, 3)).eval()
    batch = {0: torch.export.Dim("batch")}
    torch.export.save(torch.export.export(network, (torch.zeros(3, WIDTH),), dynamic_shapes=(batch,)), path)


def write_weights(path):
    size = WIDTH * WIDTH * 4
    header = json.dumps({"0.weight": {"dtype": "F32", "shape": [WIDTH, WIDTH], "data_offsets": [0, size]}}).encode()
    with open(path, "wb") as file:
        file.write(struct.pack("<Q", len(header)) + header)
        for _ in range(WIDTH):
            file.write(os.urandom(4 * WIDTH))


def measure(place, path, root):
    """Memory of a fresh server after it has stored the file, in bytes."""
    with contextlib.ExitStack() as stack:
        environment = {"CHAINFLEET_DATASET_ROOT": root}
        if place == "S3":
            s3 = stack.enter_context(contextlib.closing(with_s3.S3Server()))
            s3.start()
            environment |= {**s3.environment, "CHAINFLEET_BLOBS": f"s3://{with_s3.BUCKET}/objects"}
        fleet = stack.enter_context(contextlib.closing(fleets.Fleet(workers=0, environment=environment)))
        fleet.up()
        fleet.run("model", "put", "big", path, check=True)
        with open(f"/proc/{fleet.pid('server')}/status") as status:
            return int(re.search(r"VmHWM:\s+(\d+) kB", status.read())[1]) * 1024


def main():
    peaks = []
    with tempfile.TemporaryDirectory() as folder:
        for name, write in (("net.pt2", write_network), ("map.safetensors", write_weights)):
            path = os.path.join(folder, name)
            write(path)
            for place in ("a folder", "S3"):
                for way, given in (("uploaded", path), ("by URI", f"file://{path}")):
                    peaks.append(measure(place, given, folder))
                    print(f"{os.path.getsize(path) / 1e9:.2f} GB {name:16} {way:9} into {place:9} {peaks[-1] / 1e6:5.0f} MB", flush=True)
            os.remove(path)
    return 0 if max(peaks) < MOST_BYTES else 1


if __name__ == "__main__":
    sys.exit(main())
