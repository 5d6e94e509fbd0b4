#!/usr/bin/env python3
"""Does the time of an answer tell whether another tenant has what a call names? The calls are those that take a name or
an id of something that a tenant owns, over gRPC and HTTP. Each call is made in pairs: once with what another tenant has,
once with a name of the same form that nobody has, in random order.

  CHAINFLEET_BIN=build/release/bin /usr/bin/python3 -B tests/bench/tenant_timing.py [--calls REGEX] [--pairs N]

Prints for each call the medians in ms and the share of pairs in which the other tenant's name took longer (0.5: it tells
nothing). A call whose share is more than 4 standard errors from 0.5 is measured again; the exit code is 1 if the second
share is, too, or if a call has another answer than it should. The server is one that is not loaded, on this host: over a
network the times differ more.
"""
import argparse
import collections
import hashlib
import http.client
import json
import math
import os
import random
import re
import statistics
import struct
import sys
import time
import urllib.parse

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "support"))
os.environ.setdefault("CHAINFLEET_BIN", os.path.join(HERE, "..", "..", "build", "release", "bin"))

import started_fleet
from coordinator import Caller, message
from real_server import free_ports

OWNING, OWNING_WORKER, ASKING_WORKER = "The-token-of-a-tenant-that-owns", "The-token-of-the-owners-worker", "The-token-of-the-askers-worker"
# Each measurement has a token of its own, because a token makes 10,000 changes at once and then one a second.
ASKING = [f"The-token-{i:04}-of-a-tenant-that-asks" for i in range(400)]
MOST_CHANGES, WARM_UP, BLOCKS, FLAGGED = 10000, 50, 40, 4
JOBS, PREDICT, ACCESS = (f"chainfleet.v1.{name}Service" for name in ("Job", "Predict", "Access"))
INFERENCE = "inference.GRPCInferenceService"

# Methods whose first field is a name, and the things that it may name.
FIRST_FIELDS = (
    (JOBS, "GetJob WatchJob ListEvents SetIntent ScaleJob ListSegments GetTraces ReadSegment CreateSnapshot ListSnapshots "
           "DeleteSnapshot", "job name"),
    (JOBS, "DeleteAlias", "alias"),
    (JOBS, "ReadRows DeleteDataset ShareDataset", "dataset"),
    (JOBS, "DeleteModel ShareModel", "model"),
    (JOBS, "DrainWorker", "worker"),
    (PREDICT, "Predict Evaluate StartEvaluation", "job name alias"),
    (PREDICT, "ListEvaluations", "job name"),
    (PREDICT, "GetEvaluation CancelEvaluation", "evaluation"),
    (ACCESS, "RevokeToken", "token"),
    (INFERENCE, "ModelMetadata ModelConfig ModelReady ModelStatistics ModelInfer ModelStreamInfer", "job name alias"),
)
# The protocol of inference has no NOT_FOUND here: its methods say that the model is not ready, or that it is unknown.
OTHER_ANSWERS = {"ModelReady": "OK", "ModelStreamInfer": "OK", "ModelStatistics": "INVALID_ARGUMENT"}

