"""Starts and stops a server and workers on this machine, as `chainfleet up` and `chainfleet down` do."""

from __future__ import annotations

import os
import re
import socket
import weakref

from . import text
from .addresses import DEFAULT_ADDRESS, find_token
from .connection import Connection
from .errors import Internal
from .fleet import Fleet, connect
from .programs import flags, run_program

_connections: weakref.WeakSet[Connection] = weakref.WeakSet()  # connections to the fleets that `local` returned


def local(
    *,
    workers: int | None = None,
    threads: int | None = None,
    device: str | None = None,
    data_dir: str | os.PathLike[str] | None = None,
    listen: str | None = None,
    allow_modules: bool = False,
    token: str | None = None,
    timeout: float = 60.0,
    progress: bool = True,
) -> Fleet:
    """The fleet of this machine: what runs in `data_dir` stays, what is missing is started. It outlives the program.

    workers: default two on the CPU, else one for each device. threads: of each worker; default cores / workers.
    device: "cpu", "cuda:0" or several with commas. data_dir: of draws, data and logs; default that of `chainfleet up`.
    listen: "host:port"; default 127.0.0.1:7400, or a free port if another program has that one.
    allow_modules: the server takes TorchScript, programs that its workers run. token: other users of this machine reach
    the server, too; give it a token where they must not, here or in CHAINFLEET_TOKEN. timeout: seconds of the start.
    Raises NotFound (NO_PROGRAM) without the program `chainfleet`, FailedPrecondition (PROGRAM_FAILED) with its words.
    """
    found = find_token(token)
    given = {
        "workers": workers,
        "threads": threads,
        "device": device,
        "data_dir": data_dir,
        "listen": listen or (None if _is_free(DEFAULT_ADDRESS) else "127.0.0.1:0"),
        "timeout": f"{timeout:g}s",
        "allow_modules": allow_modules,
    }
    with text.line(progress) as line:
        line.show("starting a server and workers on this machine")
        said = run_program(["up", *flags(given)], {"CHAINFLEET_TOKEN": found} if token else None)
    match = re.search(r"up: server (\S+),", said)
    if match is None:
        raise Internal(f"`chainfleet up` named no address: {said!r}", reason="PROGRAM_FAILED")
    fleet = connect(match.group(1), found)
    _connections.add(fleet.connection)
    return fleet


def down(data_dir: str | os.PathLike[str] | None = None) -> None:
    """Stops the workers and the server that `local` or `chainfleet up` started; jobs, draws and data stay.

    The next `local` goes on with the jobs that ran.
    """
    for connection in list(_connections):  # a server that ends waits for its clients; a later call connects again
        connection.close()
    run_program(["down", *flags({"data_dir": data_dir})])


def restore(
    folder: str | os.PathLike[str],
    data_dir: str | os.PathLike[str] | None = None,
    state: str | None = None,
    blobs: str | None = None,
) -> str:
    """Fills the empty stores of a server, while none runs, from the folder of `Fleet.backup`; returns a summary.

    `Fleet.restore` fills those of a running server.

    data_dir: default that of `local`. state: "sqlite" or "postgresql://..."; blobs: "s3://BUCKET/PREFIX"; defaults are
    CHAINFLEET_STATE and CHAINFLEET_BLOBS, else stores in data_dir.
    """
    stores = {"CHAINFLEET_STATE": state, "CHAINFLEET_BLOBS": blobs}  # no arguments, which other users may read
    command = ["restore", os.fspath(folder), "--offline", *flags({"data_dir": data_dir})]
    return run_program(command, {name: store for name, store in stores.items() if store})


def _is_free(address: str) -> bool:
    host, _, port = address.rpartition(":")
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((host, int(port)))
        except OSError:
            return False
    return True
