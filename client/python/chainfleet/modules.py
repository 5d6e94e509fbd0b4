"""Modules of torch: exported, and tried before they are sent."""

from __future__ import annotations

import copy
import importlib.util
import inspect
import io
import json
import math
import os
import sys
import warnings
import zipfile
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from .arrays import Array, Data, Part
from .errors import ChainfleetError, InvalidArgument
from .likelihoods import Bernoulli, Gaussian, HeteroscedasticGaussian, Likelihood
from .specs import Model
from .uploads import model_name, open_file

TRIED_ROWS = 3
_TYPES = {4: "int32", 5: "int64", 7: "float32", 12: "bool"}  # numbers of the schema of torch.export


def network_file(
    model: Any, shape: Sequence[int] | None, parts: Sequence[Part] = (), training: bool = False
) -> tuple[bytes, Any]:
    """A torch.nn.Module as a .pt2 file of torch.export, or a file by its path, and the function in it.

    The function of a file is None if torch is not installed or does not read the file: the workers alone try it then.
    shape: that of one row. parts: the inputs, if the module has several. A ScriptModule becomes a TorchScript file. A
    module of indices is exported for int64. training: exports it in training mode, whose function is None: it gives
    another answer each time.
    Raises InvalidArgument if the module has no parameters, or with torch's words if it cannot be exported, NotFound
    without the file.
    """
    if isinstance(model, (str, os.PathLike)):
        with open_file(model) as file:
            content = file.read()
        return content, _function_of(content)
    torch = sys.modules.get("torch")  # a caller who has a module has imported torch
    if torch is None or not isinstance(model, torch.nn.Module):
        raise InvalidArgument(
            f"a model is a name, a list of layers or a torch.nn.Module, not {type(model).__name__}",
            reason="INVALID_MODEL",
            hint='for example "mlp", or [chainfleet.layers.Linear(outputs=50), chainfleet.layers.ReLU(), ...]',
        )
    if next(model.parameters(), None) is None:
        hint = "layers such as torch.nn.Linear have parameters; tensors of your own need torch.nn.Parameter"
        raise _refused("it has no parameters to sample", hint)
    buffer = io.BytesIO()
    if isinstance(model, torch.jit.ScriptModule):
        warnings.warn(
            "TorchScript is deprecated: pass the torch.nn.Module, which torch.export takes", DeprecationWarning, 3
        )
        torch.jit.save(model, buffer)
        return buffer.getvalue(), torch.jit.load(io.BytesIO(buffer.getvalue()), map_location="cpu").eval()
    if shape is None:
        hint = "give example=x, rows like those that it will get"
        raise _refused("the shape of its inputs is not known", hint)
    module = torch.nn.Module.train(copy.deepcopy(model).cpu(), training)
    if not parts:
        parts = (Part("x", "int64" if takes_indices(module, shape) else "float32", tuple(shape)),)
    examples = tuple(  # stored in the file
        torch.zeros(TRIED_ROWS, *(part.shape or ()), dtype=getattr(torch, part.type), device="cpu") for part in parts
    )
    batch = {0: torch.export.Dim("batch")}
    try:
        exported = torch.export.export(module, examples, dynamic_shapes=(batch,) * len(examples))
    except Exception as error:  # torch.export raises errors of any class
        lines = [line.strip() for line in str(error).strip().splitlines()] or [type(error).__name__]
        words = next((line[2:] for line in lines if line.startswith("- ")), lines[0])
        taken = ", ".join(f"{part.type} {_axes(part.shape or ())}" for part in parts)
        hint = f"let forward take {taken} of any n, without an `if` on values: torch.where"
        if len(parts) == 1 and "missing a required argument" in words:
            hint = "give x as a dict of arrays, one for each argument of forward"
        raise _refused(f"torch.export does not take it: {words}", hint) from error
    torch.export.save(exported, buffer)
    return buffer.getvalue(), None if training else exported.module()


def stored_model(content: bytes) -> Model:
    """The model of a file, under the name that such a file has if nobody named it."""
    name = model_name(content)
    return Model(exported=name) if is_exported(content) else Model(torchscript=name)


def is_exported(content: bytes) -> bool:
    """True if a file is one of torch.export; else it may be TorchScript."""
    try:
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            return any(name.endswith("/archive_format") for name in archive.namelist())
    except zipfile.BadZipFile:
        return False


