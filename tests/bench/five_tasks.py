#!/usr/bin/env python3
"""Lines and seconds of five tasks, as users typed them before there was a Python package and HTTP, and as they do now.

  CHAINFLEET_BIN=build/release/bin /usr/bin/python3 -B tests/bench/five_tasks.py

Both ways use the programs of today, one server and two workers. Before and after take turns; seconds are medians of all
that a user waits for, the start of Python and the sampling included. Lines are those of the job file, too.
"""
import os
import re
import statistics
import subprocess
import sys
import tempfile
import time

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, os.path.join(ROOT, "tests", "support"))
os.environ.setdefault("CHAINFLEET_BIN", os.path.join(ROOT, "build", "release", "bin"))

import fleet as fleets
import numpy

ROUNDS = 5
# `python3` of the tasks: Debian's, with the package of the tree. torch needs the newest wheels.
PYTHON = f"""#!/bin/sh
export PYTHONPATH={ROOT}/tests/support
if grep -q "import torch" "$1"; then CHAINFLEET_NEWEST_WHEELS=1 exec /usr/bin/python3 -Bc 'import sys, runpy, real_torch; runpy.run_path(sys.argv[1])' "$1"
else exec /usr/bin/python3 -Bc 'import sys, runpy, python_package; runpy.run_path(sys.argv[1])' "$1"; fi
"""
JOB = """name: {name}
model: {model}
dataset: {{name: {name}}}
prior: {{gaussian: {{precision: 1}}}}
sampler: {{emcmc: {{eta: 4.0e-4}}}}
learning_rate: {{constant: 0.1}}
batch_size: 128
num_epochs: 40
chains: 2
collect: {{last_epochs_of_cycle: 20}}
seed: 1
"""
SAMPLE = """job = fleet.sample({model}, data=(train["x"], train["y"]), sampler=cf.EMCMC(eta=4e-4), chains=2,
                   epochs=40, learning_rate=0.1, name="{name}", seed=1)
p = job.predict(np.load("new.npy"))
"""
CONNECT = """import numpy as np
import chainfleet as cf
fleet = cf.connect()
"""
LOAD = 'train = np.load("train.npz")\n'
MODULE = "torch.nn.Sequential(torch.nn.Linear(2, 32), torch.nn.Tanh(), torch.nn.Linear(32, 2))"
# Task: (before, after), each a list of ("sh", commands), ("python", program) or (name of a file, its lines).
TASKS = {
    "own data": ([("mine.yaml", JOB.format(name="mine", model="{builtin: mlp, hidden: [32]}")), ("sh", """chainfleet dataset put mine train.npz
chainfleet submit -f mine.yaml --follow
chainfleet predict mine --input new.npy --output p.npz
""")], [("python", CONNECT + LOAD + SAMPLE.format(model='cf.Model(builtin="mlp", hidden=[32])', name="mine"))]),
    "own module": ([("python", f"""import torch
module = {MODULE}
torch.jit.script(module).save("own.pt")
"""), ("own.yaml", JOB.format(name="own", model="{torchscript: own}")), ("sh", """chainfleet model put own own.pt
chainfleet dataset put own train.npz
chainfleet submit -f own.yaml --follow
chainfleet predict own --input new.npy --output p.npz
""")], [("python", "import torch\n" + CONNECT + LOAD + f"module = {MODULE}\n" + SAMPLE.format(model="module", name="own"))]),
    "traces in ArviZ": ([("sh", "chainfleet export mine --format npz --output draws.npz\n"), ("python", """import arviz as az
import numpy as np
draws = np.load("draws.npz")
posterior = {name.removeprefix("theta/"): draws[name] for name in draws.files if name.startswith("theta/")}
idata = az.from_dict(posterior=posterior)
az.rhat(idata)
""")], [("python", """import arviz as az
import chainfleet as cf
idata = cf.connect().job("mine").to_arviz()
az.rhat(idata)
""")]),
    "predictions from a notebook": ([("python", """import os
import numpy as np
x = np.random.default_rng(1).normal(size=(200, 2))
np.save("x.npy", x.astype(np.float32))
os.system("chainfleet predict mine --input x.npy --output p.npz")
p = np.load("p.npz")
entropy = p["predictive_entropy"]
""")], [("python", CONNECT + """x = np.random.default_rng(1).normal(size=(200, 2))
entropy = fleet.job("mine").predict(x).predictive_entropy
""")]),
    "predictions from curl": (None, [("sh", """curl -sf $HTTP/v2/models/mine/infer -d '{"inputs": [{"name": "x", "shape": [1, 2], "datatype": "FP32", "data": [0.5, 0.2]}]}'
""")]),
}


def lines(parts):
    return sum(len(text.splitlines()) for _, text in parts)


def seconds(parts, folder, environment, turn):
    """Files are written before the time is taken. A model of other content needs another name each time."""
    commands = []
    for number, (kind, text) in enumerate(tuple(re.sub(r"\bown\b", f"own{turn}", said) for said in part) for part in parts):
        name = kind if "." in kind else f"part{number}.{kind}"
        with open(os.path.join(folder, name), "w", encoding="utf-8") as file:
            file.write(text)
        commands += {"sh": [["bash", "-euo", "pipefail", name]], "python": [["python3", name]]}.get(kind, [])
    begin = time.monotonic()
    for command in commands:
        subprocess.run(command, cwd=folder, env=environment, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    return time.monotonic() - begin


def moons(rows):
    source = numpy.random.default_rng(1)
    angle, y = numpy.pi * source.random(rows), source.integers(0, 2, rows)
    x = numpy.stack([numpy.cos(angle), numpy.sin(angle)], axis=1)
    x[y == 1] = [1.0, 0.5] - x[y == 1]
    return (x + 0.1 * source.normal(size=x.shape)).astype(numpy.float32), y


def main():
    fleet = fleets.Fleet(workers=2, lease_seconds=15)
    with tempfile.TemporaryDirectory(prefix="chainfleet-tasks-") as folder:
        try:
            fleet.up("--allow-modules")
            x, y = moons(1200)
            numpy.savez(os.path.join(folder, "train.npz"), x=x[:1000], y=y[:1000])
            numpy.save(os.path.join(folder, "new.npy"), x[1000:])
            os.mkdir(os.path.join(folder, "bin"))
            with open(os.path.join(folder, "bin", "python3"), "w", encoding="utf-8", opener=lambda path, flags: os.open(path, flags, 0o755)) as file:
                file.write(PYTHON)
            path = os.pathsep.join([os.path.join(folder, "bin"), os.path.abspath(fleets.BIN), "/usr/bin", "/bin"])
            environment = {**os.environ, "PATH": path, "CHAINFLEET_ADDRESS": fleet.address, "HTTP": fleet.http_address}
            print("| task | lines before | after | seconds before | after |\n| --- | --- | --- | --- | --- |")
            for task, ways in TASKS.items():
                taken = [[seconds(parts, folder, environment, turn) if parts else None for parts in ways] for turn in range(ROUNDS)]
                medians = ["-" if parts is None else f"{statistics.median(times):.2f}" for parts, times in zip(ways, zip(*taken))]
                print(f"| {task} |", " | ".join([*("-" if parts is None else str(lines(parts)) for parts in ways), *medians]), "|")
        except subprocess.CalledProcessError as error:
            sys.exit(f"{error}\n{error.stderr.decode()}")
        finally:
            fleet.close()


if __name__ == "__main__":
    main()
