"""Forward and backward of the convolutions of C chains, each with weights of its own, by three algorithms.

    convolutions.py DEVICE SECONDS BATCH CHAINS NETWORK...

grouped   one convolution with groups = C, as the service does today
loop      C convolutions with groups = 1, channels last
im2col    one unfolding of all images, and a batched product
"""
import json
import sys

import torch
import torch.nn.functional as F

import networks
from torch_timing import allow_tf32, seconds_per_call


def grouped(layer, images, weights, batch):
    _, _, _, stride, padding, _ = layer
    x = torch.cat(images, 1).requires_grad_()
    w = torch.cat(weights).requires_grad_()
    return [x, w], lambda: F.conv2d(x, w, stride=stride, padding=padding, groups=len(weights))


def loop(layer, images, weights, batch):
    _, _, _, stride, padding, _ = layer
    xs = [x.contiguous(memory_format=torch.channels_last).requires_grad_() for x in images]
    ws = [w.contiguous(memory_format=torch.channels_last).requires_grad_() for w in weights]
    return xs + ws, lambda: [F.conv2d(x, w, stride=stride, padding=padding) for x, w in zip(xs, ws)]


def im2col(layer, images, weights, batch):
    _, _, kernel, stride, padding, _ = layer
    x = torch.cat(images).requires_grad_()
    w = torch.stack([w.flatten(1) for w in weights]).requires_grad_()

    def call():
        columns = F.unfold(x, kernel, padding=padding, stride=stride)
        columns = columns.view(len(weights), batch, w.shape[2], -1).transpose(1, 2).flatten(2)
        return torch.bmm(w, columns)

    return [x, w], call


def milliseconds_or_none(*arguments):
    """None: the memory of the device is too small for it."""
    try:
        return milliseconds(*arguments)
    except torch.OutOfMemoryError:
        return None


def milliseconds(algorithm, layer, shape, batch, chains, device, seconds):
    _, channels, kernel, _, _, _ = layer
    images = [torch.rand(batch, *shape, device=device) for _ in range(chains)]
    weights = [torch.rand(channels, shape[0], kernel, kernel, device=device) for _ in range(chains)]
    leaves, call = algorithm(layer, images, weights, batch)
    result = call()
    results = result if isinstance(result, list) else [result]
    gradients = [torch.ones_like(r) for r in results]

    def forward_and_backward():
        out = call()
        torch.autograd.grad(out, leaves, gradients)

    return 1e3 * seconds_per_call(forward_and_backward, device, seconds)


def main(device, seconds, batch, chains, names):
    seen = set()
    for name in names:
        for (layer, shape), count in networks.convolutions(name).items():
            _, channels, kernel, stride, _, _ = layer
            key = (layer[:-1], shape)
            if key in seen:
                continue
            seen.add(key)
            for precision in ("float32", "tf32"):
                allow_tf32(precision == "tf32")
                row = {"first_in": name, "layers": count, "convolution": f"{shape[0]}->{channels} {kernel}x{kernel}/{stride}",
                       "extent": shape[1], "chains": chains, "precision": precision}
                for algorithm in (grouped, loop, im2col):
                    row[algorithm.__name__ + "_ms"] = milliseconds_or_none(algorithm, layer, shape, batch, chains, device, seconds)
                print(json.dumps(row), flush=True)


if __name__ == "__main__":
    main(sys.argv[1], float(sys.argv[2]), int(sys.argv[3]), int(sys.argv[4]), sys.argv[5:])