# Each line has the kind of thing that NAME is a name of, the request, the status of its answer, and its body.
HTTP_CALLS = """
dataset POST /v1/jobs 404 {"spec": {"name": "fresh", "preset": "csgld-official", "dataset": {"name": "NAME"}}}
job GET /v1/jobs/NAME 404
job GET /v1/jobs/NAME/watch 404
job GET /v1/jobs/NAME/events 404
job POST /v1/jobs/NAME/evaluate 404 {}
job POST /v1/jobs/NAME/intent 404 {}
job POST /v1/jobs/NAME/scale 404 {}
job GET /v1/jobs/NAME/segments 404
object GET /v1/jobs/mine/segments/NAME 404
job GET /v1/jobs/NAME/traces 404
job GET /v1/jobs/NAME/snapshots 404
job POST /v1/jobs/NAME/snapshots 404 {}
job DELETE /v1/jobs/NAME/snapshots/1 404
job POST /v1/jobs/NAME/predict 404 {}
job PUT /v1/aliases/fresh 404 {"job": "NAME"}
alias DELETE /v1/aliases/NAME 404
dataset DELETE /v1/datasets/NAME 404
dataset POST /v1/datasets/NAME/share 404 {}
dataset POST /v1/datasets/NAME/rows 404 {}
model DELETE /v1/models/NAME 404
model POST /v1/models/NAME/share 404 {}
worker POST /v1/workers/NAME/drain 404 {}
job GET /v1/evaluations?job=NAME 404
job POST /v1/evaluations 404 {"job": "NAME"}
evaluation GET /v1/evaluations/NAME 404
evaluation POST /v1/evaluations/NAME/cancel 404 {}
token DELETE /v1/tokens/NAME 404
job GET /v2/models/NAME 404
job GET /v2/models/NAME/config 404
job GET /v2/models/NAME/ready 400
job GET /v2/models/NAME/stats 400
job POST /v2/models/NAME/infer 404 {"inputs": []}
"""

# `open` takes a token and returns a function that sends what `build` makes of a name, and returns the answer's code.
Call = collections.namedtuple("Call", "label kind expected build open")


def job_file(name, dataset):
    return f"""
name: {name}
model: {{builtin: softmax_regression}}
dataset: {{name: {dataset}}}
prior: {{gaussian: {{precision: 10}}}}
sampler: {{sgld: {{}}}}
learning_rate: {{constant: 0.01}}
batch_size: 50
num_steps: 40
chains: 2
collect: {{every_steps: 10}}
"""


def create_job(name="fresh", dataset="cloth", model=message(f1="softmax_regression"), **more):
    """A CreateJobRequest that only checks such a job."""
    prior, rate = (b"\x09" + struct.pack("<d", value) for value in (10, 0.01))  # a double in the first field
    spec = message(f1=name, f2=model, f3=message(f1=dataset), f4=message(f1=prior), f5=message(f1=b""), f6=rate, f9=50, f12=10, **more)
    return message(f1=spec, f3=1)


def predict(**more):
    """A PredictRequest of the asking tenant for one image."""
    return message(f1="mine", f2=message(f1=1, f2=bytes((1, 1, 28, 28)), f3=bytes(784)), **more)


def first_field(name):
    return message(f1=name)


def grpc_calls(port):
    requests = [(service, method, kind, "", first_field) for service, methods, kinds in FIRST_FIELDS
                for method in methods.split() for kind in kinds.split()]
    requests += [
        (JOBS, "CreateJob", "name", "name", lambda name: create_job(name=name)),
        (JOBS, "CreateJob", "dataset", "dataset", lambda name: create_job(dataset=name)),
        (JOBS, "CreateJob", "model", "exported", lambda name: create_job(model=message(f8=name))),
        (JOBS, "CreateJob", "model", "weights", lambda name: create_job(f33=message(f4=name))),
        (JOBS, "ReadSegment", "object", "object", lambda name: message(f1="mine", f2=name)),
        (JOBS, "SetAlias", "job", "job", lambda name: message(f1="fresh", f2=name)),
        (JOBS, "SetAlias", "alias", "name", lambda name: message(f1=name, f2="mine", f3=99)),
        (JOBS, "PutDataset", "dataset", "name", lambda name: message(f1=message(f1=name, f2=1))),
        (JOBS, "PutModel", "model", "name", lambda name: message(f1=message(f1=name, f2=1))),
        (PREDICT, "Predict", "evaluation", "weights", lambda name: predict(f3=message(f9=name))),
        (PREDICT, "Predict", "evaluation", "conformal", lambda name: predict(f10=name)),
    ]
    for field, text in ((2, "dataset"), (3, "ood_dataset"), (6, "calibration_dataset"), (12, "stacking_dataset")):
        requests += [(PREDICT, method, "dataset", text, lambda name, field=field: message(
            f1="mine", **({} if field == 2 else {"f2": "cloth"}), **{f"f{field}": name})) for method in ("Evaluate", "StartEvaluation")]
    # The name of a new job may be one that another tenant has. A name with a slash is nobody's to put.
    answers = {**OTHER_ANSWERS, ("CreateJob", "name"): "OK", "PutDataset": "INVALID_ARGUMENT", "PutModel": "INVALID_ARGUMENT"}

    def opening(service, method):
        def open_(token):
            caller = Caller(port, token)
            return lambda request: caller.code(method, request, service=service)[0]
        return open_

    return [Call(f"{method}{'.' if text else ''}{text} of {kind}", kind, answers.get((method, text), answers.get(method, "NOT_FOUND")),
                 build, opening(service, method)) for service, method, kind, text, build in requests]