def parts_of(model: Any, x: Any) -> tuple[Part, ...]:
    """The inputs of a file by its path, or the names of a module's arguments that `x` has; () if there is one.

    x: several inputs, see chainfleet.arrays.side_by_side. An argument with a default may be left out, and all after it.
    """
    if isinstance(model, (str, os.PathLike)):
        with open_file(model) as file:
            return parts_of_file(file.read())
    if not callable(getattr(model, "forward", None)):
        return ()
    names: list[str] = []
    for one in inspect.signature(model.forward).parameters.values():
        given = one.name in x if isinstance(x, Mapping) else len(names) < len(x)
        if one.kind is not one.POSITIONAL_OR_KEYWORD or (one.default is not one.empty and not given):
            break
        names.append(one.name)
    return tuple(map(Part, names)) if len(names) > 1 else ()


def parts_of_file(content: bytes) -> tuple[Part, ...]:
    """The inputs of a .pt2 file, if it has several; () also if the file is not read: the server says why."""
    try:
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            name = next(name for name in archive.namelist() if name.endswith("/models/model.json"))
            graph = json.loads(archive.read(name))["graph_module"]
        given = [spec["user_input"]["arg"] for spec in graph["signature"]["input_specs"] if "user_input" in spec]
        names = [one["as_tensor"]["name"] for one in given if "as_none" not in one]
        about = [graph["graph"]["tensor_values"][name] for name in names]
        shapes = [tuple(int(size["as_int"]) for size in one["sizes"][1:]) for one in about]
        types = [_TYPES[one["dtype"]] for one in about]
    except (zipfile.BadZipFile, StopIteration, ValueError, KeyError, TypeError):
        return ()
    return tuple(map(Part, names, types, shapes)) if len(names) > 1 else ()


def split(rows: Any, parts: Sequence[Part]) -> tuple[Any, ...]:
    """The inputs of a network as torch tensors, of a tensor of rows that has them side by side."""
    sizes = [math.prod(part.shape or ()) for part in parts]
    return tuple(
        _as_type(column.reshape(len(rows), *(part.shape or ())), part.type)
        for column, part in zip(rows.split(sizes, dim=1), parts, strict=True)
    )


def _as_type(x: Any, kind: str) -> Any:
    import torch

    if kind == "float32":
        return x
    return x.ne(0) if kind == "bool" else x.round().to(getattr(torch, kind))


def _function_of(content: bytes) -> Any:
    if not is_exported(content) or importlib.util.find_spec("torch") is None:
        return None
    import torch

    try:
        return torch.export.load(io.BytesIO(content)).module()
    except Exception:  # a file of a newer torch raises errors of any class
        return None


def takes_indices(module: Any, shape: Sequence[int]) -> bool:
    """True if a module takes whole numbers, such as tokens, and no float32. It is run on zeros."""
    import torch

    device = next((parameter.device for parameter in module.parameters()), torch.device("cpu"))

    def runs(kind: torch.dtype) -> bool:
        try:
            with torch.no_grad():
                module(torch.zeros(TRIED_ROWS, *shape, dtype=kind, device=device))
        except Exception:  # forward raises errors of any class
            return False
        return True

    return not runs(torch.float32) and runs(torch.int64)


def copy_of(module: Any) -> Any:
    """A module of its own with the same parameters and buffers."""
    import torch

    if isinstance(module, torch.jit.ScriptModule):  # a deep copy of its parameters is no leaf of the graph
        buffer = io.BytesIO()
        torch.jit.save(module, buffer)
        return torch.jit.load(io.BytesIO(buffer.getvalue()))
    return copy.deepcopy(module)


def evaluated(module: Any) -> Any:
    """The module, in evaluation mode. A module that torch.export made is so already, and its eval() raises."""
    import torch

    return torch.nn.Module.train(module, False)


def try_module(module: Any, data: Data, likelihood: Likelihood | None, parts: Sequence[Part] = ()) -> None:
    """Runs the function of `network_file` on rows of `data`, as the workers will. parts: of `parts_of_file`.

    Raises InvalidArgument if forward fails, gives another shape or type than the likelihood takes, gives another answer
    the second time, or lets one row depend on another.
    """
    _try_rows(module, data.x, _outputs(data, likelihood), parts)


