"""A server and its workers."""

from __future__ import annotations

import contextlib
import os
import uuid
from collections.abc import Mapping, Sequence
from typing import Any

from . import members, modules, programs, sampling
from .arrays import Data, Part, has_several
from .connection import Connection
from .contexts import find_server, forget_tokens
from .errors import ChainfleetError, InvalidArgument, PermissionDenied, class_of
from .job import Job
from .likelihoods import Likelihood
from .prediction import Prediction
from .priors import Prior
from .resources import Resources
from .samplers import EMCMC, SGD, Sampler
from .schedules import Schedule
from .sources import Files, source_of
from .spec import build, fill, unknown_argument
from .specs import BurnIn, Collect, Init, JobSpec
from .tls import TlsFiles
from .v1 import jobs_pb2, types_pb2
from .version import __version__

_CONNECT_TIMEOUT = 10.0  # seconds
_RENEWAL_TIMEOUT = 2.0  # seconds: the program waits for the server by itself


def connect(
    address: str | Sequence[str] | None = None,
    token: str | None = None,
    timeout: float = 30.0,
    *,
    context: str | None = None,
    ca_file: str = "",
    cert_file: str = "",
    key_file: str = "",
) -> Fleet:
    """The fleet of the server at `address`: "host:port", or several of which one leads.

    Without an address the server is found as the command line finds it: `context`, a name that `chainfleet context set`
    gave, else the context of CHAINFLEET_CONTEXT, else CHAINFLEET_ADDRESS, else the current context, else
    127.0.0.1:7400. Without a token CHAINFLEET_TOKEN says it, or the file that CHAINFLEET_TOKEN_FILE names, or what the
    shell command CHAINFLEET_TOKEN_COMMAND prints, else the context; it is read again when the server refuses it.
    A command runs once in a process, and again then. `timeout`: seconds for one call, including its retries.

    ca_file: PEM file of the certificates that sign the server's, or "system" for those of this host; calls then use
    TLS. cert_file, key_file: the client's certificate and its private key, for a server that wants one. Without these,
    CHAINFLEET_CA_FILE, CHAINFLEET_CERT_FILE and CHAINFLEET_KEY_FILE name the files, else the context.

    Raises InvalidArgument for a file that cannot be read, NotFound for an unknown context, FailedPrecondition if the
    command for the token gives none, Unavailable if no server answers within 10 s, Unauthenticated, VersionMismatch
    for a server that is more than one minor version older or newer.
    """
    files = TlsFiles(ca_file, cert_file, key_file)
    addresses, found_token, tls = find_server(address, token, context, files)

    def find_token() -> str:
        forget_tokens()
        now, new_token, _ = find_server(address, token, context, files)
        return new_token if now == addresses else ""  # the current context may be another server's now

    fleet = Fleet(Connection(addresses, found_token, timeout, tls, find_token))
    try:
        info = fleet.info(min(timeout, _CONNECT_TIMEOUT))
    except ChainfleetError:
        fleet.close()
        raise
    if not _fits(info.version, __version__):
        fleet.close()
        raise class_of("FAILED_PRECONDITION", "VERSION_MISMATCH")(
            f"the server is chainfleet {info.version}, this package is {__version__}",
            reason="VERSION_MISMATCH",
            hint=f"install the package of the server's release: chainfleet=={info.version}",
        )
    return fleet


def _fits(server: str, own: str) -> bool:
    (major, minor), (own_major, own_minor) = ([int(part) for part in v.split(".")[:2]] for v in (server, own))
    return major == own_major and abs(minor - own_minor) <= 1


