"""Bayesian model averages: predictions for new rows with the draws of a job."""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from numbers import Real
from typing import TYPE_CHECKING, Any

import numpy as np

from . import html
from .arrays import Array, Part, side_by_side
from .connection import Connection
from .errors import InvalidArgument, invalid_field, no_package
from .spec import build
from .v1 import jobs_pb2, predict_pb2, types_pb2

if TYPE_CHECKING:
    import pandas

_REQUEST_BYTES = 1 << 20  # bytes of inputs
_REPLY_BYTES = 8 << 20
_FIRST_ROWS = 256  # the first request's rows; its reply says how large a row's reply is
_PER_CLASS = ("mean_probability", "log_probability")


@dataclass(frozen=True)
class Member:
    """The predictions of each draw of one chain and kind. S draws, n rows, K classes.

    weights: float64 [S]. probabilities: float32 [S, n, K]; of numbers mean and variance: float32 [S, n].
    gradients: float32, of the probabilities [S, n, K, ...] or the mean [S, n, ...] by the inputs; None unless asked.
    """

    chain: int
    kind: str
    weights: Array
    probabilities: Array | None = None
    mean: Array | None = None
    variance: Array | None = None
    gradients: Array | None = None


@dataclass(frozen=True)
class Prediction:
    """An average over draws for n rows.

    scores: float64 arrays by name; [n], or [n, K] of K classes. Entropies are in nats.
    errors: Monte Carlo standard error of each score, of the same shape; empty where the draws are too few to tell.
    quantiles: float64 [n, Q] of the predictive distribution of numbers at `quantile_levels`; None unless asked for.
    members: predictions of single draws; empty unless asked for.
    mean_gradient: float64, derivative of mean_probability [n, K, ...] or mean [n, ...] by the inputs, in their units
        (uint8 inputs count as x / 255) and of their shape; None unless asked for.
    prediction_set: bool [n, K], the classes of each row's conformal set; interval: float64 [n, 2], lower and upper end
        of its conformal interval, for numbers. None unless asked for.
    class_names: names of classes 0, 1, ..., from the data set; empty if it does not name them.
    job, version, point: which draws were averaged, `draws_used` of `draws_in_version`. With anytime or min_draws each
        request for a part of the rows may average over other draws: draws_used is the least of these numbers.
    """

    job: str
    version: int
    draws_used: int
    draws_in_version: int
    scores: Mapping[str, Array]
    errors: Mapping[str, Array]
    point: str = ""
    quantile_levels: tuple[float, ...] = ()
    quantiles: Array | None = None
    quantile_errors: Array | None = None
    members: tuple[Member, ...] = ()
    class_names: tuple[str, ...] = ()
    mean_gradient: Array | None = None
    prediction_set: Array | None = None
    interval: Array | None = None

    def __len__(self) -> int:
        return len(next(iter(self.scores.values())))

    def score(self, name: str) -> Array:
        """A score by name. Raises AttributeError that lists what there is."""
        if name not in self.scores:
            raise AttributeError(f"this prediction has no {name}; it has {', '.join(self.scores)}")
        return self.scores[name]

    def error(self, name: str) -> Array:
        """Monte Carlo standard error of a score, of the score's shape. NaN if it is unknown."""
        known = self.errors.get(name)
        return np.full_like(self.score(name), np.nan) if known is None else known

    @property
    def mean_probability(self) -> Array:
        """Probability of each class [n, K]: the mean over draws."""
        return self.score("mean_probability")

    @property
    def log_probability(self) -> Array:
        """Logarithm of mean_probability [n, K]."""
        return self.score("log_probability")

    @property
    def max_probability(self) -> Array:
        """Largest probability of a row [n]."""
        return self.score("max_probability")

    @property
    def predicted_class(self) -> Array:
        """Likeliest class of each row, int64 [n]."""
        classes: Array = np.argmax(self.mean_probability, axis=1)
        return classes

    @property
    def predictive_entropy(self) -> Array:
        """Entropy of mean_probability [n], nats: all of the uncertainty."""
        return self.score("predictive_entropy")

    @property
    def expected_entropy(self) -> Array:
        """Mean entropy of single draws [n], nats: uncertainty that more data of this kind would not remove."""
        return self.score("expected_entropy")

    @property
    def mutual_information(self) -> Array:
        """predictive_entropy - expected_entropy [n], nats: how much the draws disagree."""
        return self.score("mutual_information")

    @property
    def variation_ratio(self) -> Array:
        """1 - share of draws whose likeliest class is the most frequent one [n]."""
        return self.score("variation_ratio")

    @property
    def mean(self) -> Array:
        """Predicted number [n], in the targets' own units."""
        return self.score("mean")

    @property
    def variance_aleatoric(self) -> Array:
        """Mean of the draws' variances [n]: noise of the targets."""
        return self.score("variance_aleatoric")

    @property
    def variance_epistemic(self) -> Array:
        """Variance of the draws' means [n]: how much the draws disagree."""
        return self.score("variance_epistemic")

    @property
    def variance(self) -> Array:
        """Variance of the predictive distribution [n]: aleatoric and epistemic together."""
        return self.variance_aleatoric + self.variance_epistemic

    def to_pandas(self) -> pandas.DataFrame:
        """A frame with a row for each row and a column for each score, NAME_CLASS of each class. Needs pandas."""
        try:
            import pandas
        except ImportError:
            hint = "pip install pandas; scores has the same as NumPy arrays"
            raise no_package("to_pandas", "pandas", hint) from None
        columns: dict[str, Array] = {}
        for name, values in self.scores.items():
            if values.ndim == 1:
                columns[name] = values
            else:
                names = self.class_names or range(values.shape[1])
                columns |= {f"{name}_{of}": values[:, k] for k, of in enumerate(names)}
        return pandas.DataFrame(columns)

    def __repr__(self) -> str:
        return f"<{len(self):,} rows by {html.draws_of(self)}>"

    def _repr_html_(self) -> str:
        return html.prediction(self)


