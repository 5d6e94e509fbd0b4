"""Checks the arrays that a user gives, before anything is sent: NumPy, lists, torch tensors, pandas frames."""

from __future__ import annotations

import hashlib
import io
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from .errors import InvalidArgument

Array = npt.NDArray[Any]

_MAX_UPLOAD_BYTES = 2048 << 20
_MAX_LABEL = 65_535
_EXACT_IN_FLOAT32 = 1 << 24


@dataclass(frozen=True)
class Part:
    """One of several inputs of a network, side by side in a row.

    type: as PyTorch writes it: float32, int64, int32, bool. shape: that of one row. "" and None: not known.
    """

    name: str
    type: str = ""
    shape: tuple[int, ...] | None = None


@dataclass(frozen=True)
class Data:
    """Rows to learn from, as the server stores them.

    x: uint8 or float32 [n, ...]; the network sees uint8 as x / 255.
    y: int32 classes [n] from 0 on, or float32 numbers [n] to predict.
    class_names: names of classes 0, 1, ...; empty: unnamed.
    parts: the inputs that x [n, sum of their sizes] has side by side; empty: x is the only input.
    """

    x: Array
    y: Array
    class_names: tuple[str, ...] = ()
    parts: tuple[Part, ...] = ()

    @property
    def numbers(self) -> bool:
        """True if y holds numbers to predict, False if y holds classes."""
        return self.y.dtype.kind == "f"

    def digest(self) -> str:
        """64 hex digits, the same for the same types, shapes, values and names."""
        hasher = hashlib.sha256("\0".join(self.class_names).encode())
        for array in (self.x, self.y):
            hasher.update(f"{array.dtype.str}{array.shape}".encode())
            hasher.update(array.data.cast("B"))
        return hasher.hexdigest()

    def files(self) -> dict[str, tuple[bytes, Array]]:
        """{name: (header, values)} of two files in NumPy's .npy format."""
        return {"x.npy": (_npy_header(self.x), self.x), "y.npy": (_npy_header(self.y), self.y)}


def check_pair(data: Any, numbers: bool | None, wanted: Sequence[Part] = ()) -> Data:
    """check_data of a pair (x, y)."""
    if not isinstance(data, (tuple, list)) or len(data) != 2:
        raise _invalid(f"data is a pair (x, y) or a name, not {type(data).__name__}", hint="data=(x, y)")
    return check_data(data[0], data[1], numbers, wanted)


def check_data(x: Any, y: Any, numbers: bool | None = None, wanted: Sequence[Part] = ()) -> Data:
    """x [n, ...] and y [n] as they are stored.

    x: uint8, float32, or what becomes float32: bool, integers up to 2^24, float16, float64.
    Several inputs: see side_by_side.
    y: integers or bool are classes, floats are numbers to predict; `numbers` says which of the two is meant.
    Raises InvalidArgument: a wrong type, shape or length, NaN or infinity (with the row), more than 2 GiB.
    """
    (inputs, parts), targets = side_by_side(x, wanted), _as_array(y, "y")
    if targets.ndim != 1:
        hint = "pass y.ravel()" if targets.size == len(targets) else "one class or number a row: y [n]"
        raise _invalid(f"y has shape {list(targets.shape)}, [n] is needed", hint=hint)
    if len(inputs) != len(targets):
        raise _invalid(f"x has {len(inputs)} rows, y has {len(targets)}", hint="pass one target for each row of x")
    checked = _check_numbers(targets) if _means_numbers(targets, numbers) else _check_labels(targets)
    size = inputs.nbytes + checked.nbytes
    if size > _MAX_UPLOAD_BYTES:
        raise _invalid(
            f"x and y have {size >> 20} MiB, one data set may have {_MAX_UPLOAD_BYTES >> 20}",
            hint="pass fewer rows, or images as uint8",
        )
    return Data(inputs, checked, parts=parts)


def has_several(x: Any) -> bool:
    """True if x is a mapping or a tuple of arrays: several inputs of a network."""
    return isinstance(x, Mapping) or (isinstance(x, tuple) and len(x) > 1 and all(hasattr(one, "shape") for one in x))


