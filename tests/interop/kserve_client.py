"""kserve_client.py HTTP GRPC < ROWS: kserve's clients predict, and a JSON line is printed for each: its name and the answer."""
import asyncio
import json
import sys

import kserve
import numpy
from kserve.inference_client import InferenceGRPCClient, InferenceRESTClient, RESTConfig
from kserve.protocol.infer_type import RequestedOutput


def request(rows, binary):
    tensor = kserve.InferInput("x", list(rows.shape), "FP32")
    tensor.set_data_from_numpy(rows, binary_data=binary)
    output = RequestedOutput("mean_probability", {"binary_data": True} if binary else None)
    return kserve.InferRequest("small", [tensor], request_outputs=[output])


def show(name, answer):
    print(json.dumps([name, answer.outputs[0].as_numpy().tolist()]))


async def main():
    http_address, grpc_address = sys.argv[1:]
    base, rows = f"http://{http_address}", numpy.array(json.load(sys.stdin), numpy.float32)
    async with InferenceRESTClient(RESTConfig(protocol="v2")) as client:
        assert await client.is_server_live(base) and await client.is_server_ready(base) and await client.is_model_ready(base, "small")
        for binary in (True, False):
            show(f"kserve REST, {'binary' if binary else 'JSON'}", await client.infer(base, request(rows, binary), model_name="small"))
    async with InferenceGRPCClient(grpc_address) as client:
        assert await client.is_server_live() and await client.is_server_ready() and await client.is_model_ready("small")
        show("kserve gRPC", await client.infer(request(rows, False)))


if __name__ == "__main__":
    asyncio.run(main())