def select(
    kinds: Sequence[str] | str = (),
    version: int = 0,
    newest: int = 0,
    every: int = 0,
    max_draws: int = 0,
    chains: Sequence[int] = (),
    point: str = "",
    include_failed: bool = False,
    weights: str = "",
    pseudo_bma: bool = False,
) -> predict_pb2.DrawSelection:
    """Which draws to average; the defaults take all of the newest version.

    kinds: "theta", "theta_a" or both. newest: only so many of each chain. every: of those every k-th.
    max_draws: at most so many in all. chains: only these. point: of a sweep. include_failed: failed chains, too.
    weights: id of an evaluation with `stacking`; chains count by its stacking weights, or by its pseudo-BMA weights.
    """
    names = [kinds] if isinstance(kinds, str) or not isinstance(kinds, Iterable) else kinds
    return build(
        predict_pb2.DrawSelection,
        kinds=[_kind(name) for name in names],
        version=version,
        members=newest,
        every=every,
        max_draws=max_draws,
        chains=chains,
        point=point,
        include_failed=include_failed,
        weights=weights,
        pseudo_bma=pseudo_bma,
    )


SELECTION = frozenset(inspect.signature(select).parameters)


def _kind(name: str) -> types_pb2.DrawKind:
    if name not in ("theta", "theta_a"):
        raise invalid_field("kinds", f"{name!r} is neither theta nor theta_a", 'pass "theta", "theta_a" or both')
    return types_pb2.THETA if name == "theta" else types_pb2.THETA_A


