"""Public clients that predict at chainfleet: each must get the same answer."""
import asyncio
import json
import os
import subprocess
import sys

import numpy
import tritonclient.grpc
import tritonclient.grpc.aio
import tritonclient.http
import tritonclient.http.aio

from http_requests import ROWS, infer

OUTPUT = "mean_probability"


def triton_request(module, **options):
    tensor = module.InferInput("x", list(ROWS.shape), "FP32")
    tensor.set_data_from_numpy(ROWS, **options)
    return {"model_name": "small", "inputs": [tensor], "outputs": [module.InferRequestedOutput(OUTPUT, **options)]}


def check_health(client):
    assert client.is_server_live() and client.is_server_ready() and client.is_model_ready("small") and not client.is_model_ready("none")
    assert client.get_model_metadata("small") and client.get_model_config("small") and client.get_model_repository_index()


def with_tritonclient(fleet):
    with tritonclient.grpc.InferenceServerClient(fleet.address) as client:
        check_health(client)
        yield "tritonclient gRPC", client.infer(**triton_request(tritonclient.grpc)).as_numpy(OUTPUT)
        answers = []
        client.start_stream(lambda result, error: answers.append(error or result))
        client.async_stream_infer(**triton_request(tritonclient.grpc))
        client.stop_stream()
        yield "tritonclient gRPC stream", answers[0].as_numpy(OUTPUT)
    with tritonclient.http.InferenceServerClient(fleet.http_address) as client:
        check_health(client)
        for binary in (True, False):
            answer = client.infer(**triton_request(tritonclient.http, binary_data=binary))
            yield f"tritonclient HTTP, {'binary' if binary else 'JSON'}", answer.as_numpy(OUTPUT)


async def with_asyncio(fleet):
    async with tritonclient.grpc.aio.InferenceServerClient(fleet.address) as client:
        yield "tritonclient gRPC asyncio", (await client.infer(**triton_request(tritonclient.grpc))).as_numpy(OUTPUT)
    async with tritonclient.http.aio.InferenceServerClient(fleet.http_address) as client:
        yield "tritonclient HTTP asyncio", (await client.infer(**triton_request(tritonclient.http))).as_numpy(OUTPUT)


def with_kserve(fleet):
    """In a process of its own: its messages have the names of tritonclient's."""
    program = os.path.join(os.path.dirname(os.path.abspath(__file__)), "kserve_client.py")
    done = subprocess.run([sys.executable, "-B", program, fleet.http_address, fleet.address], input=json.dumps(ROWS.tolist()), text=True,
                          stdout=subprocess.PIPE, check=True)
    for line in done.stdout.splitlines():
        name, values = json.loads(line)
        yield name, numpy.array(values)


def with_curl(fleet):
    request = infer("")
    done = subprocess.run(["curl", "-sSf", "-d", "@-", f"http://{fleet.http_address}/v2/models/small/infer"], input=request.body, capture_output=True, check=True)
    [output] = json.loads(done.stdout)["outputs"]
    yield "curl", numpy.array(output["data"]).reshape(output["shape"])


async def collect(answers):
    return [answer async for answer in answers]


def check(fleet):
    """The lines of a list of clients, and those that got another answer than the first one."""
    answers = [*with_tritonclient(fleet), *asyncio.run(collect(with_asyncio(fleet))), *with_kserve(fleet), *with_curl(fleet)]
    wanted = answers[0][1]
    assert wanted.shape == (2, 3) and numpy.allclose(wanted.sum(axis=1), 1)
    lines = ["\n## Clients\n\nThese clients predict, and get the same numbers:\n", *(f"- {name}" for name, _ in answers)]
    return lines, [f"{name} got {found}, not {wanted}" for name, found in answers if not numpy.array_equal(found, wanted)]
