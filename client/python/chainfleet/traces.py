"""Traced values of chains."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from .arrays import Array
from .errors import no_package
from .v1 import jobs_pb2

if TYPE_CHECKING:
    import pandas


@dataclass(frozen=True)
class Trace:
    """Traced values of a quantity of one chain: steps int64 [m], values float64 [m]."""

    chain: int
    point: int
    steps: Array
    values: Array


class Traces(list[Trace]):
    """The traces of one quantity, a Trace for each chain. quantities: all that are traced of the job."""

    def __init__(self, reply: jobs_pb2.Traces) -> None:
        super().__init__(Trace(c.chain, c.point, np.array(c.steps, np.int64), np.array(c.values)) for c in reply.chains)
        self.quantity, self.quantities = reply.quantity, tuple(reply.quantities)

    def to_pandas(self) -> pandas.DataFrame:
        """A frame with columns chain, point, step and the quantity, a row for each value. Needs pandas."""
        try:
            import pandas
        except ImportError:
            hint = "pip install pandas; a Trace has the same as NumPy arrays"
            raise no_package("to_pandas", "pandas", hint) from None
        counts = [len(trace.values) for trace in self]
        return pandas.DataFrame(
            {
                "chain": np.repeat([trace.chain for trace in self], counts),
                "point": np.repeat([trace.point for trace in self], counts),
                "step": np.concatenate([trace.steps for trace in self] or [np.zeros(0, np.int64)]),
                self.quantity: np.concatenate([trace.values for trace in self] or [np.zeros(0)]),
            }
        )
