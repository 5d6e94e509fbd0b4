"""The objects of a server that are not jobs: data sets, models, aliases, workers, evaluations."""

from __future__ import annotations

import contextlib
import hashlib
import json
import math
import os
import secrets
import time
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from . import modules, text, uploads
from .arrays import Array, Data, Part, check_data, has_several, side_by_side
from .connection import Connection
from .errors import (
    ChainfleetError,
    DeadlineExceeded,
    InvalidArgument,
    JobFailed,
    NotFound,
    Unavailable,
    class_of,
    invalid_field,
)
from .evaluation import Evaluation
from .scope import has_ended
from .sources import Files, is_uri, source_of
from .spec import build
from .v1 import access_pb2, jobs_pb2, predict_pb2, types_pb2
from .weights import weights_file

if TYPE_CHECKING:
    from .job import Job

ResourceT = TypeVar(
    "ResourceT", types_pb2.Dataset, types_pb2.StoredModel, jobs_pb2.Alias, jobs_pb2.Worker, access_pb2.Token
)
_DRAIN_PATIENCE = 30.0  # seconds after the deadline of a drain: the server needs one more transaction
_DRAIN_LOOK = 0.3  # seconds between two looks at a worker that is drained
_ROWS_BYTES = 8 << 20  # for each call that reads rows; a reply may have 15 MiB


