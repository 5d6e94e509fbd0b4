"""Modules of torch: exported, and tried before they are sent."""

from __future__ import annotations

import copy
import importlib.util
import io
import os
import sys
import warnings
import zipfile
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from .arrays import Array, Data
from .errors import ChainfleetError, InvalidArgument
from .likelihoods import Bernoulli, Gaussian, HeteroscedasticGaussian, Likelihood
from .specs import Model
from .uploads import model_name, open_file

TRIED_ROWS = 3


def network_file(model: Any, shape: Sequence[int] | None) -> tuple[bytes, Any]:
    """A torch.nn.Module as a .pt2 file of torch.export, or a file by its path, and the function in it.

    The function of a file is None if torch is not installed or does not read the file: the workers alone try it then.
    shape: that of one input. A ScriptModule becomes a TorchScript file. A module of indices is exported for int64.
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
    module = evaluated(copy.deepcopy(model).cpu())
    kind = torch.int64 if takes_indices(module, shape) else torch.float32
    example = torch.zeros(TRIED_ROWS, *shape, dtype=kind, device="cpu")  # stored in the file
    try:
        exported = torch.export.export(module, (example,), dynamic_shapes=({0: torch.export.Dim("batch")},))
    except Exception as error:  # torch.export raises errors of any class
        lines = [line.strip() for line in str(error).strip().splitlines()] or [type(error).__name__]
        words = next((line[2:] for line in lines if line.startswith("- ")), lines[0])
        hint = f"let forward take one float32 tensor {_axes(shape)} of any n, without an `if` on values: torch.where"
        raise _refused(f"torch.export does not take it: {words}", hint) from error
    torch.export.save(exported, buffer)
    return buffer.getvalue(), exported.module()


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


def check_buffers(module: Any, state: Any) -> None:
    """Raises InvalidArgument if a state_dict has another value of one of the module's buffers."""
    if not isinstance(state, Mapping) or not hasattr(module, "named_buffers"):
        return
    for name, value in module.named_buffers():
        counts = name in state and value.is_floating_point()
        if counts and not np.array_equal(value.cpu().numpy(), np.asarray(state[name])):
            raise InvalidArgument(
                f"the state_dict has another {name} than the module: all members have the buffers of the module",
                reason="INVALID_MODEL",
                hint="import networks with buffers of their own as a job each",
            )


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


def try_module(module: Any, data: Data, likelihood: Likelihood | None) -> None:
    """Runs the function of `network_file` on rows of `data`, as the workers will.

    Raises InvalidArgument if forward fails, gives another shape or type than the likelihood takes, gives another answer
    the second time, or lets one row depend on another.
    """
    _try_rows(module, data.x, _outputs(data, likelihood))


def try_example(module: Any, example: Any) -> None:
    """As try_module, on rows of which nobody knows what they mean."""
    _try_rows(module, np.asarray(example), None)


def _try_rows(module: Any, x: Array, wanted: int | None) -> None:
    """wanted: how many numbers each row has; None: any."""
    import torch

    of_row = x.shape[1:]
    rows = torch.from_numpy(_some_rows(x) if takes_indices(module, of_row) else _tried_rows(x))
    try:
        with torch.no_grad():
            together, again = module(rows), module(rows)
            if torch.is_tensor(together):
                alone = torch.cat([module(rows[i : i + 1]) for i in range(len(rows))])
    except (RuntimeError, ValueError, torch.jit.Error) as error:
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