def side_by_side(x: Any, wanted: Sequence[Part] = ()) -> tuple[Array, tuple[Part, ...]]:
    """check_inputs of x, and (); or of several inputs, {name: array [n, ...]} or a tuple of arrays, the rows that hold
    them: float32 [n, sum of their sizes], each in C order, and what they are.

    wanted: the network's inputs in their order; () leaves them as they are. Raises InvalidArgument too if their names,
    number, shapes or numbers of rows do not fit.
    """
    if not has_several(x):
        return check_inputs(x, "x"), ()
    named = dict(x) if isinstance(x, Mapping) else dict(zip(_names(x, wanted), x, strict=True))
    if wanted and named.keys() != {part.name for part in wanted}:
        names = ", ".join(part.name for part in wanted)
        raise _invalid(f"x has the inputs {', '.join(map(str, named))}, the network takes {names}", f"pass {names}")
    arrays: list[Array] = []
    parts: list[Part] = []
    for part in wanted or map(Part, named):
        array = _as_array(named[part.name], part.name)
        checked = check_inputs(array[:, None] if array.ndim == 1 else array, part.name)
        shape = array.shape[1:] if part.shape is None else tuple(part.shape)
        if array.shape[1:] != shape:
            words = f"{part.name} has shape {list(array.shape)}, the network takes {['n', *shape]}"
            raise _invalid(words, "pass rows as those of the training data")
        if arrays and len(checked) != len(arrays[0]):
            words = f"{part.name} has {len(checked)} rows, {parts[0].name} has {len(arrays[0])}"
            raise _invalid(words, "pass one row of each input for each example")
        arrays.append(checked.reshape(len(checked), -1).astype("<f4"))
        kind = {"f": "float32", "b": "bool"}.get(array.dtype.kind, "int64")
        parts.append(Part(part.name, part.type or kind, shape))
    return np.ascontiguousarray(np.concatenate(arrays, axis=1)), tuple(parts)


def _names(x: Sequence[Any], wanted: Sequence[Part]) -> list[str]:
    if wanted and len(wanted) != len(x):
        names = ", ".join(part.name for part in wanted)
        raise _invalid(f"x has {len(x)} inputs, the network takes {len(wanted)}", f"pass {names}")
    return [part.name for part in wanted] or [f"x[{i}]" for i in range(len(x))]


def check_inputs(x: Any, name: str) -> Array:
    """`x` as uint8 or float32 [n, ...], contiguous. Raises InvalidArgument, see check_data."""
    array = _as_array(x, name)
    if array.ndim < 2:
        hint = f"pass {name}[None] for one row, or {name}[:, None] for one feature"
        raise _invalid(f"{name} has shape {list(array.shape)}, [n, ...] is needed", hint=hint)
    if array.size == 0:
        raise _invalid(f"{name} has shape {list(array.shape)}: it holds nothing", hint="pass at least one row")
    if array.dtype == np.uint8:
        return np.ascontiguousarray(array)
    if array.dtype.kind in "iu" and max(int(array.max()), -int(array.min())) > _EXACT_IN_FLOAT32:
        raise _invalid(f"{name} holds integers beyond 2^24, which float32 cannot hold", hint=f"scale {name} first")
    with np.errstate(over="ignore"):
        converted = np.ascontiguousarray(array, dtype="<f4")
    _require_finite(converted, name)
    return converted


def _invalid(message: str, hint: str) -> InvalidArgument:
    return InvalidArgument(message, reason="INVALID_DATA", hint=hint)


