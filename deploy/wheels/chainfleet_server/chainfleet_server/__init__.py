"""The programs of chainfleet: server, worker and command line, with the libraries that they need."""

import os
import signal
import sys
from pathlib import Path


def bin_directory() -> Path:
    """The folder of chainfleet, chainfleet-server and chainfleet-worker."""
    return Path(__file__).resolve().parent / "bin"


def _become(program: str) -> None:
    for ignored_by_python in (signal.SIGPIPE, signal.SIGXFSZ):  # a program inherits what is ignored
        signal.signal(ignored_by_python, signal.SIG_DFL)
    os.execv(bin_directory() / program, [program, *sys.argv[1:]])


def chainfleet() -> None:
    _become("chainfleet")


def chainfleet_server() -> None:
    _become("chainfleet-server")


def chainfleet_worker() -> None:
    _become("chainfleet-worker")
