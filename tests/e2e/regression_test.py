"""Numbers to predict, through the real binaries: a network that learns its noise, and the regression of closed form."""
import io
import json
import math
import random
import struct
import unittest
import zipfile

import fleet as fleets
from public_client import tensor, triton  # first: it says where the next one is
import numpy

NOISE = 0.3

COMMON = """
dataset: {name: plane}
prior: {gaussian: {precision: 0.01}}
sampler: {mala: {}}
step_size: {constant: 4.0e-5}
num_steps: 6000
burn_in: {steps: 2000}
chains: 4
collect: {every_steps: 40}
seed: 3
"""
NETWORK = "name: network\nmodel: {builtin: linear}\nlikelihood: {gaussian: {learned: true}}" + COMMON
CLOSED_FORM = "name: closed\nmodel: {potential: {linear_regression: {noise_variance: 0.09}}}" + COMMON


class Regression(unittest.TestCase):
    def setUp(self):
        self.fleet = fleets.Fleet()
        self.addCleanup(self.fleet.close)
        self.fleet.up()
        source = random.Random(5)
        for name, rows in (("plane", 400), ("plane-test", 400)):
            path = self.fleet.path(name + ".csv")
            with open(path, "w") as f:
                f.write("a,b,y\n")
                for _ in range(rows):
                    a, b = source.gauss(0, 1), source.gauss(0, 1)
                    f.write(f"{a},{b},{1 + 2 * a - b + source.gauss(0, NOISE)}\n")
            self.fleet.run("dataset", "put", name, path, "--target", "y", "--target-type", "float32", check=True)

    def check_quantiles(self, job):
        """Each is where the mixture of the members' Gaussians has its level."""
        levels = [0.05, 0.5, 0.95]
        answer = self.fleet.json("predict", job, "--input", self.fleet.path("x.npy"), "--quantiles",
                                 ",".join(map(str, levels)), "--member-probabilities")
        rows = int(answer["num_rows"])
        self.assertEqual(len(answer["quantiles"]), rows * len(levels))
        for row in range(rows):
            for q, level in enumerate(levels):
                x, below, total = answer["quantiles"][row * len(levels) + q], 0.0, 0.0
                for member in answer["members"]:
                    for draw, weight in enumerate(member["weights"]):
                        mean, variance = member["mean"][draw * rows + row], member["variance"][draw * rows + row]
                        below += weight * math.erfc((mean - x) / math.sqrt(2 * variance)) / 2
                        total += weight
                self.assertAlmostEqual(below / total, level, delta=1e-5)  # members are printed as float32
        self.check_quantile_errors(job, levels, answer)

    def check_quantile_errors(self, job, levels, answer):
        """They are of the size of the mean's, and the same by every way they are asked for."""
        rows = int(answer["num_rows"])
        for row in range(rows):
            of_median = answer["quantile_errors"][row * len(levels) + 1]
            self.assertAlmostEqual(of_median / answer["errors"]["mean"][row], 1, delta=0.3)
        path = self.fleet.path("q.npz")
        asked = ["predict", job, "--input", self.fleet.path("x.npy"), "--quantiles", ",".join(map(str, levels))]
        self.fleet.run(*asked, "--output", path, check=True)
        shape = (rows, len(levels))
        expected = numpy.reshape(answer["quantile_errors"], shape)
        numpy.testing.assert_array_equal(numpy.load(path)["quantiles_error"], expected)
        self.assertIn("Q 0.95", self.fleet.run(*asked, check=True).stdout)
        inputs = numpy.load(self.fleet.path("x.npy"))
        with triton.InferenceServerClient(self.fleet.address) as client:
            described = {output.name: list(output.shape) for output in client.get_model_metadata(job).outputs}
            self.assertEqual(described["quantiles_error"], [-1, -1])
            parameters = {"quantiles": ",".join(map(str, levels))}
            outputs = [triton.InferRequestedOutput("quantiles_error")]
            result = client.infer(job, [tensor(inputs, "FP32")], outputs=outputs, parameters=parameters)
            numpy.testing.assert_allclose(result.as_numpy("quantiles_error"), expected, rtol=1e-12)
            plain = client.infer(job, [tensor(inputs, "FP32")], parameters=parameters)
            self.assertIsNone(plain.as_numpy("quantiles_error"), "no errors unless they are asked for")
            anytime = client.infer(job, [tensor(inputs, "FP32")], parameters=dict(parameters, anytime=True), timeout=30_000_000)
            self.assertEqual(anytime.as_numpy("quantiles_error").shape, shape)
            with self.assertRaisesRegex(Exception, "'quantiles_error' needs the parameter 'quantiles'"):
                client.infer(job, [tensor(inputs, "FP32")], outputs=outputs)

    def check_public_client(self, job, inputs, answer):
        """It is told the names of the numbers, and gets them and their errors as `predict` does."""
        with triton.InferenceServerClient(self.fleet.address) as client:
            described = client.get_model_metadata(job)
            names = ["mean", "variance_aleatoric", "variance_epistemic"]
            self.assertEqual([output.name for output in described.outputs][:6], names + [name + "_error" for name in names])
            asked = [triton.InferRequestedOutput(name + suffix) for name in names for suffix in ("", "_error")]
            for datatype, array in (("FP32", numpy.float32(inputs)), ("FP64", numpy.float64(inputs))):
                result = client.infer(job, [tensor(array, datatype)], outputs=asked)
                for name in names:
                    numpy.testing.assert_allclose(result.as_numpy(name), answer["scores"][name], rtol=1e-12)
                    numpy.testing.assert_allclose(result.as_numpy(name + "_error"), answer["errors"][name], rtol=1e-12)
            with self.assertRaisesRegex(Exception, "mean_probability"):
                client.infer(job, [tensor(array, datatype)], outputs=[triton.InferRequestedOutput("mean_probability")])

    def put_scaled(self, name, source, scale, shift):
        """A data set with y of another as scale * y + shift."""
        path = self.fleet.path(name + ".csv")
        with open(path, "w") as f:
            with open(self.fleet.path(source + ".csv")) as lines:
                f.write(next(lines))
                for a, b, y in (line.split(",") for line in lines):
                    f.write(f"{a},{b},{shift + scale * float(y)!r}\n")
        self.fleet.run("dataset", "put", name, path, "--target", "y", "--target-type", "float32", check=True)

    def manifest(self, name):
        """The manifest of exported draws; its numbers on targets equal those of the arrays next to it."""
        with zipfile.ZipFile(self.fleet.path(name)) as archive:
            manifest = json.loads(archive.read("manifest.json"))
            for field, value in manifest["targets"].items():
                with archive.open(f"target_{field}.npy") as f:
                    self.assertEqual(numpy.lib.format.read_array(io.BytesIO(f.read())).tolist(), [value])
        return manifest

    def test_answers_are_in_the_units_of_the_targets_whatever_these_are(self):
        """The same numbers in other units: the same chains, and every answer in those units."""
        scale, shift = 1000.0, 5000.0
        self.put_scaled("far", "plane", scale, shift)
        self.put_scaled("far-test", "plane-test", scale, shift)
        path = self.fleet.path("x.npy")
        fleets.write_npy(path, "<f4", (3, 2), struct.pack("<6f", 0, 0, 1, -1, 3, 0))
        scores, predictions, manifests = [], [], []
        short = NETWORK.replace("num_steps: 6000", "num_steps: 2500")
        for dataset in ("plane", "far"):
            job = self.fleet.submit(short.replace("name: network", f"name: by-{dataset}").replace("plane", dataset))
            self.fleet.run("wait", job, "--timeout", "240s", check=True)
            table = self.fleet.json("evaluate", job, "--dataset", dataset + "-test")["scores"]
            scores.append({row["what"]: row for row in table}["all"])
            predictions.append(self.fleet.json("predict", job, "--input", path, "--quantiles", "0.1,0.9"))
            self.fleet.run("export", job, "--format", "npz", "--output", self.fleet.path(dataset + ".npz"), check=True)
            manifests.append(self.manifest(dataset + ".npz"))
        near, far = predictions
        numpy.testing.assert_allclose(far["scores"]["mean"], shift + scale * numpy.array(near["scores"]["mean"]), rtol=1e-3)
        for name in ("variance_aleatoric", "variance_epistemic"):
            numpy.testing.assert_allclose(far["scores"][name], scale**2 * numpy.array(near["scores"][name]), rtol=2e-2)
        numpy.testing.assert_allclose(far["quantiles"], shift + scale * numpy.array(near["quantiles"]), rtol=1e-3)
        self.assertAlmostEqual(scores[1]["rmse"], scale * scores[0]["rmse"], delta=scale * 1e-3)
        self.assertAlmostEqual(scores[1]["nll"], scores[0]["nll"] + math.log(scale), delta=1e-2)
        self.assertAlmostEqual(manifests[1]["targets"]["stddev"], scale * manifests[0]["targets"]["stddev"], delta=1)

        plain = self.fleet.submit(short.replace("name: network", "name: plain") + "standardize: {targets: false}\n")
        self.fleet.run("wait", plain, "--timeout", "240s", check=True)
        self.fleet.run("export", plain, "--format", "npz", "--output", self.fleet.path("plain.npz"), check=True)
        self.assertEqual(self.manifest("plain.npz")["targets"], {"mean": 0.0, "stddev": 1.0})

    def test_a_network_learns_its_noise_and_agrees_with_the_closed_form(self):
        inputs = [(0.0, 0.0), (1.0, -1.0), (30.0, 0.0)]
        fleets.write_npy(self.fleet.path("x.npy"), "<f4", (3, 2), b"".join(struct.pack("<2f", *row) for row in inputs))
        predictions = []
        for text in (NETWORK, CLOSED_FORM):
            job = self.fleet.submit(text)
            self.fleet.run("wait", job, "--timeout", "240s", check=True)
            table = self.fleet.json("evaluate", job, "--dataset", "plane-test")["scores"]
            rows = {row["what"]: row for row in table}
            self.assertAlmostEqual(rows["all"]["rmse"], NOISE, delta=0.05)
            self.assertAlmostEqual(rows["all"]["nll"], 0.215, delta=0.12)  # (1 + log(2 pi .09)) / 2
            self.assertAlmostEqual(rows["all"]["coverage_90"], 0.9, delta=0.06)
            self.assertLess(rows["all"]["nll"], rows["single theta"]["nll"])
            answer = self.fleet.json("predict", job, "--input", self.fleet.path("x.npy"))
            self.assertEqual(len(answer["errors"]["mean"]), len(inputs))
            prediction = answer["scores"]
            for row, (a, b) in enumerate(inputs):
                self.assertAlmostEqual(prediction["mean"][row], 1 + 2 * a - b, delta=0.08 * (1 + abs(a)))
                self.assertAlmostEqual(prediction["variance_aleatoric"][row], NOISE * NOISE, delta=0.02)
            self.check_quantiles(job)
            self.check_public_client(job, inputs, answer)
            # Far out the slope's uncertainty counts for 30^2 times as much.
            self.assertGreater(prediction["variance_epistemic"][2], 50 * prediction["variance_epistemic"][0])
            predictions.append(prediction)
        for row in range(2):
            self.assertAlmostEqual(predictions[0]["mean"][row], predictions[1]["mean"][row], delta=0.02)
        self.fleet.run("predict", job, "--input", self.fleet.path("x.npy"), "--output", self.fleet.path("p.npz"), check=True)
        printed = self.fleet.run("predict", job, "--input", self.fleet.path("x.npy"), check=True).stdout
        self.assertIn("VARIANCE EPISTEMIC", printed)

    def test_each_point_of_a_sweep_predicts_with_its_own_draws(self):
        job = self.fleet.submit(NETWORK.replace("name: network", "name: sweep") + "sweep: {prior_precision: [0.01, 2000]}\n")
        self.fleet.run("wait", job, "--timeout", "240s", check=True)
        fleets.write_npy(self.fleet.path("x.npy"), "<f4", (1, 2), struct.pack("<2f", 1.0, -1.0))
        means = [self.fleet.json("predict", job, "--input", self.fleet.path("x.npy"), "--point", point)["scores"]["mean"][0]
                 for point in ("0", "prior_precision=2000")]
        self.assertAlmostEqual(means[0], 4, delta=0.2)
        self.assertLess(means[1], 3)  # a strong prior shrinks slopes and intercept
        table = self.fleet.run("evaluate", job, "--dataset", "plane-test", "--point", "all", check=True).stdout
        self.assertIn("RMSE", table)
        self.assertIn("prior_precision=2000", table)
        for option, value, field in (("--ood", "plane-test", "ood_dataset"), ("--curve", "3", "curve_points")):
            refused = self.fleet.run("evaluate", job, "--dataset", "plane-test", "--point", "0", option, value)
            self.assertNotEqual(refused.returncode, 0)
            self.assertIn(field, refused.stderr)
            self.assertIn("learns numbers", refused.stderr)
        page = self.fleet.run("report", job, "--dataset", "plane-test", "--point", "0", "-o", "-", check=True).stdout
        self.assertIn("RMSE", page)

    def test_a_table_with_text_or_nan_is_refused_with_its_cell(self):
        for cell in ("many", "nan", ""):
            path = self.fleet.path("broken.csv")
            with open(path, "w") as f:
                f.write(f"a,y\n1,2\n3,{cell}\n")
            refused = self.fleet.run("dataset", "put", "broken", path, "--target", "y", "--target-type", "float32")
            self.assertNotEqual(refused.returncode, 0, cell)
            self.assertIn("line 3", refused.stderr)

    def test_a_likelihood_that_does_not_fit_the_targets_is_refused_with_its_path(self):
        for likelihood, path in (("", "likelihood: missing"), ("likelihood: {bernoulli: {}}", "likelihood.bernoulli"),
                                 ("likelihood: {gaussian: {}}", "likelihood.gaussian"),
                                 ("likelihood: {gaussian: {variance: -1}}", "likelihood.gaussian.variance")):
            refused = self.fleet.submit_status("name: bad\nmodel: {builtin: mlp}\n" + likelihood + COMMON)
            self.assertNotEqual(refused.returncode, 0, likelihood)
            self.assertIn(path, refused.stderr)


if __name__ == "__main__":
    unittest.main(verbosity=2)
