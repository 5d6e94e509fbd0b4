"""Finds and runs the command-line program `chainfleet` of this machine."""

from __future__ import annotations

import importlib.util
import os
import shutil
import subprocess
from collections.abc import Mapping, Sequence

from .errors import ChainfleetError, FailedPrecondition, InvalidArgument, NotFound, PermissionDenied, Unavailable

_PROGRAM = "chainfleet"
_CLASS_OF_STATUS: dict[int, type[ChainfleetError]] = {
    2: InvalidArgument,
    3: NotFound,
    4: PermissionDenied,
    5: Unavailable,
}


def find_program() -> str:
    """The path of `chainfleet`: in the folder that CHAINFLEET_BIN names, in PATH, or in the package chainfleet_server.

    Raises NotFound if it is in none of them.
    """
    folder = os.environ.get("CHAINFLEET_BIN", "")
    found = shutil.which(_PROGRAM, path=folder) if folder else shutil.which(_PROGRAM)
    if found is None and not folder:
        found = shutil.which(_PROGRAM, path=_wheel_folder())
    if found is None:
        where = f"CHAINFLEET_BIN, which is {folder}" if folder else "PATH"
        raise NotFound(
            f"the program {_PROGRAM} is not in {where}",
            reason="NO_PROGRAM",
            hint="pip install 'chainfleet[server]', or let CHAINFLEET_BIN name the folder of the programs",
        )
    return found


def run_program(arguments: Sequence[str], environment: Mapping[str, str] | None = None) -> str:
    """The standard output of `chainfleet ARGUMENTS`.

    Raises the class of error that its exit status means, with the last line that it wrote to standard error.
    """
    command = [find_program(), *arguments]
    done = subprocess.run(
        command,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        errors="replace",
        env={**os.environ, **(environment or {})},
        check=False,
    )
    if done.returncode != 0:
        lines = done.stderr.strip().splitlines() or [f"exit status {done.returncode}, without a word"]
        failure = _CLASS_OF_STATUS.get(done.returncode, FailedPrecondition)
        words = lines[-1].removeprefix("error: ")
        raise failure(f"`chainfleet {arguments[0]}` failed: {words}", reason="PROGRAM_FAILED")
    return done.stdout


def _wheel_folder() -> str:
    """The folder of programs of the installed package chainfleet_server, "" without it."""
    spec = importlib.util.find_spec("chainfleet_server")
    places = list(spec.submodule_search_locations or ()) if spec else []
    return os.path.join(places[0], "bin") if places else ""
