#!/usr/bin/python3
"""Samples CIFAR-10 with the network of the HMC reference of Izmailov et al. (ICML 2021), and prints accuracy, NLL, ECE,
agreement and total variation against that reference as a table in Markdown. Not part of the tests.

    tests/bench/cifar_tables.py DATA [BIN] [--budget small|full] [--cpu-seconds N] [--only REGEX]

DATA holds cifar10/*.bin.xz and hmc-cifar10/probs_official_order.npy; BIN the binaries (default: build/release/bin).
Every method gets the same number of gradients of one image. With --cpu-seconds it gets as many passes as N seconds of
processor allow, by two runs with few passes over 1,000 images. small takes about two minutes of 2 quiet cores for each
method; full needs a GPU. --only: methods whose names match REGEX.
"""

import argparse
import json
import lzma
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import time

import numpy as np

BUDGETS = {  # files and images of the training data, test images, passes of a chain, chains, networks, cycles, workers
    "small": (1, 5_000, 2_000, 4, 2, 4, 1, ["--workers", "2", "--threads", "1"]),
    "full": (5, 50_000, 10_000, 200, 4, 32, 4, ["--device", "cuda:0"]),  # passes and cycles of the EMCMC paper
}


def residual(channels, stride):
    conv, widen = ({"conv": {"out_channels": channels, "padding": 1, "stride": s}} for s in (1, stride))
    block = {"branch": [widen, {"frn": {}}, {"silu": {}}, conv, {"frn": {}}]}
    if stride == 2:
        block["shortcut"] = [{"conv": {"out_channels": channels, "kernel": 1, "stride": 2}}, {"frn": {}}]
    return [{"residual": block}, {"silu": {}}]


BATCH = 50
PROBE = 1_000  # images


# As in the reference's public code: swish, and biases and thresholds everywhere.
LAYERS = [{"conv": {"out_channels": 16, "padding": 1}}, {"frn": {}}, {"silu": {}}]
for width, first in ((16, 1), (32, 2), (64, 2)):
    LAYERS += residual(width, first) + residual(width, 1) + residual(width, 1)
LAYERS += [{"global_avg_pool": {}}, {"linear": {}}]


