"""Jobs whose settings, layers or data do not fit: refused at submit with the field's path. And one that fits, and diverges."""
import json
import math
import unittest
import zipfile

import bad_input_test
from potentials_test import read_draws

GOOD = bad_input_test.GOOD


class Settings(bad_input_test.Refusals):
    def csv(self, text):
        path = self.fleet.path("table.csv")
        with open(path, "w") as f:
            f.write(text)
        return path

    def test_a_setting_outside_its_domain(self):
        self.refused(2, "bad.yaml:5", "sampler.emcmc.eta", "above 0", job=GOOD.replace("sgld: {}", "emcmc: {eta: 0}"))

    def test_too_few_batches_for_a_penalty(self):
        text = GOOD.replace("sgld: {}", "penalty_mh: {num_batches: 2}").replace("learning_rate", "step_size")
        self.refused(2, "bad.yaml:5", "sampler.penalty_mh.num_batches", "at least 3",
                     job=text.replace("last_epochs_of_cycle: 2", "every_steps: 1"))

    def test_both_a_learning_rate_and_a_step_size(self):
        self.refused(2, "learning_rate", "step_size", job=GOOD + "step_size: {constant: 1.0e-6}\n")

    def test_a_learning_rate_where_a_length_is_meant(self):
        text = GOOD.replace("sgld: {}", "random_walk: {}").replace("last_epochs_of_cycle: 2", "every_steps: 1")
        self.refused(2, "bad.yaml:6", "learning_rate", "give step_size", job=text)

    def test_layers_whose_shapes_do_not_fit(self):
        layers = "{layers: [{conv: {out_channels: 4, kernel: 5}}, {max_pool: {size: 30}}, {linear: {}}]}"
        self.refused(2, "model.layers[1]", "30", "[4, 24, 24]", job=GOOD.replace("{builtin: softmax_regression}", layers))

    def test_a_csv_with_text(self):
        path = self.csv("a,b\n1,2\nthree,4\n")
        self.refused(1, "line 3", "three", arguments=["dataset", "put", "table", path, "--target", "b"])

    def test_a_csv_with_nan(self):
        path = self.csv("a,b\n1,2\n2,nan\n")
        self.refused(1, "line 3", "nan", arguments=["dataset", "put", "table", path, "--target", "b"])

    def test_labels_out_of_range(self):
        path = self.csv("a,b\n1,0\n2,-1\n")
        self.refused(1, "-1", "label", arguments=["dataset", "put", "table", path, "--target", "b", "--target-type", "label"])

    def test_a_preset_fills_in_what_the_file_leaves_open(self):
        text = "\n".join(line for line in GOOD.splitlines()
                         if not line.startswith(("sampler", "learning_rate", "temperature", "batch_size", "collect", "num_epochs")))
        job = self.fleet.submit(text + "\npreset: emcmc-official\nnum_epochs: 8\nbatch_size: 50\n")
        self.fleet.run("wait", job, "--timeout", "120s", check=True)
        spec = self.fleet.json("get", "jobs", job)["spec"]
        self.assertEqual(spec["sampler"]["emcmc"]["anchor_decay"], True)
        self.assertEqual(spec["learning_rate"]["cyclical"]["cycles"], "4")
        self.assertEqual(spec["prior"]["gaussian"]["precision"], 500 * 5e-4)

    def test_a_step_far_too_long_ends_in_diverged_and_finite_draws(self):
        job = self.fleet.submit("""
name: diverging
model: {potential: {gaussian: {dimension: 3}}}
sampler: {sgld: {}}
step_size: {constant: 2.5}
num_steps: 100000
chains: 2
collect: {every_steps: 1}
""")
        self.assertNotEqual(self.fleet.run("wait", job, "--timeout", "120s").returncode, 0)
        chains = self.fleet.json("get", "chains", job)["chains"]
        self.assertEqual([chain["state"] for chain in chains], ["DIVERGED", "DIVERGED"], json.dumps(chains, indent=1))
        path = self.fleet.path("draws.npz")
        self.fleet.run("export", job, "--format", "npz", "--output", path, check=True)
        with zipfile.ZipFile(path) as archive:
            draws = read_draws(archive)
        self.assertGreater(len(draws), 100)
        self.assertTrue(all(math.isfinite(x) for row in draws for x in row))


if __name__ == "__main__":
    unittest.main(verbosity=2)
