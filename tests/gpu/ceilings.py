"""The rates that nothing on this device passes: copies within its memory, and products of large matrices.

    ceilings.py DEVICE SECONDS SIZE     SIZE: rows of the square matrices; copies move 32 SIZE^2 bytes
"""
import json
import sys

import torch

from torch_timing import allow_tf32, seconds_per_call


def main(device, seconds, size):
    source = torch.rand(4 * size * size, device=device)
    target = torch.empty_like(source)
    took = seconds_per_call(lambda: target.copy_(source), device, seconds)
    print(json.dumps({"ceiling": "copy within the device, read and written", "rate": 2e-9 * source.numel() * 4 / took,
                      "unit": "GB/s"}), flush=True)
    del source, target
    for name, tf32, kind in (("float32", False, torch.float32), ("tf32", True, torch.float32), ("bfloat16", False, torch.bfloat16)):
        allow_tf32(tf32)
        a, b = (torch.rand(size, size, device=device).to(kind) for _ in range(2))
        took = seconds_per_call(lambda: a @ b, device, seconds)
        print(json.dumps({"ceiling": f"product of matrices, {name}", "rate": 2e-12 * size**3 / took, "unit": "TFLOP/s"}), flush=True)


if __name__ == "__main__":
    main(sys.argv[1], float(sys.argv[2]), int(sys.argv[3]))
