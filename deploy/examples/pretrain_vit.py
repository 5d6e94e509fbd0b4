#!/usr/bin/env python3
"""Trains a small vision transformer on the first 1,000 digits of deploy/data, and saves its weights.

  deploy/examples/pretrain_vit.py vit.pt

It needs numpy and PyTorch. docs/guides/lora.md adapts the network to another task.
"""

import gzip
import pathlib
import sys

import numpy as np
import torch
from torch import nn
from torch.nn import functional

DATA = pathlib.Path(__file__).resolve().parents[1] / "data"
KNOWN = 1000  # rows to train on


def digits():
    """Images uint8 [2000, 1, 28, 28] and labels int64 [2000]."""
    images = gzip.decompress((DATA / "mnist-2000-images-idx3-ubyte.gz").read_bytes())
    labels = gzip.decompress((DATA / "mnist-2000-labels-idx1-ubyte.gz").read_bytes())
    pixels = np.frombuffer(images, np.uint8, offset=16).reshape(-1, 1, 28, 28)  # after the headers of IDX
    return pixels.copy(), np.frombuffer(labels, np.uint8, offset=8).astype(np.int64)


def standardised(images):
    """Images as the network takes them: float32, by the mean and the deviation of the rows that it was trained on."""
    known = digits()[0][:KNOWN]
    return ((images - known.mean()) / known.std()).astype(np.float32)


class Attention(nn.Module):
    """Self-attention in plain products, which torch.export keeps as such."""

    def __init__(self, dim, heads):
        super().__init__()
        self.heads = heads
        self.query, self.key, self.value, self.out = (nn.Linear(dim, dim) for _ in range(4))

    def split(self, x):
        """[n, tokens, dim] as [n, heads, tokens, dim / heads]."""
        return x.unflatten(2, (self.heads, -1)).transpose(1, 2)

    def forward(self, x):
        query, key, value = self.split(self.query(x)), self.split(self.key(x)), self.split(self.value(x))
        weights = torch.softmax(query @ key.transpose(2, 3) / query.shape[3] ** 0.5, dim=3)
        return self.out((weights @ value).transpose(1, 2).flatten(2))


class Block(nn.Module):
    def __init__(self, dim, heads):
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(dim), nn.LayerNorm(dim)
        self.attention = Attention(dim, heads)
        self.up, self.down = nn.Linear(dim, 2 * dim), nn.Linear(2 * dim, dim)

    def forward(self, x):
        x = x + self.attention(self.norm1(x))
        return x + self.down(functional.gelu(self.up(self.norm2(x))))


class ViT(nn.Module):
    """Logits [n, 10] of standardised images float32 [n, 1, 28, 28]. Each patch of 7 x 7 pixels is a token."""

    def __init__(self, dim=32, blocks=2, heads=4):
        super().__init__()
        self.patches = nn.Conv2d(1, dim, kernel_size=7, stride=7)
        self.positions = nn.Parameter(0.1 * torch.randn(16, dim))
        self.blocks = nn.Sequential(*(Block(dim, heads) for _ in range(blocks)))
        self.norm, self.head = nn.LayerNorm(dim), nn.Linear(dim, 10)

    def forward(self, x):
        tokens = self.patches(x).flatten(2).transpose(1, 2) + self.positions
        return self.head(self.norm(self.blocks(tokens)).mean(dim=1))


def shifted(x):
    """Each image moved by at most one pixel in each direction: without it a thousand images are learned by heart."""
    rows, columns = (torch.randint(0, 3, (len(x), 1)) + torch.arange(28) for _ in range(2))
    padded = functional.pad(x[:, 0], (1, 1, 1, 1), value=x.min().item())
    return padded[torch.arange(len(x))[:, None, None], rows[:, :, None], columns[:, None, :]].unsqueeze(1)


def pretrain(epochs=60, batch=50):
    torch.manual_seed(1)
    images, labels = digits()
    x, y = torch.from_numpy(standardised(images[:KNOWN])), torch.from_numpy(labels[:KNOWN])
    net = ViT()
    optimizer = torch.optim.AdamW(net.parameters(), weight_decay=0.05)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, max_lr=3e-3, total_steps=epochs * KNOWN // batch)
    for _ in range(epochs):
        for rows in torch.randperm(KNOWN).split(batch):
            loss = functional.cross_entropy(net(shifted(x[rows])), y[rows])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            schedule.step()
    return net.eval()


def main(path):
    torch.save(pretrain().state_dict(), path)


if __name__ == "__main__":
    main(sys.argv[1])