def try_example(module: Any, example: Any, parts: Sequence[Part] = ()) -> None:
    """As try_module, on rows of which nobody knows what they mean."""
    _try_rows(module, np.asarray(example), None, parts)


def _try_rows(module: Any, x: Array, wanted: int | None, parts: Sequence[Part]) -> None:
    """wanted: how many numbers each row has; None: any."""
    import torch

    of_row, inputs = x.shape[1:], _tried_inputs(module, x, parts)
    rows = inputs[0] if len(inputs) == 1 else torch.from_numpy(_few(x))
    try:
        with torch.no_grad():
            together, again = module(*inputs), module(*inputs)
            if torch.is_tensor(together):
                alone = torch.cat([module(*(one[i : i + 1] for one in inputs)) for i in range(len(rows))])
    except (RuntimeError, ValueError, IndexError, torch.jit.Error) as error:
        hint = f"forward takes standardised float32 {_axes(of_row)}, or whole numbers such as tokens"
        raise _refused(f"forward fails on {list(rows.shape)}: {str(error).strip().splitlines()[-1]}", hint) from None
    is_tensor = torch.is_tensor(together) and together.dtype == torch.float32 and together.ndim == 2
    if not is_tensor or list(together.shape) != [len(rows), wanted or together.shape[1]]:
        given = f"{together.dtype} {list(together.shape)}" if torch.is_tensor(together) else type(together).__name__
        hint = "let forward return one logit for each class, or as many numbers as the likelihood takes"
        shape = f"float32 [{len(rows)}, {wanted or 'outputs'}]"
        raise _refused(f"forward of {list(rows.shape)} returns {given}, {shape} is needed", hint)
    if not torch.equal(together, again):
        raise _refused("forward gives another answer the second time", "take what is random out of forward")
    if not torch.allclose(together, alone, rtol=1e-3, atol=1e-4):
        row = int((together - alone).abs().amax(dim=1).argmax())
        hint = "compute each row by itself: no mean, norm or sort over the batch; batch norm uses its stored statistics"
        raise _refused(f"forward mixes examples: row {row} alone has another output than together with others", hint)


def _tried_inputs(module: Any, x: Array, parts: Sequence[Part]) -> tuple[Any, ...]:
    """Rows of `x` as the module takes them, standardised unless they are whole numbers."""
    import torch

    if not parts:
        return (torch.from_numpy(_some_rows(x) if takes_indices(module, x.shape[1:]) else _tried_rows(x)),)
    size = sum(math.prod(part.shape or ()) for part in parts)
    if x.shape[1:] != (size,):
        raise _refused(f"its inputs have {size} numbers, rows have shape {list(x.shape[1:])}", "pass a dict of arrays")
    return split(torch.from_numpy(_few(x).astype(np.float32)), parts)


def _few(x: Array) -> Array:
    """TRIED_ROWS rows of the data, far from one another where there are many."""
    return np.resize(x[: 64 * TRIED_ROWS : 64] if len(x) > 64 * TRIED_ROWS else x, (TRIED_ROWS, *x.shape[1:]))


def _some_rows(x: Array) -> Array:
    """Rows of the data, int64."""
    rows = _few(x)
    if not np.array_equal(rows, np.round(rows)):
        raise _refused("it takes whole numbers, and the rows of x have others", "pass tokens or other indices as x")
    made: Array = rows.astype(np.int64)
    return made


def _tried_rows(x: Array) -> Array:
    """Different rows near those of the data, standardised, float32."""
    made: Array = _few(x).astype(np.float32)
    made = (made - made.mean()) / (made.std() or 1)
    made += 0.1 * np.random.default_rng(0).standard_normal(made.shape, np.float32)
    return made


def _outputs(data: Data, likelihood: Likelihood | None) -> int:
    """How many numbers of each row the likelihood takes."""
    if isinstance(likelihood, HeteroscedasticGaussian):
        return 2
    if data.numbers or isinstance(likelihood, (Bernoulli, Gaussian)):
        return 1
    return int(data.y.max()) + 1


def _axes(shape: Sequence[int]) -> str:
    return f"[n, {', '.join(map(str, shape))}]"


def _refused(words: str, hint: str) -> ChainfleetError:
    return InvalidArgument(f"the module cannot be sampled: {words}", reason="INVALID_MODEL", hint=hint)
