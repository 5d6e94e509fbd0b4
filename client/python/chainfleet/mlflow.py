"""Jobs in MLflow: settings, metrics while chains run, and models that predict. Needs mlflow.

    import chainfleet.mlflow

    info = chainfleet.mlflow.log_job(job)  # streams metrics until the job ends, then logs the model
    mlflow.pyfunc.load_model(info.model_uri).predict(x_new)  # a pandas frame of scores

A model is a name: the draws stay at the server, where they are averaged. With draws="export" the model holds the draws
and the torch module, and predicts anywhere without a server.
"""

from __future__ import annotations

import contextlib
import json
import math
import os
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import mlflow
import mlflow.pyfunc
import numpy as np
from google.protobuf.json_format import MessageToDict
from google.protobuf.message import Message
from mlflow.models import ModelSignature
from mlflow.types import ColSpec, Schema, TensorSpec

from . import text
from .arrays import Array
from .errors import invalid_field
from .fleet import connect
from .job import Job
from .prediction import require_inputs
from .torch_average import TorchAverage
from .v1 import jobs_pb2, types_pb2
from .version import __version__

_LOADER = "chainfleet.mlflow"


class ServedModel:
    """A version of a job at a server, behind mlflow.pyfunc.load_model(...).predict."""

    def __init__(self, job: Job, version: int) -> None:
        self.job, self.version = job, version

    def predict(self, model_input: Any, params: dict[str, Any] | None = None) -> Any:
        """A pandas frame with a row for each row of `model_input` [n, ...], an array or a frame of numbers.

        Columns: predicted_class and probability_NAME of each class, by numbers if the data set does not name them; and
        every score of one number a row, as chainfleet.Prediction has it. Raises ChainfleetError.
        """
        import pandas

        made = self.job.predict(model_input, version=self.version)
        columns = {name: values for name, values in made.scores.items() if values.ndim == 1}
        if "mean_probability" in made.scores:
            columns = _class_columns(made.mean_probability, made.class_names) | columns
        return pandas.DataFrame(columns)


class ExportedModel:
    """The draws of a job, behind mlflow.pyfunc.load_model(...).predict."""

    def __init__(self, average: TorchAverage) -> None:
        self._average = average

    def predict(self, model_input: Any, params: dict[str, Any] | None = None) -> Any:
        """A pandas frame with a row for each row of `model_input` [n, ...], an array or a frame of numbers.

        Columns: predicted_class and probability_NAME of classes, as ServedModel.predict has them; mean of numbers.
        Raises InvalidArgument.
        """
        import pandas

        made = self._average(model_input).numpy(force=True)
        if made.ndim == 1:
            return pandas.DataFrame({"mean": made})
        return pandas.DataFrame(_class_columns(made, self._average.class_names))

    def get_raw_model(self) -> TorchAverage:
        """The function that Job.to_torch gives; mlflow.pyfunc.load_model(...).get_raw_model() calls this."""
        return self._average


def _class_columns(probabilities: Array, class_names: Sequence[str]) -> dict[str, Array]:
    names = class_names or range(probabilities.shape[1])
    columns = {f"probability_{name}": values for name, values in zip(names, probabilities.T, strict=True)}
    return {"predicted_class": np.array(names)[probabilities.argmax(axis=1)], **columns}


def save_model(
    job: Job,
    path: str | os.PathLike[str],
    *,
    draws: str = "server",
    version: int = 0,
    address: str | Sequence[str] | None = None,
    **export: Any,
) -> None:
    """Writes a pyfunc model to the folder `path`.

    draws="server": it names a version of the job and the server; the draws stay there. version: of the job; 0: one of
    the draws committed so far. An alias on it keeps its draws from retention. address: of the server, for those who
    load the model; default: that of the job's connection. CHAINFLEET_ADDRESS goes before it, and a token comes from the
    environment as in chainfleet.connect.
    draws="export": it holds all committed draws and the torch module, and needs torch and no server. export: module,
    kinds and point, as Job.to_torch takes them.
    Raises NoDraws, and InvalidArgument for a job without a data set, or to export without the module.
    """
    with _parts(job, draws, version, address, export) as parts:
        mlflow.pyfunc.save_model(path=os.fspath(path), **parts)