def http_calls(address):
    def opening(verb):
        def open_(token):
            connection = http.client.HTTPConnection(address, timeout=60)

            def send(request):
                connection.request(verb, *request, {"Authorization": "Bearer " + token})
                reply = connection.getresponse()
                reply.read()
                return str(reply.status)
            return send
        return open_

    def building(path, body):
        return lambda name: (path.replace("NAME", urllib.parse.quote(name, safe="")), body and body.replace("NAME", name))

    calls = []
    for line in HTTP_CALLS.strip().splitlines():
        kind, verb, path, expected, *body = line.split(None, 4)
        calls.append(Call(f"{verb} {path} of {kind}", kind, expected, building(path, body[0] if body else None), opening(verb)))
    return calls


def ask(address, verb, path, body=None):
    """The reply to the owning tenant over HTTP."""
    connection = http.client.HTTPConnection(address, timeout=60)
    try:
        connection.request(verb, path, body and json.dumps(body), {"Authorization": "Bearer " + OWNING})
        reply = connection.getresponse()
        text = reply.read().decode()
        if reply.status != 200:
            raise AssertionError(f"{verb} {path}: {reply.status} {text}")
        return json.loads(text)
    finally:
        connection.close()


def fill(fleet, index, token, worker_token, name, dataset):
    """Gives the token's tenant a worker, a data set and a job that has ended. Returns the job's id."""
    fleet.environment = {"CHAINFLEET_TOKEN": token}
    fleet.start_worker(index, environment={"CHAINFLEET_TOKEN": "", "CHAINFLEET_WORKER_TOKEN": worker_token})
    fleet.put_fashion(dataset, 200)
    job = fleet.submit(job_file(name, dataset))
    fleet.run("wait", job, "--timeout", "300s", check=True)
    return job


def fill_both(fleet, address):
    """Returns a thing of each kind that the owning tenant has. The asking tenant has the job "mine" and the data set "cloth"."""
    fill(fleet, 1, ASKING[0], ASKING_WORKER, "mine", "cloth")
    job = fill(fleet, 0, OWNING, OWNING_WORKER, "weekly", "clothes")
    fleet.run("model", "put", "network", os.path.join(HERE, "..", "data", "exported", "mlp.pt2"), check=True)
    evaluation = fleet.run("evaluate", job, "--dataset", "clothes", "--detach", "-o", "name", check=True).stdout.strip()
    fleet.run("evaluate", "--attach", evaluation, check=True)
    sha256 = hashlib.sha256(b"The-token-of-a-reader-of-the-owners").hexdigest()
    ask(address, "POST", "/v1/tokens", {"sha256": sha256, "role": "READER"})
    ask(address, "PUT", "/v1/aliases/champion", {"job": job})
    segment = ask(address, "GET", f"/v1/jobs/{job}/segments")["segments"][0]["segment"]
    return {"job": job, "name": "weekly", "alias": "champion", "dataset": "owning/clothes", "model": "owning/network",
            "evaluation": evaluation, "worker": "worker-0", "token": sha256[:12], "object": segment["object"]["name"]}


def nobodys(name):
    """A name of the same form and length. It is drawn anew each time, so that no cache can know it."""
    kinds = ("abcdef", "ghijklmnopqrstuvwxyz", "0123456789")
    owner, slash, last = name.rpartition("/")
    return owner + slash + "".join(random.choice(next((kind for kind in kinds if c in kind), c)) for c in last)


