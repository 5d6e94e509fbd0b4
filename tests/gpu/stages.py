"""Runs the stages that run.sh describes."""
import argparse
import importlib.util
import json
import os
import subprocess
import sys
import time

from parts import Part, print_table, run

HERE = os.path.dirname(os.path.abspath(__file__))
SECONDS = 520  # for a stage; a host is lent for at most ten minutes


class Host:
    """Paths and sizes of this measurement."""

    def __init__(self, rehearse):
        self.rehearse = rehearse
        self.bundle = os.path.abspath(os.path.join(HERE, "..", "..", ".."))
        torch = importlib.util.find_spec("torch")
        self.torch = os.environ.get("CHAINFLEET_TORCH_ROOT") or (torch and os.path.dirname(torch.origin))
        # A rehearsal has LibTorch, but perhaps no Python that can import it.
        self.has_torch = torch is not None
        self.has_jax = importlib.util.find_spec("jax") is not None
        self.built = os.path.join(self.bundle, "built")
        self.torch_device = "cpu" if rehearse else "cuda"
        self.left_out = []

    def libraries(self):
        """The service's own come first, but for its own processes only."""
        folders = [os.path.join(self.bundle, "lib"), os.path.join(self.torch, "lib"), os.environ.get("LD_LIBRARY_PATH", "")]
        return {"LD_LIBRARY_PATH": ":".join(f for f in folders if f), "CHAINFLEET_BIN": os.path.join(self.bundle, "bin")}

    def binary(self, name):
        """The one that stage a built here, else the one that came with the bundle."""
        built = os.path.join(self.built, "bin", name)
        return built if os.path.exists(built) else os.path.join(self.bundle, "bin", name)


def python(script, *arguments):
    return [sys.executable, "-B", os.path.join(HERE, script), *map(str, arguments)]


def description(command):
    try:
        return subprocess.run(command, capture_output=True, text=True, timeout=30).stdout.strip().splitlines()
    except (OSError, subprocess.TimeoutExpired):
        return None


def parts_of_a(host):
    small = host.rehearse
    targets = ["chain_rate", "cuda_parity_test", "chainfleet_cuda"] + ["fake_cuda"] * small
    yield Part("build", "Build", 240, ["bash", os.path.join(HERE, "build.sh"), host.bundle, host.torch, host.built, *targets])
    # The fake GPU has no TF32, whose test is skipped there; the test of the bundle has networks that are narrow enough for it.
    skips, selected = (1, "*Tf32*:*MoreChains*:*Predictions*") if small else (0, "*")
    test = os.path.join(host.bundle, "bin", "cuda_parity_test") if small else host.binary("cuda_parity_test")
    yield Part("parity with the CPU", "Parity", 150, python("parity.py", skips, selected, test), host.libraries())
    if host.has_torch:
        size, seconds = (64, 0.01) if small else (8192, 1)
        yield Part("ceilings", "Ceilings", 60, python("ceilings.py", host.torch_device, seconds, size))
        shapes = (0.01, 2, 2, "lenet5") if small else (0.05, 128, 8, "lenet5", "resnet20-frn", "resnet18", "vgg16", "preresnet164")
        yield Part("convolutions", "Convolutions, forward and backward", 120, python("convolutions.py", host.torch_device, *shapes))
    sanitizer = description(["compute-sanitizer", "--version"])
    if sanitizer is None:
        host.left_out.append("compute-sanitizer is not installed")
    for tool in ("memcheck", "racecheck", "synccheck") if sanitizer else ():
        command = ["compute-sanitizer", "--tool", tool, "--error-exitcode", "9", test]
        yield Part(tool, "compute-sanitizer", 60, python("parity.py", 0, "*ChainsThatLeave*/*_1:*ChainsThatLeave*/*_4", *command),
                   host.libraries())


# Network, width in a rehearsal, and by precision the numbers of chains.
RATES = [("lenet5", 0.25, {"float32": [64, 256, 1024], "tf32": [256]}), ("mlp", 0.25, {"float32": [64, 1024]}),
         ("resnet18", 0.0625, {"float32": [4, 16, 32], "tf32": [4, 32]}),
         ("resnet20-frn", 0.25, {"float32": [4, 32], "tf32": [32]})]
