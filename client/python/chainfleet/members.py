"""Networks and draws from elsewhere, that `Fleet.import_networks` makes a job of."""

from __future__ import annotations

import io
import json
import os
import pathlib
import zipfile
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from .arrays import Array
from .draws import parse_safetensors
from .errors import ChainfleetError, DataLoss, InvalidArgument
from .uploads import open_file
from .weights import weights_file

MOST_FILES = 4096
_MOST_CHAINS, _MOST_CHARACTERS = 256, 2048  # the server's bounds on init.weights
_THETA, _ANCHOR = "theta/", "theta_a/"
_FLOAT32 = 7  # number of the schema of torch.export


@dataclass(frozen=True)
class Members:
    """chains: the contents of each: the path of a file with its draws, or state_dicts, each of which is a draw.

    draws: of the longest chain. anchor: the draws have theta_a, too.
    """

    chains: tuple[Sequence[Any], ...]
    draws: int
    anchor: bool


def check_members(name: str, weights: Any, own: Mapping[str, Array], statistics: Collection[str]) -> Members:
    """Reads all networks of the job `name` once. Folders of `export` become the chains in them.

    More state_dicts than a job may have chains become chains of several draws.
    own: the buffers that are part of the network, for all chains. statistics: those of a network in training mode.
    Raises InvalidArgument for a file that is no safetensors, a state_dict with another value of a buffer, more than
    MOST_FILES files, more chains than a job has and chains of different kinds; NotFound.
    """
    given = [weights] if isinstance(weights, (str, os.PathLike, Mapping)) else list(weights)
    contents = [content for each in given for content in _files_in(each)]
    if not 0 < len(contents) <= MOST_FILES:
        raise _refused(f"there are {len(contents)} networks", f"give 1 to {MOST_FILES} files")
    counts, anchors = set(), set()
    for content in contents:
        tensors = _tensors_of(content)
        rows = {len(value) if value.ndim else 0 for key, value in tensors.items() if key.startswith(_THETA)}
        anchor = any(key.startswith(_ANCHOR) for key in tensors)
        if len(rows) > 1 or 0 in rows or (anchor and not rows):
            raise _refused(f"{content} has no draws of theta, or different numbers of them", "export the job again")
        if not rows:
            _check_buffers(tensors, own, statistics)
        counts.add(max(rows, default=0))
        anchors.add(anchor)
    if len(anchors) > 1:
        raise _refused("some of the chains lack theta_a", "import them as two jobs")
    most = max(1, min(_MOST_CHAINS, _MOST_CHARACTERS // (len(name) + len("-255"))))
    if len(contents) <= most:
        return Members(tuple([content] for content in contents), max(counts | {1}), anchors == {True})
    if counts != {0}:
        hint = "give a shorter name, or import several jobs"
        raise _refused(f"there are {len(contents)} chains, and a job of this name has at most {most}", hint)
    size = -(-len(contents) // most)
    return Members(tuple(contents[at : at + size] for at in range(0, len(contents), size)), size, False)


def file_of(chain: Sequence[Any], statistics: Collection[str]) -> bytes:
    """The safetensors file of a chain of Members.

    statistics: names of the buffers that a network in training mode keeps with each draw.
    Raises InvalidArgument for state_dicts with different tensors.
    """
    states = [_tensors_of(content) for content in chain]
    if len(states) == 1 and not any(name in states[0] for name in statistics):
        return _bytes_of(chain[0])
    kept = [name for name, value in states[0].items() if value.dtype.kind == "f"]
    try:
        return weights_file({_THETA + name: np.stack([state[name] for state in states]) for name in kept})
    except (KeyError, ValueError):
        raise _refused("the state_dicts have different tensors", "import networks of one kind") from None


def _bytes_of(content: Any) -> bytes:
    if isinstance(content, Mapping):
        return weights_file(content)
    with open_file(content) as opened:
        return opened.read()


def _tensors_of(content: Any) -> dict[str, Array]:
    try:
        return parse_safetensors(_bytes_of(content))
    except DataLoss:
        raise _refused(f"{content} is no safetensors file", "write it with safetensors.torch.save_file") from None


def _check_buffers(tensors: Mapping[str, Array], own: Mapping[str, Array], statistics: Collection[str]) -> None:
    for name, value in own.items():
        if name not in statistics and name in tensors and not np.array_equal(value, tensors[name]):
            raise _refused(
                f"the state_dict has another {name} than the module: all networks have the buffers of the module",
                "export it in training mode (training=True): draws keep theirs; or import each network as a job",
            )


def buffers_of(model: Any) -> dict[str, Array]:
    """The floating-point buffers of a torch.nn.Module, or of a .pt2 file by its path; {} of a name."""
    if hasattr(model, "named_buffers"):
        return {name: value.cpu().numpy() for name, value in model.named_buffers() if value.is_floating_point()}
    if not isinstance(model, os.PathLike):
        return {}
    with open_file(model) as file:
        content = file.read()
    try:
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            config = next(name for name in archive.namelist() if name.endswith("/weights/model_weights_config.json"))
            folder = config.rpartition("/")[0]
            return {
                name: np.frombuffer(archive.read(f"{folder}/{about['path_name']}"), "<f4").reshape(
                    [size["as_int"] for size in about["tensor_meta"]["sizes"]]
                )
                for name, about in json.loads(archive.read(config))["config"].items()
                if not about["is_param"] and about["tensor_meta"]["dtype"] == _FLOAT32
            }
    except (zipfile.BadZipFile, StopIteration, ValueError, KeyError, TypeError):
        return {}  # the server says why it does not take the file


def _files_in(content: Any) -> Sequence[Any]:
    if isinstance(content, Mapping) or not os.path.isdir(content):
        return [content]
    found = sorted(pathlib.Path(content).glob("*.safetensors"))
    if not found:
        hint = 'name a folder that job.export(..., "safetensors") wrote'
        raise _refused(f"{content} has no .safetensors files", hint)
    return found


def _refused(words: str, hint: str) -> ChainfleetError:
    return InvalidArgument(words, reason="INVALID_MODEL", hint=hint)
