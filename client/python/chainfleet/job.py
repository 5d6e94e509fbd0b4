"""A job: its state, its draws, and predictions with them."""

from __future__ import annotations

import os
import uuid
from collections.abc import Iterator, Mapping, Sequence
from inspect import signature
from typing import TYPE_CHECKING, Any

from . import html, prediction, programs, text
from .arrays import Array, Part, side_by_side
from .draws import Draws
from .errors import DeadlineExceeded, InvalidArgument, class_of
from .evaluation import Evaluation
from .posterior import posterior_of
from .spec import build, unknown_argument
from .traces import Traces
from .v1 import jobs_pb2, predict_pb2

if TYPE_CHECKING:
    from .fleet import Fleet
    from .torch_average import TorchAverage

PREDICT_TIMEOUT = 60.0  # seconds of each request
_SET_BY_EVALUATE = {
    "job",
    "dataset",
    "ood_dataset",
    "calibration_dataset",
    "stacking_dataset",
    "selection",
    "request_id",
}


class Job:
    """A job of a fleet. Methods ask the server; remembered are the id, how inputs are stored, and why the job FAILED.

    Every method raises ChainfleetError: NotFound if the job was deleted, Unavailable if no server answers.
    """

    def __init__(self, fleet: Fleet, job_id: str, module: Any = None, state: jobs_pb2.Job | None = None) -> None:
        """`module`: the torch.nn.Module that is sampled, `state`: what the server has just said, if they are known."""
        self.id, self.module = job_id, module
        self._fleet, self._connection = fleet, fleet.connection
        self._known: jobs_pb2.Job | None = None
        self._shown = f"job {job_id}"
        if state is not None:
            self._note(state)

    def describe(self) -> jobs_pb2.Job:
        """The job as the server knows it: spec, state, chains, diagnostics, report."""
        found = self._connection.call("JobService/GetJob", build(jobs_pb2.GetJobRequest, name=self.id), jobs_pb2.Job)
        self._note(found)
        return found

    def state(self) -> str:
        """PENDING, RUNNING, PAUSED, SUCCEEDED, SUCCEEDED_EARLY, FAILED, CANCELLED or DELETING."""
        return jobs_pb2.Job.State.Name(self.describe().state)

    def watch(self, timeout: float | None = None, interval: float = 0.5) -> Iterator[jobs_pb2.Job]:
        """The job now and after each change, until it has ended; at most once in `interval` seconds.

        Raises DeadlineExceeded after `timeout` seconds.
        """
        request = build(jobs_pb2.WatchJobRequest, name=self.id, min_interval_seconds=interval)
        newest: jobs_pb2.Job | None = None
        try:
            for newest in self._connection.watch("JobService/WatchJob", request, jobs_pb2.Job, timeout):
                self._note(newest)
                yield newest
                if newest.state in text.FINAL:
                    return
        except DeadlineExceeded:
            if newest is None or timeout is None:  # the server did not answer
                raise
            words = f"job {self.id} is still {jobs_pb2.Job.State.Name(newest.state)} after {timeout:g} s"
            hint = f"the job goes on; wait again: fleet.job({self.id!r}).wait()"
            raise DeadlineExceeded(words, reason="TIMED_OUT", hint=hint) from None

    def logs(self, follow: bool = False, after: int = 0) -> Iterator[jobs_pb2.Event]:
        """The events of the job, its chains and its evaluations, oldest first: time, level, message, chain, fields.

        follow: also new events, until the job has ended. after: only events with a number above this one.
        The server keeps the newest 1,000 events in memory. If earlier ones are gone, the first event says so.
        """
        for _ in self.watch() if follow else (None,):
            request = build(jobs_pb2.ListEventsRequest, job=self.id, after=after)
            for event in self._connection.call("JobService/ListEvents", request, jobs_pb2.ListEventsResponse).events:
                after = event.number
                yield event

    def wait(self, timeout: float | None = None, progress: bool = True, interval: float = 0.5) -> Job:
        """Returns the job when it has SUCCEEDED, or SUCCEEDED_EARLY. `progress`: a line on a terminal's standard error.
        `interval`: seconds between two looks at the job, at least.

        Raises JobFailed with the reasons of its chains, DeadlineExceeded after `timeout` seconds. Ctrl-C leaves the job
        running and says how to find it again.
        """
        newest = jobs_pb2.Job(id=self.id)
        with text.line(progress) as line, text.goes_on(f"fleet.job({self.id!r})"):
            for newest in self.watch(timeout, interval):
                line.show(text.progress_bar(newest), html.job(newest))
        if newest.state not in (jobs_pb2.Job.SUCCEEDED, jobs_pb2.Job.SUCCEEDED_EARLY):
            raise text.failure(newest)
        return self

    def pause(self) -> None:
        """Stops the chains at a resume point and frees their workers. Raises FailedPrecondition after its end."""
        self._set_intent(jobs_pb2.Job.PAUSE)

    def resume(self) -> None:
        """Goes on after pause. Raises FailedPrecondition if the job has ended."""
        self._set_intent(jobs_pb2.Job.RUN)

    def abort(self) -> None:
        """Ends the job early; its draws are kept and served (SUCCEEDED_EARLY)."""
        self._set_intent(jobs_pb2.Job.FINISH)

    def cancel(self) -> None:
        """Ends the job and its predictions; draws() still reads its draws until it is deleted."""
        self._set_intent(jobs_pb2.Job.CANCEL)

    def delete(self) -> None:
        """Deletes the job with its draws; its state is DELETING until they are gone.

        Raises FailedPrecondition (IN_USE) while an alias names a version of it.
        """
        self._set_intent(jobs_pb2.Job.DELETE)

    def scale(self, chains: int) -> None:
        """More chains, up to `chains` in all."""
        self._connection.call(
            "JobService/ScaleJob", build(jobs_pb2.ScaleJobRequest, name=self.id, chains=chains), jobs_pb2.Job
        )

    def predict(
        self,
        x: Any,
        *,
        quantiles: Sequence[float] = (),
        members: bool = False,
        gradients: bool = False,
        anytime: bool = False,
        min_draws: int = 0,
        priority: str = "",
        conformal: str = "",
        level: float = 0,
        timeout: float = PREDICT_TIMEOUT,
        **selection: Any,
    ) -> prediction.Prediction:
        """The average over committed draws for rows x [n, ...], of the type and shape of the training data.

        Several inputs are {name: array [n, ...]} or a tuple of arrays, as for `sample`.

        quantiles: levels in (0, 1), of jobs that predict numbers. members: also the predictions of each draw.
        gradients: also the derivatives by the inputs, with members those of each draw. anytime: as many draws as fit
        into `timeout`, at least `min_draws`; members of chains whose draws differ between rows are then left out, with
        a warning. priority: "low", "normal" or "high". conformal: id of an evaluation with `calibration`; also
        conformal sets or intervals that cover a share `level` of the rows (0: 0.9), by the draws of that evaluation.
        selection: which draws, see chainfleet.prediction.select: kinds, version, newest, every, max_draws, chains,
        point, include_failed, weights, pseudo_bma.
        Raises InvalidArgument before anything is sent if x does not fit; NoDraws, NoServingWorker.
        """
        for name in selection.keys() - prediction.SELECTION:
            raise unknown_argument("predict", name, prediction.SELECTION | signature(Job.predict).parameters.keys())
        inputs = self.fit(x)
        request = build(
            predict_pb2.PredictRequest,
            job=self.id,
            selection=prediction.select(**selection),
            min_draws=min_draws,
            anytime=anytime,
            member_probabilities=members,
            gradients=gradients,
            quantiles=prediction.check_shares("quantiles", quantiles),
            priority=priority,
            conformal=conformal,
            conformal_level=level,
        )
        return prediction.predict(self._connection, request, inputs, timeout)

    def standardise(self, x: Any) -> Array:
        """The inputs of the network for rows x: float32 [n, ...], standardised by the training data."""
        return prediction.standardise(self.fit(x), self._described())

    def draws(self, point: str = "") -> Draws:
        """The committed draws, read when they are asked for. draws() has kind theta, draws()["theta_a"] the other.

        point: of a sweep, by number or values ("eta=0.001"); default: the chains of all points.
        """
        request = build(jobs_pb2.ListSegmentsRequest, job=self.id, point=point or None)
        return Draws(
            self._connection,
            self._connection.pages("JobService/ListSegments", request, jobs_pb2.ListSegmentsResponse, "segments"),
            module=self.module,
        )

    def to_torch(
        self, module: Any = None, *, device: Any = None, kinds: Sequence[str] | str = (), point: str = ""
    ) -> TorchAverage:
        """A function of rows x that averages over all committed draws on a device of your own, as `predict` does.

        module: the torch.nn.Module that was sampled; default: the one that was given to `sample`, in this program.
        kinds: "theta", "theta_a" or both; default: all that the job keeps. Chains that failed are left out.
        point: of a sweep, which needs one.
        Raises InvalidArgument without a module whose parameters have the names and shapes of the draws, PointRequired.
        """
        from .torch_average import TorchAverage

        chosen = self.module if module is None else module
        if chosen is None:
            hint = "to_torch(module), where module has the parameters that draws() lists"
            words = f"the torch module of job {self.id} is not known here"
            raise InvalidArgument(words, reason="INVALID_MODEL", hint=hint)
        about, draws = self.describe(), self.draws(point)
        served = draws.of_chains(posterior_of(about, point).chains)
        names = [kinds] if isinstance(kinds, str) else kinds or draws.kinds
        return TorchAverage(about, [served[name] for name in names], chosen, device)

    def to_arviz(
        self,
        *,
        kind: str = "theta",
        data: Any = None,
        log_likelihood: bool = True,
        point: str = "",
        seed: int | None = 0,
        include_failed: bool = False,
    ) -> Any:
        """The committed draws as arviz.from_dict gives them: an InferenceData of ArviZ 0.x, a DataTree of 1.x.

        Every group but observed_data has the dimensions chain (its index) and draw (from 0, oldest first).
        posterior: each parameter, float32 [chain, draw, ...], by its name.
        sample_stats, each [chain, draw]: step, after which the draw was taken (int64); energy (U in nats, on the
        mini-batch and before the move of that step) and lp = -energy, both left out if no such step has a traced value
        and for theta_a; acceptance_rate of Metropolis chains, the mean over the chain; step_size (alpha of that step),
        left out where draws are no steps (SWA, SWAG, MC dropout, Laplace) and for mile and smile, which tune their own;
        diverging, True in chains that the server ended DIVERGED. energy has no kinetic part, so arviz.bfmi of it says
        nothing about momenta. Energies of steps without a traced value are NaN, with a warning if the job sets
        trace_every. JobSpec.trace_every=1 traces all steps, but the server keeps only the newest 1,000 traced values of
        a chain.
        log_likelihood: y [chain, draw, row], log p(y given x, draw) in nats and the targets' own units; a probability
        that float32 cannot hold counts as 1.4e-45. observed_data: y [row]. Both are of the training rows, or of `data`:
        (x, y), or the name of a data set. Jobs without a data set have neither.
        Attributes: job, kind, point; where the job has them, class_names, input_mean and input_stddev by channel (a
        network sees (x * scale - mean) / stddev, scale 1 / 255 for uint8, else 1), target_mean and target_stddev (it
        sees (y - mean) / stddev): parameters in posterior are those of the network.

        kind: "theta" or "theta_a". point: of a sweep, which needs one. include_failed: failed and diverged chains, too.
        log_likelihood: False needs no worker. Weighted draws (Metropolis) are resampled by `seed` at evenly spaced kept
        steps, as many as the longest chain has; None refuses them. Of chains of unequal length the newest draws are
        taken, as many as the shortest has, and a warning says so.
        Raises InvalidArgument without arviz or where log_likelihood would exceed 2 GiB, NoDraws, NoServingWorker.
        """
        from .arviz import to_arviz

        return to_arviz(
            self,
            kind=kind,
            data=data,
            log_likelihood=log_likelihood,
            point=point,
            seed=seed,
            include_failed=include_failed,
        )

    def traces(self, quantity: str = "energy") -> Traces:
        """The newest traced values of a quantity, at most 1,000 of each chain: a list of Trace, with to_pandas().

        Raises NotTraced, whose message lists the quantities.
        """
        request = build(jobs_pb2.GetTracesRequest, job=self.id, quantity=quantity)
        return Traces(self._connection.call("JobService/GetTraces", request, jobs_pb2.Traces))

    def snapshot(self) -> jobs_pb2.Snapshot:
        """Makes a version of the draws committed so far. Raises NoDraws."""
        return self._connection.call(
            "JobService/CreateSnapshot", build(jobs_pb2.CreateSnapshotRequest, job=self.id), jobs_pb2.Snapshot
        )

    def snapshots(self) -> list[jobs_pb2.Snapshot]:
        """The versions by number."""
        request = build(jobs_pb2.ListSnapshotsRequest, job=self.id)
        return self._connection.pages("JobService/ListSnapshots", request, jobs_pb2.ListSnapshotsResponse, "snapshots")

    def delete_snapshot(self, version: int) -> None:
        """Deletes a version, not its draws."""
        request = build(jobs_pb2.DeleteSnapshotRequest, job=self.id, version=version)
        self._connection.call("JobService/DeleteSnapshot", request, jobs_pb2.DeleteSnapshotResponse)

    def evaluate(
        self,
        data: Any,
        *,
        ood: Any = None,
        calibration: Any = None,
        stacking: Any = None,
        timeout: float | None = None,
        progress: bool = True,
        **more: Any,
    ) -> Evaluation:
        """Scores against `data`: (x, y), Files, or the name of a data set; accuracy, NLL, ECE, Brier, RMSE, ...

        ood: rows that are out of distribution. calibration: held-out rows for temperatures and conformal sets or
        intervals. stacking: held-out rows to fit weights of the chains to. more: which draws, as of predict, and fields
        of EvaluateRequest: ece_bins, corruptions, flatness, curve_points, example_rows.
        Ctrl-C leaves the evaluation running; evaluations() finds it again.
        """
        chosen = {name: more.pop(name) for name in prediction.SELECTION & more.keys()}
        known = {*predict_pb2.EvaluateRequest.DESCRIPTOR.fields_by_name} - _SET_BY_EVALUATE
        for name in more.keys() - known:
            own = signature(Job.evaluate).parameters.keys()
            raise unknown_argument("evaluate", name, known | prediction.SELECTION | own)
        selection = prediction.select(**chosen)
        request = build(
            predict_pb2.EvaluateRequest, job=self.id, selection=selection, request_id=uuid.uuid4().hex, **more
        )
        given = (data, ood, calibration, stacking)
        with self._fleet._stored(given, self._learns_numbers(), progress, self._parts()) as names:
            request.dataset, request.ood_dataset, request.calibration_dataset, request.stacking_dataset = names
            started = self._connection.call("PredictService/StartEvaluation", request, predict_pb2.EvaluationOperation)
        return self._fleet.wait_evaluation(started.id, timeout, progress)

    def evaluations(self) -> list[predict_pb2.EvaluationOperation]:
        """The newest evaluations, without results; fleet.evaluation(id) has one with its result."""
        request = build(predict_pb2.ListEvaluationsRequest, job=self.id)
        reply = predict_pb2.ListEvaluationsResponse
        return self._connection.pages("PredictService/ListEvaluations", request, reply, "evaluations")

    def export(
        self,
        path: str | os.PathLike[str],
        format: str = "npz",
        *,
        chains: Sequence[int] = (),
        point: str = "",
        weighted: bool = False,
        skip_corrupt: bool = False,
        traces: bool = False,
        kind: str = "",
        dataset: str = "",
        log_likelihood: bool = True,
        include_failed: bool = False,
    ) -> None:
        """Writes the committed draws to files: "npz" (a file), "safetensors", "zarr" or "arviz" (a new
        or empty folder).

        Needs the program `chainfleet`. weighted: each draw once with its weight, instead of as often as it was held.
        skip_corrupt: leaves out draws whose checksum does not match. traces: the traced values instead, to a .npz or
        .csv. For "arviz" only, see to_arviz: kind, dataset (a name), log_likelihood, include_failed.
        """
        place = {"traces" if traces else "output": path, "format": None if traces else format}
        self._run(
            "export",
            **place,
            chains=",".join(map(str, chains)),
            point=point,
            kind=kind,
            dataset=dataset,
            weighted=weighted,
            skip_corrupt=skip_corrupt,
            no_log_likelihood=not log_likelihood,
            include_failed=include_failed,
        )

    def report(
        self,
        path: str | os.PathLike[str],
        data: Any = None,
        *,
        ood: Any = None,
        corruptions: Sequence[str] = (),
        flatness: bool = False,
        class_names: Sequence[str] = (),
        evaluation: str = "",
        point: str = "",
    ) -> None:
        """Writes one HTML page: scores on `data`, calibration, chains, inputs. Needs the program `chainfleet`.

        data: (x, y), Files, or the name of a data set; default: the newest evaluation that is stored, or the one of
        this id. ood: rows that are out of distribution. corruptions: names, or ("all",), of changes to the rows.
        flatness: also the Fisher spectrum and the loss along lines.
        """
        with self._fleet._stored((data, ood), self._learns_numbers(), wanted=self._parts()) as (dataset, other):
            self._run(
                "report",
                output=path,
                dataset=dataset,
                ood=other,
                corruptions=",".join(corruptions),
                class_names=",".join(class_names),
                evaluation=evaluation,
                point=point,
                flatness=flatness,
            )

    def verify(
        self,
        authority: str | os.PathLike[str] = "",
        *,
        replay: bool = False,
        chain: int | None = None,
        draws: tuple[int, int] | None = None,
    ) -> str:
        """Reads all draws and checks that the workers signed them as they are. Needs the program `chainfleet`.

        authority: file with the certificate of the authority of workers (PEM); "": the one that the server names.
        replay: also samples the draws again, in a copy of the job, and compares them. The copy is deleted afterwards
            unless a draw differs.
        chain: only this chain. draws: with replay and chain, the first and the last draw to compare.
        Returns a table of the chains. Raises DataLoss naming the first segment or draw that is not as it should be.
        """
        asked = None if draws is None else f"{draws[0]}:{draws[1]}"
        return self._run("verify", authority=authority, replay=replay, chain=chain, draws=asked)

    def _run(self, verb: str, **given: Any) -> str:
        """Runs the program with the flags of `given`."""
        return self._fleet.run_program(verb, self.id, *programs.flags(given))

    def _set_intent(self, intent: jobs_pb2.Job.Intent) -> None:
        request = build(jobs_pb2.SetIntentRequest, name=self.id, intent=intent)
        job = self._connection.call("JobService/SetIntent", request, jobs_pb2.Job)
        if intent in (jobs_pb2.Job.RUN, jobs_pb2.Job.PAUSE) and job.state in text.FINAL:
            raise class_of("FAILED_PRECONDITION", "JOB_ENDED")(
                f"job {self.id} has already ended ({jobs_pb2.Job.State.Name(job.state)})", reason="JOB_ENDED"
            )

    def _described(self) -> jobs_pb2.Job:
        """As describe(), remembered: only for what never changes."""
        if self._known is None:
            self._known = self.describe()
        return self._known

    def _parts(self) -> tuple[Part, ...]:
        return prediction.parts_of_job(self._described())

    def _learns_numbers(self) -> bool:
        """True if the job predicts numbers, False if it predicts classes."""
        return prediction.learns_numbers(self._described())

    def fit(self, x: Any) -> Array:
        """`x` as the job's inputs are. Raises InvalidArgument with both shapes or types."""
        if self._fleet._only_predicts:  # the server describes no inputs to a predictor, and checks the rows itself
            if isinstance(x, Mapping):
                words = "x has inputs by name, and a token of a predictor does not learn the names of the job's inputs"
                hint = "pass a tuple of arrays in the order of forward"
                raise InvalidArgument(words, reason="INVALID_DATA", hint=hint)
            return side_by_side(x)[0]
        return prediction.check_rows(x, self._described())

    def _note(self, state: jobs_pb2.Job) -> None:
        if state.state == jobs_pb2.Job.FAILED:
            self._shown = text.outcome(state)

    def __repr__(self) -> str:
        return f"<chainfleet {self._shown}>"

    def _repr_html_(self) -> str:
        return html.job(self.describe())