def predict(connection: Connection, request: predict_pb2.PredictRequest, inputs: Array, timeout: float) -> Prediction:
    """All rows of `inputs`, in requests below the bound of a message, each on the version of the first one's reply."""
    request.inputs.type = types_pb2.UINT8 if inputs.dtype == np.uint8 else types_pb2.FLOAT32
    row_bytes = max(1, inputs[0].nbytes)
    large = request.member_probabilities or request.gradients
    rows = max(1, min(_REQUEST_BYTES // row_bytes, 1 if large else _FIRST_ROWS))
    replies: list[predict_pb2.PredictResponse] = []
    begin = 0
    while begin < len(inputs):
        part = inputs[begin : begin + rows]
        del request.inputs.shape[:]
        request.inputs.shape.extend(part.shape)
        request.inputs.data = part.tobytes()
        reply = connection.call("PredictService/Predict", request, predict_pb2.PredictResponse, timeout)
        replies.append(reply)
        begin += len(part)
        request.job, request.selection.version = reply.job_id, reply.version
        rows = max(1, min(_REQUEST_BYTES // row_bytes, _REPLY_BYTES * len(part) // max(1, reply.ByteSize())))
    return _join(replies, tuple(request.quantiles), inputs.shape[1:])


def check_rows(x: Any, job: jobs_pb2.Job) -> Array:
    """`x` as the job's inputs are. Raises InvalidArgument with both shapes or types."""
    require_inputs(job)
    (inputs, _), wanted = side_by_side(x, parts_of_job(job)), job.inputs
    shape = list(wanted.shape)
    if list(inputs.shape[1:]) == shape[1:] and shape[:1] == [1]:
        inputs = inputs[:, None]  # grey images without their channel
    if list(inputs.shape[1:]) != shape:
        hint = "pass x[None] for one row" if list(inputs.shape) == shape else "pass rows as those of the training data"
        raise InvalidArgument(
            f"x has shape {list(inputs.shape)}, job {job.id} takes {['n', *shape]}",
            reason="INVALID_DATA",
            hint=hint,
        )
    if (wanted.type == types_pb2.UINT8) != (inputs.dtype == np.uint8):
        learned, given = ("uint8", inputs.dtype) if wanted.type == types_pb2.UINT8 else ("float32", "uint8")
        hint = "pass the raw bytes 0 to 255" if learned == "uint8" else "pass x.astype(numpy.float32), as in training"
        raise InvalidArgument(
            f"x is {given}, job {job.id} learned from {learned} inputs", reason="INVALID_DATA", hint=hint
        )
    return inputs


def parts_of_job(job: jobs_pb2.Job) -> tuple[Part, ...]:
    """The inputs of the job's network, if it has several."""
    return tuple(Part(column.name, column.type, tuple(column.shape)) for column in job.inputs.columns)


def require_inputs(job: jobs_pb2.Job) -> None:
    """Raises InvalidArgument for a job without a data set."""
    if not job.inputs.shape:
        words, hint = f"job {job.id} has no data set, so it predicts nothing", "read its draws: job.draws()"
        raise InvalidArgument(words, reason="INVALID_DATA", hint=hint)


def check_shares(name: str, values: Any) -> list[float]:
    """A list of numbers above 0 and below 1. Raises InvalidArgument that names the argument."""
    hint = f"for example {name}=[0.5, 0.95]"
    if not isinstance(values, Iterable):
        raise invalid_field(name, f"{values!r} is not a list", hint)
    given = list(values)
    for value in given:
        if not isinstance(value, Real) or not 0 < float(value) < 1:
            raise invalid_field(name, f"{value!r} is not a number above 0 and below 1", hint)
    return given


def learns_numbers(job: jobs_pb2.Job) -> bool:
    """True if the job predicts numbers, False if it predicts classes."""
    of_numbers = "gaussian" in (job.spec.likelihood.WhichOneof("kind") or "")
    return of_numbers or job.spec.model.potential.WhichOneof("kind") == "linear_regression"


def standardise(inputs: Array, job: jobs_pb2.Job) -> Array:
    """The inputs of the network: float32, (x * scale - mean) / stddev along the first axis of a row."""
    scale, mean, stddev = input_scaling(job)
    seen: Array = (inputs.astype(np.float32) * scale - mean) / stddev
    return seen


def input_scaling(job: jobs_pb2.Job) -> tuple[np.float32, Array, Array]:
    """(scale, mean, stddev) of `standardise`; mean and stddev float32 with the axes of a row."""
    stored = job.inputs
    scale = np.float32(1 / 255) if stored.type == types_pb2.UINT8 else np.float32(1)
    along = (-1,) + (1,) * (len(stored.shape) - 1)
    mean = np.array(stored.normalisation.mean or [0.0], np.float32).reshape(along)
    return scale, mean, np.array(stored.normalisation.stddev or [1.0], np.float32).reshape(along)


def _join(
    replies: Sequence[predict_pb2.PredictResponse], levels: tuple[float, ...], row: tuple[int, ...]
) -> Prediction:
    first = replies[0]
    rows, classes = sum(reply.num_rows for reply in replies), first.num_classes

    def arrays(part: str) -> dict[str, Array]:
        """The scores that every reply has. Most fields of a message are empty, so only the others are converted."""
        found = [{of.name: values for of, values in getattr(reply, part).ListFields()} for reply in replies]
        return {
            name: _joined([one[name] for one in found], (rows, classes) if name in _PER_CLASS else (rows,))
            for name in found[0]
            if all(name in one for one in found)
        }

    def quantiles(name: str) -> Array | None:
        values = [getattr(reply, name) for reply in replies]
        return _joined(values, (rows, len(levels))) if levels and all(values) else None

    def rowwise(name: str, kind: type, width: int) -> Array | None:
        values = np.concatenate([np.array(getattr(reply, name), kind) for reply in replies])
        return values.reshape(rows, width) if values.size else None

    return Prediction(
        job=first.job_id,
        version=first.version,
        draws_used=min(reply.draws_used for reply in replies),
        draws_in_version=first.draws_in_version,
        scores=arrays("scores"),
        errors=arrays("errors"),
        point=first.point,
        quantile_levels=levels,
        quantiles=quantiles("quantiles"),
        quantile_errors=quantiles("quantile_errors"),
        members=tuple(_member(parts, classes, row) for parts in _common_members(replies)),
        class_names=tuple(first.class_names),
        mean_gradient=_joined([reply.mean_gradient for reply in replies], (rows, *_each(classes), *row))
        if first.mean_gradient
        else None,
        prediction_set=rowwise("prediction_set", np.bool_, classes),
        interval=rowwise("interval", np.float64, 2),
    )


def _joined(parts: Sequence[Sequence[float]], shape: tuple[int, ...]) -> Array:
    """The numbers of all parts, one part after the other."""
    # The one is faster for few numbers, the other for many.
    arrays = [
        np.fromiter(part, np.float64, len(part)) if len(part) < 64 else np.array(part, np.float64) for part in parts
    ]
    return (np.concatenate(arrays) if len(arrays) > 1 else arrays[0]).reshape(shape)


def _each(classes: int) -> tuple[int, ...]:
    """The axis of classes, none of numbers."""
    return (classes,) if classes else ()


def _common_members(replies: Sequence[predict_pb2.PredictResponse]) -> list[list[predict_pb2.Members]]:
    """For each chain and kind whose draws are the same in all replies: its members, one of each reply. Warns of others.

    Replies have other draws than the first one if the request said anytime or min_draws.
    """
    found = [{(one.chain.index, one.kind): one for one in reply.members} for reply in replies]
    common, left_out = [], set[int]()
    for key in dict.fromkeys(key for members in found for key in members):
        parts = [members[key] for members in found if key in members]
        if len(parts) == len(found) and all(part.weights == parts[0].weights for part in parts):
            common.append(parts)
        else:
            left_out.add(key[0])
    if left_out:
        words = f"rows were predicted with different draws of chains {sorted(left_out)}, whose members are left out"
        warnings.warn(f"{words}: predict fewer rows at a time, or without anytime and min_draws", stacklevel=5)
    return common


def _member(parts: Sequence[predict_pb2.Members], classes: int, row: tuple[int, ...]) -> Member:
    """The same chain and kind of all replies, rows one after the other."""
    draws = len(parts[0].weights)

    def rows(name: str, *row: int) -> Array | None:
        values = [np.array(getattr(part, name), np.float32).reshape(draws, -1, *row) for part in parts]
        return np.concatenate(values, axis=1) if values[0].size else None

    return Member(
        chain=parts[0].chain.index,
        kind=types_pb2.DrawKind.Name(parts[0].kind).lower(),
        weights=np.array(parts[0].weights, np.float64),
        probabilities=rows("probabilities", classes) if classes else None,
        mean=None if classes else rows("mean"),
        variance=None if classes else rows("variance"),
        gradients=rows("gradients", *_each(classes), *row),
    )
