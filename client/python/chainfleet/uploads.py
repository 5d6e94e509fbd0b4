"""Uploads data sets and modules."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, BinaryIO

from .arrays import Data, chunks
from .connection import Connection
from .errors import NotFound
from .spec import build
from .v1 import jobs_pb2, types_pb2

if TYPE_CHECKING:
    from .sources import Files

_CHUNK_BYTES = 512 << 10
OnSent = Callable[[int, int], None]  # bytes sent so far, and in all


def put_data(connection: Connection, name: str, data: Data, on_sent: OnSent) -> types_pb2.Dataset:
    """Uploads arrays as the data set `name`."""
    files = data.files()
    total = sum(len(header) + values.nbytes for header, values in files.values())

    def messages() -> Iterator[jobs_pb2.PutDatasetRequest]:
        sent = 0
        yield _header(name, len(files), data.numbers, "", data.class_names)
        for file, (header, values) in files.items():
            start = jobs_pb2.PutDatasetRequest.FileStart(file_name=file, size_bytes=len(header) + values.nbytes)
            yield jobs_pb2.PutDatasetRequest(file=start)
            for chunk in chunks((header, values), _CHUNK_BYTES):
                yield jobs_pb2.PutDatasetRequest(data=chunk)
                sent += len(chunk)
                on_sent(sent, total)

    return connection.upload("JobService/PutDataset", messages, types_pb2.Dataset)


def put_files(connection: Connection, name: str, files: Files, on_sent: OnSent) -> types_pb2.Dataset:
    """Uploads files, or has the server read those that are URIs, as the data set `name`."""
    sizes = {source: _size_of(source) for source in files.files if "://" not in source}
    total = sum(sizes.values())

    def messages() -> Iterator[jobs_pb2.PutDatasetRequest]:
        sent = 0
        yield _header(name, len(files.files), bool(files.numbers), files.target, files.class_names)
        for source in files.files:
            uri = "" if source in sizes else source
            start = jobs_pb2.PutDatasetRequest.FileStart(
                file_name=source.rpartition("/")[2], size_bytes=sizes.get(source, 0), uri=uri
            )
            yield jobs_pb2.PutDatasetRequest(file=start)
            for chunk in [] if uri else _read(source):
                yield jobs_pb2.PutDatasetRequest(data=chunk)
                sent += len(chunk)
                on_sent(sent, total)

    return connection.upload("JobService/PutDataset", messages, types_pb2.Dataset)


def put_model(
    connection: Connection, name: str, content: bytes, on_sent: OnSent, uri: str = ""
) -> types_pb2.StoredModel:
    """Uploads the file of a network as the model `name`; with a URI the server reads it, and `content` is empty."""

    def messages() -> Iterator[jobs_pb2.PutModelRequest]:
        sent = 0
        yield jobs_pb2.PutModelRequest(
            header=build(jobs_pb2.PutModelRequest.Header, name=name, size_bytes=len(content), uri=uri)
        )
        for chunk in chunks((content,), _CHUNK_BYTES):
            yield jobs_pb2.PutModelRequest(data=chunk)
            sent += len(chunk)
            on_sent(sent, len(content))

    return connection.upload("JobService/PutModel", messages, types_pb2.StoredModel)


def name_by_content(prefix: str, digest: str) -> str:
    """A name for an upload that nobody named: the same content has the same name."""
    return f"{prefix}-{digest[:32]}"


def model_name(content: bytes) -> str:
    """The name of a module that nobody named."""
    return name_by_content("module", hashlib.sha256(content).hexdigest())


def _header(
    name: str, num_files: int, numbers: bool, target: str, class_names: Sequence[str]
) -> jobs_pb2.PutDatasetRequest:
    kind = types_pb2.FLOAT32_TARGETS if numbers else types_pb2.LABELS
    header = build(
        jobs_pb2.PutDatasetRequest.Header,
        name=name,
        num_files=num_files,
        target=target,
        target_type=kind,
        class_names=class_names,
    )
    return jobs_pb2.PutDatasetRequest(header=header)


def _size_of(path: str) -> int:
    with open_file(path) as file:
        return os.fstat(file.fileno()).st_size


def open_file(path: str | os.PathLike[str]) -> BinaryIO:
    """The file for reading. Raises NotFound."""
    try:
        return open(path, "rb")
    except OSError as error:
        raise NotFound(
            f"cannot read {os.fspath(path)}: {error.strerror}",
            reason="NO_FILE",
            hint="name a file of this machine, or a URI",
        ) from None


def _read(path: str) -> Iterator[bytes]:
    with open_file(path) as file:
        while chunk := file.read(_CHUNK_BYTES):
            yield chunk
