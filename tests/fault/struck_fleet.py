"""A fleet for tests with real faults, and the judge of its stored results."""
import json
import os
import re
import shutil
import signal
import struct
import subprocess
import tempfile
import time
import unittest

from fleet import BIN
from started_fleet import PATIENCE, StartedFleet

TESTS = os.path.join(BIN, "..", "tests")
SHIM = os.path.join(TESTS, "libfault_shim.so")
CHECK_HISTORY = os.path.join(TESTS, "check_history")

ROWS = 1000  # in the data set: 20 steps an epoch
LONG_EPOCHS = 200
SHORTER = int(os.environ.get("CHAINFLEET_TEST_SHORTER", 1))  # so many times shorter are long jobs where sanitizers slow steps down
# A job of every kind of state: theta and theta_a with momenta, a resume point that is an object; numbers few enough for
# the record; a state that is held and counted. Each draw is a commit.
EMCMC = """
name: emcmc
model: {{builtin: mlp, hidden: [32]}}
dataset: {{name: fashion}}
prior: {{gaussian: {{precision: 10}}}}
sampler: {{emcmc: {{eta: 4.0e-4}}}}
learning_rate: {{cyclical: {{initial: 0.1, cycles: 4}}}}
temperature: 1.0e-4
batch_size: 50
num_epochs: {epochs}
burn_in: {{cycles: 1}}
chains: 4
collect: {{last_epochs_of_cycle: {keep}, kinds: [theta, theta_a], segment_draws: 1}}
seed: {seed}
"""
SGLD = """
name: sgld
model: {{builtin: softmax_regression}}
dataset: {{name: fashion}}
sampler: {{sgld: {{}}}}
learning_rate: {{constant: 0.01}}
temperature: 1.0e-4
batch_size: 50
num_epochs: {epochs}
chains: 3
collect: {{every_steps: 100, segment_draws: 2}}
seed: {seed}
"""
METROPOLIS = """
name: metropolis
model: {{builtin: softmax_regression}}
dataset: {{name: fashion}}
prior: {{gaussian: {{precision: 10}}}}
sampler: {{random_walk: {{}}}}
step_size: {{constant: 1.0e-7}}
batch_size: 50
num_epochs: {epochs}
chains: 2
collect: {{every_steps: 20, segment_draws: 3}}
seed: {seed}
"""


def dies(when, call, number, text):
    return {"LD_PRELOAD": SHIM, "CHAINFLEET_FAULT_POINT": f"kill {when} {call} {number} {text}"}


def stops(when, call, number, text):
    return {"LD_PRELOAD": SHIM, "CHAINFLEET_FAULT_POINT": f"stop {when} {call} {number} {text}"}


def mounted_disk(cleanup, size):
    """A small file system of its own; None where mounting is not allowed. `cleanup(function, *arguments)` is for its end."""
    folder = tempfile.mkdtemp(prefix="chainfleet-disk-")
    cleanup(shutil.rmtree, folder, ignore_errors=True)
    mount = shutil.which("mount")
    if not mount or subprocess.run([mount, "-t", "tmpfs", "-o", f"size={size}", "tmpfs", folder], capture_output=True).returncode != 0:
        return None
    cleanup(subprocess.run, ["umount", "-l", folder])
    return folder


def fill(folder):
    """Every last byte of its disk; returns the file to remove."""
    path = os.path.join(folder, "filler")
    with open(path, "wb", buffering=0) as f:
        for size in (1 << 20, 1 << 12, 1):
            try:
                while f.write(b"\0" * size) == size:
                    pass
            except OSError:
                pass
    return path


