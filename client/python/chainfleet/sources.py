"""Data as a user gives them: arrays, files, URIs, or the name of a data set."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Sequence
from typing import Any

from .arrays import Data, Part, check_pair
from .errors import InvalidArgument
from .uploads import name_by_content, open_file


class Files:
    """Files of one data set: IDX, CIFAR, a pair of npy, npz, zipped Zarr or CSV. The server reads URIs by itself.

    target: the column of a CSV, by name or number; "": the last. numbers: the targets are numbers to predict; default:
    what the likelihood takes. class_names: names of classes 0, 1, .... The same content has the same name and is sent
    once. A URI is read once, when its name is new: store other content of the same URI under a name of your own, with
    `fleet.put_files`.
    """

    def __init__(
        self,
        *files: str | os.PathLike[str],
        target: str = "",
        numbers: bool | None = None,
        class_names: Sequence[str] = (),
    ) -> None:
        self.files = tuple(os.fspath(file) for file in files)
        self.target, self.numbers, self.class_names = target, numbers, tuple(class_names)

    def digest(self) -> str:
        """64 hex digits, the same for the same content. Raises NotFound for a file that cannot be read."""
        hasher = hashlib.sha256("\0".join([self.target, str(bool(self.numbers)), *self.class_names]).encode())
        for file in self.files:
            hasher.update(b"\0" + file.rpartition("/")[2].encode())  # its extension decides the format
            hasher.update((file if is_uri(file) else _sha256(file)).encode())
        return hasher.hexdigest()


def source_of(data: Any, numbers: bool | None, wanted: Sequence[Part] = ()) -> tuple[str, Data | Files | None]:
    """The name of a data set, and what is stored under that name if it is not there: None for a name that was given.

    numbers: whether the targets are numbers to predict; None: by their type.
    wanted: see chainfleet.arrays.side_by_side.
    Raises InvalidArgument, see chainfleet.arrays.check_data; NotFound for a file that is not there.
    """
    if data is None or (isinstance(data, str) and not is_uri(data)):
        return data or "", None
    if isinstance(data, Data):
        return name_by_content("data", data.digest()), data
    given = _files_of(data)
    if given is None:
        arrays = check_pair(data, numbers, wanted)
        return name_by_content("data", arrays.digest()), arrays
    if not given.files:
        raise InvalidArgument("data names no file", reason="INVALID_DATA", hint='for example Files("x.npy", "y.npy")')
    chosen = given.numbers if given.numbers is not None else bool(numbers)
    files = Files(*given.files, target=given.target, numbers=chosen, class_names=given.class_names)
    return name_by_content("data", files.digest()), files


def is_uri(text: str) -> bool:
    return "://" in text


def _files_of(data: Any) -> Files | None:
    """`data` as Files if it is that, a path, a URI, or a list of these; else None."""
    if isinstance(data, Files):
        return data
    parts = list(data) if isinstance(data, Sequence) and not isinstance(data, str) else [data]
    if parts and all(isinstance(part, os.PathLike) or (isinstance(part, str) and is_uri(part)) for part in parts):
        return Files(*parts)
    return None


def _sha256(path: str) -> str:
    hasher = hashlib.sha256()
    with open_file(path) as file:
        while chunk := file.read(1 << 20):
            hasher.update(chunk)
    return hasher.hexdigest()
