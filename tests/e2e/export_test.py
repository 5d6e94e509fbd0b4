"""Draws as other programs read them: what is exported predicts what the server predicts."""
import json
import os
import random
import subprocess
import unittest
import zipfile

import fleet as fleets
from public_client import triton  # noqa: F401  first: it says where the next one is
from started_fleet import StartedFleet
import numpy

JOB = """
name: flowers
model: {builtin: softmax_regression}
dataset: {name: flowers}
prior: {gaussian: {precision: 0.1}}
sampler: {random_walk: {}}
step_size: {constant: 0.01}
num_steps: 400
burn_in: {steps: 100}
batch_size: 60
chains: 3
collect: {every_steps: 2}
seed: 4
"""


LARGE = """
name: large
model: {potential: {gaussian: {dimension: 1000000}}}
sampler: {sgld: {}}
step_size: {constant: 0.1}
num_steps: 30
chains: 2
seed: 7
"""
MOST_RESIDENT = 120 << 10  # KiB; the draws are 240 MB


class LargeExport(unittest.TestCase):
    def test_draws_stream_through_little_memory_also_across_a_death_of_the_server(self):
        fleet = StartedFleet()
        self.addCleanup(fleet.close)
        fleet.start_server()
        fleet.wait_until_served()
        for worker in range(2):
            fleet.start_worker(worker)
        job = fleet.submit(LARGE)
        fleet.run("wait", job, "--timeout", "240s", check=True)

        def export(name, amid=lambda: None):
            process = subprocess.Popen([os.path.join(fleets.BIN, "chainfleet"), "export", job, "--format", "zarr", "-o", fleet.path(name)],
                                       stderr=subprocess.PIPE, env={**os.environ, "CHAINFLEET_ADDRESS": fleet.address})
            amid()
            with process.stderr:
                said = process.stderr.read().decode()
            _, status, used = os.wait4(process.pid, 0)
            process.returncode = os.waitstatus_to_exitcode(status)
            self.assertEqual(process.returncode, 0, said)
            self.assertLess(used.ru_maxrss, MOST_RESIDENT)
            return {os.path.relpath(os.path.join(folder, file), fleet.path(name)): os.path.join(folder, file)
                    for folder, _, files in os.walk(fleet.path(name)) for file in files}

        def die_and_come_back():
            while not os.path.isdir(fleet.path("cut")):  # the export has begun
                fleet.run("get", "jobs", check=True)
            fleet.start_server()  # in place of the one that it kills

        whole, cut = export("whole"), export("cut", die_and_come_back)
        self.assertEqual(whole.keys(), cut.keys())
        for file in whole:
            with open(whole[file], "rb") as one, open(cut[file], "rb") as other:
                self.assertEqual(one.read(), other.read(), file)
        self.assertGreaterEqual(sum(os.path.getsize(path) for path in whole.values()), 2 * 30 * 4_000_000)


class Export(unittest.TestCase):
    def setUp(self):
        self.fleet = fleets.Fleet()
        self.addCleanup(self.fleet.close)
        self.fleet.up()
        source = random.Random(8)
        with open(self.fleet.path("flowers.csv"), "w") as f:
            f.write("a,b,kind\n")
            for i in range(60):
                f.write(f"{source.gauss(300 + 50 * (i % 3), 40)},{source.gauss(0.01 * (i % 3), 0.01)},{i % 3}\n")
        self.fleet.run("dataset", "put", "flowers", self.fleet.path("flowers.csv"), "--target", "kind", "--class-names", "a,b,c", check=True)
        self.job = self.fleet.submit(JOB)
        self.fleet.run("wait", self.job, "--timeout", "240s", check=True)

    def test_a_plain_mean_over_exported_draws_on_raw_inputs_is_the_served_prediction(self):
        x = numpy.array([[310.0, 0.002], [395.0, 0.03]], dtype=numpy.float32)
        numpy.save(self.fleet.path("x.npy"), x)
        served = self.fleet.json("predict", self.job, "--input", self.fleet.path("x.npy"))
        self.fleet.run("export", self.job, "--format", "npz", "-o", self.fleet.path("draws.npz"), check=True)
        with numpy.load(self.fleet.path("draws.npz")) as draws, zipfile.ZipFile(self.fleet.path("draws.npz")) as archive:
            manifest = json.loads(archive.read("manifest.json"))
            self.assertEqual(manifest["class_names"], ["a", "b", "c"])
            names = [parameter["name"] for parameter in manifest["parameters"]]
            weight, bias = (draws[name] for name in sorted(names, key=lambda name: -draws[name].ndim))
            self.assertEqual(weight.shape[:2], (3, 150), "a draw that was held is there as often")
            z = (x * manifest["inputs"]["scale"] - draws["input_mean"]) / draws["input_stddev"]
        logits = numpy.einsum("csko,no->cskn" if weight.shape[-1] == 2 else "csok,no->cskn", weight, z) + bias[..., None]
        p = numpy.exp(logits - logits.max(axis=2, keepdims=True))
        mean = (p / p.sum(axis=2, keepdims=True)).mean(axis=(0, 1)).T
        numpy.testing.assert_allclose(mean.ravel(), served["scores"]["mean_probability"], atol=1e-6)


if __name__ == "__main__":
    unittest.main(verbosity=2)