class Resources:
    """The part of Fleet that is not about jobs."""

    def __init__(self, connection: Connection) -> None:
        self.connection = connection

    def put_dataset(
        self,
        name: str,
        x: Any,
        y: Any,
        *,
        numbers: bool | None = None,
        class_names: Sequence[str] = (),
        progress: bool = True,
    ) -> types_pb2.Dataset:
        """Uploads x [n, ...] and y [n] under a name. numbers: whether y is numbers to predict; default: by its type.

        class_names: names of classes 0, 1, ...; jobs that are created later show them. Several inputs of a network are
        {name: array [n, ...]} or a tuple of arrays, in the order of the network's file.
        """
        return self.upload(name, replace(check_data(x, y, numbers), class_names=tuple(class_names)), progress)

    def put_files(
        self,
        name: str,
        *files: str | os.PathLike[str],
        target: str = "",
        numbers: bool = False,
        class_names: Sequence[str] = (),
        progress: bool = True,
    ) -> types_pb2.Dataset:
        """Uploads files (IDX, CIFAR, npy pair, npz, Zarr, CSV) under a name; URIs are read by the server itself.

        target: the column of a CSV, by name or number; "": the last. numbers: the targets are numbers to predict.
        class_names: see put_dataset.
        """
        return self.upload(name, Files(*files, target=target, numbers=numbers, class_names=class_names), progress)

    def datasets(self) -> list[types_pb2.Dataset]:
        """The data sets by name."""
        request = jobs_pb2.ListDatasetsRequest()
        return self.connection.pages("JobService/ListDatasets", request, jobs_pb2.ListDatasetsResponse, "datasets")

    def dataset(self, name: str) -> types_pb2.Dataset:
        """A data set by name. Raises DatasetNotFound."""
        return _named(self.datasets(), name, "DATASET")

    def rows(self, dataset: str, rows: Sequence[int]) -> jobs_pb2.DatasetRowValues:
        """Rows of a data set as they are stored, at most 15 MiB. Raises OutOfRange."""
        request = build(jobs_pb2.ReadRowsRequest, dataset=dataset, rows=rows)
        return self.connection.call("JobService/ReadRows", request, jobs_pb2.DatasetRowValues)

    def delete_dataset(self, name: str) -> None:
        """Raises FailedPrecondition (IN_USE) that names the jobs that use it."""
        request = build(jobs_pb2.DeleteDatasetRequest, name=name)
        self.connection.delete("JobService/DeleteDataset", request, jobs_pb2.DeleteDatasetResponse)

    def share_dataset(self, name: str, with_: Sequence[str] = (), *, stop: bool = False) -> types_pb2.Dataset:
        """Lets other tenants use a data set; they name it OWNER/NAME.

        with_: their names; ["*"] means all. stop: no longer with these tenants; with nobody, if none are given. Jobs
        that use it go on.
        """
        request = build(jobs_pb2.ShareRequest, name=name, tenants=with_, stop=stop)
        return self.connection.call("JobService/ShareDataset", request, types_pb2.Dataset)

    def put_model(
        self, name: str, model: Any, *, example: Any = None, training: bool = False, progress: bool = True
    ) -> types_pb2.StoredModel:
        """Uploads a .pt2 file by its path, or a torch.nn.Module, for Model(exported=name).

        A state_dict, or a safetensors file by its path, is for Init(weights=[name]). A URI (file:///PATH,
        s3://BUCKET/KEY) is read by the server itself.
        example: rows [n, ...] like those that the network will get, on which it is tried; a module needs them.
        training: as in `sample`.
        A TorchScript file or a ScriptModule is for Model(torchscript=name); the server must allow it.
        """
        if isinstance(model, str) and is_uri(model):
            return uploads.put_model(self.connection, name, b"", lambda sent, total: None, model)
        if isinstance(model, Mapping):
            return self.upload_model(name, weights_file(model), progress)
        rows, parts = (
            (None, ())
            if example is None
            else side_by_side(example, modules.parts_of(model, example) if has_several(example) else ())
        )
        content, function = modules.network_file(model, None if rows is None else rows.shape[1:], parts, training)
        if function and rows is not None:
            modules.try_example(function, rows, modules.parts_of_file(content))
        return self.upload_model(name, content, progress)

    def models(self) -> list[types_pb2.StoredModel]:
        """The stored networks by name."""
        request = jobs_pb2.ListModelsRequest()
        return self.connection.pages("JobService/ListModels", request, jobs_pb2.ListModelsResponse, "models")

    def model(self, name: str) -> types_pb2.StoredModel:
        """A stored network by name. Raises ModelNotFound."""
        return _named(self.models(), name, "MODEL")

    def delete_model(self, name: str) -> None:
        """Raises FailedPrecondition (IN_USE) that names the jobs that use it."""
        request = build(jobs_pb2.DeleteModelRequest, name=name)
        self.connection.delete("JobService/DeleteModel", request, jobs_pb2.DeleteModelResponse)

    def share_model(self, name: str, with_: Sequence[str] = (), *, stop: bool = False) -> types_pb2.StoredModel:
        """As share_dataset, for a model."""
        request = build(jobs_pb2.ShareRequest, name=name, tenants=with_, stop=stop)
        return self.connection.call("JobService/ShareModel", request, types_pb2.StoredModel)

    def set_alias(self, alias: str, job: Job | str, version: int = 0) -> jobs_pb2.Alias:
        """Makes `alias` mean a version of a job, in one step; 0: the newest now."""
        request = build(
            jobs_pb2.SetAliasRequest, name=alias, job=job if isinstance(job, str) else job.id, version=version
        )
        return self.connection.call("JobService/SetAlias", request, jobs_pb2.Alias)

    def aliases(self) -> list[jobs_pb2.Alias]:
        """The aliases by name."""
        request = jobs_pb2.ListAliasesRequest()
        return self.connection.pages("JobService/ListAliases", request, jobs_pb2.ListAliasesResponse, "aliases")

    def alias(self, name: str) -> jobs_pb2.Alias:
        """An alias by name. Raises AliasNotFound."""
        return _named(self.aliases(), name, "ALIAS")

    def delete_alias(self, alias: str) -> None:
        """Deletes the name, not the version."""
        request = build(jobs_pb2.DeleteAliasRequest, name=alias)
        self.connection.delete("JobService/DeleteAlias", request, jobs_pb2.DeleteAliasResponse)

    def workers(self) -> list[jobs_pb2.Worker]:
        """The workers by id."""
        request = jobs_pb2.ListWorkersRequest()
        return self.connection.pages("JobService/ListWorkers", request, jobs_pb2.ListWorkersResponse, "workers")

    def worker(self, name: str) -> jobs_pb2.Worker:
        """A worker by id. Raises WorkerNotFound."""
        return _named(self.workers(), name, "WORKER")

    def drain(self, worker: str, deadline: float = 300.0, *, wait: bool = True) -> jobs_pb2.Worker:
        """Has a worker hand its chains back within `deadline` seconds, before maintenance.

        Returns the worker when it holds no chains; wait=False: at once.
        Raises WorkerNotFound, DeadlineExceeded if it still holds chains 30 s after the deadline.
        """
        request = build(jobs_pb2.DrainWorkerRequest, worker=worker, deadline_seconds=deadline)
        drained = self.connection.call("JobService/DrainWorker", request, jobs_pb2.Worker)
        end = time.monotonic() + deadline + _DRAIN_PATIENCE
        while wait and drained.chains > 0:
            if time.monotonic() > end:
                words = f"worker {worker} still holds {drained.chains} chains"
                hint = "drain it with a shorter deadline, or end its process: chains go on from their last commit"
                raise DeadlineExceeded(words, reason="TIMED_OUT", hint=hint)
            time.sleep(_DRAIN_LOOK)
            gone = jobs_pb2.Worker(id=drained.id, host=drained.host, device=drained.device, draining=True)
            drained = next((found for found in self.workers() if found.id == drained.id), gone)
        return drained

    def create_token(
        self,
        role: str,
        *,
        tenant: str = "",
        lifetime: float = 0.0,
        note: str = "",
        puts_models: bool = False,
        max_uses: int = 0,
    ) -> str:
        """Makes a token, for admins, and returns it: the server keeps its SHA-256 only, so nothing shows it again.

        role: "predictor", "reader", "writer", "operator" or "admin", each may do more than the one before; or "worker",
        by which workers join. tenant: of its holder; "": yours, and for a worker all. lifetime: seconds until it
        expires; 0: 90 days. puts_models: a writer may also put TorchScript models, which are programs. max_uses:
        workers that may join by it; 0: any number. An admin of a tenant makes tokens of that tenant, without
        puts_models. Raises InvalidArgument, NotAllowed, TokensOff.
        """
        if role.upper() not in types_pb2.Role.keys()[1:]:
            raise invalid_field("role", f"is {role!r}", "create_token explains the roles")
        token = "cf_" + secrets.token_hex(32)
        request = build(
            access_pb2.CreateTokenRequest,
            sha256=hashlib.sha256(token.encode()).hexdigest(),
            tenant=tenant,
            role=types_pb2.Role.Value(role.upper()),
            lifetime_seconds=round(lifetime),
            note=note,
            puts_models=puts_models,
            max_uses=max_uses,
        )
        self.connection.call("AccessService/CreateToken", request, access_pb2.Token)
        return token

    def tokens(self) -> list[access_pb2.Token]:
        """The tokens by id, without their secrets, for admins; expired ones too."""
        request = access_pb2.ListTokensRequest()
        return self.connection.pages("AccessService/ListTokens", request, access_pb2.ListTokensResponse, "tokens")

    def token(self, token_id: str) -> access_pb2.Token:
        """A token by id, without its secret. Raises TokenNotFound."""
        return _named(self.tokens(), token_id, "TOKEN")

    def revoke_token(self, token_id: str) -> None:
        """Deletes a token: calls with it are refused from now on. Raises TokenNotFound."""
        request = build(access_pb2.RevokeTokenRequest, id=token_id)
        self.connection.delete("AccessService/RevokeToken", request, access_pb2.RevokeTokenResponse)

    def audit(self) -> Iterator[dict[str, Any]]:
        """The lines of the audit log, oldest first, for admins: who changed what, and who was refused."""
        request = access_pb2.ListAuditRequest()
        while True:
            page = self.connection.call("AccessService/ListAudit", request, access_pb2.ListAuditResponse)
            yield from map(json.loads, page.lines)
            if not page.next_page_token:
                return
            request.page_token = page.next_page_token

    def evaluations(self) -> list[predict_pb2.EvaluationOperation]:
        """The newest evaluations of all jobs, without results."""
        request = predict_pb2.ListEvaluationsRequest()
        reply = predict_pb2.ListEvaluationsResponse
        return self.connection.pages("PredictService/ListEvaluations", request, reply, "evaluations")

    def evaluation(self, evaluation_id: str) -> predict_pb2.EvaluationOperation:
        """An evaluation with its state and, once it SUCCEEDED, its result."""
        request = build(predict_pb2.GetEvaluationRequest, id=evaluation_id)
        return self.connection.call("PredictService/GetEvaluation", request, predict_pb2.EvaluationOperation)

    def cancel_evaluation(self, evaluation_id: str) -> predict_pb2.EvaluationOperation:
        """Ends an evaluation; one that has ended stays as it is."""
        request = build(predict_pb2.GetEvaluationRequest, id=evaluation_id)
        return self.connection.call("PredictService/CancelEvaluation", request, predict_pb2.EvaluationOperation)

    def wait_evaluation(self, evaluation_id: str, timeout: float | None = None, progress: bool = True) -> Evaluation:
        """The result of an evaluation once there is one. Raises JobFailed with its error, DeadlineExceeded."""
        end = time.monotonic() + timeout if timeout is not None else float("inf")
        wait = 0.05
        with text.line(progress) as line, text.goes_on(f"fleet.wait_evaluation({evaluation_id!r})"):
            while (found := self.evaluation(evaluation_id)).state == predict_pb2.EvaluationOperation.RUNNING:
                line.show(f"evaluating: {found.progress.rows_done:,} of {found.progress.rows_total:,} rows")
                if time.monotonic() + wait > end:
                    words, hint = f"evaluation {evaluation_id} still runs", "wait_evaluation finds it again"
                    raise DeadlineExceeded(words, reason="TIMED_OUT", hint=hint)
                time.sleep(wait)
                wait = min(2 * wait, 1.0)
        if found.state != predict_pb2.EvaluationOperation.SUCCEEDED:
            ended = predict_pb2.EvaluationOperation.State.Name(found.state)
            words, hint = f"evaluation {evaluation_id} ended {ended}: {found.error}", "job.logs() tells what happened"
            raise JobFailed(words, reason="JOB_FAILED", hint=hint)
        return Evaluation(found)

    def info(self, timeout: float | None = None) -> jobs_pb2.ServerInfo:
        """Version and identity of the server; `caller`: who you are to it, and the limits of your tenant with usage."""
        return self.connection.call(
            "JobService/GetServerInfo", jobs_pb2.GetServerInfoRequest(), jobs_pb2.ServerInfo, timeout
        )

    def get_dataset(self, name: str) -> tuple[Array, Array]:
        """All of a data set as it is stored: x uint8 or float32 [n, ...], y int32 classes or float32 numbers [n]."""
        about = self.dataset(name)
        row_bytes = _input_type(about).itemsize * math.prod(about.input_shape) + 16
        step = max(1, _ROWS_BYTES // row_bytes)
        ranges = [range(first, min(first + step, about.num_rows)) for first in range(0, about.num_rows, step)]
        parts = [self.rows(name, rows) for rows in ranges]
        content = bytearray().join(part.inputs for part in parts)  # the array can be changed, unlike one of bytes
        x = np.frombuffer(content, _input_type(about)).reshape(-1, *about.input_shape)
        if about.target_type == types_pb2.FLOAT32_TARGETS:
            return x, np.concatenate([np.array(part.targets, np.float32) for part in parts])
        return x, np.concatenate([np.array(part.labels, np.int32) for part in parts])

    def _rows_to_try(self, dataset: str, content: Data | Files | None) -> Data | None:
        """Rows like those that a network will get; None for files that are not stored. Raises DatasetNotFound."""
        if isinstance(content, Data) or not dataset:
            return content if isinstance(content, Data) else None
        try:
            about = self.dataset(dataset)
        except NotFound:
            if content is None:
                raise
            return None
        read = self.rows(dataset, range(min(modules.TRIED_ROWS, about.num_rows)))
        x = np.frombuffer(read.inputs, _input_type(about)).reshape(-1, *about.input_shape)
        last_class = np.array([about.num_classes - 1], np.int32)
        return Data(x, np.array(read.targets, np.float32) if read.targets else last_class)

    @contextlib.contextmanager
    def _stored(
        self, parts: Sequence[Any], numbers: bool | None, progress: bool = True, wanted: Sequence[Part] = ()
    ) -> Iterator[list[str]]:
        """The names of data sets: the parts themselves, or those of arrays or files, which are uploaded; "" of None.

        All parts are checked before the first upload. What was uploaded is deleted again if the block fails.
        """
        found = [source_of(part, numbers, wanted) for part in parts]
        content_of = {name: content for name, content in found if content is not None}
        known = [stored.name for stored in self.datasets()] if content_of else []
        with self._undone() as undo:
            for name in content_of.keys() - known:
                self.upload(name, content_of[name], progress)
                undo.append((self.delete_dataset, name))
            yield [name for name, _ in found]

    @contextlib.contextmanager
    def _undone(self) -> Iterator[list[tuple[Callable[[str], None], str]]]:
        """A list of (delete, name) to call if the block fails. If no server answers, or
        nobody waits for the block any more, it may have succeeded.
        """
        undo: list[tuple[Callable[[str], None], str]] = []
        try:
            yield undo
        except Exception as error:
            unknown = has_ended() or isinstance(error, (Unavailable, DeadlineExceeded))
            for delete, stored in () if unknown else undo:
                with contextlib.suppress(ChainfleetError):  # another job may use it by now
                    delete(stored)
            raise

    def upload(self, name: str, data: Data | Files, progress: bool) -> types_pb2.Dataset:
        """Uploads checked arrays, or files, as the data set `name`."""
        with text.line(progress) as line:
            stored = self._send(name, data, line.show_bytes)
        for warning in stored.warnings:
            warnings.warn(f"data set {name}: {warning}", stacklevel=2)
        return stored

    def _send(self, name: str, data: Data | Files, on_sent: uploads.OnSent) -> types_pb2.Dataset:
        if isinstance(data, Data):
            return uploads.put_data(self.connection, name, data, on_sent)
        try:
            return uploads.put_files(self.connection, name, data, on_sent)
        except InvalidArgument as error:  # the server decodes files
            if error.reason == error.code:
                error.reason, error.hint = "INVALID_DATA", "formats of files: docs/guides/own_data.md"
            raise

    def upload_model(self, name: str, content: bytes, progress: bool) -> types_pb2.StoredModel:
        """Uploads the bytes of a .pt2 or TorchScript file."""
        with text.line(progress) as line:
            return uploads.put_model(self.connection, name, content, line.show_bytes)


def _named(found: Iterable[ResourceT], name: str, kind: str) -> ResourceT:
    for one in found:
        if (one.id if isinstance(one, (jobs_pb2.Worker, access_pb2.Token)) else one.name) == name:
            return one
    reason = f"{kind}_NOT_FOUND"
    raise class_of("NOT_FOUND", reason)(f"no {kind.lower()} {name}", reason=reason)


def _input_type(about: types_pb2.Dataset) -> np.dtype[Any]:
    return np.dtype(np.uint8 if about.input_type == types_pb2.UINT8 else "<f4")
