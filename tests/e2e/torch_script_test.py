"""A user's TorchScript module from its file to a prediction, and modules that are wrong."""
import os
import subprocess
import unittest

import fleet as fleets
from module_process import DONE, REFUSED, loaded

JOB = """
name: scripted
model: {torchscript: NAME}
dataset: {name: fashion}
prior: {gaussian: {precision: 10}}
sampler: {sgld: {}}
learning_rate: {constant: 0.1}
temperature: 1.0e-4
batch_size: 50
num_epochs: 10
chains: 2
augmentation: {crop_padding: 2, flip: true}
collect: {last_epochs_of_cycle: 2}
seed: 7
"""

BESIDE = """
name: beside
model: {potential: {gaussian: {dimension: 2, precision: 1}}}
sampler: {sgld: {}}
step_size: {constant: 0.1}
num_steps: 1000
chains: 2
collect: {every_steps: 100}
"""


class TorchScript(unittest.TestCase):
    def setUp(self):
        self.fleet = fleets.Fleet()
        self.addCleanup(self.fleet.close)
        self.fleet.up("--allow-modules")
        self.fleet.put_fashion("fashion", 1000)

    def put(self, name, *sizes, body=None):
        path = self.fleet.path(name + ".pt")
        environment = {**os.environ, "BODY": body} if body else None
        subprocess.run([os.environ["CHAINFLEET_SCRIPT_FILE"], path, *map(str, sizes)], check=True, env=environment)
        self.assertIn("TorchScript is deprecated", self.fleet.run("model", "put", name, path, check=True).stderr)
        return path

    def test_a_module_samples_and_predicts(self):
        path = self.put("mine", 784, 32, 10)
        models = self.fleet.json("model", "list")["models"]
        self.assertEqual([model["name"] for model in models], ["mine"])
        job = self.fleet.submit(JOB.replace("NAME", "mine"))
        self.fleet.run("wait", job, "--timeout", "240s", check=True)
        described = self.fleet.run("describe", job, check=True).stdout
        self.assertIn('torchscript: "mine"', described)
        self.assertIn("crop_padding: 2", described)
        self.assertIn('precision: "float32"', described)
        rows = {row["what"]: row for row in self.fleet.json("evaluate", job, "--dataset", "fashion")["scores"]}
        self.assertGreater(rows["all"]["accuracy"], 0.5)
        self.assertLessEqual(rows["all"]["nll"], rows["single theta"]["nll"])
        refused = self.fleet.run("delete", "model", "mine", "--yes")
        self.assertEqual(refused.returncode, 1)
        self.assertIn(job, refused.stderr)
        with open(path, "rb") as f:
            damaged = f.read()[:-100]
        with open(path, "wb") as f:
            f.write(damaged)
        refused = self.fleet.run("model", "put", "broken", path)
        self.assertEqual(refused.returncode, 1, refused.stderr)
        self.assertIn("TorchScript", refused.stderr)

    def test_a_module_is_looked_at_in_a_process_of_its_own(self):
        good = self.put("mine", 784, 10)
        bad = self.put("curious", 784, 10, body="return self.logits(x) + torch.empty([1])")
        with open(bad, "rb") as f:
            cut = f.read()[:-100]
        with open(self.fleet.path("cut.pt"), "wb") as f:
            f.write(cut)
        for path, kind, text in ((good, DONE, ""), (bad, REFUSED, "uses aten::empty"), (self.fleet.path("cut.pt"), REFUSED, "does not load")):
            answered, why = loaded(path)
            self.assertEqual(answered, kind, why)
            self.assertIn(text, why)
        job = self.fleet.submit(JOB.replace("NAME", "curious"))
        self.assertEqual(self.fleet.run("wait", job, "--timeout", "60s").returncode, 1)
        chain = self.fleet.json("get", "chains", job)["chains"][0]
        self.assertIn("model.torchscript: uses aten::empty", chain["reason"])
        self.assertEqual(int(chain["lease_epoch"]), 1, "no other worker is asked")

    def test_cancelling_a_module_that_never_ends_frees_what_runs_beside_it(self):
        self.put("endless", 784, 10, body="n = 0\n  while n >= 0:\n    n = n * 1\n  return self.logits(x)")
        endless = self.fleet.submit(JOB.replace("NAME", "endless").replace("chains: 2", "chains: 1"))
        for _ in range(20):  # with a chain on each worker, until one of these does not answer
            beside = self.fleet.submit(BESIDE)
            if self.fleet.run("wait", beside, "--timeout", "2s").returncode == 5:
                break
        self.fleet.run("cancel", endless, check=True)
        self.fleet.run("wait", beside, "--timeout", "20s", check=True)
        self.assertIn("all chains handed back, exiting", self.fleet.logs())

    def test_a_module_of_other_shapes_fails_its_job_at_once(self):
        self.put("narrow", 784, 3)
        job = self.fleet.submit(JOB.replace("NAME", "narrow"))
        self.assertEqual(self.fleet.run("wait", job, "--timeout", "60s").returncode, 1)
        chains = self.fleet.json("get", "chains", job)["chains"]
        for chain in chains:
            self.assertEqual(chain["state"], "FAILED")
            self.assertIn("model.torchscript: forward of inputs [3, 1, 28, 28] gives Float [3, 3]", chain["reason"])
            self.assertEqual(int(chain["lease_epoch"]), 1)
        missing = self.fleet.submit_status(JOB.replace("NAME", "nowhere"))
        self.assertEqual(missing.returncode, 3, missing.stderr)
        self.assertIn("model.torchscript", missing.stderr)


if __name__ == "__main__":
    unittest.main()
