"""A real server, real workers and the real command line on free ports, for end-to-end and fault tests. Standard library only.

Waiting is done by the product's own blocking verbs (`up`, `watch`, `wait`), each with a bound; nothing here sleeps.
"""
import gzip
import json
import os
import select
import random
import shutil
import signal
import struct
import subprocess
import tempfile

BIN = os.environ["CHAINFLEET_BIN"]
FASHION = "/usr/share/datasets/fashion-mnist"


def walk(num_steps=100, chains=2):
    """The text of a small job that needs no data: a walk over a Gaussian."""
    return f"""
name: walk
model: {{potential: {{gaussian: {{dimension: 3}}}}}}
sampler: {{sgld: {{}}}}
step_size: {{constant: 0.1}}
num_steps: {num_steps}
chains: {chains}
collect: {{every_steps: 10}}
"""


def write_npy(path, descr, shape, data):
    header = f"{{'descr': '{descr}', 'fortran_order': False, 'shape': {shape!r}, }}".encode()
    header += b" " * (63 - (10 + len(header)) % 64) + b"\n"
    with open(path, "wb") as f:
        f.write(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header + data)


def pki(folder, *arguments):
    subprocess.run([os.path.join(BIN, "chainfleet"), "pki", *arguments, "--folder", folder], check=True, capture_output=True)


class Fleet:
    """Owns a data directory and everything started in it; `close` leaves no process behind."""

    def __init__(self, workers=2, lease_seconds=2, data_dir=None, environment=None):
        self.folder = data_dir or tempfile.mkdtemp(prefix="chainfleet-e2e-")
        self.workers = workers
        self.lease_seconds = lease_seconds
        self.environment = environment or {}
        self.address = self.metrics_address = self.http_address = None  # known once up

    def up(self, *flags, threads=1):
        self.run("up", *flags, "--data-dir", self.folder, "--listen", "127.0.0.1:0", "--workers", str(self.workers), "--threads", str(threads),
                 "--lease", f"{self.lease_seconds}s", check=True)
        with open(self.path("run", "ports.json")) as f:
            ports = json.load(f)
        self.address = f"127.0.0.1:{ports['grpc']}"
        self.metrics_address = f"127.0.0.1:{ports['metrics']}"
        self.http_address = f"127.0.0.1:{ports['http']}"

    def path(self, *parts):
        return os.path.join(self.folder, *parts)

    def pid(self, name):
        with open(self.path("run", name + ".pid")) as f:
            return int(f.read())

    def kill(self, name):
        """Returns when the process is gone: `up` would take it for a running one until then."""
        pid = self.pid(name)
        process = os.pidfd_open(pid)
        try:
            os.kill(pid, signal.SIGKILL)
            if not select.select([process], [], [], 30)[0]:
                raise AssertionError(f"{name} does not end")
        finally:
            os.close(process)

    def run(self, *arguments, check=False, timeout=300, env=None, stdin=None):
        """The finished command; `check` fails the test with what it printed."""
        done = subprocess.run([os.path.join(BIN, "chainfleet"), *arguments], capture_output=True, text=True, timeout=timeout, stdin=stdin,
                              env={**os.environ, **self.environment, "CHAINFLEET_ADDRESS": self.address or "", **(env or {})})
        if check and done.returncode != 0:
            raise AssertionError(f"chainfleet {' '.join(arguments)}: exit {done.returncode}\n{done.stdout}\n{done.stderr}\n{self.logs()}")
        return done

    def pki(self, *arguments, folder="pki"):
        """Makes certificates in the folder `pki`, or `folder`."""
        pki(self.path(folder), *arguments)

    def json(self, *arguments, **options):
        return json.loads(self.run(*arguments, "-o", "json", check=True, **options).stdout)

    def watch(self, job):
        """Yields the job after each change until it is final."""
        process = subprocess.Popen([os.path.join(BIN, "chainfleet"), "watch", job, "-o", "jsonl"], stdout=subprocess.PIPE, text=True,
                                   env={**os.environ, **self.environment, "CHAINFLEET_ADDRESS": self.address})
        try:
            for line in process.stdout:
                yield json.loads(line)
        finally:
            process.kill()
            process.wait()
            process.stdout.close()

    def wait_for_draws(self, job, draws):
        """The job as soon as so many draws are committed."""
        for state in self.watch(job):
            if int(state.get("num_draws", 0)) >= draws:
                return state
        raise AssertionError(f"{job} ended before {draws} draws were committed\n{self.logs()}")

    def submit_status(self, text, check=False):
        path = tempfile.mktemp(suffix=".yaml")
        with open(path, "w") as f:
            f.write(text)
        try:
            return self.run("submit", "-f", path, "-o", "name", check=check)
        finally:
            os.remove(path)

    def submit(self, text):
        """The id of the new job."""
        return self.submit_status(text, check=True).stdout.strip()

    def put_fashion(self, name, rows, *flags):
        """The first `rows` training images of Fashion-MNIST as a data set."""
        files = []
        for kind, item in (("images-idx3", 784), ("labels-idx1", 1)):
            content = gzip.open(f"{FASHION}/train-{kind}-ubyte.gz").read()
            header = 16 if item == 784 else 8
            path = self.path(f"{name}-{kind}-ubyte.gz")
            with gzip.open(path, "wb", compresslevel=1) as f:
                f.write(content[:4] + struct.pack(">I", rows) + content[8:header] + content[header:header + rows * item])
            files.append(path)
        self.run("dataset", "put", name, *files, *flags, check=True)

    def put_noise(self, name, rows):
        """Images of the same shape on which nothing is to be seen, about as bright as clothes, all with label 0."""
        images, labels = (self.path(f"{name}-{kind}-ubyte") for kind in ("images-idx3", "labels-idx1"))
        with open(images, "wb") as f:
            f.write(struct.pack(">IIII", 0x803, rows, 28, 28) + bytes(random.Random(1).choices(range(147), k=rows * 784)))
        with open(labels, "wb") as f:
            f.write(struct.pack(">II", 0x801, rows) + bytes(rows))
        self.run("dataset", "put", name, images, labels, check=True)

    def logs(self):
        text = ""
        folder = self.path("run")
        for name in sorted(os.listdir(folder)) if os.path.isdir(folder) else []:
            if name.endswith(".log"):
                with open(os.path.join(folder, name), errors="replace") as f:
                    text += f"--- {name}\n" + "".join(f.readlines()[-30:])
        return text

    def log_everything(self):
        """Servers and workers that start from now on log at their lowest level."""
        with open(self.path("debug.conf"), "w") as f:
            f.write("log-level = debug\n")
        self.environment = {**self.environment, "CHAINFLEET_CONFIG": self.path("debug.conf")}

    def logged(self):
        """All that servers and workers have written, by the name of the file."""
        folder = self.path("run")
        found = {}
        for name in os.listdir(folder):
            if name.endswith(".log"):
                with open(os.path.join(folder, name), errors="replace") as f:
                    found[name] = f.read()
        return found

    def close(self):
        self.run("down", "--data-dir", self.folder)
        shutil.rmtree(self.folder, ignore_errors=True)
