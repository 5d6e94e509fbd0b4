"""The result of an evaluation."""

from __future__ import annotations

from typing import Any

from . import html
from .v1 import predict_pb2


class Evaluation:
    """Scores of a job's draws on a data set. Fields of the message are attributes: scores, curve, corrupted, examples.

    id: of the operation, for fleet.evaluation. message: chainfleet.v1.Evaluation.
    """

    def __init__(self, operation: predict_pb2.EvaluationOperation) -> None:
        self.id, self.message = operation.id, operation.evaluation

    def score(self, what: str = "all") -> predict_pb2.Scores:
        """The scores of an average: "all", "theta", "single theta", ... Raises KeyError that lists what there is."""
        for scores in self.message.scores:
            if scores.what == what:
                return scores
        raise KeyError(f"no scores of {what!r}; there are {', '.join(scores.what for scores in self.message.scores)}")

    def __getattr__(self, name: str) -> Any:
        if name == "message" or name.startswith("__"):  # a copy is being made
            raise AttributeError(name)
        return getattr(self.message, name)

    def __repr__(self) -> str:
        made = self.message
        return f"<evaluation {self.id} of {made.job_id} version {made.version} on {made.dataset}>"

    def _repr_html_(self) -> str:
        return html.evaluation(self.message)