def _as_array(value: Any, name: str) -> Array:
    """`value` as an array of numbers."""
    torch = sys.modules.get("torch")
    if torch is not None and isinstance(value, torch.Tensor):
        value = _tensor(value, name)
    elif hasattr(value, "dtypes") and hasattr(value, "to_numpy"):
        value = _frame(value, name)
    elif hasattr(value, "to_numpy"):
        value = value.to_numpy()
    try:
        array = np.asarray(value)
    except ValueError as error:
        raise _invalid(f"{name} is no array: {error}", hint="give each row the same length") from None
    if array.dtype.kind not in "biuf":
        kind = {"O": "Python objects", "U": "text", "S": "text", "c": "complex numbers"}.get(
            array.dtype.kind, "no numbers"
        )
        hint = "encode classes as 0, 1, 2, ...: np.unique(y, return_inverse=True)[1]" if name == "y" else "pass numbers"
        raise _invalid(f"{name} holds {kind} (dtype {array.dtype})", hint=hint)
    return array


def _tensor(tensor: Any, name: str) -> Any:
    """The values of a torch tensor of any device, layout and type of numbers."""
    try:
        dense = tensor.detach().cpu().to_dense()
        if str(dense.dtype) == "torch.bfloat16":  # NumPy has no such type
            dense = dense.float()
        return dense.resolve_conj().resolve_neg().numpy()
    except (RuntimeError, TypeError) as error:
        raise _invalid(f"{name} is no tensor of numbers: {error}", hint=f"pass {name}.float()") from None


def _frame(frame: Any, name: str) -> Any:
    """The values of a pandas frame or series, whose columns must hold numbers."""
    types = dict(frame.dtypes) if hasattr(frame, "columns") else {}
    wrong = [str(column) for column, kind in types.items() if getattr(kind, "kind", "O") not in "biuf"]
    if wrong:
        hint = "leave them out, or encode them: pandas.get_dummies"
        raise _invalid(f"columns {', '.join(wrong)} of {name} hold no numbers", hint=hint)
    values = frame.to_numpy()
    numeric = bool(types) or getattr(getattr(frame, "dtype", None), "kind", "O") in "biuf"
    if values.dtype == object and numeric:  # pandas' own types, where NA is missing
        values = frame.to_numpy(dtype=float, na_value=np.nan)
    return values


def _means_numbers(targets: Array, numbers: bool | None) -> bool:
    if numbers is None:
        return targets.dtype.kind == "f"
    if not numbers and targets.dtype.kind == "f":
        hint = "pass y.astype(int) for classes, or a likelihood of numbers: chainfleet.likelihoods.Gaussian"
        raise _invalid(f"y has dtype {targets.dtype}, the likelihood needs classes", hint=hint)
    return numbers


def _check_labels(targets: Array) -> Array:
    if targets.dtype.kind != "b" and (targets.min() < 0 or targets.max() > _MAX_LABEL):
        row = int(np.argmax((targets < 0) | (targets > _MAX_LABEL)))
        hint = "classes count from 0; numbers to predict are floats: y.astype(float)"
        raise _invalid(f"y[{row}] is {targets[row]}, no class from 0 to {_MAX_LABEL}", hint=hint)
    return np.ascontiguousarray(targets, dtype="<i4")


def _check_numbers(targets: Array) -> Array:
    with np.errstate(over="ignore"):
        converted = np.ascontiguousarray(targets, dtype="<f4")
    _require_finite(converted, "y")
    return converted


def _require_finite(array: Array, name: str) -> None:
    with np.errstate(invalid="ignore"):
        ends = array.min(), array.max()  # NaN if there is one; needs no memory
    if not np.isfinite(ends).all():
        row = int(np.argmax(~np.isfinite(array).reshape(len(array), -1).all(axis=1)))
        raise _invalid(f"{name}[{row}] holds NaN, infinity or a number beyond float32", hint="drop or fill such rows")


def _npy_header(array: Array) -> bytes:
    header = io.BytesIO()
    np.lib.format.write_array_header_1_0(header, np.lib.format.header_data_from_array_1_0(array))
    return header.getvalue()


def chunks(parts: Sequence[bytes | Array], size: int) -> Iterator[bytes]:
    """The bytes of `parts`, at most `size` at a time."""
    for part in parts:
        view = memoryview(part if isinstance(part, bytes) else part.data).cast("B")
        for begin in range(0, len(view), size):
            yield bytes(view[begin : begin + size])
