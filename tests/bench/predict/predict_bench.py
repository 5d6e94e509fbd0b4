"""Measures predictions of a real server and its workers over the network, and of loops over the members in one process.

    python3 tests/bench/predict/predict_bench.py BIN [--python PYTHON] [--rounds 3] [--seconds 5] [--quick]
    python3 tests/bench/predict/predict_bench.py BIN --memory

BIN holds the programs, chainfleet-predict-load and chainfleet-member-loop among them. Networks lenet5 and mlp with 16 and 64 draws
(four chains, sampled here on Fashion-MNIST), requests of 1 and 64 rows in the datatype of ModelMetadata, UINT8, and of 64 rows in
FP32, 1 to 64 requests open at once; client, server and one worker of
two threads share the machine. Rivals run on two threads and have the machine to themselves: a loop over the members in LibTorch (C++)
and, with --python, torch.func.vmap over stacked parameters. That Python needs torch 2.11 and numpy (python3 -m venv V; V/bin/pip install
torch==2.11.0 numpy). Server and rivals take turns; the tables have the medians of the rounds. Before any timing all answers are compared
with each other. Prints tables in Markdown; takes about 25 minutes.

--memory: sends 100,000 requests of one row, and prints the resident memory of server and worker meanwhile.
"""
import argparse
import gzip
import json
import os
import statistics
import struct
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(os.path.dirname(HERE)))
BATCHES = "1,16,64,256,1024"
WIDTHS = "1,2,4,8,16,32,64"
TRAINED_ROWS = 6000
REQUESTS = {"1, UINT8": (1, "UINT8"), "64, UINT8": (64, "UINT8"), "64, FP32": (64, "FP32")}  # rows and datatype
FILES = {"UINT8": ".u8", "FP32": ".f32"}
MOST_GROWTH_MIB = 16  # growth of a process over 100,000 requests
JOB = """
name: {model}-{draws}
model: {{builtin: {model}}}
dataset: {{name: fashion}}
prior: {{gaussian: {{precision: 25}}}}
sampler: {{sgld: {{}}}}
learning_rate: {{constant: 0.02}}
temperature: 1.0e-4
batch_size: 128
num_steps: {steps}
burn_in: {{steps: {burn_in}}}
chains: 4
collect: {{every_steps: 10, kinds: [theta]}}
seed: 7
"""


def say(text):
    print(f"predict_bench: {text}", file=sys.stderr, flush=True)


def lines_of_json(*command, env=None):
    done = subprocess.run([str(word) for word in command], stdout=subprocess.PIPE, text=True, check=True, env=env)
    return [json.loads(line) for line in done.stdout.splitlines()]


def write_inputs(path, images, rows):
    """The first rows of an IDX file as they are, and beside them as float32 on the x / 255 scale, without numpy."""
    pixels = gzip.open(images).read()[16:16 + rows * 784]
    scale = [struct.pack("<f", value / 255) for value in range(256)]
    for datatype, values in (("UINT8", pixels), ("FP32", b"".join(scale[pixel] for pixel in pixels))):
        with open(path + FILES[datatype], "wb") as f:
            f.write(values)


def floats(path):
    with open(path, "rb") as f:
        content = f.read()
    return struct.unpack(f"<{len(content) // 4}f", content)


