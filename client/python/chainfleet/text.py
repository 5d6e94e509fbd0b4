"""Lines about a job, for a terminal or a notebook."""

from __future__ import annotations

import importlib
import math
import shutil
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from html import escape
from typing import Any

import grpc

from .errors import JobFailed
from .v1 import jobs_pb2, types_pb2

FINAL = frozenset(
    getattr(jobs_pb2.Job, name) for name in ("SUCCEEDED", "SUCCEEDED_EARLY", "FAILED", "CANCELLED", "DELETING")
)
_BAR_CELLS = 20
_SECONDS_BETWEEN = 0.1  # shown lines of an upload


def progress(job: jobs_pb2.Job) -> str:
    """One line: "mlp-emcmc-a1b2c3  RUNNING  42.3 %  812 steps/s  16 draws  R-hat 1.004"."""
    rate, draws = _rate(job), f"{job.num_draws:,} draws"
    speed = f"{rate:,.0f} steps/s" if rate else ""
    share = f"{100 * share_done(job):.1f} %" if job.steps_total else ""
    return _words(job.id, jobs_pb2.Job.State.Name(job.state), share, speed, draws, _rhat(job))


def progress_bar(job: jobs_pb2.Job) -> str:
    """The same with a bar, most important first: a narrow terminal cuts its end off."""
    rate, state = _rate(job), jobs_pb2.Job.State.Name(job.state)
    left = f"{(job.steps_total - job.steps_done) / rate:,.0f} s left" if rate else ""
    share = f"{bar(share_done(job))} {100 * share_done(job):.1f} %"
    shown = "" if job.state == jobs_pb2.Job.RUNNING else state
    return _words(job.id, share, shown, _rhat(job), f"{job.num_draws:,} draws", left)


def chain_state(chain: types_pb2.ChainState) -> str:
    """PENDING, RUNNING, SUCCEEDED, ..."""
    return "RUNNING" if chain == types_pb2.LEASED else types_pb2.ChainState.Name(chain)


def share_done(job: jobs_pb2.Job) -> float:
    """From 0 to 1."""
    return job.steps_done / job.steps_total if job.steps_total else 0.0


def _rate(job: jobs_pb2.Job) -> float:
    """Steps per second of all chains, 0 if the job does not run."""
    rates = [chain.stats.steps_per_second for chain in job.chains if chain.state == types_pb2.LEASED]
    return 0.0 if job.state in FINAL else sum(rate for rate in rates if math.isfinite(rate))


def _rhat(job: jobs_pb2.Job) -> str:
    """The largest of the R-hats that decide. One of two chains or more that has no value is unknown."""
    deciding = [found for found in job.diagnostics if not found.descriptive and not found.HasField("ranks")]
    rhats = [
        found.rhat if found.HasField("rhat") else math.nan
        for found in deciding
        if found.HasField("rhat") or found.chains > 1
    ]
    if not rhats:
        return ""
    return "R-hat unknown" if any(map(math.isnan, rhats)) else f"R-hat {max(rhats):.3f}"


def _words(*parts: str) -> str:
    return "  ".join(part for part in parts if part)


def bar(share: float) -> str:
    """ "[##########----------]" for one half."""
    full = round(_BAR_CELLS * min(max(share, 0.0), 1.0))
    return f"[{'#' * full}{'-' * (_BAR_CELLS - full)}]"


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


def failure(job: jobs_pb2.Job) -> JobFailed:
    """The error of a job that ended FAILED or CANCELLED."""
    hint = "job.logs() tells what happened, and job.draws() has the draws that were kept"
    return JobFailed(outcome(job), reason="JOB_FAILED", hint=hint)


class Line:
    """A line that is written over: on a terminal's standard error, or as an output of a notebook. Else it is silent."""

    def __init__(self, enabled: bool) -> None:
        self._notebook = _notebook() if enabled else None
        self._terminal = enabled and self._notebook is None and sys.stderr.isatty()
        self._output: Any = None
        self._stays = False  # a page stays in a notebook, words do not
        self._next = 0.0  # time.monotonic() of the next line of an upload

    def show(self, words: str, page: str = "") -> None:
        """`page`: the same as HTML, for a notebook."""
        if self._terminal:
            safe = "".join(c if c.isprintable() else "?" for c in words)
            sys.stderr.write(f"\r{safe[: shutil.get_terminal_size().columns - 1]}\x1b[K")
            sys.stderr.flush()
        elif self._notebook is not None:
            self._stays = bool(page)
            shown = {"text/html": page or f"<pre>{escape(words)}</pre>", "text/plain": words}
            if self._output is None:
                self._output = self._notebook.display(shown, raw=True, display_id=True)
            else:
                self._output.update(shown, raw=True)

    def show_bytes(self, sent: int, total: int) -> None:
        now = time.monotonic()
        if now < self._next and sent < total:
            return
        self._next = now + _SECONDS_BETWEEN
        share = sent / total if total else 1.0
        self.show(f"uploading  {bar(share)} {sent / 2**20:,.0f} of {total / 2**20:,.0f} MiB")

    def close(self) -> None:
        if self._terminal:
            sys.stderr.write("\r\x1b[K")
            sys.stderr.flush()
        elif self._notebook is not None and self._output is not None and not self._stays:
            self._output.update({"text/html": "", "text/plain": ""}, raw=True)


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
    """Prints, on Ctrl-C, the call that re-attaches to the work on the server. In asyncio, Ctrl-C cancels the task."""
    try:
        yield
    except (KeyboardInterrupt, grpc.FutureCancelledError) as stopped:
        if isinstance(stopped, KeyboardInterrupt) or sys.stderr.isatty():
            sys.stderr.write(f"\ndetached; the job continues on the server. To re-attach: {call}\n")
        if isinstance(stopped, KeyboardInterrupt) and _notebook() is not None:
            raise KeyboardInterrupt from None  # a notebook would show all frames of grpc
        raise


def _notebook() -> Any:
    """IPython.display if this program is the kernel of a notebook, else None."""
    ipython = sys.modules.get("IPython")
    shell = ipython.get_ipython() if ipython is not None else None
    if not hasattr(shell, "kernel"):
        return None
    return importlib.import_module("IPython.display")
