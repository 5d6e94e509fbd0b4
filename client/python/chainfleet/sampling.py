"""Turns the arguments of `Fleet.sample` into the spec of a job."""

from __future__ import annotations

import re
import warnings
from collections.abc import Sequence
from dataclasses import fields, replace
from typing import Any

from . import likelihoods, priors, samplers, schedules
from .arrays import Data
from .errors import InvalidArgument
from .layers import Layer
from .potentials import Potential
from .spec import fill, hint_of_class, unknown_argument
from .specs import Collect, DatasetRef, JobSpec, Model
from .v1 import job_spec_pb2

DEFAULT_LEARNING_RATE = 0.01
SERVER_BATCH_SIZE = 128  # default of batch_size in job_spec.proto
DEFAULT_PRIOR = priors.Gaussian(precision=1.0)
_OF_NUMBERS = (likelihoods.Gaussian, likelihoods.HeteroscedasticGaussian)
_OWN_DRAWS = (samplers.SWA, samplers.SWAG, samplers.MCDropout, samplers.Laplace)  # these draw when their training ends


def model_of(model: Any) -> Model | None:
    """A name, a list of layers, a potential or a Model as a Model; None for anything else, as a torch module."""
    if isinstance(model, Model):
        return model
    if isinstance(model, str):
        return Model(builtin=model)
    if isinstance(model, Potential):
        return Model(potential=model)
    if isinstance(model, Sequence):
        wrong = [item for item in model if not isinstance(item, Layer)]
        if wrong or not model:
            what = f"{wrong[0]!r} is no object" if wrong else "an empty list holds no object"
            hint = hint_of_class(wrong[0], "Layer") if wrong else ""
            raise InvalidArgument(
                f"model: {what} of a class of chainfleet.layers",
                reason="INVALID_MODEL",
                hint=hint or "for example [chainfleet.layers.Linear(outputs=50), chainfleet.layers.ReLU(), ...]",
            )
        return Model(layers=tuple(model))
    return None


def means_numbers(likelihood: likelihoods.Likelihood | None) -> bool | None:
    """True if the targets are numbers to predict; None without a likelihood."""
    return None if likelihood is None else isinstance(likelihood, _OF_NUMBERS)


def job_spec(given: dict[str, Any], model: Model, dataset: str, data: Data | None) -> JobSpec:
    """The job of `given` fields, with what `Fleet.sample` adds to them."""
    known = {field.name for field in fields(JobSpec)}
    for name in given.keys() - known:
        raise unknown_argument("sample", name, {*known, "epochs", "steps"})
    spec = JobSpec(model=model, dataset=DatasetRef(name=dataset) if dataset else None, **given)
    if not dataset and model.potential is None:
        hint = "data=(x, y), chainfleet.Files(...), or the name of a data set"
        raise InvalidArgument("data is missing: only potentials are sampled without", reason="INVALID_DATA", hint=hint)
    if data is not None and not data.numbers and data.y.min() > 0:
        words = f"y has no class 0: classes count from 0, so the network gets {int(data.y.max()) + 1} outputs"
        warnings.warn(f"{words}; np.unique(y, return_inverse=True)[1] counts so", stacklevel=3)
    fill(job_spec_pb2.JobSpec(), spec)  # the defaults need fields of the right type
    if spec.preset is None:
        spec = _with_defaults(spec, data)
    return replace(spec, name=spec.name or _name_of(spec))


def _with_defaults(spec: JobSpec, data: Data | None) -> JobSpec:
    if spec.learning_rate is None and spec.step_size is None:
        spec = replace(spec, learning_rate=DEFAULT_LEARNING_RATE)
    if spec.dataset is not None and spec.prior is None and not isinstance(spec.sampler, samplers.BSAM):
        spec = replace(spec, prior=DEFAULT_PRIOR)
    if data is not None and spec.batch_size is None and len(data.x) < SERVER_BATCH_SIZE:
        spec = replace(spec, batch_size=len(data.x))
    if data is not None and data.numbers and spec.likelihood is None and not (spec.model and spec.model.potential):
        spec = replace(spec, likelihood=likelihoods.Gaussian(learned=True))
    if spec.collect is None and spec.num_epochs and not isinstance(spec.sampler, _OWN_DRAWS):
        schedule = spec.learning_rate if spec.step_size is None else spec.step_size
        cycles = (schedule.cycles or 1) if isinstance(schedule, schedules.Cyclical) else 1
        spec = replace(spec, collect=Collect(last_epochs_of_cycle=max(1, spec.num_epochs // cycles // 2)))
    return spec


def _name_of(spec: JobSpec) -> str:
    """ "mlp-emcmc": a name for a job that nobody named."""
    model = (spec.model and (spec.model.builtin or spec.model.exported or spec.model.torchscript)) or "network"
    model = spec.model.potential.choice if spec.model and spec.model.potential else model
    kind = spec.sampler.choice if spec.sampler else "job"
    text = re.sub(r"[^a-z0-9]+", "-", f"{model[:30]}-{kind}".lower()).strip("-")
    return text if text[:1].isalpha() else f"job-{text}"
