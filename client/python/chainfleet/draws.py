"""The kept draws of a job, read when they are asked for, and checked."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from .arrays import Array
from .connection import Connection
from .errors import ChainfleetError, FieldViolation, class_of, invalid_field, no_package
from .v1 import jobs_pb2, types_pb2

if TYPE_CHECKING:
    import torch

_TYPES = {
    "F32": "<f4",
    "F64": "<f8",
    "I64": "<i8",
    "F16": "<f2",
    "BF16": "<u2",
    "I32": "<i4",
    "U8": "|u1",
    "BOOL": "|b1",
}
_FIRST_PARENT = "0" * 64
_NOTHING: tuple[str, Mapping[str, Array]] = ("", {})  # no object is held


@dataclass(frozen=True)
class Draw:
    """One draw of one chain. parameters: float32 by name, each of its parameter's shape.

    weight: number of kept steps that the draw stands for; 1 except for Metropolis chains. Weight averages by it.
    """

    chain: int
    index: int
    step: int
    weight: float
    kind: str
    parameters: Mapping[str, Array]


class Draws:
    """Draws of one kind ("theta" or "theta_a"): an iterable of Draw, by chain, then by index.

    Nothing is read before it is asked for. Memory holds one object, of at most 4 MiB or of one larger draw, and the one
    before it as long as a Draw of it is used. Each object's SHA-256 and place in its chain are compared with its
    record. Draws that retention deleted, or that the server marked corrupt, are left out. A connection that breaks does
    not end an iteration: the object is asked for again.
    """

    def __init__(
        self,
        connection: Connection,
        records: Sequence[types_pb2.SegmentRecord],
        kind: str = "",
        module: Any = None,
    ) -> None:
        """`records`: all segments of a job, by chain and index. Raises DataLoss if one is missing.

        module: the torch.nn.Module that was sampled, if it is known.
        """
        _check_links(records)
        self._module = module
        self._connection = connection
        self._records = [record for record in records if not record.deleted and not record.corrupt]
        names = {types_pb2.DrawKind.Name(k).lower() for record in self._records for k in record.segment.kinds}
        self.kinds: tuple[str, ...] = tuple(sorted(names))
        self.kind = kind or (self.kinds[0] if self.kinds else "theta")
        self._held: tuple[str, Mapping[str, Array]] = _NOTHING

    def __getitem__(self, kind: str) -> Draws:
        """The draws of another kind. Raises InvalidArgument if the job keeps none."""
        if kind not in self.kinds:
            kept = ", ".join(self.kinds) or "no draws"
            raise invalid_field("kind", f"the job keeps no {kind!r}, it keeps {kept}", "see collect=Collect(kinds=...)")
        return self._with(self._records, kind)

    def of_chains(self, chains: Iterable[int]) -> Draws:
        """The draws of these chains alone."""
        chosen = set(chains)
        return self._with([record for record in self._records if record.chain.index in chosen], self.kind)

    def __len__(self) -> int:
        return sum(len(record.segment.steps) for record in self._records)

    def __iter__(self) -> Iterator[Draw]:
        for record in self._records:
            for position in range(len(record.segment.steps)):
                yield self._draw(record, position)

    @property
    def chains(self) -> tuple[int, ...]:
        """Indices of the chains that have draws."""
        return tuple(sorted({record.chain.index for record in self._records}))

    def weights(self, chain: int) -> Array:
        """float64 [draws of the chain], in the order of iteration."""
        return self._numbers(chain, "weights", np.float64)

    def steps(self, chain: int) -> Array:
        """int64 [draws of the chain]: the step after which each was taken."""
        return self._numbers(chain, "steps", np.int64)

    def get(self, chain: int, draw: int) -> Draw:
        """The draw number `draw` of a chain, from 0; -1 is the newest. Raises InvalidArgument if it is not there."""
        records = [record for record in self._records if record.chain.index == chain]
        total = sum(len(record.segment.steps) for record in records)
        position = draw + total if draw < 0 else draw
        if not 0 <= position < total:
            there = (
                f"chain {chain} has draws 0 to {total - 1}"
                if total
                else f"the chains with draws are {list(self.chains)}"
            )
            raise class_of("INVALID_ARGUMENT", "INVALID_FIELD")(
                f"there is no draw {draw} of chain {chain}: {there}",
                reason="INVALID_FIELD",
                violations=[FieldViolation("draw", there)],
                hint="draws.chains has the chains, draws.steps(chain) has a number for each draw",
            )
        for record in records:
            if position < len(record.segment.steps):
                return self._draw(record, position)
            position -= len(record.segment.steps)
        raise AssertionError("unreachable")

    def state_dict(self, chain: int, draw: int) -> dict[str, torch.Tensor]:
        """A draw as float32 tensors by name, for torch.nn.Module.load_state_dict. Needs torch.

        The module sees standardised inputs: job.standardise(x). Names are those of the module that was given. If it was
        given to `sample` in this program, its buffers are among them; else load with strict=False if it has any.
        """
        try:
            import torch
        except ImportError:
            hint = "pip install torch; get(chain, draw).parameters has the same as NumPy arrays"
            raise no_package("state_dict", "torch", hint) from None
        found = {name: torch.from_numpy(value.copy()) for name, value in self.get(chain, draw).parameters.items()}
        if self._module is None:
            return found
        # Buffers are the module's, but for the statistics that a draw has of its own.
        state = {name: found.get(name, value.clone()) for name, value in self._module.state_dict().items()}
        first: dict[int, str] = {}  # name under which a parameter that has several is sampled
        for name, value in self._module.named_parameters(remove_duplicate=False):
            sampled = first.setdefault(id(value), name)
            state[name] = found.get(sampled, state[name])
        return state

    def stack(self) -> dict[str, Array]:
        """All draws in memory: each parameter [chain, draw, ...], and "draw/weight" [chain, draw].

        Chains are in the order of `chains`. Where a chain is shorter there are NaN and a weight of 0.
        numpy.savez(path, **draws.stack()) writes them to a file.
        """
        longest = max((len(self.weights(chain)) for chain in self.chains), default=0)
        stacked: dict[str, Array] = {"draw/weight": np.zeros((len(self.chains), longest))}
        counts = dict.fromkeys(self.chains, 0)
        for draw in self:
            place = self.chains.index(draw.chain), counts[draw.chain]
            counts[draw.chain] += 1
            stacked["draw/weight"][place] = draw.weight
            for name, value in draw.parameters.items():
                if name not in stacked:
                    stacked[name] = np.full((len(self.chains), longest, *value.shape), np.nan, np.float32)
                stacked[name][place] = value
        return stacked

    def _with(self, records: list[types_pb2.SegmentRecord], kind: str) -> Draws:
        made = Draws(self._connection, (), kind, self._module)
        made._records, made.kinds = records, self.kinds
        return made

    def _numbers(self, chain: int, name: str, dtype: type[np.generic]) -> Array:
        parts = [getattr(record.segment, name) for record in self._records if record.chain.index == chain]
        return np.array([value for part in parts for value in part], dtype)

    def _draw(self, record: types_pb2.SegmentRecord, position: int) -> Draw:
        name = record.segment.object.name
        held = self._held  # another thread may replace it
        if held[0] != name:
            held = self._held = _NOTHING  # frees the object before the next one is read
            held = self._held = (name, parse_safetensors(_read(self._connection, record)))
        prefix = self.kind + "/"
        found = {key[len(prefix) :]: value for key, value in held[1].items() if key.startswith(prefix)}
        return Draw(
            chain=record.chain.index,
            index=record.segment.first_index + position,
            step=record.segment.steps[position],
            weight=record.segment.weights[position],
            kind=self.kind,
            parameters={key: value[position, ...] for key, value in found.items()},
        )

    def __repr__(self) -> str:
        return f"<{len(self)} draws of {self.kind} in {len(self.chains)} chains; kinds: {', '.join(self.kinds)}>"


def parse_safetensors(content: bytes | memoryview) -> dict[str, Array]:
    """Arrays by name, views of `content`, which cannot be written to. Raises DataLoss if it is damaged."""
    try:
        length = int.from_bytes(content[:8], "little")
        header: dict[str, Any] = json.loads(bytes(content[8 : 8 + length]))
        arrays = {}
        for name, about in header.items():
            if name != "__metadata__":
                begin, end = about["data_offsets"]
                data = memoryview(content)[8 + length + begin : 8 + length + end]
                arrays[name] = np.frombuffer(data, _TYPES[about["dtype"]]).reshape(about["shape"])
        return arrays
    except (ValueError, KeyError, TypeError, UnicodeDecodeError) as error:
        raise _damaged(f"an object of draws is damaged: {error!r}") from None


def _read(connection: Connection, record: types_pb2.SegmentRecord) -> memoryview:
    stored = record.segment.object

    def take(parts: Iterator[jobs_pb2.Chunk]) -> memoryview:
        content, hasher, size = bytearray(stored.size_bytes), hashlib.sha256(), 0
        for part in parts:
            data = part.data
            content[size : size + len(data)] = data
            hasher.update(data)
            size += len(data)
        if size != stored.size_bytes or hasher.hexdigest() != stored.sha256:
            raise _damaged(f"segment {stored.name} of chain {record.chain.index} does not match its SHA-256")
        return memoryview(content).toreadonly()

    request = jobs_pb2.ReadSegmentRequest(job=record.chain.job, object=stored.name)
    return connection.read("JobService/ReadSegment", request, jobs_pb2.Chunk, take)


def _check_links(records: Sequence[types_pb2.SegmentRecord]) -> None:
    """Each segment follows the one before it, in its chain. Raises DataLoss."""
    chain, next_index, parent = -1, 0, _FIRST_PARENT
    for record in records:
        segment = record.segment
        if record.chain.index != chain:
            chain, next_index, parent = record.chain.index, 0, _FIRST_PARENT
        if segment.first_index != next_index or segment.parent_digest != parent:
            raise _damaged(
                f"draw {next_index} of chain {chain} is missing, or its segment is not the one that was committed"
            )
        next_index, parent = next_index + len(segment.steps), segment.digest


def _damaged(message: str) -> ChainfleetError:
    return class_of("DATA_LOSS", "DIGEST_MISMATCH")(
        message, reason="DIGEST_MISMATCH", hint="see docs/reference/failures.md"
    )