def measure(call, theirs, token, pairs):
    """Seconds of the two calls of each pair: with the other tenant's name, and with nobody's."""
    send, taken = call.open(token), []
    for _ in range(WARM_UP + pairs):
        requests, pair = (call.build(theirs), call.build(nobodys(theirs))), [0, 0]
        for which in random.sample((0, 1), 2):
            began = time.perf_counter()
            answer = send(requests[which])
            pair[which] = time.perf_counter() - began
            if answer != call.expected:
                raise AssertionError(f"{('theirs', 'nobody')[which]}: {answer} in place of {call.expected}")
        taken.append(pair)
    return taken[WARM_UP:]


def share_longer(taken):
    """The share of pairs whose first call took longer, and its standard error. Neighbours in time share what else the host
    does. The error is that of means over blocks of them, and no less than that of independent pairs."""
    longer = [(theirs > none) + (theirs == none) / 2 for theirs, none in taken]
    size = len(longer) // BLOCKS
    blocks = [statistics.fmean(longer[i * size:(i + 1) * size]) for i in range(BLOCKS)]
    error = max(statistics.stdev(blocks) / math.sqrt(BLOCKS), 0.5 / math.sqrt(len(longer)))
    return statistics.fmean(longer), error


def tells(call, theirs, token, pairs):
    """Prints the row of a call. True: the share is far from a half."""
    taken = measure(call, theirs, token, pairs)
    share, error = share_longer(taken)
    flagged = abs(share - 0.5) > FLAGGED * error
    medians = [1000 * statistics.median(column) for column in zip(*taken)]
    print(f"| {call.label} | {medians[0]:.3f} | {medians[1]:.3f} | {share:.3f} ± {error:.3f}{' flagged' if flagged else ''} |", flush=True)
    return flagged


def measure_all(calls, things, pairs):
    """Prints the table. Returns the labels of the calls that tell something, or that are not answered as they should be."""
    print("| call | theirs, ms | nobody's, ms | theirs takes longer |\n| --- | --- | --- | --- |")
    tokens, wrong = iter(ASKING[1:]), []
    for call in calls:
        try:
            if tells(call, things[call.kind], next(tokens), pairs) and tells(call, things[call.kind], next(tokens), pairs):
                wrong.append(call.label)
        except AssertionError as error:
            print(f"| {call.label} | {error} | | |", flush=True)
            wrong.append(call.label)
    return wrong


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--calls", default="", metavar="REGEX", help="only calls whose name in the table has a match")
    parser.add_argument("--pairs", type=int, default=2000, metavar="N", help="pairs of each call")
    options = parser.parse_args()
    most = MOST_CHANGES // 2 - WARM_UP
    if not 10 * BLOCKS <= options.pairs <= most:
        parser.error(f"--pairs must be {10 * BLOCKS} to {most}: a token may not make more changes at once")
    address = f"127.0.0.1:{free_ports(1)[0]}"
    fleet = started_fleet.StartedFleet()
    try:
        tokens = fleet.path("tokens")
        with open(tokens, "w") as f:
            f.write(f"{OWNING} owning admin\n{OWNING_WORKER} owning worker\n{ASKING_WORKER} asking worker\n")
            f.writelines(f"{token} asking admin\n" for token in ASKING)
        fleet.start_server(0, http=address, environment={"CHAINFLEET_TOKEN_FILE": tokens})
        fleet.environment = {"CHAINFLEET_TOKEN": OWNING}
        fleet.wait_until_served()
        things = fill_both(fleet, address)
        calls = grpc_calls(fleet.addresses[0].rpartition(":")[2]) + http_calls(address)
        wrong = measure_all([call for call in calls if re.search(options.calls, call.label)], things, options.pairs)
    finally:
        fleet.close()
    if wrong:
        sys.exit("the time or the answer tells whether another tenant has it: " + ", ".join(wrong))


if __name__ == "__main__":
    main()