def log_job(
    job: Job,
    *,
    name: str = "model",
    interval: float = 1.0,
    timeout: float | None = None,
    draws: str = "server",
    address: str | Sequence[str] | None = None,
    **export: Any,
) -> Any:
    """Logs a job to the active run, or to a new one of the job's name, until it has ended; returns MLflow's ModelInfo.

    At once: the settings as parameters ("sampler.emcmc.eta"), the whole job as job.json, its id as tag chainfleet.job.
    While chains run, at most once in `interval` seconds: draws; rhat (largest), nested_rhat (largest; only if chains
    share their starts) and ess (smallest) of the quantities that decide; of each chain energy/chain_0 (U in nats),
    step_size/chain_0 and, of Metropolis chains, acceptance_rate/chain_0. MLflow's step is the number of steps of all
    chains together.
    At the end: the model `name`, as save_model has it with the same `draws`, `address` and `export`.
    Raises JobFailed with the reasons of its chains, DeadlineExceeded after `timeout` seconds, and as save_model does.
    The job goes on after Ctrl-C and DeadlineExceeded.
    """
    with contextlib.ExitStack() as stack, text.goes_on(f"fleet.job({job.id!r})"):
        if mlflow.active_run() is None:
            stack.enter_context(mlflow.start_run(run_name=job.id))
        _log_settings(job.describe())
        newest = jobs_pb2.Job(id=job.id)
        for newest in job.watch(timeout, interval):
            mlflow.log_metrics(_metrics(newest), step=newest.steps_done)
        if newest.state not in (jobs_pb2.Job.SUCCEEDED, jobs_pb2.Job.SUCCEEDED_EARLY):
            raise text.failure(newest)
        parts = stack.enter_context(_parts(job, draws, 0, address, export))
        named = {"artifact_path" if mlflow.__version__.startswith("2.") else "name": name}
        return mlflow.pyfunc.log_model(**named, **parts)


def _load_pyfunc(path: str) -> ServedModel | ExportedModel:
    """MLflow calls this to load a model."""
    if Path(path).is_dir():
        return ExportedModel(TorchAverage.load(Path(path)))
    known = json.loads(Path(path).read_text(encoding="utf-8"))
    fleet = connect(None if os.environ.get("CHAINFLEET_ADDRESS") else known["address"])
    return ServedModel(fleet.job(known["job"]), known["version"])


@contextlib.contextmanager
def _parts(
    job: Job, draws: str, version: int, address: str | Sequence[str] | None, export: dict[str, Any]
) -> Iterator[dict[str, Any]]:
    """The arguments of mlflow.pyfunc.save_model."""
    if draws not in ("server", "export") or (version and draws == "export") or (export and draws == "server"):
        hint = 'draws="server" takes version and address; draws="export" takes module, kinds and point'
        raise invalid_field("draws", f"a model with draws={draws!r} does not take these arguments", hint)
    state = job.describe()
    require_inputs(state)
    with tempfile.TemporaryDirectory() as folder:
        data, needs = Path(folder) / "chainfleet.json", [f"chainfleet[mlflow]=={__version__}"]
        if draws == "export":
            data = Path(folder) / "average"
            data.mkdir()
            job.to_torch(**export).save(data)
            needs.append("torch")
        else:
            addresses = address or job._connection.addresses
            known = {"job": job.id, "version": version or job.snapshot().version, "address": addresses}
            data.write_text(json.dumps(known), encoding="utf-8")
        yield {
            "loader_module": _LOADER,
            "data_path": str(data),
            "signature": ModelSignature(inputs=_schema(state)),
            "pip_requirements": needs,
        }


def _schema(state: jobs_pb2.Job) -> Schema:
    """Columns of numbers for rows of one axis, so that frames of any number type pass; else a tensor."""
    shape, dtype = tuple(state.inputs.shape), _dtype(state)
    if len(shape) == 1 and dtype == np.float32:
        return Schema([ColSpec("double")] * shape[0])
    return Schema([TensorSpec(dtype, (-1, *shape))])


def _dtype(state: jobs_pb2.Job) -> np.dtype[Any]:
    return np.dtype("uint8" if state.inputs.type == types_pb2.UINT8 else "float32")


def _log_settings(state: jobs_pb2.Job) -> None:
    mlflow.set_tag("chainfleet.job", state.id)
    mlflow.log_dict(MessageToDict(state, preserving_proto_field_name=True), "job.json")
    mlflow.log_params(dict(_flat(state.spec, "")))


def _flat(message: Message, path: str) -> Iterator[tuple[str, Any]]:
    """Numbers, texts and lists of these, by their path. Lists of messages, such as layers, are in job.json alone."""
    for field, value in message.ListFields():
        name = f"{path}{field.name}"
        if isinstance(value, (bool, int, float, str)):
            yield name, value
        elif isinstance(value, Message):
            inside = dict(_flat(value, name + "."))
            yield from inside.items() if inside else [(name, "{}")]
        elif field.message_type is None:
            yield name, list(value)


def _metrics(state: jobs_pb2.Job) -> dict[str, float]:
    """Finite numbers by name."""
    decisive = [found for found in state.diagnostics if not found.descriptive]
    found = {"draws": float(state.num_draws)}
    for name in ("rhat", "nested_rhat"):
        values = [getattr(one, name) for one in decisive if one.HasField(name)]
        if values:
            found[name] = max(values)
    if decisive:
        found["ess"] = min(min(one.ess_bulk, one.ess_tail) for one in decisive)
    for chain in state.chains:
        if chain.step:
            name = f"chain_{chain.id.index}"
            found |= {f"energy/{name}": chain.stats.energy, f"step_size/{name}": chain.stats.step_size}
            if chain.stats.HasField("metropolis"):
                found[f"acceptance_rate/{name}"] = chain.stats.metropolis.acceptance
    return {name: value for name, value in found.items() if math.isfinite(value)}
