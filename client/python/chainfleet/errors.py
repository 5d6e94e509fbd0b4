"""Exceptions. Each has what happened, why as one word, and what to do.

A refusal of the server is of two classes: one by its gRPC code (below) and one by its reason (`chainfleet.reasons`), so
that `except NotFound` and `except DatasetNotFound` both catch it. Both are ChainfleetError.

Errors that the package raises by itself have one of these reasons: INVALID_DATA (type, shape or values of an array),
INVALID_MODEL (a module that cannot be sampled), NO_FILE, NO_SERVER, NO_CONTEXT (of that name, or its file is not
understood), NO_TOKEN (the command for it failed), VERSION_MISMATCH, NO_PROGRAM (`chainfleet` is not on this machine),
PROGRAM_FAILED, NO_PACKAGE (of Python), TIMED_OUT, JOB_FAILED, or one of the server's: INVALID_FIELD (a wrong argument).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, ClassVar


@dataclass(frozen=True)
class FieldViolation:
    """A field of a request that is wrong."""

    path: str  # "sampler.emcmc.eta"
    description: str


class ChainfleetError(Exception):
    """Base class of every error of this package. An unknown or missing argument is Python's TypeError.

    message: what happened, to which object.
    reason: one word for programs, as docs/reference/errors.md lists them; the code where no other word is needed.
    violations: the wrong fields of a job or a request, each with its path.
    request_id: of the call in the server's log; "" if it did not reach a server.
    hint: what to do; "" if the message says it.
    retry_after: the least seconds until the next attempt, where the server knows them; else None.
    bound: the name of the bound that refused the call; "" if none did.
    """

    code: ClassVar[str] = "UNKNOWN"
    hint: str = ""

    def __init__(
        self,
        message: str,
        *,
        reason: str = "",
        violations: Sequence[FieldViolation] = (),
        request_id: str = "",
        hint: str = "",
        retry_after: float | None = None,
        bound: str = "",
    ) -> None:
        super().__init__(message)
        self.message, self.reason, self.request_id = message, reason, request_id
        self.retry_after, self.bound = retry_after, bound
        self.violations = tuple(violations)
        if hint:
            self.hint = hint

    def __str__(self) -> str:
        lines = [self.message]
        lines += [f"  {v.path}: {v.description}" for v in self.violations if v.description not in self.message]
        if self.hint:
            lines.append(f"  what to do: {self.hint}")
        return "\n".join(lines)

    def __reduce__(self) -> Any:
        names = ("violations", "request_id", "hint", "retry_after", "bound")
        return _rebuild, (self.code, self.reason, self.message, {name: getattr(self, name) for name in names})


class InvalidArgument(ChainfleetError, ValueError):
    """An argument, an array or a field of a job is wrong. Nothing was sent, or nothing was stored."""

    code = "INVALID_ARGUMENT"


class NotFound(ChainfleetError, LookupError):
    """A job, data set, model, version or alias is not there, or belongs to another tenant."""

    code = "NOT_FOUND"
    hint = "fleet.jobs(), datasets(), models(), aliases(), workers() and evaluations() list the names that are there"


class AlreadyExists(ChainfleetError):
    """Other content or another object has this name."""

    code = "ALREADY_EXISTS"


class FailedPrecondition(ChainfleetError):
    """The state of the object forbids the call."""

    code = "FAILED_PRECONDITION"


class PermissionDenied(ChainfleetError, PermissionError):
    """The token does not allow the call."""

    code = "PERMISSION_DENIED"


class Unauthenticated(ChainfleetError):
    """The token is missing or unknown."""

    code = "UNAUTHENTICATED"
    hint = "pass token= to connect, or set CHAINFLEET_TOKEN or CHAINFLEET_TOKEN_FILE"


class ResourceExhausted(ChainfleetError):
    """A bound of the server, the tenant or a message, or a full disk."""

    code = "RESOURCE_EXHAUSTED"


class OutOfRange(ChainfleetError, IndexError):
    """A row is not there."""

    code = "OUT_OF_RANGE"


class Aborted(ChainfleetError):
    """Something else changed the object meanwhile."""

    code = "ABORTED"


class DataLoss(ChainfleetError):
    """Bytes do not match their digest, or an object is gone."""

    code = "DATA_LOSS"


class Unavailable(ChainfleetError, ConnectionError):
    """No server answers, or none that can answer this."""

    code = "UNAVAILABLE"


class DeadlineExceeded(ChainfleetError, TimeoutError):
    """The call was not done in its time. The work may go on at the server."""

    code = "DEADLINE_EXCEEDED"


class Internal(ChainfleetError):
    """A fault of the server; its log has the request id."""

    code = "INTERNAL"
    hint = "look for the request id in the server's log, and report it"


class JobFailed(ChainfleetError):
    """A job or an evaluation ended FAILED or CANCELLED."""

    code = "JOB_FAILED"  # no code of gRPC: the call that said so was fine


def invalid_field(path: str, description: str, hint: str) -> InvalidArgument:
    """A wrong argument of a call, or a wrong field of a job."""
    violations = (FieldViolation(path, description),)
    return InvalidArgument(f"{path}: {description}", reason="INVALID_FIELD", violations=violations, hint=hint)


def no_file(what: str, error: Exception) -> InvalidArgument:
    """The error of a file of settings that cannot be read."""
    return InvalidArgument(f"{what} cannot be read: {error}", reason="NO_FILE", hint="correct its path or its rights")


def no_package(call: str, package: str, hint: str) -> InvalidArgument:
    """The error of a call that needs a package of Python."""
    return InvalidArgument(f"{call} needs {package}, which is not installed", reason="NO_PACKAGE", hint=hint)


_BY_CODE: dict[str, type[ChainfleetError]] = {cls.code: cls for cls in ChainfleetError.__subclasses__()}


@cache
def class_of(code: str, reason: str) -> type[ChainfleetError]:
    """The class of an error with this gRPC code, such as NOT_FOUND, and this reason."""
    from .reasons import BY_REASON

    by_code, by_reason = _BY_CODE.get(code, ChainfleetError), BY_REASON.get(reason)
    if by_reason is None:
        return by_code
    if by_code is ChainfleetError:
        return by_reason
    return type(by_reason.__name__, (by_reason, by_code), {"__module__": by_reason.__module__, "code": code})


def refusal(code: str, reason: str, message: str, **more: Any) -> ChainfleetError:
    """The error of a call that failed. gRPC's own errors and servers of older releases give no reason."""
    from .reasons import HINT_BY_CODE

    reason = reason or code
    made = class_of(code, reason)
    hint = HINT_BY_CODE.get(code, "") if reason == code and not made.hint else ""
    return made(message, reason=reason, hint=hint, **more)


def _rebuild(code: str, reason: str, message: str, more: dict[str, Any]) -> ChainfleetError:
    return class_of(code, reason)(message, reason=reason, **more)
