"""Requests over gRPC, as http_requests.py has them for HTTP."""
import dataclasses

from google.protobuf.message import Message

from answers import message
from http_requests import CONVERTED, NO_CONTROL, OWN_SETTINGS, ROWS, SELECTED, STRICT


@dataclasses.dataclass
class Request:
    name: str
    method: str
    message: Message
    why: str = ""


def call(method, fields={}, why=""):
    return Request(" ".join(f"{key} `{value}`" for key, value in fields.items()) or "no fields", method, message(method, fields), why)


def infer(name, why="", tail=(ROWS.tobytes(),), model="small", version="", outputs=("mean_probability",), inputs=1, contents=None, input_name="x",
          **changes):
    given = {"name": input_name, "shape": [2, 4], "datatype": "FP32"} | changes
    made = message("ModelInfer", {"model_name": model, "model_version": version, "inputs": [given] * inputs,
                                  "outputs": [{"name": one} for one in outputs]})
    if contents:
        getattr(made.inputs[0].contents, contents).extend(ROWS.ravel())
    else:
        made.raw_input_contents.extend(tail)
    return Request(name, "ModelInfer", made, why)


def others():
    for method in ("ServerLive", "ServerReady", "RepositoryIndex"):
        yield call(method)
    yield call("ServerMetadata", why=OWN_SETTINGS)
    yield call("RepositoryIndex", {"ready": True})
    yield call("RepositoryIndex", {"repository_name": "other"}, "there is one repository; another one is NOT_FOUND")
    yield call("ModelStatistics", why="only models with requests")
    for method in ("ModelReady", "ModelMetadata", "ModelConfig", "ModelStatistics"):
        shown = {"ModelConfig": OWN_SETTINGS, "ModelStatistics": "chainfleet has no statistics of caches and memory"}.get(method, "")
        yield call(method, {"name": "small"}, shown)
        yield call(method, {"name": "none"})
        yield call(method, {"name": "small", "version": "1"}, shown)
        for version in ("7", "0"):
            yield call(method, {"name": "small", "version": version})
        for version in ("-1", "first", "99999999999999999999"):
            yield call(method, {"name": "small", "version": version})
    for method in ("ModelReady", "ModelMetadata", "ModelConfig"):
        yield call(method)
    for method in ("RepositoryModelLoad", "RepositoryModelUnload"):
        yield call(method, {"model_name": "none"}, NO_CONTROL)
    for method in ("SystemSharedMemoryStatus", "CudaSharedMemoryStatus", "TraceSetting", "LogSettings"):
        yield call(method, why=NO_CONTROL)


def inferences():
    yield infer("good raw")
    yield infer("good contents", contents="fp32_contents")
    yield infer("all outputs", SELECTED, outputs=())
    yield infer("version 1", version="1")
    yield infer("version 7", version="7")
    yield infer("version `first`", version="first")
    yield infer("unknown model", model="none")
    yield infer("wrong rank", shape=[8])
    yield infer("wrong row shape", shape=[4, 2])
    yield infer("negative size", shape=[-2, 4])
    yield infer("fewer bytes than the shape", tail=(b"1234",))
    yield infer("more bytes than the shape", tail=(bytes(64),))
    yield infer("no bytes", tail=())
    yield infer("more raw inputs than inputs", STRICT, tail=(ROWS.tobytes(),) * 2)
    yield infer("0 rows", shape=[0, 4], tail=(b"",))
    yield infer("datatype FP64", CONVERTED, datatype="FP64", tail=(ROWS.astype("f8").tobytes(),))
    yield infer("datatype INT64", datatype="INT64", tail=(bytes(64),))
    yield infer("datatype FLOAT", datatype="FLOAT")
    yield infer("no datatype", datatype="")
    yield infer("contents of another type", contents="fp64_contents")
    yield infer("unknown input", input_name="y")
    yield infer("no input", inputs=0, tail=())
    yield infer("input twice", inputs=2, tail=(ROWS.tobytes(),) * 2)
    yield infer("unknown output", outputs=("logits",))


def requests():
    yield from others()
    yield from inferences()