# Network, chains, precision.
RIVALS = [("lenet5", 64, "float32"), ("resnet18", 4, "float32"), ("resnet18", 4, "tf32"), ("mlp", 64, "float32"),
          ("resnet20-frn", 4, "float32"), ("lenet5", 256, "float32")]


def parts_of_b(host):
    table, seconds, batch = "Chain-steps per second", (0.2 if host.rehearse else 3), (2 if host.rehearse else 128)
    for network, width, chains_by_precision in RATES:
        for precision, all_chains in chains_by_precision.items():
            if host.rehearse and precision != "float32":
                continue
            for chains in [2] if host.rehearse else all_chains:
                settings = ["cuda:0", network, width if host.rehearse else 1, batch, chains, precision, seconds]
                yield Part(f"{network} {precision} C={chains}", table, 60, [host.binary("chain_rate"), *map(str, settings)], host.libraries())
    frameworks = ["vmap", "loop"] * host.has_torch + ["jax"] * host.has_jax
    for network, chains, precision in RIVALS[:1] if host.rehearse else RIVALS:
        for framework in frameworks:
            settings = [framework, host.torch_device, network, batch, 2 if host.rehearse else chains, precision, seconds]
            yield Part(f"{framework} {network} {precision} C={chains}", table, 45, python("rivals.py", *settings))


def parts_of_c(host):
    jobs = [("lenet5", 1, 128, 256, 4000, 4000), ("resnet18", 1, 128, 4, 400, 2000)]
    if host.rehearse:
        jobs = [("lenet5", 0.25, 8, 3, 400, 80)]
    for job in jobs:
        yield Part(f"EMCMC {job[0]}", "The service, a worker killed", 250, python("service.py", "cuda:0", *job), host.libraries())


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("stage", choices="abc")
    parser.add_argument("--out", default=os.environ.get("OUT"))
    parser.add_argument("--rehearse", action="store_true")
    options = parser.parse_args()
    began, host = time.monotonic(), Host(options.rehearse)
    if not host.torch:
        sys.exit("run.sh: python3 has no torch; CHAINFLEET_TORCH_ROOT may name its folder")
    for name, there in (("PyTorch for Python", host.has_torch), ("JAX", host.has_jax)):
        if not there:
            host.left_out.append(f"{name} is not installed")
    with open(os.path.join(host.bundle, "COMMIT")) as f:
        commit = f.read().strip()
    records = []
    result = {"stage": options.stage, "commit": commit, "rehearsal": options.rehearse,
              "gpu": description(["nvidia-smi", "--query-gpu=name,driver_version,memory.total", "--format=csv,noheader"]),
              "compiler": (description(["c++", "--version"]) or [None])[0], "left_out": host.left_out, "parts": records}
    out = options.out or host.bundle
    os.makedirs(out, exist_ok=True)
    path = os.path.join(out, f"gpu_{options.stage}.json")
    for part in {"a": parts_of_a, "b": parts_of_b, "c": parts_of_c}[options.stage](host):
        if host.rehearse:
            part.seconds *= 10  # a small host, which others use too
        record = run(part, (10 if host.rehearse else 1) * SECONDS - (time.monotonic() - began))
        records.append(record)
        print(f"{time.monotonic() - began:5.0f} s  {part.name}: {'ok' if record['ok'] else 'FAILED, ' + record['error']}", flush=True)
        for line in record.get("log", []):
            print(f"          {line}")
        with open(path, "w") as f:  # after each part: the host may be taken away
            json.dump({**result, "seconds": time.monotonic() - began}, f, indent=1)
    for table in dict.fromkeys(record["table"] for record in records):
        rows = [row for record in records if record["table"] == table for row in record["rows"]]
        if rows:
            print_table(table, rows)
    for line in host.left_out:
        print(f"left out: {line}")
    failed = [record["part"] for record in records if not record["ok"]]
    print(f"\n{path}: {len(records)} parts, failed: {', '.join(failed) or 'none'}")
    sys.exit(bool(failed))


if __name__ == "__main__":
    main()
