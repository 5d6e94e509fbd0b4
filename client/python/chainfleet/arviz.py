"""Draws for ArviZ of either major version: what `Job.to_arviz` gives."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from .arrays import Array, Data, check_pair
from .draws import Draws
from .errors import Aborted, InvalidArgument, class_of, invalid_field, no_package
from .posterior import Posterior, posterior_of
from .prediction import Member, Prediction, parts_of_job
from .reasons import NotTraced
from .v1 import job_spec_pb2, jobs_pb2, types_pb2

if TYPE_CHECKING:
    from .job import Job

_BLOCK_VALUES = 1 << 24  # values of single draws that are held at a time
_MOST_VALUES = 1 << 28  # for the group log_likelihood
_READ_BYTES = 14 << 20  # rows in one reply, whose bound is 15 MiB
_ROW_BYTES = 16  # counted for each row, besides its inputs
_DRAWN_AFTER_TRAINING = ("swa", "swag", "mc_dropout", "laplace")
_TUNES_ITS_STEP = ("mile", "smile")  # the schedule is the rate of the descent before their draws
_SMALLEST = float(np.finfo(np.float32).smallest_subnormal)  # members are float32


def to_arviz(
    job: Job,
    *,
    kind: str = "theta",
    data: Any = None,
    log_likelihood: bool = True,
    point: str = "",
    seed: int | None = 0,
    include_failed: bool = False,
) -> Any:
    """See Job.to_arviz."""
    arviz = _import_arviz()
    state = job.describe()
    source = posterior_of(state, point, include_failed)
    selection = {"kinds": kind, "point": point, "include_failed": include_failed, "chains": sorted(source.chains)}
    groups: dict[str, dict[str, Array]] = {}
    seen: dict[int, tuple[Array, Array]] | None = None
    predicts = log_likelihood and bool(state.inputs.shape)
    # The version fixes which draws both groups have, also while chains run.
    version = job.snapshot().version if predicts else 0
    records = _segments(job, source)
    draws = Draws(job._connection, records)[kind]
    if predicts:
        rows = _rows(job, state, data)
        seen = _log_likelihood(job, rows, {**selection, "version": version})
        groups["observed_data"] = {"y": rows.y}
        if not _readable(records) <= _readable(_segments(job, source)):
            raise _changed()
    weights = _weights(draws, source, seen)
    picks = _pick(weights, seed)
    groups["posterior"] = _posterior(draws, picks)
    steps = {chain: draws.steps(chain)[taken] for chain, taken in picks.items()}
    groups["sample_stats"] = _sample_stats(job, state, source, kind, steps)
    if seen is not None:
        groups["log_likelihood"] = {"y": np.stack([seen[chain][1][picks[chain]] for chain in picks])}
    told = {"job": job.id, "kind": kind, "point": source.point, **_told_of(state.inputs)}
    return _convert(arviz, groups, list(picks), told)


def _told_of(inputs: jobs_pb2.Job.Inputs) -> dict[str, Any]:
    """Standardisation and class names as attributes, as far as the job has them."""
    told: dict[str, Any] = {}
    if inputs.normalisation.mean:
        told["input_mean"] = list(inputs.normalisation.mean)
        told["input_stddev"] = list(inputs.normalisation.stddev)
    if inputs.HasField("target_units"):
        told["target_mean"], told["target_stddev"] = inputs.target_units.mean, inputs.target_units.stddev
    if inputs.class_names:
        told["class_names"] = list(inputs.class_names)
    return told


def _import_arviz() -> Any:
    try:
        import arviz
    except ImportError:
        raise no_package("to_arviz", "arviz", "pip install chainfleet[arviz]") from None
    return arviz


def _convert(arviz: Any, groups: dict[str, dict[str, Array]], chains: list[int], attributes: dict[str, Any]) -> Any:
    named = {"coords": {"chain": chains}, "dims": {"y": ["row"]}}
    old = arviz.__version__.startswith("0.")
    made = arviz.from_dict(**groups, **named) if old else arviz.from_dict(groups, **named)
    made.attrs.update(attributes)
    return made


def _segments(job: Job, source: Posterior) -> list[types_pb2.SegmentRecord]:
    """The segments of these chains. Raises NoDraws."""
    request = jobs_pb2.ListSegmentsRequest(job=job.id)
    if source.point:
        request.point = source.point
    reply = jobs_pb2.ListSegmentsResponse
    records = job._connection.pages("JobService/ListSegments", request, reply, "segments")
    found = [record for record in records if record.chain.index in source.chains]
    if not _readable(found):
        raise class_of("FAILED_PRECONDITION", "NO_DRAWS")(f"job {job.id} has no draws to read", reason="NO_DRAWS")
    return found


def _readable(records: Sequence[types_pb2.SegmentRecord]) -> set[str]:
    return {record.segment.object.name for record in records if not record.deleted and not record.corrupt}


def _weights(draws: Draws, source: Posterior, seen: Mapping[int, tuple[Array, Array]] | None) -> dict[int, Array]:
    """Weights of the draws by chain: of all, or of those that the server predicted with. Raises Aborted."""
    weights = {chain: draws.weights(chain) for chain in draws.chains}
    if seen is not None:
        weights = {chain: weights.get(chain, np.empty(0))[: len(used)] for chain, (used, _) in sorted(seen.items())}
        if not all(np.array_equal(weights[chain], used) for chain, (used, _) in seen.items()):
            raise _changed()
    empty = sorted(set(source.chains) - set(weights))
    if empty:
        warnings.warn(f"chains {empty} have no draws and are left out", stacklevel=4)
    return weights


def _changed() -> Aborted:
    return Aborted("draws were deleted while to_arviz read them", reason="DRAWS_DELETED", hint="repeat it")


def _pick(weights: Mapping[int, Array], seed: int | None) -> dict[int, Array]:
    """Which draws of each chain, as many of each: indices, rising."""
    counts = {chain: len(values) for chain, values in weights.items()}
    if all(np.all(values == 1) for values in weights.values()):
        shortest = min(counts.values())
        if shortest != max(counts.values()):
            warnings.warn(f"chains have {counts} draws; the newest {shortest} of each are taken", stacklevel=4)
        return {chain: np.arange(count - shortest, count) for chain, count in counts.items()}
    if seed is None:
        words = "the draws are weighted, and ArviZ counts each draw once"
        raise invalid_field("seed", words, "to_arviz(seed=0) resamples them")
    # At evenly spaced times of the chain, from a random start: its order is kept, so ESS and R-hat keep their meaning.
    size = max(counts.values())
    picks = {}
    for chain, values in weights.items():
        ends = np.cumsum(values)
        times = (np.arange(size) + np.random.default_rng((seed, chain)).random()) * (ends[-1] / size)
        picks[chain] = np.minimum(np.searchsorted(ends, times, side="right"), len(values) - 1)
    return picks


def _posterior(draws: Draws, picks: Mapping[int, Array]) -> dict[str, Array]:
    """Each parameter [chain, draw, ...]. Holds one object of the server meanwhile."""
    size = len(next(iter(picks.values())))
    made: dict[str, Array] = {}
    positions = dict.fromkeys(picks, 0)
    for draw in draws:
        if draw.chain not in picks:
            continue
        taken = picks[draw.chain]
        first, end = np.searchsorted(taken, [positions[draw.chain], positions[draw.chain] + 1])
        positions[draw.chain] += 1
        row = list(picks).index(draw.chain)
        for name, value in draw.parameters.items():
            if name not in made:
                made[name] = np.empty((len(picks), size, *value.shape), np.float32)
            made[name][row, first:end] = value
    return made


def _sample_stats(
    job: Job, state: jobs_pb2.Job, source: Posterior, kind: str, steps: Mapping[int, Array]
) -> dict[str, Array]:
    """Returns the statistics of each draw [chain, draw]."""
    taken = np.stack(list(steps.values()))
    chains = [source.chains[chain] for chain in steps]
    diverged = np.array([chain.state == types_pb2.DIVERGED for chain in chains])
    made = {"step": taken, "diverging": np.broadcast_to(diverged[:, None], taken.shape)}
    asked = state.spec.HasField("trace_every")
    energy = _energy(job, steps, asked) if kind == "theta" else None  # the traced energy is that of theta
    if energy is not None:
        made |= {"energy": energy, "lp": -energy}
    if all(chain.stats.HasField("metropolis") for chain in chains):
        rates = np.array([chain.stats.metropolis.acceptance for chain in chains])
        made["acceptance_rate"] = np.broadcast_to(rates[:, None], taken.shape)
    sizes = _step_sizes(state.spec, source.report, chains[0].total_steps, taken)
    return made if sizes is None else {**made, "step_size": sizes}


def _energy(job: Job, steps: Mapping[int, Array], asked: bool) -> Array | None:
    """Traced energies [chain, draw] at these steps, NaN where there is none; None if no step was traced.

    asked: the job says which steps are traced, so a warning tells how many draws have none. By default few have one.
    """
    try:
        traces = {trace.chain: trace for trace in job.traces("energy")}
    except NotTraced:
        return None
    rows, missing = [], 0
    for chain, wanted in steps.items():
        trace = traces.get(chain)
        known = dict(zip(trace.steps.tolist(), trace.values.tolist(), strict=True)) if trace else {}
        rows.append([known.get(step, np.nan) for step in wanted.tolist()])
        missing += sum(step not in known for step in wanted.tolist())
    made = np.array(rows)
    if np.isnan(made).all():
        return None
    if missing and asked:
        words = f"energy and lp are NaN for {missing:,} of {made.size:,} draws, whose steps have no traced value"
        kept = "trace_every says which steps are traced, and the server keeps the newest 1,000 values of each chain"
        warnings.warn(f"{words}: {kept}", stacklevel=5)
    return made


def _step_sizes(
    spec: job_spec_pb2.JobSpec, report: jobs_pb2.Job.Report, total_steps: int, steps: Array
) -> Array | None:
    """Returns alpha of the step before each draw; None where no schedule says it, as for draws of SWAG or of mile.

    Formulas: the schedules of chainfleet.schedules.
    """
    of_mean = spec.HasField("learning_rate")
    of_job = spec.learning_rate if of_mean else spec.step_size
    kind = of_job.WhichOneof("kind")
    if kind is None or spec.sampler.WhichOneof("kind") in (*_DRAWN_AFTER_TRAINING, *_TUNES_ITS_STEP):
        return None
    schedule: Any = getattr(of_job, kind)
    first = report.step_size
    last = getattr(schedule, "final", first) / (report.num_examples if of_mean else 1)
    t = steps - 1
    match kind:
        case "constant":
            made = np.full(steps.shape, first)
        case "linear":
            made = first + (last - first) * t / total_steps
        case "exponential":
            made = first * (last / first) ** (t / total_steps)
        case "step":
            made = np.where(t < schedule.at * total_steps, first, first * schedule.factor)
        case "cyclical":
            cycle = total_steps // schedule.cycles
            made = last + 0.5 * (first - last) * (np.cos(np.pi * (t % cycle) / cycle) + 1)
        case "swag":
            epoch = t // max(1, report.num_examples // spec.batch_size)
            made = first + (last - first) * (np.clip(epoch / schedule.start_epoch, 0.5, 0.9) - 0.5) / 0.4
        case "polynomial":
            made = first * (1 + t / schedule.offset) ** -schedule.power
        case _:  # from a newer server
            return None
    return made


def _rows(job: Job, state: jobs_pb2.Job, data: Any) -> Data:
    """`data`, or the rows that the job learned from, as they are stored."""
    if data is not None and not isinstance(data, str):
        return check_pair(data, job._learns_numbers(), parts_of_job(state))
    name = data or state.spec.dataset.name
    # One row of a data set that is not there: the server says so.
    total = next((stored.num_rows for stored in job._fleet.datasets() if stored.name == name), 1)
    kind = np.dtype("u1" if state.inputs.type == types_pb2.UINT8 else "<f4")
    inputs, targets = [], []
    at_once = max(1, _READ_BYTES // (_ROW_BYTES + kind.itemsize * int(np.prod(state.inputs.shape))))
    for begin in range(0, total, at_once):
        read = job._fleet.rows(name, range(begin, min(begin + at_once, total)))
        inputs.append(np.frombuffer(read.inputs, kind).reshape(tuple(read.shape)))
        targets.append(np.array(read.targets, np.float32) if read.targets else np.array(read.labels, np.int32))
    return Data(np.concatenate(inputs), np.concatenate(targets))


def _log_likelihood(job: Job, rows: Data, selection: Mapping[str, Any]) -> dict[int, tuple[Array, Array]]:
    """By chain: weights [S] of its draws, and log p(y given x, draw) [S, n] in nats. Raises InvalidArgument."""
    parts: list[dict[int, tuple[Array, Array]]] = []
    begin, size = 0, 1
    while begin < len(rows.y):
        made = job.predict(rows.x[begin : begin + size], members=True, **selection)
        targets = rows.y[begin : begin + size]
        parts.append({member.chain: (member.weights, _log_density(member, targets)) for member in made.members})
        begin += size
        size = _next_size(made, len(rows.y))
    return {
        chain: (weights, np.concatenate([part[chain][1] for part in parts], axis=1))
        for chain, (weights, _) in parts[0].items()
    }


def _next_size(made: Prediction, total_rows: int) -> int:
    draws = sum(len(member.weights) for member in made.members)
    if draws * total_rows > _MOST_VALUES:
        raise invalid_field(
            "log_likelihood",
            f"{draws} draws and {total_rows:,} rows would take {draws * total_rows >> 27} GiB",
            f"pass at most {_MOST_VALUES // draws:,} rows, data=(x, y), or log_likelihood=False",
        )
    classes = made.mean_probability.shape[1] if "mean_probability" in made.scores else 2
    return max(1, _BLOCK_VALUES // (draws * classes))


def _log_density(member: Member, targets: Array) -> Array:
    """log p(targets [n]) by each draw [S, n]."""
    if member.probabilities is None:
        assert member.mean is not None and member.variance is not None
        mean, variance = member.mean.astype(np.float64), member.variance.astype(np.float64)
        density: Array = -0.5 * (np.log(2 * np.pi * variance) + (targets - mean) ** 2 / variance)
        return density
    if targets.max() >= member.probabilities.shape[2]:
        raise InvalidArgument(
            f"data has class {targets.max()}, the job learned {member.probabilities.shape[2]} classes",
            reason="INVALID_DATA",
            hint="leave out rows of other classes, or pass log_likelihood=False",
        )
    chosen = member.probabilities[:, np.arange(len(targets)), targets].astype(np.float64)
    logarithm: Array = np.log(np.maximum(chosen, _SMALLEST))
    return logarithm
