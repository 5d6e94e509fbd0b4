"""Ends what a thread does for a task of asyncio that is cancelled: its call to the server, or the program that it runs.

It imports no grpc, so that running a program does not either.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Protocol


class Cancellable(Protocol):
    """A call of grpc, or a program."""

    def cancel(self) -> object: ...


class Scope:
    """Ends the calls of another thread: asyncio cancels a task, and the thread that calls for the task stops."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._call: Cancellable | None = None
        self.ended = threading.Event()

    @contextmanager
    def hold(self, call: Cancellable) -> Iterator[None]:
        """`end` cancels `call` while the block runs."""
        with self._lock:
            self._call = call
        try:
            if self.ended.is_set():
                call.cancel()
            yield
        finally:
            with self._lock:
                self._call = None

    def end(self) -> None:
        """Cancels the call in progress and all later ones. Safe to use from any thread."""
        self.ended.set()
        with self._lock:
            if self._call is not None:
                self._call.cancel()


SCOPE: ContextVar[Scope | None] = ContextVar("chainfleet_scope", default=None)  # scope for the calls of a context


@contextmanager
def held(call: Cancellable) -> Iterator[None]:
    """The scope of this context may cancel `call`."""
    scope = SCOPE.get()
    if scope is None:
        yield
    else:
        with scope.hold(call):
            yield


def has_ended() -> bool:
    """True if the scope of this context has ended, so that nobody waits for the result."""
    scope = SCOPE.get()
    return scope is not None and scope.ended.is_set()
