"""Objects that were damaged on the disk, and put right again."""
import glob
import json
import os
import unittest
import urllib.request

import fleet as fleets
from public_client import triton  # noqa: F401  first: it says where the next one is
import numpy

JOB = """
name: repaired
model: {builtin: softmax_regression}
dataset: {name: fashion}
prior: {gaussian: {precision: 10}}
sampler: {sgld: {}}
learning_rate: {constant: 0.01}
batch_size: 50
num_epochs: 2
chains: 1
collect: {every_steps: 2}
seed: 7
"""
WALK = """
name: walk
model: {potential: {gaussian: {dimension: 3}}}
sampler: {sgld: {}}
step_size: {constant: 0.1}
num_steps: 200
chains: 4
collect: {every_steps: 2, segment_draws: 10}
seed: 7
"""
ASKED_AT_MOST = 500


def read(path):
    with open(path, "rb") as f:
        return f.read()


def write(path, content):
    with open(path, "wb") as f:
        f.write(content)


def flip_a_bit(path):
    """Returns the bytes that were there."""
    right = read(path)
    write(path, right[:-1] + bytes([right[-1] ^ 1]))
    return right


class Repair(unittest.TestCase):
    def setUp(self):
        self.fleet = fleets.Fleet(workers=1)
        self.addCleanup(self.fleet.close)
        self.fleet.up()
        self.fleet.put_fashion("fashion", 200)

    def corrupt_segments(self):
        page = urllib.request.urlopen(f"http://{self.fleet.metrics_address}/metrics").read().decode()
        return next(float(line.split()[1]) for line in page.splitlines() if line.startswith("chainfleet_corrupt_segments "))

    def assert_corrupt_segments_become(self, wanted):
        self.assertTrue(any(self.corrupt_segments() == wanted for _ in range(ASKED_AT_MOST)), self.fleet.logs())

    def test_a_draw_put_back_from_a_backup_counts_again(self):
        job = self.fleet.submit(JOB)
        self.fleet.run("wait", job, "--timeout", "120s", check=True)
        path = self.fleet.path("blobs", self.fleet.json("get", "draws", job)["segments"][0]["segment"]["object"]["name"])
        right = flip_a_bit(path)
        export = ["export", job, "--format", "npz", "--output", self.fleet.path("draws.npz")]
        self.assertEqual(self.fleet.run(*export).returncode, 6)
        self.assert_corrupt_segments_become(1)
        write(path, right)
        self.fleet.kill("server")
        self.fleet.up()
        self.assert_corrupt_segments_become(0)
        self.assertNotIn("left out", self.fleet.run(*export, check=True).stderr)
        lines = [json.loads(line) for line in self.fleet.logged()["server.log"].splitlines() if '"corrupt mark removed' in line]
        self.assertEqual([(line["job"], line["chain"], line["lease_epoch"], line["worker"]) for line in lines], [(job, 0, 1, "worker-0")])

    def test_a_job_without_a_network_loses_the_draws_of_a_lost_object_and_no_other(self):
        """390 of 400 draws come out, and the loss is marked, counted and said."""
        job = self.fleet.submit(WALK)
        self.fleet.run("wait", job, "--timeout", "120s", check=True)
        segments = self.fleet.json("get", "draws", job)["segments"]
        self.assertEqual(len(segments), 40)
        lost = segments[17]["segment"]
        os.remove(self.fleet.path("blobs", lost["object"]["name"]))
        done = self.fleet.run("export", job, "--format", "npz", "--output", self.fleet.path("draws.npz"))
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertRegex(done.stderr, r"\b10 draws")
        with numpy.load(self.fleet.path("draws.npz")) as draws:
            theta = draws["theta/theta"]
        self.assertEqual(theta.shape, (4, 100, 3))
        self.assertEqual(int((~numpy.isnan(theta).any(axis=2)).sum()), 390)
        self.assert_corrupt_segments_become(1)
        marked = [s for s in self.fleet.json("get", "draws", job)["segments"] if s.get("corrupt")]
        self.assertEqual([s["segment"]["digest"] for s in marked], [lost["digest"]])

    def test_a_damaged_data_set_put_again_is_whole(self):
        (shard,) = glob.glob(self.fleet.path("blobs", "*", "datasets", "*"))
        right = flip_a_bit(shard)
        self.fleet.put_fashion("fashion", 200)
        self.assertTrue(read(shard) == right)
        self.fleet.run("wait", self.fleet.submit(JOB), "--timeout", "120s", check=True)


if __name__ == "__main__":
    unittest.main(verbosity=2)
