"""A small chainfleet and a real Triton that serve the same model, on free ports of this machine."""
import contextlib
import os
import subprocess
import sys
import urllib.request

import fleet as fleets
import numpy
from real_server import RealServer, free_ports

HERE = os.path.dirname(os.path.abspath(__file__))
JOB = """
name: small
model: {builtin: softmax_regression}
dataset: {name: points}
sampler: {sgld: {}}
learning_rate: {constant: 0.01}
batch_size: 20
num_epochs: 4
chains: 2
collect: {every_steps: 4}
seed: 1
"""


class RealTriton(RealServer):
    """Triton's own program, started by PyTriton."""

    def __init__(self, metadata):
        super().__init__("triton")
        self.metadata = metadata
        self.http_address, self.grpc_address = (f"127.0.0.1:{port}" for port in free_ports(2))

    def start(self):
        ports = [address.split(":")[1] for address in (self.http_address, self.grpc_address)]
        log = os.path.join(self.folder, "log")
        with open(log, "w") as errors:
            self.process = subprocess.Popen([sys.executable, "-B", os.path.join(HERE, "triton_model.py"), *ports], stdin=subprocess.PIPE,
                                            stdout=subprocess.PIPE, stderr=errors, env=os.environ | {"PYTRITON_HOME": self.folder})
        self.process.stdin.write(self.metadata)
        self.process.stdin.close()
        if not any(line == b"up\n" for line in self.process.stdout):
            with open(log) as errors:
                sys.exit("interop: Triton does not start:\n" + errors.read()[-3000:])

    def kill(self):
        """It ends its own processes."""
        self.process.terminate()
        self.process.wait(60)


def start_chainfleet():
    fleet = fleets.Fleet(workers=1)
    fleet.up()
    data = fleet.path("points.npz")
    numpy.savez(data, x=numpy.random.default_rng(1).normal(size=(60, 4)).astype(numpy.float32), y=numpy.arange(60) % 3)
    fleet.run("dataset", "put", "points", data, check=True)
    fleet.run("wait", fleet.submit(JOB), "--timeout", "60s", check=True)
    return fleet


def metadata(fleet):
    with urllib.request.urlopen(f"http://{fleet.http_address}/v2/models/small", timeout=60) as reply:
        return reply.read()


@contextlib.contextmanager
def both():
    fleet = start_chainfleet()
    triton = RealTriton(metadata(fleet))
    try:
        triton.start()
        yield fleet, triton
    finally:
        triton.close()
        fleet.close()
