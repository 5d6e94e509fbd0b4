"""Lines about a job, for a terminal."""

from __future__ import annotations

import math
import sys
from collections.abc import Iterator
from contextlib import contextmanager

from .v1 import jobs_pb2, types_pb2

FINAL = frozenset(
    getattr(jobs_pb2.Job, name) for name in ("SUCCEEDED", "SUCCEEDED_EARLY", "FAILED", "CANCELLED", "DELETING")
)


def progress(job: jobs_pb2.Job) -> str:
    """One line: "mlp-emcmc-a1b2c3  RUNNING  42.3 %  812 steps/s  16 draws  R-hat 1.004"."""
    parts = [job.id, jobs_pb2.Job.State.Name(job.state)]
    if job.steps_total:
        parts.append(f"{100 * job.steps_done / job.steps_total:.1f} %")
    rates = [chain.stats.steps_per_second for chain in job.chains if chain.state == types_pb2.LEASED]
    rate = sum(rate for rate in rates if math.isfinite(rate))
    if job.state not in FINAL and rate > 0:
        parts.append(f"{rate:,.0f} steps/s")
    parts.append(f"{job.num_draws:,} draws")
    rhats = [found.rhat for found in job.diagnostics if found.HasField("rhat") and not found.descriptive]
    if rhats:
        parts.append("R-hat unknown" if any(map(math.isnan, rhats)) else f"R-hat {max(rhats):.3f}")
    return "  ".join(parts)


def outcome(job: jobs_pb2.Job) -> str:
    """Why a job ended as it did: its state, and the reasons of chains that failed."""
    reasons: dict[str, list[int]] = {}
    for chain in job.chains:
        if chain.state in (types_pb2.FAILED, types_pb2.DIVERGED):
            what = f"{types_pb2.ChainState.Name(chain.state)}: {chain.reason}"
            reasons.setdefault(what, []).append(chain.id.index)
    failed = [f"chain{'s' if len(c) > 1 else ''} {', '.join(map(str, c))} {what}" for what, c in reasons.items()]
    ended = f"job {job.id} ended {jobs_pb2.Job.State.Name(job.state)}"
    return f"{ended}: {'; '.join(failed)}" if failed else ended


class Line:
    """One line of standard error that is written over; silent unless a terminal reads it."""

    def __init__(self, enabled: bool) -> None:
        self._enabled = enabled and sys.stderr.isatty()

    def show(self, words: str) -> None:
        if self._enabled:
            safe = "".join(c if c.isprintable() else "?" for c in words)
            sys.stderr.write(f"\r{safe[:100]}\x1b[K")
            sys.stderr.flush()

    def show_bytes(self, sent: int, total: int) -> None:
        self.show(f"uploading: {sent / 2**20:,.0f} of {total / 2**20:,.0f} MiB")

    def close(self) -> None:
        if self._enabled:
            sys.stderr.write("\r\x1b[K")
            sys.stderr.flush()


@contextmanager
def line(enabled: bool = True) -> Iterator[Line]:
    """A Line that is cleared at the end."""
    made = Line(enabled)
    try:
        yield made
    finally:
        made.close()


@contextmanager
def goes_on(call: str) -> Iterator[None]:
    """Ctrl-C says which call finds again what goes on at the server."""
    try:
        yield
    except KeyboardInterrupt:
        sys.stderr.write(f"\ndetached, it goes on at the server; to find it again: {call}\n")
        raise
