"""Simulation-based calibration, through the real binaries: right settings have level ranks, a temperature does not."""
import random
import unittest

import fleet as fleets

# HMC on a regression whose posterior has a precision of about 51: an orbit is a quarter of a period.
JOB = """
name: {name}
kind: sbc
model: {{potential: {{linear_regression: {{noise_variance: 1}}}}}}
dataset: {{name: design}}
prior: {{gaussian: {{precision: 1}}}}
sampler: {{hmc: {{leapfrog_steps: 5}}}}
step_size: {{constant: 0.04}}
temperature: {temperature}
batch_size: 50
num_steps: 550
burn_in: {{steps: 50}}
trace_every: 5
chains: {chains}
collect: {{every_steps: 500}}
seed: 11
"""
PARAMETERS = {"theta.weights[0]", "theta.weights[1]", "theta.intercept"}


class Calibration(unittest.TestCase):
    def setUp(self):
        self.fleet = fleets.Fleet(workers=1)
        self.addCleanup(self.fleet.close)
        self.fleet.up()
        source, path = random.Random(5), self.fleet.path("design.csv")
        with open(path, "w") as f:
            f.write("a,b,y\n")
            f.writelines(f"{source.gauss(0, 1)},{source.gauss(0, 1)},{source.gauss(0, 1)}\n" for _ in range(50))
        self.fleet.run("dataset", "put", "design", path, "--target", "y", "--target-type", "float32", check=True)

    def sample(self, name, temperature=1, chains=100):
        job = self.fleet.submit(JOB.format(name=name, temperature=temperature, chains=chains))
        self.fleet.run("wait", job, "--timeout", "240s", check=True)
        return job

    def ranks(self, job):
        """{quantity: diagnostic} of a job that has ended."""
        return {found["quantity"]: found for found in self.fleet.json("describe", job)["diagnostics"]}

    def test_ranks_are_level_for_right_settings_and_a_hill_for_a_temperature(self):
        right, hot = self.ranks(self.sample("right")), self.ranks(self.sample("hot", temperature=25))
        self.assertLessEqual(PARAMETERS | {"theta.norm"}, right.keys())
        self.assertFalse({"energy", "anchor_distance"} & right.keys(), "these have no true value")
        self.assertTrue(any(quantity.startswith("theta.log_likelihood[") for quantity in right), right.keys())
        for quantity, found in right.items():
            with self.subTest(quantity):
                counts = [int(count) for count in found["ranks"]["counts"]]
                self.assertEqual((len(counts), sum(counts), int(found["chains"])), (20, 100, 100))
                self.assertGreater(found["ranks"]["p_value"], 0.001 / len(right))
                self.assertNotIn("rhat", found)
                self.assertGreater(found["ess_bulk"] / 100, 30, "of each chain")
        for quantity in PARAMETERS:
            with self.subTest(quantity):
                self.assertLess(hot[quantity]["ranks"]["p_value"], 1e-6)
                counts = [int(count) for count in hot[quantity]["ranks"]["counts"]]
                self.assertGreater(sum(counts[5:15]), 85, "too wide: the truth is in the middle")

    def test_a_job_says_what_its_ranks_mean_and_predicts_nothing(self):
        job = self.sample("few", chains=12)
        self.assertNotIn("p_value", self.ranks(job)["theta.norm"]["ranks"], "too few chains")
        described = self.fleet.run("describe", job, check=True).stdout
        self.assertRegex(described, r"(?m)^QUANTITY +CHAINS +ESS +RANKS +P VALUE$")
        self.assertRegex(described, r"(?m)^theta\.intercept +12 +\d+ +\S{20} +-$")
        self.assertIn("U shape: the draws are too narrow", described)
        for verb in (["predict", job, "--input", self.fleet.path("x.npy")], ["evaluate", job, "--dataset", "design"],
                     ["scale", job, "--chains", "20"]):
            fleets.write_npy(self.fleet.path("x.npy"), "<f4", (1, 2), bytes(8))
            refused = self.fleet.run(*verb)
            self.assertNotEqual(refused.returncode, 0, verb)
            self.assertIn("(kind: sbc)", refused.stderr, verb)
        refused = self.fleet.submit_status(JOB.format(name="flat", temperature=1, chains=20).replace("precision: 1}", "precision: 0}"))
        self.assertEqual(refused.returncode, 2)
        self.assertRegex(refused.stderr, r":\d+: prior.gaussian.precision: must be above 0: kind sbc draws the parameters")


if __name__ == "__main__":
    unittest.main()
