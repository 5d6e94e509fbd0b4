"""A coordinator alone, whose memory is watched, and callers of it that know no more than its port. No stubs: requests are bytes."""
import json
import os
import resource
import subprocess
import time

os.environ["GRPC_ENABLE_FORK_SUPPORT"] = "0"  # else a process that is forked while calls are made may die before it begins
import public_client  # noqa: F401  it knows where grpc is
import grpc  # isort: skip
from real_server import RealServer

BIN = os.environ["CHAINFLEET_BIN"]


def varint(value):
    return bytes((value,)) if value < 128 else bytes((value & 127 | 128,)) + varint(value >> 7)


def message(**fields):
    """A message of numbers and texts; the name of a field is a letter and its number in the .proto."""
    parts = []
    for name, value in fields.items():
        key = int(name[1:]) << 3
        if isinstance(value, int):
            parts.append(varint(key) + varint(value))
        else:
            data = value if isinstance(value, bytes) else value.encode()
            parts.append(varint(key | 2) + varint(len(data)) + data)
    return b"".join(parts)


class Coordinator(RealServer):
    """`flags`: more flags of the server, by its folder."""

    def __init__(self, token="", descriptors=None, flags=lambda folder: ()):
        super().__init__("attack")
        self.token, self.descriptors, self.flags = token, descriptors, flags

    def prepare(self):
        self.die_with_parent()
        if self.descriptors:
            resource.setrlimit(resource.RLIMIT_NOFILE, (self.descriptors, self.descriptors))

    def start(self):
        port_file = os.path.join(self.folder, "ports.json")
        self.log = open(os.path.join(self.folder, "log"), "w")
        environment = {k: v for k, v in os.environ.items() if not k.startswith("CHAINFLEET_TOKEN")}
        environment.update({"CHAINFLEET_TOKEN": self.token} if self.token else {})
        self.process = subprocess.Popen(
            [os.path.join(BIN, "chainfleet-server"), "--data-dir", os.path.join(self.folder, "data"), "--listen", "127.0.0.1:0",
             "--metrics-listen", "127.0.0.1:0", "--http-listen", "127.0.0.1:0", "--port-file", port_file, *self.flags(self.folder)],
            env=environment, stderr=self.log, preexec_fn=self.prepare)
        deadline = time.monotonic() + 30
        while not os.path.exists(port_file):
            if self.process.poll() is not None or time.monotonic() > deadline:
                raise AssertionError("the server does not start: " + open(self.log.name).read())
            time.sleep(0.02)
        with open(port_file) as f:
            ports = json.load(f)
        self.port, self.metrics_port, self.http_port = ports["grpc"], ports["metrics"], ports["http"]

    def close(self):
        super().close()
        self.log.close()

    def status(self, name):
        with open(f"/proc/{self.process.pid}/status") as f:
            return next(int(line.split()[1]) * 1024 for line in f if line.startswith(name + ":"))

    def forget_peak(self):
        with open(f"/proc/{self.process.pid}/clear_refs", "w") as f:
            f.write("5")


class Caller:
    """Makes light calls, one after another, over a connection of its own, by TLS if there is a file of authorities."""

    def __init__(self, port, token="", authorities=None):
        options = [("grpc.use_local_subchannel_pool", 1)]  # channels of equal options share a connection
        if authorities:
            with open(authorities, "rb") as f:
                credentials = grpc.ssl_channel_credentials(f.read())
            self.channel = grpc.secure_channel(f"127.0.0.1:{port}", credentials, options)
        else:
            self.channel = grpc.insecure_channel(f"127.0.0.1:{port}", options)
        self.metadata = [("authorization", "Bearer " + token)] if token else None

    def call(self, method="GetServerInfo", request=b"", service="chainfleet.v1.JobService", timeout=10, **options):
        made = self.channel.unary_unary(f"/{service}/{method}")
        return made(request, timeout=timeout, metadata=self.metadata, **options)

    def code(self, *arguments, **options):
        try:
            self.call(*arguments, **options)
            return "OK", ""
        except grpc.RpcError as error:
            return error.code().name, error.details()

    def latencies(self, until):
        taken = []
        while not until.is_set() or len(taken) < 5:
            began = time.monotonic()
            self.call()
            taken.append(time.monotonic() - began)
            until.wait(0.02)
        return taken