class Fleet(Resources):
    """The jobs, data and workers of one server. `connect` makes it.

    As a context manager it closes its connection at the end; jobs go on.

    Safe to use from several threads. Every method raises ChainfleetError.
    """

    _only_predicts = False  # the token has turned out to have the role predictor

    def sample(
        self,
        model: Any,
        data: Any = None,
        *,
        sampler: Sampler | None = None,
        chains: int = 1,
        epochs: int | None = None,
        steps: int | None = None,
        name: str | None = None,
        likelihood: Likelihood | None = None,
        prior: Prior | None = None,
        learning_rate: Schedule | float | None = None,
        step_size: Schedule | float | None = None,
        temperature: float | None = None,
        batch_size: int | None = None,
        burn_in: BurnIn | None = None,
        collect: Collect | None = None,
        seed: int | None = None,
        training: bool = False,
        wait: bool = True,
        progress: bool = True,
        **more: Any,
    ) -> Job:
        """Samples the posterior of `model` given `data`, and returns the job when it has succeeded.

        A terminal or a notebook shows how far it is. Ctrl-C leaves the job running and says how to find it again.
        wait=False returns as soon as the job is created.

        model: a built-in network ("mlp"), a list of chainfleet.layers, a chainfleet.Model, a potential, or a
        torch.nn.Module, which torch.export takes. A torch.jit.ScriptModule is deprecated: the server must allow it.
        data: (x, y), chainfleet.Files, a path or URI, or the name of a data set. x [n, ...] is uint8 or float; y [n]
        holds integer classes, or floats to predict: NumPy arrays, torch tensors, pandas frames or lists. They are sent
        once: the same content has the same name. Several inputs of an exported network are {name: array [n, ...]} or a
        tuple of arrays in the network's order: floats for float32, integers for int64, bool for bool.
        training: exports a torch.nn.Module in training mode: chains sample with its dropout and with the batch norm of
        mini-batches, and each draw has statistics of its own. Else dropout is off, and batch norm has those stored.
        sampler: how chains move; required unless a preset sets it. epochs, steps: how long each chain runs; one of the
        two. more: other fields of chainfleet.JobSpec, such as preset.

        Arguments left out have these values, unless a preset is given: learning_rate 0.01; prior Gaussian(precision=1);
        batch_size 128; with epochs, a draw at the end of each epoch of the second half of the run, or of each cycle.
        For arrays, batch_size is all rows if there are fewer than 128, and likelihood is Gaussian(learned=True) if y
        holds floats. For a name or files the defaults are 128 and categorical: give batch_size if there are fewer rows,
        and likelihood if y holds floats.
        Raises InvalidArgument, with every wrong field, and leaves nothing uploaded; JobFailed.
        """
        for field in more.keys() & {"num_epochs", "num_steps"}:
            raise unknown_argument("sample", field, {"epochs", "steps"})
        given = {**more, "sampler": sampler, "chains": chains, "num_epochs": epochs, "num_steps": steps, "name": name}
        given |= {"likelihood": likelihood, "prior": prior, "learning_rate": learning_rate, "step_size": step_size}
        given |= {
            "temperature": temperature,
            "batch_size": batch_size,
            "burn_in": burn_in,
            "collect": collect,
            "seed": seed,
        }
        dataset, content = source_of(data, sampling.means_numbers(likelihood), self._parts_of(model, data))
        arrays = content if isinstance(content, Data) else None
        chosen, module, is_file = sampling.model_of(model), b"", isinstance(model, os.PathLike)
        with self._undone() as undo:
            if chosen is None:
                rows = self._rows_to_try(dataset, content)
                if rows is None and isinstance(content, Files) and not is_file:  # the server reads files
                    self.upload(dataset, content, progress)
                    undo.append((self.delete_dataset, dataset))
                    rows = self._rows_to_try(dataset, None)
                parts = content.parts if isinstance(content, Data) else ()
                module, function = modules.network_file(model, rows.x.shape[1:] if rows else None, parts, training)
                if rows and function:
                    modules.try_module(function, rows, likelihood, modules.parts_of_file(module))
                chosen = modules.stored_model(module)
            request = self._request(sampling.job_spec(given, chosen, dataset, arrays))
            job = self._create(request, {"DATASET_NOT_FOUND": content, "MODEL_NOT_FOUND": module}, progress)
        job.module = modules.copy_of(model) if module and not is_file else None
        return job.wait(progress=progress) if wait else job

    def _parts_of(self, model: Any, data: Any) -> tuple[Part, ...]:
        """The inputs of a network, if `data` has several; () if they are not known."""
        if not isinstance(data, (tuple, list)) or not data or not has_several(data[0]):
            return ()
        chosen = sampling.model_of(model)
        if chosen is None:
            parts = modules.parts_of(model, data[0])
        else:
            inputs = self.model(chosen.exported).signature.inputs if chosen.exported else ()
            parts = tuple(Part(one.name, one.type, tuple(one.shape)) for one in inputs)
        if len(parts) < 2 and (chosen is not None or isinstance(data[0], Mapping)):
            words = "x has several inputs, but the network takes one, or its inputs have no names"
            hint = "pass one array, or a tuple of arrays in the order of forward"
            raise InvalidArgument(words, reason="INVALID_DATA", hint=hint)
        return parts

    def import_networks(
        self, model: Any, weights: Any, data: Any, *, name: str, progress: bool = True, **more: Any
    ) -> Job:
        """Makes a finished job of networks that were trained or sampled elsewhere.

        model, data: as in `sample`; the data give shape, standardisation and classes, or the units of the targets.
        weights: a state_dict or a safetensors file by its path for each network, which is the only draw of a chain; or
        a folder of `job.export(..., "safetensors")`, or its files: chains keep their draws of theta and theta_a, with
        weights and statistics of batch norm. Up to 4,096 files, stored as NAME-0, NAME-1, ...; more state_dicts than a
        job has chains (256, or 2,048 characters of these names) become chains of several draws.
        more: as in `sample`, such as likelihood, sample=["head.*"], or standardize=chainfleet.Standardize(inputs=False)
        for networks that take inputs as they are. With training=True each draw has the batch norm of its state_dict;
        other buffers are those of `model` for all.
        Raises what `sample` raises, and InvalidArgument for a state_dict with other buffers than the network; nothing
        is left stored.
        """
        own, training = members.buffers_of(model), more.get("training", False)
        statistics = {one for one in own if training and one.rpartition(".")[2] in ("running_mean", "running_var")}
        stored_before = {found.name for found in self.models()}
        with self._undone() as undo:
            if isinstance(model, os.PathLike):  # the server says which of its buffers are statistics
                content, _ = modules.network_file(model, None)
                own_name = modules.stored_model(content).exported or name
                file = self._put_new(own_name, content, progress, undo, stored_before)
                statistics = {one.name for one in file.signature.statistics}
            found = members.check_members(name, weights, own, statistics)
            names = [f"{name}-{i}" for i in range(len(found.chains))]
            for each, chain in zip(names, found.chains, strict=True):
                self._put_new(each, members.file_of(chain, statistics), progress, undo, stored_before)
            given: dict[str, Any] = {"sampler": SGD(), "learning_rate": 0.0}
            if found.anchor:  # only chains of SGD may have a learning rate of 0; the draws are those of the files
                given = {"sampler": EMCMC(), "learning_rate": 1e-30}
            given |= {"batch_size": 2 if statistics else 1, "init": Init(weights=names), **more}
            return self.sample(model, data, chains=len(names), steps=found.draws, name=name, progress=progress, **given)

    def _put_new(
        self, name: str, content: bytes, progress: bool, undo: list[tuple[Any, str]], stored_before: set[str]
    ) -> types_pb2.StoredModel:
        stored = self.upload_model(name, content, progress)
        if name not in stored_before:
            undo.append((self.delete_model, name))
        return stored

    def submit(self, spec: JobSpec, *, request_id: str = "") -> Job:
        """Starts the job of `spec`. The same `request_id` again gives the same job."""
        return self._create(self._request(spec, request_id))

    def submit_file(self, path: str | os.PathLike[str]) -> Job:
        """Starts the job of a YAML or JSON file. Needs the program `chainfleet`, which reads it."""
        return Job(self, self.run_program("submit", "--file", os.fspath(path), "-o", "name").strip())

    def validate(self, spec: JobSpec) -> jobs_pb2.Job:
        """All checks of the server, and what the job would be; nothing is stored."""
        request = self._request(spec)
        request.validate_only = True
        return self.connection.call("JobService/CreateJob", request, jobs_pb2.Job)

    def job(self, name: str = "@latest") -> Job:
        """A job by id, by name (the newest of that name), or the newest of all. Raises NotFound."""
        found = self.connection.call("JobService/GetJob", build(jobs_pb2.GetJobRequest, name=name), jobs_pb2.Job)
        return Job(self, found.id, state=found)

    def predict(self, name: str, x: Any, **options: Any) -> Prediction:
        """As Job.predict, of a job by its id or name, or of the version that an alias names.

        The only method that a token with the role predictor allows. x is then uint8 or float32 as in training, with all
        dimensions: only the server knows the job's inputs, and raises InvalidArgument if x does not fit.
        """
        try:
            found: Sequence[jobs_pb2.Alias] = () if self._only_predicts else self.aliases()
        except PermissionDenied:
            found, self._only_predicts = (), True
        if self._only_predicts:
            return Job(self, name).predict(x, **options)
        alias = next((alias for alias in found if alias.name == name), None)
        if alias is None:
            return self.job(name).predict(x, **options)
        return Job(self, alias.job_id).predict(x, **{"version": alias.version, **options})

    def jobs(self, state: str = "") -> list[jobs_pb2.Job]:
        """All jobs, newest first, without their chains; of one state, such as "RUNNING"."""
        request = build(jobs_pb2.ListJobsRequest, state=state)
        return self.connection.pages("JobService/ListJobs", request, jobs_pb2.ListJobsResponse, "jobs")

    def _request(self, spec: JobSpec, request_id: str = "") -> jobs_pb2.CreateJobRequest:
        # Always one: a repeat after a lost reply must not make a second job.
        request = build(jobs_pb2.CreateJobRequest, request_id=request_id or uuid.uuid4().hex)
        fill(request.spec, spec)
        return request

    def _create(
        self, request: jobs_pb2.CreateJobRequest, missing: dict[str, Any] | None = None, progress: bool = False
    ) -> Job:
        """missing: data and module to upload if the server says that they are not there; None and b"" are not uploaded.

        The server checks the fields first, so nothing is uploaded for a job that it refuses for another reason. What
        was uploaded for a job that is wrong after all, such as a network that does not fit the data, is deleted again.
        """
        left = {reason: content for reason, content in (missing or {}).items() if content}
        with self._undone() as undo:
            while True:
                try:
                    return Job(self, self.connection.call("JobService/CreateJob", request, jobs_pb2.Job).id)
                except ChainfleetError as error:
                    if error.reason not in left:
                        raise
                module, data = left.pop("MODEL_NOT_FOUND", b""), left.pop("DATASET_NOT_FOUND", None)
                stored = request.spec.model.exported or request.spec.model.torchscript
                if module and stored not in [found.name for found in self.models()]:  # first: it may be refused
                    self.upload_model(stored, module, progress)
                    undo.append((self.delete_model, stored))
                if data and request.spec.dataset.name not in [found.name for found in self.datasets()]:
                    self.upload(request.spec.dataset.name, data, progress)
                    undo.append((self.delete_dataset, request.spec.dataset.name))

    def doctor(self) -> str:
        """A table of checks of programs, disk, server and workers. Needs the program `chainfleet`.

        Raises the error of the first check that failed, with the table in its text: Unavailable if no server answers,
        PermissionDenied if it refuses the token, else FailedPrecondition.
        """
        return self.run_program("doctor")

    def backup(self, folder: str | os.PathLike[str], *, verify: bool = False) -> str:
        """Copies everything that the server holds to `folder`, while it serves; returns a summary. For admins.

        The same folder again takes only what is new. verify: only check every file of the folder against its SHA-256.
        Needs the program `chainfleet`.
        """
        return self.run_program("backup", os.fspath(folder), *programs.flags({"verify": verify}))

    def restore(self, folder: str | os.PathLike[str]) -> str:
        """Gives the backup in `folder` to the server, which has no job, data set or model; returns a summary.

        For admins. The server then has the tokens of the backup. `chainfleet.restore` fills the stores of a server that
        does not run. Needs the program `chainfleet`.
        """
        return self.run_program("restore", os.fspath(folder))

    def run_program(self, *arguments: str) -> str:
        """Returns the output of `chainfleet ARGUMENTS` against this server. Raises NotFound without the program."""
        if self.connection.has_token:  # the program cannot renew one that has expired
            with contextlib.suppress(ChainfleetError):
                self.info(_RENEWAL_TIMEOUT)
        return programs.run_program(arguments, self.connection.environment())

    def close(self) -> None:
        """Closes the connection; jobs go on."""
        self.connection.close()

    def __enter__(self) -> Fleet:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<chainfleet at {', '.join(self.connection.addresses)}>"
