"""Servers and workers started one by one, each in surroundings of its own: `up` of the command line starts all alike."""
import os
import subprocess
import time
import urllib.request

import fleet as fleets
from real_server import RealServer, free_ports

PATIENCE = int(os.environ.get("CHAINFLEET_TEST_PATIENCE", 60))  # seconds; more where sanitizers slow the binaries down


class StartedFleet(fleets.Fleet):
    """Servers of one data directory, or of what `environment` says; workers know all of their addresses."""

    def __init__(self, servers=1, environment=None, lease="2s", **options):
        super().__init__(environment=environment, **options)
        ports = free_ports(2 * servers)
        self.addresses = [f"127.0.0.1:{port}" for port in ports[:servers]]
        self.metrics_addresses = [f"127.0.0.1:{port}" for port in ports[servers:]]
        self.address = ",".join(self.addresses)
        self.lease = lease
        self.processes = {}
        os.makedirs(self.path("run"), exist_ok=True)

    def data(self, index):
        """Servers share a folder of objects; without one each has a directory of its own."""
        return self.path(f"data-{index}" if "CHAINFLEET_BLOBS" in self.environment else "data")

    def start(self, name, *command, environment=None, inside=()):
        """In place of an earlier one of this name. `inside`: a command that runs another one."""
        if name in self.processes:
            self.kill(name)
        with open(self.path("run", name + ".log"), "a") as log:
            self.processes[name] = subprocess.Popen(
                [*inside, os.path.join(fleets.BIN, command[0]), *command[1:]], stderr=log, stdout=log, preexec_fn=RealServer.die_with_parent,
                env={**os.environ, **self.environment, **(environment or {})})

    def start_server(self, index=0, *flags, http="off", **surroundings):
        self.start(f"server-{index}", "chainfleet-server", "--data-dir", self.data(index), "--listen", self.addresses[index],
                   "--metrics-listen", self.metrics_addresses[index], "--http-listen", http, "--lease", self.lease, *flags, **surroundings)

    def start_worker(self, index, server=None, **surroundings):
        self.start(f"worker-{index}", "chainfleet-worker", "--server", server or self.address, "--threads", "1", "--id",
                   f"worker-{index}", **surroundings)

    def only(self, index, *arguments, **options):
        return self.run(*arguments, env={"CHAINFLEET_ADDRESS": self.addresses[index]}, **options)

    def metrics(self, index=0):
        with urllib.request.urlopen(f"http://{self.metrics_addresses[index]}/metrics", timeout=10) as reply:
            return reply.read().decode()

    def leads(self, index):
        return "\nchainfleet_leader 1\n" in self.metrics(index)

    def wait_until(self, by, satisfied):
        """Asks one server until its answer is the awaited one; returns that."""
        end = time.monotonic() + PATIENCE
        while not satisfied(answer := self.only(by, "get", "jobs", "--timeout", "1s")):  # each call has a patience of its own
            if time.monotonic() > end:
                raise AssertionError(f"{answer}\n{self.logs()}")
        return answer

    def wait_until_served(self, by=0):
        return self.wait_until(by, lambda answer: answer.returncode == 0)

    def kill(self, name):
        self.processes[name].kill()
        self.processes[name].wait(10)

    def kill_all(self):
        for process in self.processes.values():
            process.kill()
            process.wait(10)

    def close(self):
        self.kill_all()
        super().close()
