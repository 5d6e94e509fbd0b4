#!/usr/bin/env python3
"""Costs of the Python package: its import, an upload of 1 GB from NumPy, and memory while 2 GB of draws are read.

  CHAINFLEET_BIN=build/release/bin /usr/bin/python3 -B tests/bench/python_package.py [import|upload|draws]...

The upload takes turns with a plain gRPC stream of the same bytes; both go to a chainfleet server and to a server that
drops all that it gets. Python files are compiled before the imports are timed.

Exits 1 if the import takes 0.3 s or more, an upload has less than 0.8 of the stream's speed, or a reader takes 300 MiB or more.
"""
import concurrent.futures
import os
import statistics
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "support"))
os.environ.setdefault("CHAINFLEET_BIN", os.path.join(HERE, "..", "..", "build", "release", "bin"))

import python_package  # first: it says where the next ones are
import chainfleet as cf
import fleet as fleets
import grpc
import numpy
from chainfleet import arrays, connection
from chainfleet.v1 import jobs_pb2, types_pb2

ROUNDS = 6
LONGEST_IMPORT, LEAST_SPEED, MOST_MEMORY = 0.3, 0.8, 300  # seconds, of a plain stream, MiB
# Draws of 1 MB, several to an object of the store, and of 64 MB. 2 GB of each.
DRAWS = {"1 MB": ((498, 498), 2000), "64 MB": ((3950, 3950), 32)}
READ = """import sys
sys.path.insert(0, {support!r})
import python_package
import chainfleet as cf
draws = cf.connect({address!r}).job({job!r}).draws()
size = sum(value.nbytes for draw in draws for value in draw.parameters.values())
with open("/proc/self/status") as status:
    peak = next(int(line.split()[1]) for line in status if line.startswith("VmHWM"))
print(f"{{size / 1e9:.2f}} GB in {{len(draws):,}} draws: peak", peak >> 10, "MiB")
"""


def imports():
    """Whether the import is short enough."""
    with tempfile.TemporaryDirectory() as cache:
        environment = {**os.environ, "PYTHONPATH": python_package.PACKAGE, "PYTHONPYCACHEPREFIX": cache, "PYTHONDONTWRITEBYTECODE": ""}
        programs = {"python alone": "pass", "import chainfleet": "import chainfleet", "with all that connect needs": "import chainfleet; chainfleet.connect",
                    "import numpy": "import numpy"}
        taken = {name: [] for name in programs}
        for _ in range(21):
            for name, program in programs.items():
                begin = time.perf_counter()
                subprocess.run([sys.executable, "-c", program], env=environment, check=True)
                taken[name].append(time.perf_counter() - begin)
        alone = statistics.median(taken["python alone"])
        for name, times in taken.items():
            print(f"{name:28s} {1e3 * (statistics.median(times) - (name != 'python alone') * alone):6.1f} ms")
        return statistics.median(taken["with all that connect needs"]) - alone < LONGEST_IMPORT


class Sink(grpc.GenericRpcHandler):
    """Takes every upload and keeps nothing."""

    def service(self, details):
        return grpc.stream_unary_rpc_method_handler(lambda parts, context: [None for _ in parts] and b"")


def serve_sink():
    server = grpc.server(concurrent.futures.ThreadPoolExecutor(2), handlers=[Sink()])
    print(server.add_insecure_port("127.0.0.1:0"), flush=True)
    server.start()
    sys.stdin.read()


def by_package(address, x, y):
    fleet = cf.Fleet(connection.Connection([address], "", 30))
    begin = time.perf_counter()
    fleet.put_dataset("big", x, y, progress=False)
    taken = time.perf_counter() - begin
    fleet.close()
    return taken


def by_plain_stream(address, x, y):
    """As a client without the package: its files are in memory, in pieces of the same size."""
    files = {name: list(arrays.chunks(parts, 512 << 10)) for name, parts in arrays.Data(x, y.astype(numpy.int32)).files().items()}

    def messages():
        yield jobs_pb2.PutDatasetRequest(header={"name": "big", "num_files": 2})
        for name, pieces in files.items():
            yield jobs_pb2.PutDatasetRequest(file={"file_name": name, "size_bytes": sum(map(len, pieces))})
            for piece in pieces:
                yield jobs_pb2.PutDatasetRequest(data=piece)

    serialize = jobs_pb2.PutDatasetRequest.SerializeToString
    with grpc.insecure_channel(address) as channel:
        grpc.channel_ready_future(channel).result()
        begin = time.perf_counter()
        channel.stream_unary("/chainfleet.v1.JobService/PutDataset", serialize, types_pb2.Dataset.FromString)(messages())
        return time.perf_counter() - begin


def upload(fleet):
    """Whether all uploads are fast enough."""
    fast = True
    x, y = numpy.random.default_rng(1).random((250_000, 1000), numpy.float32), numpy.arange(250_000) % 10
    sink = subprocess.Popen([sys.executable, "-B", os.path.abspath(__file__), "sink"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    try:
        for where, address in (("chainfleet server", fleet.address), ("server that drops all", f"127.0.0.1:{sink.stdout.readline().strip()}")):
            taken = {by_package: [], by_plain_stream: []}
            for turn in range(ROUNDS):
                for way in list(taken)[::1 if turn % 2 else -1]:
                    x[0, 0] += 1  # content that the server does not have
                    taken[way].append(way(address, x, y))
                    if address == fleet.address:
                        fleet.run("delete", "dataset", "big", "--yes", check=True)
            package, plain = map(statistics.median, taken.values())
            print(f"1 GB to a {where}: package {package:.2f} s, plain stream {plain:.2f} s; its speed is {plain / package:.2f} of the plain one's")
            fast &= plain / package >= LEAST_SPEED
    finally:
        sink.communicate()
    return fast


def draws(fleet):
    """Whether all readers are small enough."""
    small = True
    x, y = numpy.random.default_rng(1).random((64, 2)), numpy.arange(64) % 2
    with cf.connect(fleet.address) as connected:
        for name, (hidden, count) in DRAWS.items():
            job = connected.sample(cf.Model(builtin="mlp", hidden=hidden), (x, y), sampler=cf.SGLD(), steps=count, learning_rate=1e-6,
                                   collect=cf.Collect(every_steps=1), name="draws", seed=1, progress=False)
            script = READ.format(support=os.path.join(HERE, "..", "support"), address=fleet.address, job=job.id)
            told = subprocess.run([sys.executable, "-Bc", script], check=True, stdout=subprocess.PIPE, text=True).stdout.strip()
            print(f"draws of {name}:", told)
            small &= int(told.split()[-2]) < MOST_MEMORY
            job.delete()
    return small


def main():
    chosen = sys.argv[1:] or ["import", "upload", "draws"]
    if chosen == ["sink"]:
        return serve_sink()
    kept = "import" not in chosen or imports()
    if chosen == ["import"]:
        return int(not kept)
    fleet = fleets.Fleet(workers=1, lease_seconds=15)
    try:
        fleet.up(threads=2)
        for part in (upload, draws):
            if part.__name__ in chosen:
                kept &= part(fleet)
    finally:
        fleet.close()
    return int(not kept)


if __name__ == "__main__":
    sys.exit(main())
