"""The common part of the real servers that run beside tests: a folder, a process that dies with us, an end."""
import contextlib
import ctypes
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile

PR_SET_PDEATHSIG = 1


def free_ports(count):
    sockets = [socket.create_server(("127.0.0.1", 0)) for _ in range(count)]
    try:
        return [s.getsockname()[1] for s in sockets]
    finally:
        for s in sockets:
            s.close()


class RealServer:
    """`start` is the subclass's: it sets `process` and returns once the server serves."""

    kill_signal = signal.SIGKILL

    def __init__(self, name, parent=None):
        self.folder = tempfile.mkdtemp(prefix=f"chainfleet-{name}-", dir=parent)
        self.process = None

    @classmethod
    def die_with_parent(cls):
        """For a child before it runs its program."""
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, cls.kill_signal)

    def kill(self):
        """As a power cut: the server and all its processes at once."""
        self.process.send_signal(self.kill_signal)
        self.process.wait(30)

    def close(self):
        if self.process and self.process.poll() is None:
            self.kill()
        shutil.rmtree(self.folder)


@contextlib.contextmanager
def running(server):
    try:
        server.start()
        yield server
    finally:
        server.close()


def run_beside(server, environment):
    """Runs the command of our arguments beside `server` with more in its environment, and exits as it does."""
    with running(server):
        sys.exit(subprocess.run(sys.argv[1:], env={**os.environ, **environment}).returncode)