def methods(passes, images, chains, networks, cycles):
    """Yields the name and the settings of each method. Rates with momentum 0.9 are a tenth of those without."""
    draws = networks // chains // cycles

    def cyclical(sampler, rate, last=draws, **settings):
        return {"sampler": sampler, "learning_rate": {"cyclical": {"initial": rate, "cycles": cycles}},
                "collect": {"last_epochs_of_cycle": last}} | settings

    def ensemble(members):
        return cyclical({"sgd": {}}, 0.02, 1, chains=members, num_epochs=passes * chains // members) | {
            "learning_rate": {"cyclical": {"initial": 0.02}}}

    yield f"deep ensemble, {networks} networks", ensemble(networks)
    yield "SGLD", cyclical({"sgld": {}}, 0.2)
    yield "SGHMC", cyclical({"sghmc": {}}, 0.02)
    yield "EMCMC", cyclical({"emcmc": {}}, 0.2, draws // 2)  # two networks for each draw
    swag = {"start_epoch": passes // 2, "draws": networks // chains, "max_rank": max(2, passes // 10)}
    yield "SWAG", {"sampler": {"swag": swag},
                   "learning_rate": {"swag": {"initial": 0.02, "final": 0.005, "start_epoch": passes // 2}}}
    yield f"deep ensemble, {chains} networks", ensemble(chains)
    yield "SGLD, T = 1", cyclical({"sgld": {}}, 0.2, temperature=1)
    # Passes of mile: one for a step of its descent, two for a step of its dynamics.
    members = max(1, passes * chains // 200)
    descent = passes * chains // members // 2
    steps, kept = descent // 2, max(1, networks // members)
    mile = {"optimizer_steps": descent, "warm_up_steps": max(0, steps - kept)}
    yield "MILE", {"sampler": {"mile": mile}, "temperature": 1, "learning_rate": 0.003, "chains": members,
                   "num_steps": descent + steps}
    # Passes of smile: one for the batches of a descent, two for those of its dynamics.
    batches = passes * images // BATCH // 2
    smile = {"optimizer_steps": batches, "warm_up_steps": batches // 4}
    yield "SMILE", {"sampler": {"smile": smile}, "temperature": 1, "learning_rate": 0.001,
                    "num_steps": batches + batches // 2, "collect": {"every_steps": max(1, batches // 4 // draws)}}


def chainfleet(*arguments, stderr=None):
    command = ["chainfleet", *map(str, arguments)]
    return subprocess.run(command, check=True, stdout=subprocess.PIPE, stderr=stderr, text=True).stdout.strip()


def cpu_seconds(fleet):
    """The CPU time of the fleet's workers, without that of a worker which has ended."""
    used = 0
    for file in (fleet / "run").glob("worker-*.pid"):
        stat = pathlib.Path(f"/proc/{file.read_text().strip()}/stat")
        fields = stat.read_text().rpartition(")")[2].split() if stat.exists() else ["0"] * 13
        used += (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
    return used


def scores(p, labels, reference):
    confidence, right = p.max(1), p.argmax(1) == labels
    bins = np.ceil(confidence * 15)
    gaps = [abs((right - confidence)[bins == b].sum()) for b in range(16)]
    nll = -np.log(p[np.arange(len(p)), labels]).mean()
    same = p.argmax(1) == reference.argmax(1)
    return (f"{100 * right.mean():.2f} | {nll:.4f} | {100 * sum(gaps) / len(p):.2f} | {100 * same.mean():.2f} | "
            f"{abs(p - reference).sum(1).mean() / 2:.4f}")


def main():
    parser = argparse.ArgumentParser(usage=__doc__)
    parser.add_argument("data", type=pathlib.Path)
    parser.add_argument("bin", nargs="?", default=pathlib.Path(__file__).parents[2] / "build/release/bin")
    parser.add_argument("--budget", choices=BUDGETS, default="small")
    parser.add_argument("--cpu-seconds", type=float, help="of both workers, for each method")
    parser.add_argument("--only", default="", help="a regular expression")
    options = parser.parse_args()
    files, images, tests, passes, chains, networks, cycles, workers = BUDGETS[options.budget]
    fewest = networks // chains  # a draw after each; one pass for each network of the largest ensemble

    def job_of(name, passes, images, dataset):
        settings = dict(methods(passes, images, chains, networks, cycles))[name]
        # The paper's table 3: a prior variance of 1/5 for the HMC chains.
        job = {"name": "table", "model": {"layers": LAYERS}, "dataset": {"name": dataset}, "seed": 3,
               "batch_size": BATCH, "prior": {"gaussian": {"precision": 5}}, "temperature": 1e-4,
               "num_epochs": passes, "chains": chains} | settings
        if "num_steps" in job:
            del job["num_epochs"]
        return job

    os.environ["PATH"] = f"{options.bin}:{os.environ['PATH']}"

    def records(name):
        raw = lzma.open(options.data / "cifar10" / f"{name}.bin.xz").read()
        return np.frombuffer(raw, np.uint8).reshape(-1, 3073)

    train = np.concatenate([records(f"data_batch_{i + 1}") for i in range(files)])[:images]
    test = records("test_batch")[:tests]
    reference = np.load(options.data / "hmc-cifar10/probs_official_order.npy")[:tests]
    print("| method | networks | accuracy % | NLL | ECE % | agreement % | total variation | passes | seconds |"
          " CPU seconds |\n" + "| --- " * 10 + "|")
    print(f"| the HMC reference | | {scores(reference, test[:, 0], reference)} | | | |", flush=True)

    with tempfile.TemporaryDirectory() as work:
        work = pathlib.Path(work)
        train.tofile(work / "train.bin")
        train[:PROBE].tofile(work / "probe.bin")
        np.save(work / "test.npy", test[:, 1:].reshape(-1, 3, 32, 32))
        fleet = ["--data-dir", work / "fleet"]
        chainfleet("up", *fleet, "--listen", "127.0.0.1:0", "--metrics-listen", "off", "--http-listen", "off", *workers)
        try:
            ports = json.loads((work / "fleet/run/ports.json").read_text())
            os.environ["CHAINFLEET_ADDRESS"] = f"127.0.0.1:{ports['grpc']}"
            for dataset in ("train", "probe"):
                chainfleet("dataset", "put", dataset, work / f"{dataset}.bin")

            def sample(job):
                """Returns the id of the job, and its seconds and CPU seconds."""
                (work / "job.json").write_text(json.dumps(job))
                begun, used = time.monotonic(), cpu_seconds(work / "fleet")
                id_ = chainfleet("submit", "-f", work / "job.json", "-o", "name")
                chainfleet("wait", id_, "--timeout", "86400s")
                return id_, time.monotonic() - begun, cpu_seconds(work / "fleet") - used

            for name, _ in methods(passes, images, chains, networks, cycles):
                if not re.search(options.only, name):
                    continue
                print(f"{time.strftime('%T')} cifar_tables: {name}", file=sys.stderr, flush=True)
                if options.cpu_seconds:
                    first, second = (sample(job_of(name, count, PROBE, "probe"))[2] for count in (fewest, 2 * fewest))
                    # The difference is without what each job costs to begin.
                    afforded = options.cpu_seconds / max(second - first, 0.1) * fewest * PROBE / images
                    passes = max(fewest, round(afforded / cycles) * cycles)  # the cycles of a schedule are equal
                job = job_of(name, passes, images, "train")
                id_, seconds, used = sample(job)
                times = f"{passes} | {seconds:.0f} | {used:.0f}"
                said = chainfleet("predict", id_, "--input", work / "test.npy", "--output", work / "p.npz",
                                  "--timeout", "3600s", stderr=subprocess.STDOUT)
                count = int(re.search(r"average of (\d+)", said)[1]) * (2 if "emcmc" in job["sampler"] else 1)
                p = np.load(work / "p.npz")["mean_probability"]
                print(f"| {name} | {count} | {scores(p, test[:, 0], reference)} | {times} |", flush=True)
        finally:
            chainfleet("down", *fleet)


if __name__ == "__main__":
    main()
