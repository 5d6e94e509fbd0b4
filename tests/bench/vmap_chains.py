"""Measures chains of a network in PyTorch: one after another, and together by torch.func.vmap, on one thread of the CPU.

    python3 -B tests/bench/vmap_chains.py bits|rows [NETWORK]...

bits: whether a chain's gradients have the same bits with other chains in its batch, in another order, and alone.
rows: milliseconds for 64 rows in passes of 1, 8, 16, 32 and 64 rows, and the sizes at which a row has the same outputs at each position.
"""
import os
import sys
import time
import warnings

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, os.path.join(ROOT, "tests", "support"))

import make_exported
from make_exported import functional, nn, torch

SMALL = ("mlp", "norm", "conv", "residual", "attention", "causal", "text", "mobilenet", "vit", "tied")


class Transformer(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed, self.out = nn.Linear(16, 32), nn.Linear(32, 10)
        self.encoder = nn.TransformerEncoder(make_exported.encoder_layer(32, 4, 64), 2, enable_nested_tensor=False)

    def forward(self, x):
        return self.out(self.encoder(self.embed(x)).mean(1))


def mlp(*sizes):
    layers = [nn.Flatten()]
    for inputs, outputs in zip(sizes, sizes[1:]):
        layers += [nn.Linear(inputs, outputs), nn.ReLU()]
    return nn.Sequential(*layers[:-1])


def lenet5():
    return nn.Sequential(nn.Conv2d(1, 6, 5, padding=2), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(6, 16, 5), nn.ReLU(), nn.MaxPool2d(2), mlp(400, 120, 84, 10))


def networks():
    return {**{name: make_exported.NETWORKS[name] for name in SMALL},
            "mlp 32-50-50-10": lambda: (mlp(32, 50, 50, 10), [32.0]),
            "mlp 784-200-200-10": lambda: (mlp(784, 200, 200, 10), [1.0, 28.0, 28.0]),
            "lenet5": lambda: (lenet5(), [1.0, 28.0, 28.0]),
            "transformer 16x16": lambda: (Transformer(), [16.0, 16.0])}


class Chains:
    def __init__(self, make, chains, batch):
        torch.manual_seed(1)
        network, shape = make()
        self.network, self.labels = network.eval().requires_grad_(False), torch.arange(batch) % 2
        self.buffers = dict(network.named_buffers())
        self.inputs = torch.stack([make_exported.input_of(shape, batch, 7 * chain) for chain in range(chains)])
        self.parameters = {name: torch.stack([p + torch.randn_like(p) * 0.1 for _ in range(chains)]) for name, p in network.named_parameters()}

    def outputs(self, parameters, inputs):
        return torch.func.functional_call(self.network, (parameters, self.buffers), (inputs,))

    def leaves(self, chains):
        return {name: p[chains].clone().requires_grad_(True) for name, p in self.parameters.items()}

    def alone(self, chain):
        leaves = self.leaves(chain)
        functional.cross_entropy(self.outputs(leaves, self.inputs[chain]), self.labels, reduction="sum").backward()
        return [leaf.grad for leaf in leaves.values()]

    def together(self, chains):
        leaves = self.leaves(chains)
        outputs = torch.func.vmap(self.outputs)(leaves, self.inputs[chains])
        functional.cross_entropy(outputs.flatten(0, 1), self.labels.repeat(len(chains)), reduction="sum").backward()
        return [leaf.grad for leaf in leaves.values()]


def median_ms(step):
    for _ in range(3):
        step()
    times, start = [], time.thread_time()
    while time.thread_time() - start < 0.3 or len(times) < 3:
        before = time.thread_time()
        step()
        times.append((time.thread_time() - before) * 1000)
    return sorted(times)[len(times) // 2]


def show_bits(name, make):
    for batch in (16, 37):
        chains = Chains(make, 17, batch)
        wanted = chains.together(list(range(17)))

        def same(given, order):
            return all(torch.equal(a[i], b[chain]) for a, b in zip(given, wanted) for i, chain in enumerate(order))

        answers = [same(chains.together(order), order) for order in ([5], [5, 3], [9, 2, 11], list(range(15, -1, -1)))]
        answers.append(all(torch.equal(a, b[3]) for a, b in zip(chains.alone(3), wanted)))
        print(f"| {name} | {batch} | {' | '.join('yes' if answer else 'no' for answer in answers)} |", flush=True)


def show_rows(name, make):
    torch.manual_seed(1)
    network, shape = make()
    network.eval().requires_grad_(False)
    pool, times, same = make_exported.input_of(shape, 72, 0), [], []
    for size in (1, 8, 16, 32, 64):
        times.append(median_ms(lambda: network(pool[:size])) * 64 / size)
        alike = [network(pool[trial:trial + 1].expand(size, *pool.shape[1:]).contiguous()) for trial in range(64, 72)]
        if all(torch.equal(rows, rows[:1].expand_as(rows)) for rows in alike):
            same.append(str(size))
    print(f"| {name} | {' | '.join(f'{ms:.2f}' for ms in times)} | {', '.join(same)} |", flush=True)


SHOW = {"bits": (show_bits, "| network | batch | alone in vmap | 2 chains | 3 chains | 16 in reverse | without vmap |\n"
                            "| --- | --- | --- | --- | --- | --- | --- |"),
        "rows": (show_rows, "| network | 1 | 8 | 16 | 32 | 64 | same bits |\n| --- | --- | --- | --- | --- | --- | --- |")}


def main(what, chosen):
    warnings.simplefilter("ignore")
    torch.set_num_threads(1)
    torch.backends.mha.set_fastpath_enabled(False)
    show, head = SHOW[what]
    print(head)
    for name, make in networks().items():
        if not chosen or name in chosen:
            show(name, make)


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2:])
