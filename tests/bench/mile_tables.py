"""The parts of mile_tables.sh that need numbers: splits, starts, the published figures, and the authors' package.

mile_tables.py split FOLDER OUT | start SEED CHAIN FILE FOLDER | published SET | rival OUT SEED EPOCHS MEMBERS
"""

import json
import os
import struct
import sys
import time

import numpy as np

PUBLISHED = {  # RMSE, NLL of normal laws with the ensemble's moments, seconds on 10 cores
    "airfoil": {"MILE, published, 5 seeds": (0.1215, -0.9126, 240), "TabPFN v2, published": (0.1359, -0.9338, 9),
                "XGBoost, published": (0.2025, None, 1)},
    "bikesharing": {"MILE, published, 5 seeds": (0.2261, -0.7315, 2553), "TabPFN v2, published": (0.2103, -0.6856, 1247),
                    "XGBoost, published": (0.2143, None, 2)},
}


def split(folder: str, out: str) -> None:
    """Writes the two parts, in units of the training part's deviations, and prints the number of training rows."""
    data = np.loadtxt(f"{folder}/data.csv", delimiter=",", skiprows=1)
    is_test = np.zeros(len(data), bool)
    is_test[np.loadtxt(f"{folder}/test_indices.txt", dtype=int, ndmin=2)[0]] = True
    train = data[~is_test]
    data = (data - train.mean(0)) / train.std(0)
    header = ",".join([f"x{i}" for i in range(data.shape[1] - 1)] + ["y"])
    for name, part in (("train", data[~is_test]), ("test", data[is_test])):
        np.savetxt(f"{out}/{name}.csv", part, delimiter=",", header=header, comments="")
    print(len(train))


def start(folder: str, seed: int, chain: int, path: str) -> None:
    """Writes a start as the authors' package draws it: weights N(0, 1 / inputs), biases 0; safetensors."""
    with open(f"{folder}/data.csv", encoding="utf-8") as file:
        sizes = [file.readline().count(","), 16, 16, 16, 16, 2]
    random = np.random.default_rng([seed, chain])
    head, body = {}, b""
    for layer, (inputs, outputs) in enumerate(zip(sizes[:-1], sizes[1:]), 1):
        weight = random.normal(size=(outputs, inputs)) / np.sqrt(inputs)
        for name, values in ((f"fc{layer}.weight", weight), (f"fc{layer}.bias", np.zeros(outputs))):
            raw = values.astype("<f4").tobytes()
            head[name] = {"dtype": "F32", "shape": list(values.shape), "data_offsets": [len(body), len(body) + len(raw)]}
            body += raw
    text = json.dumps(head).encode()
    text += b" " * (-len(text) % 8)
    with open(path, "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text + body)


def rival(out: str, seed: int, epochs: int, members: int) -> None:
    """The authors' package with the settings of its paper, one device for each core: RMSE, NLL of the mixture, seconds, CPU seconds."""
    os.environ["XLA_FLAGS"] = f"--xla_force_host_platform_device_count={os.cpu_count()}"
    from bde import BdeRegressor
    from bde.loss.loss import GaussianNLL

    train, test = (np.loadtxt(f"{out}/{part}.csv", delimiter=",", skiprows=1) for part in ("train", "test"))
    regressor = BdeRegressor(n_members=members, hidden_layers=[16] * 4, loss=GaussianNLL(), epochs=epochs,
                             validation_split=0.15, lr=1e-3, weight_decay=1e-4, warmup_steps=50000, n_samples=1000,
                             n_thinning=10, patience=20, seed=seed)
    began, used = time.time(), time.process_time()
    regressor.fit(train[:, :-1], train[:, -1])
    times = time.time() - began, time.process_time() - used
    outputs, y = np.asarray(regressor.predict(test[:, :-1], raw=True)).reshape(-1, len(test), 2), test[:, -1]
    mean, deviation = outputs[..., 0], np.logaddexp(outputs[..., 1], 0) + 1e-6
    logs = -np.log(np.sqrt(2 * np.pi) * deviation) - ((y - mean) / deviation) ** 2 / 2
    print(np.sqrt(np.mean((mean.mean(0) - y) ** 2)), -np.mean(np.logaddexp.reduce(logs, 0) - np.log(len(logs))), *times)


def published(name: str) -> None:
    for row, (rmse, nll, seconds) in PUBLISHED[name].items():
        print(f"| {row} | {rmse:.4f} | {'' if nll is None else f'{nll:.4f}'} | {seconds} on 10 cores | |")


def main(what: str, *arguments: str) -> None:
    if what == "split":
        split(*arguments)
    elif what == "start":
        seed, chain, path, folder = arguments
        start(folder, int(seed), int(chain), path)
    elif what == "rival":
        rival(arguments[0], *map(int, arguments[1:]))
    else:
        published(*arguments)


if __name__ == "__main__":
    main(*sys.argv[1:])