class Bench:
    def __init__(self, options, fleet, fashion):
        self.options, self.fleet = options, fleet
        self.inputs = fleet.path("inputs")
        write_inputs(self.inputs, f"{fashion}/t10k-images-idx3-ubyte.gz", 2048)
        dataset = next(d for d in fleet.json("dataset", "list")["datasets"] if d["name"] == "fashion")
        self.scale = [dataset["normalisation"]["mean"][0], dataset["normalisation"]["stddev"][0]]

    def sample(self, model, draws):
        """A finished job, its id; its draws as float32 in a file."""
        burn_in = 40 if self.options.quick else 400
        job = self.fleet.submit(JOB.format(model=model, draws=draws, steps=burn_in + 10 * draws // 4, burn_in=burn_in))
        self.fleet.run("wait", job, "--timeout", "600s", check=True)
        folder = self.fleet.path(f"{model}-{draws}")
        self.fleet.run("export", job, "--format", "safetensors", "-o", folder, check=True)
        with open(self.draws(model, draws), "wb") as f:
            for name in sorted(os.listdir(folder)):
                f.write(stacked_draws(os.path.join(folder, name)))
        return job

    def draws(self, model, draws):
        return self.fleet.path(f"{model}-{draws}.f32")

    def load(self, job, rows, widths, *more, datatype="UINT8"):
        return lines_of_json(os.path.join(self.options.tools, "chainfleet-predict-load"), "--address", self.fleet.address, "--job", job,
                             "--inputs", self.inputs + FILES[datatype], "--datatype", datatype, "--rows", rows, "--concurrency", widths,
                             *more)

    def rival(self, command, model, draws, *more):
        return lines_of_json(*command, "--model", model, "--draws", self.draws(model, draws), "--members", draws, "--inputs",
                             self.inputs + ".f32", "--mean", self.scale[0], "--stddev", self.scale[1], "--seconds", self.options.seconds,
                             *more, env={**os.environ, "OMP_WAIT_POLICY": "passive"})

    def loop(self):
        return [os.path.join(self.options.tools, "chainfleet-member-loop")]

    def vmap(self):
        return [self.options.python, "-B", os.path.join(HERE, "member_vmap.py")]

    def check(self, job, model, draws):
        """All who answer say the same of the first 64 rows."""
        import fleet as fleets
        with open(self.inputs + ".f32", "rb") as f:
            fleets.write_npy(self.fleet.path("x.npy"), "<f4", (64, 1, 28, 28), f.read(64 * 784 * 4))
        ours = self.fleet.json("predict", job, "--input", self.fleet.path("x.npy"))["scores"]["mean_probability"]
        for command in [self.loop()] + ([self.vmap()] if self.options.python else []):
            saved = self.fleet.path("answer.f32")
            self.rival(command, model, draws, "--save", saved, "--batches", "1")
            worst = max(abs(a - b) for a, b in zip(ours, floats(saved), strict=True))
            if worst > 1e-4:
                raise AssertionError(f"{command} and the server differ by {worst} over {draws} draws of {model}")
        say(f"{model}, {draws} draws: all answers agree")

    def measure(self, job, model, draws):
        """Rounds in turn: for each of REQUESTS {concurrency: figures}, for "loop" and "vmap" {batch: figures}."""
        found = {name: {} for name in (*REQUESTS, "loop", "vmap")}
        for turn in range(self.options.rounds):
            for name, (rows, datatype) in REQUESTS.items():
                for line in self.load(job, rows, WIDTHS, "--seconds", self.options.seconds, datatype=datatype):
                    if line["failed"] or line["refused"]:
                        raise AssertionError(f"{job}, {name}: {line}")
                    found[name].setdefault(line["concurrency"], []).append(line)
            for streams in (1, 2):
                for line in self.rival(self.loop(), model, draws, "--batches", BATCHES, "--streams", streams):
                    found["loop"].setdefault((line["batch"], streams), []).append(line)
            if self.options.python:
                for line in self.rival(self.vmap(), model, draws, "--batches", BATCHES):
                    found["vmap"].setdefault(line["batch"], []).append(line)
            say(f"{model}, {draws} draws: round {turn + 1} of {self.options.rounds}")
        return {name: {key: {figure: median(lines, figure) for figure in lines[0] if figure != "error"} for key, lines in table.items()}
                for name, table in found.items()}


def median(lines, name):
    return statistics.median(line[name] for line in lines)


def stacked_draws(path):
    """Returns the draws of an exported chain: [draws, D] float32, parameters in the network's order, from one tensor [draws, ...] for each."""
    with open(path, "rb") as f:
        content = f.read()
    length = struct.unpack("<Q", content[:8])[0]
    header = json.loads(content[8:8 + length])
    tensors = [(entry["data_offsets"][0], entry) for name, entry in header.items() if name.startswith("theta/")]
    parts = []
    for _, entry in sorted(tensors, key=lambda pair: pair[0]):
        begin, end = (8 + length + offset for offset in entry["data_offsets"])
        size = (end - begin) // entry["shape"][0]
        parts.append([content[begin + i * size:begin + (i + 1) * size] for i in range(entry["shape"][0])])
    return b"".join(b"".join(draw) for draw in zip(*parts, strict=True))


def best(table):
    return max((line["rows_per_s"] for line in table.values()), default=0)


def print_tables(results):
    print("| network, draws | rows of a request | open requests | requests/s | rows/s | p50, p95, p99 ms |\n| --- | --- | --- | --- | --- | --- |")
    for (model, draws), found in results.items():
        for name in REQUESTS:
            for width, line in sorted(found[name].items()):
                print(f"| {model}, {draws} | {name} | {width} | {line['requests_per_s']:.0f} | {line['rows_per_s']:.0f} | "
                      f"{line['p50_ms']:.1f}, {line['p95_ms']:.1f}, {line['p99_ms']:.1f} |")
    print(f"\n| network, draws | ours, rows/s: {'; '.join(REQUESTS)} | loop, best batch | vmap, best batch | ours / loop | ours / vmap |\n"
          "| --- | --- | --- | --- | --- | --- |")
    for (model, draws), found in results.items():
        ours, loop, vmap = [best(found[name]) for name in REQUESTS], best(found["loop"]), best(found["vmap"])
        ratio = f"{max(ours) / vmap:.2f}" if vmap else ""
        print(f"| {model}, {draws} | {'; '.join(f'{rate:.0f}' for rate in ours)} | {loop:.0f} | {vmap:.0f} | {max(ours) / loop:.2f} | {ratio} |")


def watch_memory(bench, job):
    fleet = bench.fleet
    requests = 1000 if bench.options.quick else 100000
    lines = bench.load(job, 1, "16", "--requests", requests, "--watch", f"{fleet.pid('server')},{fleet.pid('worker-0')}")
    print("| requests | server MiB | worker MiB |\n| --- | --- | --- |")
    for line in lines:
        if "after_requests" in line:
            print(f"| {line['after_requests']} | {line['resident_mib'][0]:.1f} | {line['resident_mib'][1]:.1f} |")
    print(f"\n{lines[-1]['requests_per_s']:.0f} requests/s, {lines[-1]['failed']} failed")
    seen = [line["resident_mib"] for line in lines if "resident_mib" in line]
    if lines[-1]["failed"] or any(now - then > MOST_GROWTH_MIB for then, now in zip(seen[0], seen[-1])):
        raise AssertionError(f"requests failed, or a process grew by more than {MOST_GROWTH_MIB} MiB")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("bin")
    parser.add_argument("--tools", help="folder of chainfleet-predict-load and chainfleet-member-loop; default: BIN")
    parser.add_argument("--python", help="a Python that has torch and numpy")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=4)
    parser.add_argument("--models", default="lenet5,mlp")
    parser.add_argument("--quick", action="store_true", help="one short round of each measurement, as a check")
    parser.add_argument("--memory", action="store_true")
    options = parser.parse_args()
    options.tools = options.tools or options.bin
    if options.quick:
        options.rounds, options.seconds = 1, 0.2
    os.environ["CHAINFLEET_BIN"] = options.bin
    os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:2])  # and with us all that we start
    sys.path.insert(0, os.path.join(ROOT, "tests", "support"))
    import fleet as fleets
    fleet = fleets.Fleet(workers=1, lease_seconds=15)
    try:
        fleet.up(threads=2)
        fleet.put_fashion("fashion", TRAINED_ROWS)
        bench = Bench(options, fleet, fleets.FASHION)
        if options.memory:
            return watch_memory(bench, bench.sample("lenet5", 16))
        results = {}
        for model in options.models.split(","):
            for draws in (16, 64):
                job = bench.sample(model, draws)
                bench.check(job, model, draws)
                results[model, draws] = bench.measure(job, model, draws)
        print_tables(results)
    finally:
        fleet.close()


if __name__ == "__main__":
    main()