class StruckFleet(StartedFleet):
    def submit(self, text):
        def bounded(epochs):
            return f"num_epochs: {int(epochs[1]) // (SHORTER if int(epochs[1]) >= LONG_EPOCHS else 1)}"
        return super().submit(re.sub(r"num_epochs: (\d+)", bounded, text))

    def wait_for(self, what, happened, patience=PATIENCE):
        """Asks until it has happened; returns what `happened` said."""
        end = time.monotonic() + patience
        while not (said := happened()):
            if time.monotonic() > end:
                raise AssertionError(f"waited in vain: {what}\n{self.logs()}")
            time.sleep(0.02)
        return said

    def wait_until_dead(self, name):
        """By its own hand, at the point that it was started with."""
        code = self.processes[name].wait(PATIENCE)
        if code != -signal.SIGKILL:
            raise AssertionError(f"{name} ended with {code}\n{self.logs()}")

    def wait_until_stopped(self, name):
        def stopped():
            with open(f"/proc/{self.processes[name].pid}/stat") as stat:
                return stat.read().rpartition(")")[2].split()[0] == "T"
        self.wait_for(f"{name} stops", stopped)

    def signal(self, name, number):
        self.processes[name].send_signal(number)

    def log_of(self, name):
        with open(self.path("run", name + ".log"), errors="replace") as f:
            return f.read()

    def epochs(self, job):
        """Lease epochs of its chains, by index."""
        return [int(chain.get("lease_epoch", 0)) for chain in self.json("get", "chains", job)["chains"]]

    def clock(self, name):
        """The environment of a process whose calendar is wrong by what `step_clock` says."""
        self.step_clock(name, 0)
        return {"LD_PRELOAD": SHIM, "CHAINFLEET_FAULT_CLOCK": self.path("run", name + ".clock")}

    def step_clock(self, name, seconds):
        path = self.path("run", name + ".clock")
        with open(path, "r+b" if os.path.exists(path) else "wb") as f:
            f.write(struct.pack("<q", seconds))

    def remember(self, job):
        """Draws that a client can see now must exist at the end."""
        with open(self.path("seen"), "a") as f:
            for record in self.json("get", "draws", job)["segments"]:
                segment = record["segment"]
                f.write(" ".join([record["chain"]["job"], str(record["chain"].get("index", 0)), str(segment.get("first_index", 0)),
                                  segment["digest"], str(record["lease_epoch"])]) + "\n")

    def state_of(self, job):
        """None while no server answers."""
        asked = self.run("get", "jobs", job, "-o", "json", "--timeout", "2s")
        return json.loads(asked.stdout)["state"] if asked.returncode == 0 else None

    def take(self, text, request):
        """The id of the new job, or of the one that this request made before; None while no server takes it."""
        path = self.path("job.yaml")
        with open(path, "w") as f:
            f.write(text)
        asked = self.run("submit", "-f", path, "--request-id", request, "-o", "name")
        return asked.stdout.strip() if asked.returncode == 0 else None

    def finish(self, *jobs):
        for job in jobs:
            self.run("wait", job, "--timeout", f"{4 * PATIENCE}s", timeout=5 * PATIENCE, check=True)
            self.remember(job)

    def verdict(self, environment=None):
        """Ends every process that is left; the judge's exit status and what it found wrong."""
        for process in self.processes.values():
            process.terminate()
            process.send_signal(signal.SIGCONT)
        for name, process in self.processes.items():
            try:
                process.wait(PATIENCE)
            except subprocess.TimeoutExpired:
                raise AssertionError(f"{name} does not end\n{self.logs()}") from None
        done = subprocess.run([CHECK_HISTORY, self.data(0), self.path("seen")], capture_output=True, text=True,
                              env={**os.environ, **self.environment, "OMP_WAIT_POLICY": "passive", **(environment or {})})
        return done.returncode, done.stdout + done.stderr


class FaultTest(unittest.TestCase):
    """Owns a fleet of one server and, once `start` ran, two workers and a data set."""

    def make(self, **options):
        self.fleet = StruckFleet(**options)
        self.addCleanup(self.fleet.close)
        return self.fleet

    def start(self, workers=2, **options):
        self.make(**options)
        self.fleet.start_server()
        self.fleet.wait_until_served()
        self.fleet.put_fashion("fashion", ROWS)
        for worker in range(workers):
            self.fleet.start_worker(worker)
        return self.fleet

    def judge(self):
        self.assertEqual(self.fleet.verdict(), (0, ""), self.fleet.logs())
