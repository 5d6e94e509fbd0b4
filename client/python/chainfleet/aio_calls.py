"""Runs the calls of the synchronous classes in threads, for chainfleet.aio.

A call holds a thread while it waits for the server. 64 calls of a process wait at a time; more queue up.
"""

from __future__ import annotations

import asyncio
import contextvars
from collections.abc import AsyncIterator, Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any, ParamSpec, TypeVar

from .scope import SCOPE, Scope

P = ParamSpec("P")
T = TypeVar("T")
_END: Any = object()
_threads = ThreadPoolExecutor(64, thread_name_prefix="chainfleet-aio")


async def call(function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """The result of `function` in a thread. Cancelling the task cancels its call to the server, or ends its program."""
    scope = Scope()
    context = contextvars.copy_context()
    context.run(SCOPE.set, scope)
    made = asyncio.get_running_loop().run_in_executor(_threads, lambda: context.run(function, *args, **kwargs))
    try:
        return await made
    except asyncio.CancelledError:
        scope.end()
        raise


async def iterate(make: Callable[[], Iterator[T]]) -> AsyncIterator[T]:
    """The items of an iterator, each made in a thread when it is asked for."""
    iterator = await call(make)
    while (item := await call(next, iterator, _END)) is not _END:
        yield item
