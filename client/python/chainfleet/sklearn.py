"""Estimators for scikit-learn whose posterior a fleet samples. Needs scikit-learn.

    from chainfleet.sklearn import ChainfleetClassifier

    ChainfleetClassifier(random_state=0).fit(x, y).predict_proba(x_new)

An estimator holds the id of its job, no connection and no token. So it can be cloned, pickled and sent to other
processes, and predicts wherever the server is reached. Each fit starts a job of its own, which stays on the server:
fleet.job(estimator.job_id_).delete() deletes it with its draws.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin
from sklearn.utils import check_random_state
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted

from .arrays import Array, Data, check_data
from .contexts import find_server
from .fleet import Fleet, connect
from .job import Job
from .layers import Linear
from .prediction import check_shares
from .samplers import SGLD
from .specs import Model

try:
    from sklearn.utils.validation import validate_data
except ImportError:  # before scikit-learn 1.6

    def validate_data(estimator: Any, *arrays: Any, **options: Any) -> Any:
        return estimator._validate_data(*arrays, **options)


_LOOK_INTERVAL = 0.02  # seconds: jobs of small data are short
_BLOCK_BYTES = 16 << 20  # predictions of single draws that are sorted at a time
_MOST_SEED = 2**31 - 1
_MOST_NAMES_BYTES = 64 << 10  # all names of classes of a data set together


def _names_of(classes: Array) -> tuple[str, ...]:
    """The names that the data set gets: none for 0, 1, ..., or if the server would refuse one."""
    names = tuple(str(label) for label in classes)
    plain = names == tuple(map(str, range(len(names))))
    fit = all(name and name.isprintable() for name in names) and len("".join(names).encode()) <= _MOST_NAMES_BYTES
    return names if fit and not plain and len(set(names)) == len(names) else ()


class _Estimator(BaseEstimator):
    """The parts that both estimators share: the job, and its server."""

    job_id_: str
    n_features_in_: int

    def __init__(
        self,
        hidden_layer_sizes: Sequence[int] = (50,),
        *,
        model: Any = None,
        sampler: Any = None,
        chains: int = 4,
        epochs: int = 200,
        learning_rate: Any = 0.1,
        options: Mapping[str, Any] | None = None,
        random_state: Any = None,
        address: str | Sequence[str] | None = None,
        timeout: float | None = None,
    ) -> None:
        self.hidden_layer_sizes = hidden_layer_sizes
        self.model = model
        self.sampler = sampler
        self.chains = chains
        self.epochs = epochs
        self.learning_rate = learning_rate
        self.options = options
        self.random_state = random_state
        self.address = address
        self.timeout = timeout

    def _sample(self, data: Data) -> None:
        self.__dict__.pop("job_id_", None)  # that of an earlier fit, of other data
        hidden = list(self.hidden_layer_sizes)
        network = Model(builtin="mlp", hidden=hidden) if hidden else [Linear()]
        job = _fleet_of(self.address).sample(
            network if self.model is None else self.model,
            data=data,
            sampler=SGLD() if self.sampler is None else self.sampler,
            chains=self.chains,
            epochs=self.epochs,
            learning_rate=self.learning_rate,
            seed=int(check_random_state(self.random_state).randint(_MOST_SEED)),
            progress=False,
            wait=False,
            **(self.options or {}),
        )
        self.job_id_ = job.id
        job.wait(self.timeout, progress=False, interval=_LOOK_INTERVAL)

    def _inputs(self, x: Any) -> tuple[Job, Array]:
        """The job, and rows that fit it. Raises NotFittedError, or ValueError if they do not fit."""
        check_is_fitted(self, "job_id_")
        rows = validate_data(self, x, dtype=np.float32, reset=False)
        return _job(_fleet_of(self.address), self.job_id_), rows


class ChainfleetClassifier(ClassifierMixin, _Estimator):
    """A network that predicts classes by averaging over draws from its posterior.

    hidden_layer_sizes: widths of the hidden layers of a ReLU network; (): logistic regression.
    model: instead, a model as Fleet.sample takes it, for inputs of one axis.
    sampler: of chainfleet.samplers; None: SGLD().
    chains, epochs, learning_rate: as Fleet.sample takes them. options: its other arguments by name, such as
      {"prior": chainfleet.priors.Gaussian(precision=10)}.
    random_state: int, numpy.random.RandomState or None; the same int gives the same draws.
    address: of the server, as chainfleet.connect takes it; tokens come from the environment or a context.
    timeout: seconds that fit waits for the job; None: without a bound.

    After fit: classes_ [K]; n_features_in_; feature_names_in_ if X had names; job_id_, the job at the server,
    also if fit gave up waiting for it.
    Raises ValueError for wrong X or y, chainfleet.errors.ChainfleetError for everything else.
    """

    classes_: Array

    def fit(self, X: Any, y: Any) -> ChainfleetClassifier:  # noqa: N803
        """Samples the posterior given X [n, features] (numbers) and y [n] (any labels); returns when the job has ended.

        Raises ValueError for fewer than two classes, JobFailed, DeadlineExceeded after `timeout` seconds.
        """
        rows, labels = validate_data(self, X, y, dtype=np.float32, ensure_min_samples=2)
        check_classification_targets(labels)
        self.classes_, encoded = np.unique(labels, return_inverse=True)
        if len(self.classes_) < 2:
            raise ValueError(f"y holds one class, {self.classes_[0]!r}; at least 2 classes are needed")
        self._sample(replace(check_data(rows, encoded), class_names=_names_of(self.classes_)))
        return self

    def predict_proba(self, X: Any, credible_intervals: Sequence[float] = ()) -> Any:  # noqa: N803
        """Probability of each of classes_, the mean over draws: float64 [n, K].

        credible_intervals: masses in (0, 1), as [0.5, 0.95]: also the central intervals that hold these shares of the
        draws, by weight, of the probability of each class: float64 [n, K, masses, 2] of lower and upper bounds. They
        are wide where the draws disagree. A mean over draws that differ much may lie outside. Then returns a tuple:
        probabilities, intervals.
        """
        job, rows = self._inputs(X)
        masses = check_shares("credible_intervals", credible_intervals)
        return _with_intervals(job, rows, masses) if masses else job.predict(rows).mean_probability

    def predict(self, X: Any) -> Array:  # noqa: N803
        """The likeliest class of each row [n], of the type of classes_."""
        likeliest = self.predict_proba(X).argmax(axis=1)
        chosen: Array = self.classes_[likeliest]
        return chosen


class ChainfleetRegressor(RegressorMixin, _Estimator):
    """A network that predicts numbers by averaging over draws from its posterior.

    The noise is normal, and its variance is learned; options={"likelihood": ...} takes another one. Parameters and
    attributes are those of ChainfleetClassifier, without classes_; hidden_layer_sizes=() is a linear regression.
    """

    def fit(self, X: Any, y: Any) -> ChainfleetRegressor:  # noqa: N803
        """Samples the posterior given X [n, features] and y [n], numbers; returns when the job has ended.

        Raises ValueError for wrong arrays, JobFailed, DeadlineExceeded after `timeout` seconds.
        """
        rows, targets = validate_data(self, X, y, dtype=np.float32, y_numeric=True, ensure_min_samples=2)
        self._sample(check_data(rows, targets.astype(np.float64)))
        return self

    def predict(
        self,
        X: Any,  # noqa: N803
        return_std: bool = False,
        credible_intervals: Sequence[float] = (),
    ) -> Any:
        """Mean of the predictive distribution, float64 [n], in the units of y.

        return_std: also its standard deviation [n], noise and disagreement of draws together.
        credible_intervals: masses in (0, 1), as [0.5, 0.95]: also the central intervals of the predictive distribution
        that hold them, float64 [n, masses, 2] of lower and upper bounds.
        With either argument, returns a tuple of the requested parts in this order: mean, std, intervals.
        """
        job, rows = self._inputs(X)
        masses = check_shares("credible_intervals", credible_intervals)
        levels = _levels(masses)
        made = job.predict(rows, quantiles=levels)
        found = [made.mean]
        if return_std:
            found.append(np.sqrt(made.variance))
        if levels:
            assert made.quantiles is not None
            found.append(made.quantiles.reshape(len(rows), -1, 2))
        return found[0] if len(found) == 1 else tuple(found)


def _levels(masses: Sequence[float]) -> list[float]:
    """The quantiles that bound the central intervals: lower and upper of each mass."""
    return [0.5 + side * mass / 2 for mass in masses for side in (-1, 1)]


def _with_intervals(job: Job, rows: Array, masses: Sequence[float]) -> tuple[Array, Array]:
    """The mean probabilities [n, K] and the intervals over draws [n, K, masses, 2], all of one version.

    Rows are read in blocks, because the predictions of all draws may not fit into memory.
    """
    means: list[Array] = []
    intervals: list[Array] = []
    begin, size, version = 0, 1, 0  # one row tells how many bytes a row needs
    while begin < len(rows):
        made = job.predict(rows[begin : begin + size], members=True, version=version)
        drawn = np.concatenate([member.probabilities for member in made.members if member.probabilities is not None])
        weights = np.concatenate([member.weights for member in made.members])
        means.append(made.mean_probability)
        intervals.append(_weighted_quantiles(drawn, weights, _levels(masses)))
        begin, version = begin + size, made.version
        size = max(1, _BLOCK_BYTES * drawn.shape[1] // drawn.nbytes)
    bounds = np.concatenate(intervals)
    return np.concatenate(means), bounds.reshape(*bounds.shape[:2], len(masses), 2)


def _weighted_quantiles(values: Array, weights: Array, levels: Sequence[float]) -> Array:
    """For each level the smallest of the values [S, ...] that has this share of the weights [S] at or below itself.

    Returns float64 [..., levels].
    """
    order = values.argsort(axis=0)
    shares = weights[order].cumsum(axis=0) / weights.sum()
    # Sums of weights are not exact: without the margin a share that equals the level could count as below it.
    ranks = np.stack([(shares < level - 1e-9).sum(axis=0) for level in levels])
    found: Array = np.take_along_axis(np.take_along_axis(values, order, axis=0), ranks, axis=0).astype(np.float64)
    return np.moveaxis(found, 0, -1)


def _fleet_of(address: str | Sequence[str] | None) -> Fleet:
    addresses, token, tls = find_server(address)
    named = address if address is None or isinstance(address, str) else ",".join(address)
    return _connected(named, ",".join(addresses), token, tls)


@lru_cache(maxsize=16)
def _connected(address: str | None, *_found: object) -> Fleet:
    """Connects anew where another server or token is found. The connection renews an expired token by itself."""
    return connect(address)


@lru_cache(maxsize=256)
def _job(fleet: Fleet, job_id: str) -> Job:
    """A job whose description is asked for once."""
    return Job(fleet, job_id)
