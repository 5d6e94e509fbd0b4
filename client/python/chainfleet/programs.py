"""Finds and runs the command-line program `chainfleet` of this machine."""

from __future__ import annotations

import importlib.util
import os
import re
import shutil
import subprocess
import warnings
from collections.abc import Mapping, Sequence
from typing import Any

from .errors import (
    ChainfleetError,
    DataLoss,
    FailedPrecondition,
    FieldViolation,
    InvalidArgument,
    NotFound,
    PermissionDenied,
    Unavailable,
)
from .scope import has_ended, held

_PROGRAM = "chainfleet"
_CLASS_OF_STATUS: dict[int, type[ChainfleetError]] = {
    2: InvalidArgument,
    3: NotFound,
    4: PermissionDenied,
    5: Unavailable,
    6: DataLoss,
}
_WARNING = "warning: "  # begins a line on standard error of a program that succeeds
_MOST_SHOWN = 8_000  # characters of the output of a program that failed
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
    """The standard output of `chainfleet ARGUMENTS`; warnings of the program are warnings of Python.

    Raises the class of error that its exit status means, with its message, the fields that it names and its output.
    """
    command = [find_program(), *arguments]
    pipe = subprocess.PIPE
    environment = {**os.environ, **(environment or {})}
    with _Program(
        command, stdin=subprocess.DEVNULL, stdout=pipe, stderr=pipe, text=True, errors="replace", env=environment
    ) as running:
        said, told = _outputs(running)
    if running.returncode != 0:
        raise _failure(arguments[0], running.returncode, told, said)
    for line in told.splitlines():
        if line.startswith(_WARNING):
            warnings.warn(line.removeprefix(_WARNING), stacklevel=3)
    return said


def flags(given: Mapping[str, Any]) -> list[str]:
    """{"data_dir": "x", "weighted": True} as ["--data-dir=x", "--weighted"]; what is None, "" or False is left out."""
    said = ((name, value) for name, value in given.items() if value is not None and value is not False and value != "")
    return [f"--{name.replace('_', '-')}" + ("" if value is True else f"={value}") for name, value in said]


class _Program(subprocess.Popen[str]):
    def cancel(self) -> None:
        """As a call to the server, for a Scope."""
        self.terminate()


def _outputs(running: _Program) -> tuple[str, str]:
    """Standard output and standard error once the program has ended.

    Raises FutureCancelledError, as a call does, if the scope of this context has ended the program.
    """
    try:
        with held(running):
            outputs = running.communicate()
    except BaseException:  # as Ctrl-C
        try:
            running.terminate()  # not kill(): the program may have something to clean up
            running.wait()  # after Ctrl-C, Popen does not
        finally:
            running.kill()  # after a second Ctrl-C; otherwise it has ended
            running.wait()
        raise
    if has_ended() and running.returncode != 0:
        from grpc import FutureCancelledError  # programs run without grpc; a scope has it loaded

        raise FutureCancelledError
    return outputs


def _failure(verb: str, status: int, told: str, said: str) -> ChainfleetError:
    """The error of a program that wrote `told`: log lines, then its message, "error: ...", to the end.

    `said`: what it wrote to standard output, such as a table of checks.
    """
    lines = told.strip().splitlines() or [f"exit status {status}, without a word"]
    begin = max((i for i, line in enumerate(lines) if line.startswith("error: ")), default=len(lines) - 1)
    message = [line.removeprefix("error: ") for line in lines[begin:] if " --help shows how" not in line]
    violations = [FieldViolation(*found.groups()) for found in map(_FIELD.fullmatch, message) if found]
    words = f"`chainfleet {verb}` failed: {'; '.join([message[0], *map(str.strip, message[1:])])}"
    return _CLASS_OF_STATUS.get(status, FailedPrecondition)(
        "\n".join([words, said.rstrip()[-_MOST_SHOWN:]]).rstrip(),
        reason="INVALID_FIELD" if violations else "PROGRAM_FAILED",
        violations=violations,
        hint="correct the fields" if violations else f"`chainfleet {verb} --help`, and `chainfleet doctor`",
    )


def _wheel_folder() -> str:
    """The folder of programs of the installed package chainfleet_server, "" without it."""
    spec = importlib.util.find_spec("chainfleet_server")
    places = list(spec.submodule_search_locations or ()) if spec else []
    return os.path.join(places[0], "bin") if places else ""
