"""The main job through the real binaries, with real deaths in the middle."""
import json
import math
import os
import unittest
import zipfile

import fleet as fleets

JOB = """
name: {name}
model: {{builtin: mlp, hidden: [64]}}
dataset: {{name: fashion}}
prior: {{gaussian: {{precision: 10}}}}
sampler: {{emcmc: {{eta: 4.0e-4}}}}
learning_rate: {{cyclical: {{initial: 0.1, cycles: 4}}}}
temperature: 1.0e-4
batch_size: 50
num_epochs: {epochs}
burn_in: {{cycles: 1}}
chains: 4
collect: {{last_epochs_of_cycle: {keep}, kinds: [theta, theta_a]}}
seed: 7
"""


def check_draws(test, fleet, job, per_chain):
    """Every committed draw readable with its checksum, indices gapless, parents linked, epochs never falling."""
    test.assertEqual(fleet.json("get", "jobs", job)["state"], "SUCCEEDED")
    chains = {}
    for record in fleet.json("get", "draws", job)["segments"]:
        chains.setdefault(int(record["chain"].get("index", 0)), []).append(record)
    test.assertEqual(sorted(chains), [0, 1, 2, 3])
    for records in chains.values():
        index, parent, epoch = 0, "0" * 64, 0
        for record in records:
            segment = record["segment"]
            test.assertEqual(int(segment.get("first_index", 0)), index)
            test.assertEqual(segment["parent_digest"], parent)
            test.assertGreaterEqual(int(record["lease_epoch"]), epoch)
            index, parent, epoch = index + len(segment["steps"]), segment["digest"], int(record["lease_epoch"])
        test.assertEqual(index, per_chain)
    fleet.run("export", job, "--format", "npz", "--output", fleet.path("draws.npz"), check=True)
    fleet.run("export", job, "--format", "zarr", "--output", fleet.path("draws.zarr"), check=True)
    with zipfile.ZipFile(fleet.path("draws.npz")) as npz:
        for name in npz.namelist():
            if name == "manifest.json":
                continue
            rows = zarr_rows(fleet.path("draws.zarr", name.removesuffix(".npy")))
            test.assertGreater(len(rows), 0, name)
            test.assertTrue(npz.read(name).endswith(rows), name)


