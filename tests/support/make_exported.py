"""Makes tests/data/exported: networks as torch.export writes them, and their results in PyTorch.

  make_exported.py FOLDER [NAME]...    default: all networks; the results go to FOLDER/expected.json

Needs what torch.export imports: filelock, fsspec, jinja2, mpmath, networkx, numpy, sympy and typing_extensions. With several
versions of PyTorch, run it once for each. Inputs: float32 sin(0.01 i), int64 k = 7 i mod 50, bool k < 25, for i = 0, 1, ... in
C order, with five rows; the second input starts at i = 1000, the third at 2000. Loss: the mean cross-entropy against the labels 0, 1, ... mod the outputs.
Networks whose names begin with train_ are exported in training mode; their results are those of evaluation.
"""
import json
import math
import os
import sys
import tempfile
import zipfile

try:
    import torch
except ImportError:
    from real_torch import torch
from torch import nn
from torch.nn import functional

ROWS = 5


class Of(nn.Module):
    """A network of modules by name and a function of it and its inputs."""

    def __init__(self, forward, **modules):
        super().__init__()
        for name, module in modules.items():
            setattr(self, name, module)
        self.pass_forward = forward

    def forward(self, x):
        return self.pass_forward(self, x)


class TwoInputs(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed, self.dense, self.out = nn.Embedding(50, 8), nn.Linear(6, 8), nn.Linear(16, 4)

    def forward(self, tokens, x):
        return self.out(torch.cat([self.embed(tokens).mean(1), torch.tanh(self.dense(x))], 1))


class Masked(nn.Module):
    """Tokens that attend to those of a mask, and numbers that the last operators read, too."""

    def __init__(self):
        super().__init__()
        self.embed, self.key, self.dense, self.out = nn.Embedding(50, 8), nn.Linear(8, 1), nn.Linear(8, 8), nn.Linear(16, 4)

    def forward(self, ids, mask, numbers):
        x = self.embed(ids)
        weights = self.key(x).squeeze(-1).masked_fill(~mask, -math.inf).softmax(1)
        found = torch.cat([(weights[..., None] * x).sum(1), torch.tanh(self.dense(numbers.flatten(1)))], 1)
        return self.out(found) + numbers[:, 0]


class Causal(nn.Module):
    """Self-attention by hand, with a mask that is a buffer and not in the state_dict, and a constant."""

    def __init__(self):
        super().__init__()
        self.embed, self.qkv, self.out = nn.Embedding(50, 16), nn.Linear(16, 48), nn.Linear(16, 5)
        self.register_buffer("mask", torch.ones(6, 6).tril() == 0, persistent=False)
        self.position = torch.linspace(-1, 1, 6)

    def forward(self, tokens):
        x = self.embed(tokens) + self.position[:, None]
        q, k, v = (t.view(t.shape[0], 6, 4, 4).transpose(1, 2) for t in self.qkv(x).chunk(3, -1))
        weights = (q @ k.transpose(-2, -1) / 2).masked_fill(self.mask, -math.inf).softmax(-1)
        return self.out((weights @ v).transpose(1, 2).reshape(-1, 6, 16)[:, -1])


class Vit(nn.Module):
    def __init__(self):
        super().__init__()
        self.patch, self.out = nn.Conv2d(3, 12, 4, 4), nn.Linear(12, 10)
        self.token, self.position = nn.Parameter(torch.zeros(1, 1, 12)), nn.Parameter(torch.randn(1, 17, 12) / 8)
        self.blocks = nn.TransformerEncoder(encoder_layer(12, 4, 24), 1, enable_nested_tensor=False)

    def forward(self, x):
        x = self.patch(x).flatten(2).transpose(1, 2)
        x = torch.cat([self.token.expand(x.shape[0], -1, -1), x], 1) + self.position
        return self.out(self.blocks(x)[:, 0])


def encoder_layer(size, heads, hidden):
    return nn.TransformerEncoderLayer(size, heads, hidden, dropout=0.1, activation="gelu", batch_first=True, norm_first=True)


def make_tied():
    net = nn.Sequential(nn.Embedding(50, 12), nn.Flatten(), nn.Linear(48, 12), nn.Tanh(), nn.Linear(12, 50, bias=False))
    net[4].weight = net[0].weight
    return net


def separable(inputs, outputs, stride):
    return nn.Sequential(nn.Conv2d(inputs, inputs, 3, stride, 1, groups=inputs, bias=False), nn.BatchNorm2d(inputs), nn.ReLU6(inplace=True),
                         nn.Conv2d(inputs, outputs, 1, bias=False), nn.BatchNorm2d(outputs), nn.Hardswish())


def turned(net):
    net[0].weight = nn.Parameter(torch.full((1, 1), -2.0))
    return net


def residual(net, x):
    y = functional.silu(net.norm(net.first(x)))
    return net.out(functional.adaptive_avg_pool2d(net.second(y) + net.skip(x), 1).flatten(1))


NETWORKS = {  # name: (network, rows of its inputs; integers: the shape of token ids; a tuple: that of a mask)
    "mlp": lambda: (nn.Sequential(nn.Linear(6, 16), nn.ReLU(), nn.Dropout(0.5), nn.Linear(16, 16), nn.Tanh(), nn.Linear(16, 3)), [6.0]),
    "conv": lambda: (nn.Sequential(nn.Conv2d(1, 4, 3, padding=1), nn.BatchNorm2d(4), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(),
                                   nn.Linear(64, 10)), [1.0, 8.0, 8.0]),
    "residual": lambda: (Of(residual, first=nn.Conv2d(3, 8, 3, padding=1), norm=nn.GroupNorm(2, 8), second=nn.Conv2d(8, 8, 3, padding=1, groups=2),
                            skip=nn.Conv2d(3, 8, 1), out=nn.Linear(8, 10)), [3.0, 8.0, 8.0]),
    "norm": lambda: (nn.Sequential(nn.Linear(8, 16), nn.LayerNorm(16), nn.GELU(), nn.Linear(16, 16), nn.Softplus(), nn.Linear(16, 4)), [8.0]),
    "transformer": lambda: (Of(lambda net, x: net.out(net.encoder(net.embed(x)).mean(1)), embed=nn.Linear(5, 16),
                               encoder=nn.TransformerEncoder(encoder_layer(16, 2, 32), 1, enable_nested_tensor=False), out=nn.Linear(16, 4)), [7.0, 5.0]),
    "attention": lambda: (Of(lambda net, x: net.out(net.heads(x, x, x, need_weights=False)[0].amax(1)),
                             heads=nn.MultiheadAttention(12, 3, batch_first=True), out=nn.Linear(12, 4)), [6.0, 12.0]),
    "causal": lambda: (Causal(), [6]),
    "gru": lambda: (Of(lambda net, x: net.out(net.cell(x)[0][:, -1]), cell=nn.GRU(4, 12, 2, batch_first=True, bidirectional=True),
                       out=nn.Linear(24, 3)), [7.0, 4.0]),
    "lstm": lambda: (Of(lambda net, x: net.out(net.cell(x)[1][0][-1]), cell=nn.LSTM(4, 12, batch_first=True), out=nn.Linear(12, 3)), [7.0, 4.0]),
    "text": lambda: (Of(lambda net, x: net.out(functional.relu(net.conv(net.embed(x).transpose(1, 2))).amax(-1)),
                        embed=nn.Embedding(50, 8, padding_idx=0), conv=nn.Conv1d(8, 12, 3), out=nn.Linear(12, 2)), [9]),
    "upsample": lambda: (nn.Sequential(nn.Conv2d(1, 4, 3, 2, 1), nn.ELU(), nn.ConvTranspose2d(4, 4, 4, 2, 1), nn.LeakyReLU(), nn.Upsample(scale_factor=2),
                                       nn.Conv2d(4, 2, 3), nn.AvgPool2d(3), nn.Flatten(), nn.Linear(32, 3)), [1.0, 8.0, 8.0]),
    "two_inputs": lambda: (TwoInputs(), [4], [6.0]),
    "masked": lambda: (Masked(), [6], (6,), [2.0, 4.0]),
    "tied": lambda: (make_tied(), [4]),
    "mobilenet": lambda: (nn.Sequential(nn.Conv2d(3, 8, 3, 2, 1, bias=False), nn.BatchNorm2d(8), nn.ReLU6(), separable(8, 12, 1), separable(12, 16, 2),
                                        nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(16, 10)), [3.0, 16.0, 16.0]),
    "vit": lambda: (Vit(), [3.0, 16.0, 16.0]),
    "train_dropout": lambda: (nn.Sequential(nn.Linear(6, 16), nn.ReLU(), nn.Dropout(0.5), nn.Linear(16, 16), nn.Dropout(0.25, inplace=True), nn.Tanh(),
                                            nn.Linear(16, 3)), [6.0]),
    "train_channels": lambda: (nn.Sequential(nn.Conv2d(1, 4, 3), nn.Dropout2d(0.5), nn.Flatten(), nn.Linear(144, 3)), [1.0, 8.0, 8.0]),
    "train_norm": lambda: (nn.Sequential(nn.Conv2d(1, 4, 3, padding=1), nn.BatchNorm2d(4), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(),
                                         nn.Linear(64, 12), nn.BatchNorm1d(12), nn.Dropout(0.25), nn.Linear(12, 10)), [1.0, 8.0, 8.0]),
    "train_transformer": lambda: (Of(lambda net, x: net.out(net.encoder(net.embed(x)).mean(1)), embed=nn.Linear(5, 16),
                                     encoder=nn.TransformerEncoder(encoder_layer(16, 2, 32), 1, enable_nested_tensor=False), out=nn.Linear(16, 4)),
                                  [7.0, 5.0]),
    "line": lambda: (nn.Linear(1, 1), [1.0]),
    "softmax": lambda: (nn.Sequential(nn.Flatten(), nn.Linear(784, 10)), [1.0, 28.0, 28.0]),
    "head": lambda: (turned(nn.Sequential(nn.Linear(1, 1, bias=False), nn.Linear(1, 1))), [1.0]),
}


def input_of(shape, rows, start):
    index = torch.arange(start, start + rows * math.prod(int(n) for n in shape), dtype=torch.int64)
    numbers = index * 7 % 50 if isinstance(shape[0], int) else (index.double() * 0.01).sin().float()
    numbers = numbers < 25 if isinstance(shape, tuple) else numbers
    return numbers.reshape(rows, *(int(n) for n in shape))


def export(network, inputs, path):
    """Without the sample inputs, a pickle that is never read. Returns the exported network."""
    batch = torch.export.Dim("batch")
    program = torch.export.export(network, inputs, dynamic_shapes=tuple({0: batch} for _ in inputs))
    with tempfile.TemporaryDirectory() as folder:
        torch.export.save(program, os.path.join(folder, os.path.basename(path)))
        with zipfile.ZipFile(os.path.join(folder, os.path.basename(path))) as saved, zipfile.ZipFile(path, "w") as small:
            for member in saved.namelist():
                content = saved.read(member)
                if "/sample_inputs/" in member:
                    continue
                if member.endswith("/models/model.json"):
                    content = without_notes(content)
                small.writestr(zipfile.ZipInfo(member), content)
    return program.module()


def without_notes(model):
    """Drops where the code of a node was, which is most of the file and names this machine's folders."""
    description = json.loads(model)
    for node in description["graph_module"]["graph"]["nodes"]:
        node["metadata"] = {}
    return json.dumps(description, separators=(",", ":")).encode()


def results_of(network, inputs):
    outputs = network(*inputs)
    loss = functional.cross_entropy(outputs, torch.arange(ROWS) % outputs.shape[1])
    loss.backward()
    gradients = {name: p.grad.double().flatten() for name, p in network.named_parameters()}
    squares = {name: gradient.pow(2).sum().item() for name, gradient in gradients.items()}
    # Unlike the squares they tell signs and places apart.
    weighted = {name: torch.arange(len(gradient)).double().cos().dot(gradient).item() for name, gradient in gradients.items()}
    return {"torch": torch.__version__, "outputs": outputs.tolist(), "loss": loss.item(), "squared_gradients": squares,
            "weighted_gradients": weighted}


def main(folder, names):
    expected_path, expected = os.path.join(folder, "expected.json"), {}
    if os.path.exists(expected_path):
        with open(expected_path) as file:
            expected = json.load(file)
    for name in names:
        kind = name.partition("-")[0]  # mlp-2.9: the network mlp of another version
        torch.manual_seed(1)
        network, *shapes = NETWORKS[kind]()
        network.train(name.startswith("train_"))
        for module in network.modules():
            if isinstance(module, (nn.BatchNorm1d, nn.BatchNorm2d)):
                module.running_mean.uniform_(-0.5, 0.5), module.running_var.uniform_(0.5, 2)
        path = os.path.join(folder, f"{name}.pt2")
        exported = export(network, tuple(input_of(shape, 3, 0) for shape in shapes), path)
        if network.training:
            exported = network.eval()
        inputs = tuple(input_of(shape, ROWS, 1000 * i) for i, shape in enumerate(shapes))
        expected[name] = results_of(network, inputs)
        assert torch.allclose(exported(*inputs), torch.tensor(expected[name]["outputs"]), atol=1e-6), name
        print(name, os.path.getsize(path), expected[name]["loss"])
    with open(expected_path, "w") as file:
        json.dump(expected, file, indent=1, sort_keys=True)
        file.write("\n")


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2:] or list(NETWORKS))
