"""A real Triton that serves a model with the inputs and outputs of chainfleet's. Its answers are zeros.

triton_model.py HTTP_PORT GRPC_PORT < METADATA: the body that GET /v2/models/NAME of chainfleet has. It prints "up" once it serves,
and ends with its parent.
"""
import json
import signal
import sys
import threading

import numpy
from pytriton.model_config import ModelConfig, Tensor
from pytriton.triton import Triton, TritonConfig, TritonSecurityConfig

from real_server import RealServer

DTYPES = {"FP32": numpy.float32, "FP64": numpy.float64}


def tensors(described):
    return [Tensor(name=one["name"], dtype=DTYPES[one["datatype"]], shape=tuple(one["shape"])) for one in described]


def main():
    http_port, grpc_port = map(int, sys.argv[1:])
    model = json.load(sys.stdin)

    def zeros(requests):
        return [{o["name"]: numpy.zeros([len(request["x"]), *map(abs, o["shape"][1:])], DTYPES[o["datatype"]]) for o in model["outputs"]}
                for request in requests]

    here = "127.0.0.1"
    where = TritonConfig(http_address=here, http_port=http_port, grpc_address=here, grpc_port=grpc_port, allow_metrics=False)
    with Triton(config=where, security_config=TritonSecurityConfig(restricted_endpoints=[])) as triton:
        triton.bind(model["name"], zeros, tensors(model["inputs"]), tensors(model["outputs"]), config=ModelConfig(batching=False))
        triton.run()
        print("up", flush=True)
        ended = threading.Event()
        signal.signal(signal.SIGTERM, lambda *_: ended.set())
        ended.wait()


if __name__ == "__main__":
    RealServer.die_with_parent()
    main()
