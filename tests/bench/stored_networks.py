"""Writes the networks of stored_network_bench.cc to a folder: each as a .pt2 file and as TorchScript.

    python3 -B tests/bench/stored_networks.py FOLDER
"""
import os
import sys

import vmap_chains
from make_exported import export, functional, input_of, nn, torch


class Frn(nn.Module):
    """Filter response norm with its activation, or without (linear)."""

    def __init__(self, channels: int, linear: bool = False):
        super().__init__()
        self.scale, self.shift = nn.Parameter(torch.ones(channels, 1, 1)), nn.Parameter(torch.zeros(channels, 1, 1))
        self.threshold = None if linear else nn.Parameter(torch.zeros(channels, 1, 1))

    def forward(self, x):
        y = x * torch.rsqrt(x.square().mean((2, 3), keepdim=True) + 1e-6) * self.scale + self.shift
        return y if self.threshold is None else torch.maximum(y, self.threshold)


class Block(nn.Module):
    def __init__(self, inputs: int, outputs: int, stride: int):
        super().__init__()
        self.branch = nn.Sequential(nn.Conv2d(inputs, outputs, 3, stride, 1), Frn(outputs), nn.Conv2d(outputs, outputs, 3, 1, 1), Frn(outputs, True))
        self.shortcut = nn.Sequential() if inputs == outputs else nn.Sequential(nn.Conv2d(inputs, outputs, 1, stride), Frn(outputs, True))

    def forward(self, x):
        return functional.relu(self.branch(x) + self.shortcut(x))


def resnet20():
    layers, inputs = [nn.Conv2d(3, 16, 3, padding=1), Frn(16)], 16
    for channels in (16, 32, 64):
        for block in range(3):
            layers.append(Block(inputs, channels, 2 if block == 0 and channels > 16 else 1))
            inputs = channels
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(64, 10))


NETWORKS = {"mlp50": (lambda: vmap_chains.mlp(32, 50, 50, 10), [32.0]), "mlp100": (lambda: vmap_chains.mlp(64, 100, 100, 10), [64.0]),
            "mlp": (lambda: vmap_chains.mlp(784, 200, 200, 10), [1.0, 28.0, 28.0]), "lenet5": (vmap_chains.lenet5, [1.0, 28.0, 28.0]),
            "resnet20": (resnet20, [3.0, 32.0, 32.0]), "transformer": (vmap_chains.Transformer, [16.0, 16.0])}

if __name__ == "__main__":
    os.makedirs(sys.argv[1], exist_ok=True)
    for name, (make, shape) in NETWORKS.items():
        network = make().eval()
        export(network, (input_of(shape, 3, 0),), os.path.join(sys.argv[1], name + ".pt2"))
        torch.jit.trace(network, input_of(shape, 3, 0), check_trace=False).save(os.path.join(sys.argv[1], name + ".pt"))
        print(name, sum(p.numel() for p in network.parameters()))
