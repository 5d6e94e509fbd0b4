"""Finds and runs the command-line program `chainfleet` of this machine."""

from __future__ import annotations

import importlib.util
import os
import re
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from typing import Any

from .errors import (
    ChainfleetError,
    FailedPrecondition,
    FieldViolation,
    InvalidArgument,
    NotFound,
    PermissionDenied,
    Unavailable,
)

_PROGRAM = "chainfleet"
_CLASS_OF_STATUS: dict[int, type[ChainfleetError]] = {
    2: InvalidArgument,
    3: NotFound,
    4: PermissionDenied,
    5: Unavailable,
}
# "job.yaml:4: sampler.emcmc.eta: must be above 0", or the same after two spaces, where the file may be left out.
_FIELD = re.compile(r"(?:  (?:.*?:\d+: )?|.*?:\d+: )([a-z_][\w.\[\]]*): (.*)")


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

    Raises the class of error that its exit status means, with its message and the fields that it names.
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
        raise _failure(arguments[0], done.returncode, done.stderr)
    return done.stdout


def flags(given: Mapping[str, Any]) -> list[str]:
    """{"data_dir": "x", "weighted": True} as ["--data-dir=x", "--weighted"]; what is None, "" or False is left out."""
    said = ((name, value) for name, value in given.items() if value is not None and value is not False and value != "")
    return [f"--{name.replace('_', '-')}" + ("" if value is True else f"={value}") for name, value in said]


def _failure(verb: str, status: int, said: str) -> ChainfleetError:
    """The error of a program that wrote `said`: log lines, then its message, "error: ...", to the end."""
    lines = said.strip().splitlines() or [f"exit status {status}, without a word"]
    begin = max((i for i, line in enumerate(lines) if line.startswith("error: ")), default=len(lines) - 1)
    message = [line.removeprefix("error: ") for line in lines[begin:] if " --help shows how" not in line]
    violations = [FieldViolation(*found.groups()) for found in map(_FIELD.fullmatch, message) if found]
    return _CLASS_OF_STATUS.get(status, FailedPrecondition)(
        f"`chainfleet {verb}` failed: {'; '.join([message[0], *map(str.strip, message[1:])])}",
        reason="INVALID_FIELD" if violations else "PROGRAM_FAILED",
        violations=violations,
        hint="correct the fields" if violations else f"`chainfleet {verb} --help`, and `chainfleet doctor`",
    )


def _wheel_folder() -> str:
    """The folder of programs of the installed package chainfleet_server, "" without it."""
    spec = importlib.util.find_spec("chainfleet_server")
    places = list(spec.submodule_search_locations or ()) if spec else []
    return os.path.join(places[0], "bin") if places else ""
