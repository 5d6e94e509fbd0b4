"""Requests to the HTTP port. `why`: the reason why chainfleet answers otherwise than Triton, on purpose."""
import dataclasses
import gzip
import json
import zlib

import numpy

from answers import JSON_LENGTH

MODEL = "/v2/models/small"
INFER = MODEL + "/infer"
ROWS = numpy.linspace(-1, 1, 8, dtype=numpy.float32).reshape(2, 4)


OWN_SETTINGS = "each server lists its own settings"
DECODED = "names in paths are decoded"
NO_CONTROL = "clients cannot load models, share memory or change settings"
BATCHES = "rows are the batch of every model. Triton's model here has none: Triton needs `dims` of each output beyond the batch"
INDEX = "PyTriton keeps models outside of Triton's repository"
SELECTED = "without a list chainfleet leaves out errors and members"
STRICT = "a parameter, output or number that would be ignored or changed is refused"
ALL_BINARY = "it is for all outputs that say nothing else. Triton heeds it only without a list"
CONVERTED = "FP16, BF16 and FP64 are converted"


@dataclasses.dataclass
class Request:
    name: str
    method: str  # the verb and the path
    body: bytes = None
    headers: dict = dataclasses.field(default_factory=dict)
    why: str = ""


def tensor(**changes):
    """The input of a good request. A change to None removes a member."""
    given = {"name": "x", "shape": [2, 4], "datatype": "FP32", "data": ROWS.ravel().tolist()} | changes
    return {name: value for name, value in given.items() if value is not None}


def infer(name, *inputs, why="", path=INFER, **members):
    body = {"inputs": list(inputs or [tensor()]), "outputs": [{"name": "mean_probability"}]} | members
    return Request(name, "POST " + path, json.dumps({key: one for key, one in body.items() if one is not None}).encode(), why=why)


def binary(name, tail=ROWS.tobytes(), length=None, size=32, why="", **members):
    given = json.dumps({"inputs": [tensor(data=None, parameters={"binary_data_size": size})], "outputs": [{"name": "mean_probability"}]} | members)
    return Request(name, "POST " + INFER, given.encode() + tail, {JSON_LENGTH: str(len(given)) if length is None else length}, why)


def raw(name, body, why="", **headers):
    return Request(name, "POST " + INFER, body, {key.replace("_", "-"): one for key, one in headers.items()}, why)


def get(name, path, why=""):
    return Request(name, "GET " + path, why=why)


def server():
    for path in ("/v2/health/live", "/v2/health/ready", "/v2/models", "/v2/nothing"):
        yield get("", path)
    yield get("", "/v2", OWN_SETTINGS)
    yield get("", "/v2/")
    yield get("", "/", "the console")
    yield get("", "/v2?query=1", STRICT)
    yield get("", "/v2/models/stats", "only models with requests")
    for body, why in ((b"", INDEX), (b"{}", INDEX), (b'{"ready": true}', INDEX), (b"{", ""), (b"[]", STRICT)):
        yield Request(f"body `{body.decode()}`" if body else "empty body", "POST /v2/repository/index", body, why=why)
    yield Request("", "POST /v2/repository/models/none/load", b"{}", why=NO_CONTROL)
    yield Request("", "POST /v2/repository/models/none/unload", b"{}", why=NO_CONTROL)
    for path in ("/v2/systemsharedmemory/status", "/v2/cudasharedmemory/status", "/v2/trace/setting", "/v2/logging"):
        yield get("", path, NO_CONTROL)
    yield Request("header of 70 000 bytes", "GET /v2", headers={"x": "1" * 70000}, why="Triton closes the connection")


def models():
    for part in ("", "/ready", "/config", "/stats"):
        shown = {"/config": OWN_SETTINGS, "/stats": "chainfleet has no statistics of caches and memory"}.get(part, "")
        yield get("", MODEL + part, shown)
        yield get("", "/v2/models/sm%61ll" + part, DECODED)
        yield get("", "/v2/models/none" + part)
        for version in ("1", "01"):
            yield get("", f"{MODEL}/versions/{version}{part}", shown)
        for version in ("7", "0"):
            yield get("", f"{MODEL}/versions/{version}{part}")
        for version in ("-1", "first", "1.0", "9999999999999999999999"):
            yield get("", f"{MODEL}/versions/{version}{part}")
    yield get("", MODEL + "/")
    yield get("", MODEL + "//ready")


def verbs():
    for verb in ("PUT", "DELETE", "PATCH", "OPTIONS"):
        for path in ("/v2", MODEL, INFER):
            yield Request("", verb + " " + path)
    for path in ("/v2", MODEL):
        yield Request("", "POST " + path)
        yield Request("", "HEAD " + path, why="HEAD is GET without a body (RFC 9110)")
    yield get("", INFER)
    yield Request("", "HEAD " + INFER)


