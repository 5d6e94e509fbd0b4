"""Asks a server of the Open Inference Protocol, and reduces each answer to its status and the shape of its body."""
import http.client
import json

import grpc
from google.protobuf import json_format
from tritonclient.grpc import service_pb2, service_pb2_grpc

JSON_LENGTH = "Inference-Header-Content-Length"
PATIENCE = 60  # seconds
MOST_NAMES = 6  # that the table shows of a body


def reduce(value):
    """Names and types; tensors keep their shape."""
    if isinstance(value, dict):
        if value.keys() >= {"name", "datatype", "shape"}:
            return f"{value['name']} {value['datatype']} {list(map(int, value['shape']))}"
        return {key: reduce(one) for key, one in sorted(value.items())}
    if isinstance(value, list):
        return [reduce(one) for one in value]
    return "text" if isinstance(value, str) else "value"


def covers(ours, theirs):
    """True if `ours` has all that `theirs` has. Tensors must be the same."""
    if theirs == "no body":
        return True
    if isinstance(theirs, dict) and isinstance(ours, dict):
        return all(key in ours and covers(ours[key], one) for key, one in theirs.items())
    if isinstance(theirs, list) and isinstance(ours, list):
        return len(ours) == len(theirs) and all(map(covers, ours, theirs))
    return ours == theirs


class Answer:
    def __init__(self, status, body):
        self.status, self.body = status, body

    def same_as(self, theirs):
        return self.status == theirs.status and self.has_bytes() == theirs.has_bytes() and covers(self.body, theirs.body)

    def has_bytes(self):
        return "bytes" in self.body

    def __str__(self):
        """As in the table."""
        if isinstance(self.body, dict):
            names = list(self.body)
            body = "{" + ", ".join(names[:MOST_NAMES] + ["..."] * (len(names) > MOST_NAMES)) + "}"
        else:
            body = "array" if isinstance(self.body, list) else self.body
        return f"{self.status} {body}".strip()


def read_body(body, json_length):
    if not body:
        return "no body"
    try:
        reduced = reduce(json.loads(body[:json_length]))
    except ValueError:
        return "no JSON"
    return reduced | {"bytes": len(body) - json_length} if json_length is not None else reduced


def ask_http(address, request):
    connection = http.client.HTTPConnection(address, timeout=PATIENCE)
    try:
        connection.request(*request.method.split(" ", 1), request.body, request.headers)
        reply = connection.getresponse()
        length = reply.headers[JSON_LENGTH]
        return Answer(reply.status, read_body(reply.read(), length and int(length)))
    except (OSError, http.client.HTTPException):
        return Answer("no answer", "")
    finally:
        connection.close()


def ask_grpc(address, request):
    with grpc.insecure_channel(address) as channel:
        try:
            reply = getattr(service_pb2_grpc.GRPCInferenceServiceStub(channel), request.method)(request.message, timeout=PATIENCE)
        except grpc.RpcError as failed:
            return Answer(failed.code().name, "")
    return Answer("OK", reduce(json_format.MessageToDict(reply, preserving_proto_field_name=True)))


def message(method, fields):
    """The request of a method, filled with `fields`."""
    name = service_pb2.DESCRIPTOR.services_by_name["GRPCInferenceService"].methods_by_name[method].input_type.name
    return json_format.ParseDict(fields, getattr(service_pb2, name)())
