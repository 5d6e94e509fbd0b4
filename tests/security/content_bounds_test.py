"""Small content that unpacks to much is refused before it takes memory, and a large job spec delays nobody."""
import concurrent.futures
import threading
import time
import unittest
import zipfile
import zlib

import fleet as fleets
from coordinator import grpc, message

JOB = """
name: large
model: {layers: [%s]}
dataset: {name: tiny}
sampler: {sgld: {}}
learning_rate: {constant: 0.01}
batch_size: 2
num_epochs: 4
prior: {gaussian: {precision: 1, layers: {%s}}}
"""
SWEEP = """
name: swept
model: {potential: {gaussian: {dimension: 512, covariance: [%s]}}}
sampler: {sgld: {}}
step_size: {constant: 0.1}
num_steps: 100
collect: {every_steps: 10}
sweep: {temperature: [%s]}
"""
MIB = 1 << 20


class Content(unittest.TestCase):
    """A server alone, whose uploads may hold 4096 MiB."""

    @classmethod
    def setUpClass(cls):
        cls.fleet = fleets.Fleet(workers=0)
        cls.fleet.up("--allow-modules")
        cls.addClassCleanup(cls.fleet.close)
        with open(cls.fleet.path("tiny.csv"), "w") as f:
            f.write("1,2,0\n3,4,1\n" * 4)
        cls.fleet.run("dataset", "put", "tiny", cls.fleet.path("tiny.csv"), check=True)

    def grown(self, call):
        """By how many bytes the server's peak of resident memory exceeds what it had before `call`."""
        status = f"/proc/{self.fleet.pid('server')}/"

        def value(key):
            with open(status + "status") as f:
                return next(int(line.split()[1]) << 10 for line in f if line.startswith(key))

        with open(status + "clear_refs", "w") as f:
            f.write("5")  # the peak begins anew
        before = value("VmRSS")
        call()
        return value("VmHWM") - before

    def cost(self, call):
        """How far `call` raises that peak, and the longest wait of another caller meanwhile."""
        waits, done = [], threading.Event()

        def ask():
            while not done.is_set():
                began = time.monotonic()
                self.fleet.run("get", "jobs", check=True)
                waits.append(time.monotonic() - began)

        def beside_it():
            with concurrent.futures.ThreadPoolExecutor(1) as other:
                asked = other.submit(ask)
                try:
                    call()
                finally:
                    done.set()
                asked.result()  # raises the error of a call that failed

        return self.grown(beside_it), max(waits)

    def submitted(self, text):
        """A dry run of the job file."""
        path = self.fleet.path("large.yaml")
        with open(path, "w") as f:
            f.write(text)
        return self.fleet.run("submit", "-f", path, "--dry-run")

    def refused(self, *words, name, files):
        done = self.fleet.run("dataset", "put", name, *files)
        self.assertNotEqual(done.returncode, 0, done.stdout)
        for word in words:
            self.assertIn(word, done.stderr)

    def test_a_gzip_that_unpacks_beyond_the_budget_takes_no_memory(self):
        path = self.fleet.path("bomb.gz")
        packer = zlib.compressobj(9, zlib.DEFLATED, -15)
        block = packer.compress(bytes(16 * MIB)) + packer.flush(zlib.Z_FULL_FLUSH)  # which depends on nothing before it
        with open(path, "wb") as f:
            f.write(b"\x1f\x8b\x08" + bytes(7) + block * 260)
        self.assertLess(self.grown(lambda: self.refused("MiB for them", name="bomb", files=[path, path])), 64 * MIB)

    def test_a_module_of_a_mebibyte_that_unpacks_to_a_gibibyte_takes_no_memory(self):
        path = self.fleet.path("bomb.pt")
        with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
            archive.writestr("bomb/data.pkl", "")
            with archive.open("bomb/code/bomb.py", "w") as member:
                for _ in range(64):
                    member.write(bytes(16 * MIB))

        def put():
            done = self.fleet.run("model", "put", "bomb", path)
            self.assertNotEqual(done.returncode, 0, done.stdout)
            self.assertIn("unpacks to", done.stderr)

        self.assertLess(self.grown(put), 64 * MIB)

    def test_a_zarr_of_a_few_bytes_takes_no_memory(self):
        path = self.fleet.path("bomb.zip")
        array = '{"zarr_format": 2, "shape": [%d], "chunks": [%d], "dtype": "|u1", "compressor": null, "fill_value": 1, "order": "C", "filters": null}'
        with zipfile.ZipFile(path, "w") as archive:
            archive.writestr("x/.zarray", array % (1 << 32, 1 << 30))
            archive.writestr("y/.zarray", array % (5, 5))
        self.assertLess(self.grown(lambda: self.refused("MiB for them", name="bomb", files=[path])), 64 * MIB)

    def test_a_line_of_a_million_columns_is_refused(self):
        path = self.fleet.path("wide.csv")
        with open(path, "w") as f:
            f.write("1," * 1_200_000 + "1\n")
        self.assertLess(self.grown(lambda: self.refused("the most is 65537", name="wide", files=[path])), 64 * MIB)
        self.assertEqual(len(self.fleet.run("dataset", "list", check=True).stdout.splitlines()), 2)

    def test_fields_of_two_bytes_take_no_memory(self):
        """Parsed, each takes some hundred bytes."""
        tensors, unknown = b"\x2a\x00" * (7 * MIB), b"\xf8\x3f\x01" * (5 * MIB)
        with grpc.insecure_channel(self.fleet.address, [("grpc.max_send_message_length", -1)]) as channel:

            def stream(path, message):
                return lambda: list(channel.stream_stream(path)(iter([message]), timeout=60))

            def unary(path, message):
                return lambda: channel.unary_unary(path)(message, timeout=60)

            for call in (unary("/inference.GRPCInferenceService/ModelInfer", tensors),
                         stream("/chainfleet.v1.JobService/PutDataset", unknown)):

                def refused(call=call):
                    with self.assertRaises(grpc.RpcError) as error:
                        call()
                    self.assertEqual(error.exception.code(), grpc.StatusCode.RESOURCE_EXHAUSTED)

                self.assertLess(self.grown(refused), 64 * MIB)
            answers = []
            asked = stream("/inference.GRPCInferenceService/ModelStreamInfer", b"\x1a\x05seven" + tensors)
            self.assertLess(self.grown(lambda: answers.extend(asked())), 64 * MIB)
            self.assertIn(b"once it is parsed", answers[0])
            self.assertIn(b"seven", answers[0], "the id of the refused request")

    def test_a_spec_of_unknown_layers_delays_nobody(self):
        layer = "{linear: {outputs: 2}}"
        for _ in range(6):
            layer = "{residual: {branch: [%s]}}" % layer
        layers = ", ".join([layer] * 500 + ["{linear: {}}"])
        unknown = ", ".join(f"n{i}: 1" for i in range(4000))

        def submit():
            refused = self.submitted(JOB % (layers, unknown))
            self.assertNotEqual(refused.returncode, 0)
            self.assertIn("the model has no such layer", refused.stderr)

        memory, wait = self.cost(submit)
        self.assertLess(memory, 64 * MIB)
        self.assertLess(wait, 5)

    def test_a_sweep_over_a_large_covariance_delays_nobody(self):
        covariance = ",".join("1" if i % 513 == 0 else "0" for i in range(512 * 512))
        temperatures = ",".join(str(1 + i) for i in range(250))

        def submit():
            done = self.submitted(SWEEP % (covariance, temperatures))
            self.assertEqual(done.returncode, 0, done.stderr)

        memory, wait = self.cost(submit)
        self.assertLess(memory, 256 * MIB)
        self.assertLess(wait, 5)

    def test_millions_of_layers_take_no_more_than_a_connection_may(self):
        model = b"\x32\x00" * (7 * MIB)  # field 6, an empty layer
        request = message(f1=message(f2=model), f3=1)
        with grpc.insecure_channel(self.fleet.address, [("grpc.max_send_message_length", -1)]) as channel:

            def create():
                with self.assertRaises(grpc.RpcError) as error:
                    channel.unary_unary("/chainfleet.v1.JobService/CreateJob")(request, timeout=60)
                self.assertIn(error.exception.code(), (grpc.StatusCode.RESOURCE_EXHAUSTED, grpc.StatusCode.INVALID_ARGUMENT))

            self.assertLess(self.grown(create), 576 * MIB)  # 512 MiB of a connection, and what else happens
