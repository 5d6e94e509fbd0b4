"""HTML that notebooks show. Every name and reason is escaped."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape
from typing import TYPE_CHECKING

from . import text
from .v1 import jobs_pb2, predict_pb2

if TYPE_CHECKING:
    from .prediction import Prediction

_SHOWN_ROWS = 10
_SHOWN_CHAINS = 32
_CLASS_SCORES = ("accuracy", "nll", "ece", "brier", "ood_auroc", "temperature")
_NUMBER_SCORES = ("rmse", "nll", "coverage_90")
_OPTIONAL_SCORES = frozenset(("ood_auroc", "temperature", "rmse", "coverage_90"))


def table(caption: str, header: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """A table of cells that are escaped here; numbers are at the right. Columns of empty cells are left out."""
    cells = list(rows)
    kept = [i for i in range(len(header)) if not cells or any(row[i] != "" for row in cells)]
    head = "".join(f"<th>{escape(header[i])}</th>" for i in kept)
    body = "".join("<tr>" + "".join(_cell(row[i]) for i in kept) + "</tr>" for row in cells)
    top = f'<caption style="text-align:left;white-space:pre">{escape(caption)}</caption>'
    return f"<table>{top}<thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


def _cell(value: object) -> str:
    if isinstance(value, float):
        return f'<td style="text-align:right">{value:.4g}</td>'
    if isinstance(value, int):
        return f'<td style="text-align:right">{value:,}</td>'
    return f"<td>{escape(str(value))}</td>"


def job(state: jobs_pb2.Job) -> str:
    """State and progress of a job, and its first chains: a table of thousands would be drawn anew at each change."""
    rows = [
        (chain.id.index, text.chain_state(chain.state), chain.step, chain.total_steps, chain.num_draws, chain.reason)
        for chain in state.chains[:_SHOWN_CHAINS]
    ]
    more = f"  (the first {_SHOWN_CHAINS} of {len(state.chains):,} chains)" if len(state.chains) > _SHOWN_CHAINS else ""
    bar = f'<progress value="{text.share_done(state):.4f}" style="width:20em"></progress>'
    shown = "" if state.state in text.FINAL else bar
    why = f"\n{text.outcome(state)}" if state.state == jobs_pb2.Job.FAILED else ""
    return shown + table(text.progress(state) + more + why, ("chain", "state", "step", "of", "draws", "reason"), rows)


def evaluation(made: predict_pb2.Evaluation) -> str:
    """The scores of each average."""
    names = _NUMBER_SCORES if any(scores.HasField("rmse") for scores in made.scores) else _CLASS_SCORES
    rows = [(_average(scores), scores.num_draws, *(_score(scores, name) for name in names)) for scores in made.scores]
    header = ("average", "draws", *(name.replace("_", " ") for name in names))
    return table(f"{made.job_id} version {made.version} on {made.dataset} ({made.num_rows:,} rows)", header, rows)


def _average(scores: predict_pb2.Scores) -> str:
    """The words of the command line: "all draws", "mean single draw theta", or the kind of the draws."""
    single = scores.what.startswith("single")
    return "mean " + scores.what.replace("single", "single draw") if single else scores.what.replace("all", "all draws")


def _score(scores: predict_pb2.Scores, name: str) -> float | str:
    """A score, "-" where there is none, and "" of a score that the evaluation did not ask for."""
    if name in _OPTIONAL_SCORES and not scores.HasField(name):
        return ""
    value = float(getattr(scores, name))
    return value if value == value else "-"


def prediction(made: Prediction) -> str:
    """The first rows with their scores and Monte Carlo errors."""
    names = [name for name in made.scores if made.scores[name].ndim == 1]
    classes = "mean_probability" in made.scores
    header = ["row", *(["class"] if classes else []), *(name.replace("_", " ") for name in names)]
    rows = [
        [row, *([_class_of(made, row)] if classes else []), *(_with_error(made, name, row) for name in names)]
        for row in range(min(len(made), _SHOWN_ROWS))
    ]
    more = f", the first {_SHOWN_ROWS} of {len(made):,} rows" if len(made) > _SHOWN_ROWS else ""
    return table(draws_of(made) + more, header, rows)


def draws_of(made: Prediction) -> str:
    """ "moons-a1b2c3 version 1: average of 8 of 8 draws"."""
    place = f" at {made.point}" if made.point else ""
    return f"{made.job} version {made.version}{place}: average of {made.draws_used} of {made.draws_in_version} draws"


def _class_of(made: Prediction, row: int) -> int | str:
    likeliest = int(made.predicted_class[row])
    return made.class_names[likeliest] if made.class_names else likeliest


def _with_error(made: Prediction, name: str, row: int) -> str:
    error = made.error(name)[row]
    value = f"{made.scores[name][row]:.4g}"
    return value if error != error else f"{value} ± {error:.1g}"
