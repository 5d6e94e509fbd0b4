"""The Bayesian model average in plain Python: torch.func.vmap over stacked parameters. Prints one line of JSON for each
batch size. predict_bench.py runs it as a rival, with a Python that has torch and numpy."""
import argparse
import json
import time

import numpy
import torch
from torch.func import functional_call, vmap


def lenet5():
    nn = torch.nn
    return nn.Sequential(nn.Conv2d(1, 6, 5, padding=2), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(6, 16, 5), nn.ReLU(), nn.MaxPool2d(2),
                         nn.Flatten(), nn.Linear(400, 120), nn.ReLU(), nn.Linear(120, 84), nn.ReLU(), nn.Linear(84, 10))


def mlp():
    nn = torch.nn
    return nn.Sequential(nn.Flatten(), nn.Linear(784, 200), nn.ReLU(), nn.Linear(200, 200), nn.ReLU(), nn.Linear(200, 10))


def main():
    parser = argparse.ArgumentParser()
    for name in ("--model", "--draws", "--inputs", "--save"):
        parser.add_argument(name)
    parser.add_argument("--members", type=int)
    parser.add_argument("--batches")
    parser.add_argument("--mean", type=float)
    parser.add_argument("--stddev", type=float)
    parser.add_argument("--seconds", type=float)
    options = parser.parse_args()
    torch.set_num_threads(2)
    model = {"lenet5": lenet5, "mlp": mlp}[options.model]()
    draws = torch.from_numpy(numpy.fromfile(options.draws, "<f4")).view(options.members, -1)
    stacked, at = {}, 0
    for name, parameter in model.named_parameters():
        stacked[name] = draws[:, at:at + parameter.numel()].reshape(options.members, *parameter.shape).contiguous()
        at += parameter.numel()
    inputs = torch.from_numpy(numpy.fromfile(options.inputs, "<f4")).view(-1, 1, 28, 28)
    members = vmap(lambda weights, x: torch.softmax(functional_call(model, weights, (x,)), 1), in_dims=(0, None))

    def average(x):
        return members(stacked, (x - options.mean) / options.stddev).mean(0)

    with torch.inference_mode():
        if options.save:
            average(inputs[:64]).numpy().astype("<f4").tofile(options.save)
        for batch in map(int, options.batches.split(",")):
            average(inputs[:batch])
            began, done = time.monotonic(), 0
            while time.monotonic() < began + options.seconds:
                average(inputs[done * batch % (len(inputs) - batch + 1):][:batch])
                done += 1
            rate = done / (time.monotonic() - began)
            print(json.dumps({"batch": batch, "batches_per_s": round(rate, 2), "rows_per_s": round(rate * batch, 1)}), flush=True)


if __name__ == "__main__":
    main()