def inferences():
    yield infer("good JSON")
    yield infer("good nested JSON", tensor(data=ROWS.tolist()))
    yield infer("all outputs", outputs=None, why=SELECTED)
    yield infer("`outputs` is empty", outputs=[], why=SELECTED)
    yield infer("with an id", id="seven")
    yield infer("version 1", path=MODEL + "/versions/1/infer")
    yield infer("binary output", outputs=[{"name": "mean_probability", "parameters": {"binary_data": True}}])
    yield infer("`binary_data_output`", parameters={"binary_data_output": True}, why=ALL_BINARY)
    yield infer("`binary_data_output` with `binary_data` false", parameters={"binary_data_output": True},
                outputs=[{"name": "mean_probability", "parameters": {"binary_data": False}}])
    yield infer("`binary_data_output` without a list", outputs=None, parameters={"binary_data_output": True}, why=SELECTED)
    yield binary("good binary input")
    yield binary("binary input and output", outputs=[{"name": "mean_probability", "parameters": {"binary_data": True}}])
    yield infer("classification", outputs=[{"name": "mean_probability", "parameters": {"classification": 2}}], why=BATCHES)
    yield infer("the same output twice", outputs=[{"name": "mean_probability"}] * 2, why=STRICT)
    yield infer("0 rows", tensor(shape=[0, 4], data=[]))
    yield infer("unknown version", path=MODEL + "/versions/7/infer")
    yield infer("version `first`", path=MODEL + "/versions/first/infer")
    yield infer("unknown model", path="/v2/models/none/infer")


def bad_inputs():
    yield infer("wrong rank", tensor(shape=[8]))
    yield infer("wrong row shape", tensor(shape=[4, 2]))
    yield infer("less data than the shape", tensor(data=[1.0]))
    yield infer("more data than the shape", tensor(shape=[1, 4]))
    yield infer("negative size", tensor(shape=[-2, 4]))
    yield infer("shape 2^64", tensor(shape=[2**64, 4]))
    yield infer("shape with text", tensor(shape=["2", 4]))
    yield infer("without shape", tensor(shape=None))
    yield infer("without data", tensor(data=None))
    yield infer("without datatype", tensor(datatype=None))
    yield infer("without name", tensor(name=None))
    yield infer("datatype FP64", tensor(datatype="FP64"), why=CONVERTED)
    yield infer("datatype INT64", tensor(datatype="INT64", data=list(range(8))))
    yield infer("datatype BYTES", tensor(datatype="BYTES", data=["a"] * 8))
    yield infer("datatype FLOAT", tensor(datatype="FLOAT"))
    yield infer("datatype FP16 in JSON", tensor(datatype="FP16"))
    yield infer("datatype is a number", tensor(datatype=1))
    yield infer("data has text", tensor(data=["1"] * 8))
    yield infer("data has null", tensor(data=[None] * 8))
    yield infer("data has bool", tensor(data=[True] * 8))
    yield infer("data is an object", tensor(data={}))
    yield infer("data beyond float32", tensor(data=[1e39] * 8), why=STRICT)
    yield infer("ragged data", tensor(data=[[1, 2, 3], [4, 5, 6, 7, 8]]))
    yield infer("unknown input", tensor(name="y"))
    yield infer("input twice", tensor(), tensor())
    yield infer("one more input", tensor(), tensor(name="y"))
    yield infer("`inputs` is empty", inputs=[])
    yield infer("without `inputs`", inputs=None)
    yield infer("`inputs` is an object", inputs={})
    yield infer("`inputs` of text", inputs=["x"])
    yield infer("unknown output", outputs=[{"name": "logits"}])
    yield infer("output without name", outputs=[{}])
    yield infer("unknown parameter", parameters={"wish": 1}, why=STRICT)
    yield infer("parameter is an object", parameters={"wish": {}})
    yield infer("id is a number", id=7)
    yield infer("classification of 0", outputs=[{"name": "mean_probability", "parameters": {"classification": 0}}], why=STRICT)
    yield infer("shared memory input", tensor(data=None, parameters={"shared_memory_region": "r", "shared_memory_byte_size": 32}), why=NO_CONTROL)


def bad_bodies():
    yield raw("empty body", b"")
    for body in (b"{", b"[]", b"null", b"1", b'"x"', b"{}", b"\xff\xfe", b"{} {}", b"NaN"):
        yield raw(f"body `{body.decode(errors='backslashreplace')}`", body)
    yield raw("1000 arrays deep", b"[" * 1000 + b"]" * 1000)
    yield raw("100 000 arrays deep", b"[" * 100000)
    yield raw("100 000 objects deep", b'{"inputs":' * 100000)
    yield raw("17 MiB of text", b"x" * (17 << 20))
    good = infer("").body
    yield raw("content type text/plain", good, Content_Type="text/plain")
    yield raw("compressed by gzip", gzip.compress(good), Content_Encoding="gzip")
    yield raw("compressed by deflate", zlib.compress(good), Content_Encoding="deflate")
    yield raw("unknown compression", good, why="415 is HTTP's code for an error that the caller must correct", Content_Encoding="br")
    for length in ("-1", "many", "1000000", "10", "0", "", "99999999999999999999"):
        yield binary(f"header length `{length}`" if length else "empty header length", length=length)
    yield binary("fewer bytes than binary_data_size", tail=b"1234")
    yield binary("more bytes than binary_data_size", tail=bytes(64))
    yield binary("binary_data_size 8 for 32 bytes", size=8)
    yield binary("binary_data_size is negative", size=-1)
    yield binary("binary_data_size is text", size="32")


def fatal():
    """The process of Triton's model does not outlive these."""
    yield infer("shape of 2^64 elements", tensor(shape=[2**62, 4]))


def requests():
    for group in (server, models, verbs, inferences, bad_inputs, bad_bodies, fatal):
        yield from group()