def zarr_rows(folder):
    """The bytes of an array of Zarr version 2, without the padding of its last chunk."""
    with open(os.path.join(folder, ".zarray")) as f:
        array = json.load(f)
    item, axes, chunks = int(array["dtype"][-1]), array["shape"], array["chunks"]
    rows = b""
    for number in range(-(-axes[0] // chunks[0])):
        with open(os.path.join(folder, ".".join([str(number)] + ["0"] * (len(axes) - 1))), "rb") as f:
            rows += f.read()
    return rows[:item * math.prod(axes)]


class Journeys(unittest.TestCase):
    def setUp(self):
        self.fleet = fleets.Fleet()
        self.addCleanup(self.fleet.close)
        self.fleet.up()
        self.fleet.put_fashion("fashion", 2000)

    def test_a_killed_worker_loses_no_draw(self):
        job = self.fleet.submit(JOB.format(name="killed-worker", epochs=120, keep=10))
        self.fleet.wait_for_draws(job, 8)
        self.fleet.kill("worker-0")
        self.fleet.run("wait", job, "--timeout", "240s", check=True)
        check_draws(self, self.fleet, job, per_chain=30)
        chains = self.fleet.json("get", "chains", job)["chains"]
        self.assertTrue(any(int(chain["lease_epoch"]) > 1 for chain in chains), "no chain moved: the worker died too late")

    def test_a_killed_server_goes_on_where_it_was(self):
        job = self.fleet.submit(JOB.format(name="killed-server", epochs=120, keep=10))
        before = self.fleet.wait_for_draws(job, 8)
        self.fleet.kill("server")
        self.fleet.up()
        after = self.fleet.json("get", "jobs", job)
        self.assertGreaterEqual(int(after["num_draws"]), int(before["num_draws"]))
        self.fleet.run("wait", job, "--timeout", "240s", check=True)
        check_draws(self, self.fleet, job, per_chain=30)

    def test_findings_of_an_ended_job_outlive_a_killed_server(self):
        job = self.fleet.submit(JOB.format(name="findings", epochs=40, keep=2))
        self.fleet.run("wait", job, "--timeout", "240s", check=True)
        before = self.fleet.json("describe", job)
        self.assertTrue(before["diagnostics"])
        self.assertIn("report", before["chains"][0]["stats"])
        self.fleet.kill("server")
        self.fleet.up()
        self.assertEqual(self.fleet.json("describe", job), before)
        self.fleet.run("report", job, "--output", self.fleet.path("report.html"), check=True)
        with open(self.fleet.path("report.html"), encoding="utf-8") as page:
            self.assertIn("R-hat", page.read())

    def test_every_point_of_a_sweep_is_a_posterior_of_its_own(self):
        text = JOB.format(name="swept", epochs=8, keep=1).replace("chains: 4", "chains: 2\nsweep: {temperature: [1.0e-4, 0.01], eta: [4.0e-4, 0.01]}")
        job = self.fleet.submit(text)
        self.fleet.run("wait", job, "--timeout", "240s", check=True)
        refused = self.fleet.run("evaluate", job, "--dataset", "fashion")
        self.assertEqual(refused.returncode, 1, refused.stderr)
        self.assertIn("3: temperature=0.01,eta=0.01", refused.stderr)
        scores = [self.fleet.json("evaluate", job, "--dataset", "fashion", "--point", point)
                  for point in ("0", "temperature=0.01,eta=0.01")]
        self.assertEqual([s["point"] for s in scores], ["temperature=0.0001,eta=0.0004", "temperature=0.01,eta=0.01"])
        for s in scores:
            self.assertEqual(int(s["draws_in_version"]), 6)  # 2 chains, 3 cycles after burn-in
        self.assertNotEqual(scores[0]["scores"], scores[1]["scores"])
        everything = self.fleet.json("evaluate", job, "--dataset", "fashion", "--point", "all")["evaluations"]
        self.assertEqual([everything[0]["scores"], everything[3]["scores"]], [s["scores"] for s in scores])
        version = str(self.fleet.json("alias", "set", "champion", job)["version"])
        named = self.fleet.json("evaluate", "champion", "--dataset", "fashion", "--point", "all")["evaluations"]
        self.assertEqual([(e["version"], e["scores"]) for e in named], [(version, e["scores"]) for e in everything])
        self.fleet.run("export", job, "--point", "2", "--format", "safetensors", "--output", self.fleet.path("point"), check=True)
        self.assertEqual(sorted(os.listdir(self.fleet.path("point"))), ["chain-0004.safetensors", "chain-0005.safetensors", "manifest.json"])

    def test_predictions_average_over_the_draws(self):
        job = self.fleet.submit(JOB.format(name="scores", epochs=40, keep=4))
        self.fleet.run("wait", job, "--timeout", "240s", check=True)
        self.fleet.put_noise("noise", 1000)
        rows = {row["what"]: row for row in self.fleet.json("evaluate", job, "--dataset", "fashion", "--ood", "noise")["scores"]}
        self.assertEqual(sorted(rows), ["all", "single theta", "single theta_a", "theta", "theta_a"])
        self.assertLess(rows["all"]["nll"], rows["single theta"]["nll"])
        self.assertGreater(rows["all"]["accuracy"], 0.8)
        self.assertGreater(rows["all"]["ood_auroc"], 0.6)
        self.assertGreater(rows["all"]["entropy_divergence"], 0.1)
        same = {row["what"]: row for row in self.fleet.json("evaluate", job, "--dataset", "fashion", "--ood", "fashion")["scores"]}
        self.assertAlmostEqual(same["all"]["ood_auroc"], 0.5, places=9)
        self.assertAlmostEqual(same["all"]["entropy_divergence"], 0, places=9)
        described = self.fleet.run("describe", job, check=True).stdout
        for word in ("N", "2000", "SUCCEEDED", job):
            self.assertIn(word, described)


if __name__ == "__main__":
    unittest.main(verbosity=2)
