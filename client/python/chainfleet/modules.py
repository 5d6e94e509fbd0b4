"""Modules of torch: written as TorchScript, and tried before they are sent."""

from __future__ import annotations

import copy
import io
import os
import sys
from typing import Any

import numpy as np

from .arrays import Array, Data
from .errors import ChainfleetError, InvalidArgument
from .likelihoods import Bernoulli, Gaussian, HeteroscedasticGaussian, Likelihood
from .uploads import open_file

_TRIED_ROWS = 3


def torchscript(model: Any) -> bytes:
    """A torch.nn.Module or ScriptModule, or the path of a file, as a TorchScript file.

    Raises InvalidArgument if the module has no parameters, or with TorchScript's words if it cannot be scripted,
    NotFound without the file.
    """
    if isinstance(model, (str, os.PathLike)):
        with open_file(model) as file:
            return file.read()
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
    try:
        scripted = model if isinstance(model, torch.jit.ScriptModule) else torch.jit.script(model)
    except (RuntimeError, torch.jit.frontend.NotSupportedError) as error:
        hint = "write forward with what TorchScript knows, or pass torch.jit.trace(model, example)"
        raise _refused(f"torch.jit.script does not take it: {error}", hint) from None
    buffer = io.BytesIO()
    torch.jit.save(scripted, buffer)
    return buffer.getvalue()


def copy_of(module: Any) -> Any:
    """A module of its own with the same parameters and buffers."""
    import torch

    if isinstance(module, torch.jit.ScriptModule):  # a deep copy of its parameters is no leaf of the graph
        return torch.jit.load(io.BytesIO(torchscript(module)))
    return copy.deepcopy(module)


def try_module(content: bytes, data: Data, likelihood: Likelihood | None) -> None:
    """Runs a TorchScript file on rows of `data`, in evaluation mode, as the workers will.

    Raises InvalidArgument if forward fails, gives another shape or type than the likelihood takes, gives another answer
    the second time, or lets one row depend on another.
    """
    import torch

    rows = torch.from_numpy(_tried_rows(data.x))
    wanted = _outputs(data, likelihood)
    try:
        module = torch.jit.load(io.BytesIO(content), map_location="cpu").eval()
        with torch.no_grad():
            together, again = module(rows), module(rows)
            if torch.is_tensor(together):
                alone = torch.cat([module(rows[i : i + 1]) for i in range(len(rows))])
    except (RuntimeError, ValueError, torch.jit.Error) as error:
        hint = f"forward takes standardised float32 [n, {', '.join(map(str, data.x.shape[1:]))}]"
        raise _refused(f"forward fails on {list(rows.shape)}: {str(error).strip().splitlines()[-1]}", hint) from None
    if not torch.is_tensor(together) or together.dtype != torch.float32 or list(together.shape) != [len(rows), wanted]:
        given = f"{together.dtype} {list(together.shape)}" if torch.is_tensor(together) else type(together).__name__
        hint = "let forward return one logit for each class, or as many numbers as the likelihood takes"
        shape = f"float32 [{len(rows)}, {wanted}]"
        raise _refused(f"forward of {list(rows.shape)} returns {given}, {shape} is needed", hint)
    if not torch.equal(together, again):
        raise _refused("forward gives another answer the second time", "take what is random out of forward")
    if not torch.allclose(together, alone, rtol=1e-3, atol=1e-4):
        row = int((together - alone).abs().amax(dim=1).argmax())
        hint = "compute each row by itself: no mean, norm or sort over the batch; batch norm uses its stored statistics"
        raise _refused(f"forward mixes examples: row {row} alone has another output than beside others", hint)


def _tried_rows(x: Array) -> Array:
    """Different rows near those of the data, standardised, float32."""
    rows = np.resize(x[: 64 * _TRIED_ROWS : 64] if len(x) > 64 * _TRIED_ROWS else x, (_TRIED_ROWS, *x.shape[1:]))
    made: Array = rows.astype(np.float32)
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


def _refused(words: str, hint: str) -> ChainfleetError:
    return InvalidArgument(f"the module cannot be sampled: {words}", reason="INVALID_MODEL", hint=hint)
