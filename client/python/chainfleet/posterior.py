"""The posterior of a job that a call is about: the whole job, or one point of its sweep."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from .errors import class_of
from .v1 import jobs_pb2, types_pb2


@dataclass(frozen=True)
class Posterior:
    """Its chains by index, their common report, and the name of the sweep's point, "" without a sweep."""

    chains: Mapping[int, jobs_pb2.Chain]
    report: jobs_pb2.Job.Report
    point: str


def posterior_of(job: jobs_pb2.Job, point: str, include_failed: bool = False) -> Posterior:
    """Chains that failed or diverged are left out unless `include_failed`.

    Raises PointRequired, which lists the points, without the point of a sweep; InvalidArgument for an unknown one.
    """
    report, index, name = job.report, 0, ""
    if job.points:
        found = [p for p in job.points if point in (p.name, str(p.index))]
        if not found:
            points = ", ".join(p.name for p in job.points)
            reason = "NO_SUCH_POINT" if point else "POINT_REQUIRED"
            raise class_of("INVALID_ARGUMENT", reason)(
                f"job {job.id} has a sweep, and each point is a posterior of its own: {points}",
                reason=reason,
                hint=f"point=..., one of {points}",
            )
        report, index, name = found[0].report, found[0].index, found[0].name
    elif point:
        words = f"job {job.id} has no sweep, so it has no point {point!r}"
        raise class_of("INVALID_ARGUMENT", "NO_SUCH_POINT")(words, reason="NO_SUCH_POINT", hint="leave point out")
    failed = () if include_failed else (types_pb2.FAILED, types_pb2.DIVERGED)
    chains = {c.id.index: c for c in job.chains if c.point == index and c.state not in failed}
    return Posterior(chains, report, name)
