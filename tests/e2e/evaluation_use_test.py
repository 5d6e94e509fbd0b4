"""Weights of chains and conformal sets: found by an evaluation, used by predictions, through the real binaries."""
import csv
import io
import json
import random
import unittest
import urllib.error
import urllib.request

import fleet as fleets
import public_client  # noqa: F401, first: it says where the next one is
import numpy

NUMBERS = """
name: numbers
model: {potential: {linear_regression: {noise_variance: 0.09}}}
dataset: {name: plane}
prior: {gaussian: {precision: 0.01}}
sampler: {mala: {}}
step_size: {constant: 4.0e-5}
num_steps: 600
burn_in: {steps: 200}
chains: 3
collect: {every_steps: 20}
seed: 3
"""
CLASSES = """
name: classes
model: {builtin: softmax_regression}
dataset: {name: sides}
prior: {gaussian: {precision: 1}}
sampler: {sgld: {}}
step_size: {constant: 1.0e-3}
num_steps: 200
burn_in: {steps: 100}
chains: 3
collect: {every_steps: 10}
seed: 3
"""


class EvaluationUse(unittest.TestCase):
    def setUp(self):
        self.fleet = fleets.Fleet()
        self.addCleanup(self.fleet.close)
        self.fleet.up()
        self.x_path = self.fleet.path("x.npy")

    def put(self, name, rows, seed, target):
        """Returns the inputs and targets; target(a, b, noise)."""
        source = random.Random(seed)
        text = io.StringIO()
        writer = csv.writer(text)
        writer.writerow(["a", "b", "y"])
        table = []
        for _ in range(rows):
            a, b = source.gauss(0, 1), source.gauss(0, 1)
            table.append((a, b, target(a, b, source.gauss(0, 1))))
        writer.writerows(table)
        with open(self.fleet.path(name + ".csv"), "w") as f:
            f.write(text.getvalue())
        kind = [] if isinstance(table[0][2], int) else ["--target-type", "float32"]
        self.fleet.run("dataset", "put", name, f.name, "--target", "y", *kind, check=True)
        table = numpy.float32(table)
        return table[:, :2], table[:, 2]

    def finished(self, spec):
        job = self.fleet.submit(spec)
        self.fleet.run("wait", job, "--timeout", "240s", check=True)
        return job

    def evaluated(self, job, *options):
        """The id and the result of an evaluation."""
        started = self.fleet.run("evaluate", job, *options, "--detach", check=True).stdout.strip()
        return started, self.fleet.json("evaluate", "--attach", started)

    def predict(self, job, *options):
        return self.fleet.json("predict", job, "--input", self.x_path, *options)

    def infer(self, job, x, outputs, **parameters):
        """The outputs by the inference protocol, over HTTP."""
        body = {"inputs": [{"name": "x", "datatype": "FP32", "shape": list(x.shape), "data": x.tolist()}],
                "outputs": [{"name": name} for name in outputs], "parameters": parameters}
        url = f"http://{self.fleet.http_address}/v2/models/{job}/infer"
        with urllib.request.urlopen(urllib.request.Request(url, json.dumps(body).encode())) as reply:
            return {output["name"]: numpy.reshape(output["data"], output["shape"]) for output in json.load(reply)["outputs"]}

    def refused(self, words, *arguments):
        done = self.fleet.run(*arguments)
        self.assertNotEqual(done.returncode, 0, arguments)
        self.assertIn(words, done.stderr)

    def test_numbers(self):
        def target(a, b, noise):
            return 1 + 2 * a - b + 0.3 * noise

        self.put("plane", 400, 1, target)
        self.put("held-out", 300, 2, target)
        x, y = self.put("plane-test", 400, 3, target)
        fleets.write_npy(self.x_path, "<f4", x.shape, x.tobytes())
        job = self.finished(NUMBERS)
        asked = ["--dataset", "plane-test", "--calibrate", "held-out", "--stack", "held-out"]
        table = self.fleet.run("evaluate", job, *asked, check=True).stdout
        for words in ("CONFORMAL LEVEL %", "MEAN WIDTH", "STACKING WEIGHT", "pseudo-BMA"):
            self.assertIn(words, table)
        evaluation, found = self.evaluated(job, *asked)
        weights = {int(row["chain"].get("index", 0)): row["stacking"] for row in found["weights"]}
        self.assertAlmostEqual(sum(weights.values()), 1, places=9)
        self.assertGreater(max(weights.values()) - min(weights.values()), 0.01, "equal weights would prove nothing")

        with self.subTest("the interval is mean and deviation by the threshold of the level"):
            sets = self.predict(job, "--conformal", evaluation, "--level", "0.8")
            scores, interval = sets["scores"], numpy.reshape(sets["interval"], (-1, 2))
            mean = numpy.array(scores["mean"])
            deviation = numpy.sqrt(numpy.add(scores["variance_aleatoric"], scores["variance_epistemic"]))
            half = found["conformal_thresholds"][799] * deviation
            numpy.testing.assert_allclose(interval, numpy.stack([mean - half, mean + half], 1), rtol=1e-9)
        with self.subTest("it covers what the evaluation says, which is near the level"):
            covered = numpy.mean((interval[:, 0] <= y) & (y <= interval[:, 1]))
            row = next(row for row in found["conformal"] if row["level"] == 0.8)
            self.assertAlmostEqual(covered, row["coverage"], delta=1 / 400)  # y is printed
            self.assertAlmostEqual(covered, 0.8, delta=0.1)
            self.assertAlmostEqual(numpy.mean(interval[:, 1] - interval[:, 0]), row["mean_size"], places=6)
        with self.subTest("weights average the chains' own averages"):
            weighted = self.predict(job, "--weights", evaluation)
            expected = sum(weight * numpy.array(self.predict(job, "--chains", str(chain))["scores"]["mean"])
                           for chain, weight in weights.items() if weight > 0)
            numpy.testing.assert_allclose(weighted["scores"]["mean"], expected, rtol=1e-9)
            self.assertEqual(weighted.get("errors"), None)
        with self.subTest("the inference protocol has both"):
            answer = self.infer(job, x, ["interval"], conformal=evaluation, level=0.8)
            numpy.testing.assert_allclose(answer["interval"], interval, rtol=1e-9)
            answer = self.infer(job, x, ["mean"], weights=evaluation)
            numpy.testing.assert_allclose(answer["mean"], weighted["scores"]["mean"], rtol=1e-9)
            with self.assertRaises(urllib.error.HTTPError) as caught:
                self.infer(job, x, ["interval"], conformal="eval-aaaaaaaaaa")
            self.assertEqual(caught.exception.code, 404)
            with self.assertRaises(urllib.error.HTTPError) as caught:
                self.infer(job, x, ["interval"])
            self.assertIn("needs the parameter 'conformal'", caught.exception.read().decode())
        with self.subTest("files and tables have the intervals"):
            path = self.fleet.path("p.npz")
            asked = ["predict", job, "--input", self.x_path, "--conformal", evaluation, "--level", "0.8"]
            self.fleet.run(*asked, "--output", path, check=True)
            numpy.testing.assert_allclose(numpy.load(path)["interval"], interval, rtol=1e-12)
            self.assertIn("LOWER", self.fleet.run(*asked, check=True).stdout)
        with self.subTest("what does not fit is refused"):
            predict = ["predict", job, "--input", self.x_path]
            self.refused("no evaluation", *predict, "--weights", "eval-aaaaaaaaaa")
            self.refused("leave out selection", *predict, "--conformal", evaluation, "--members", "2")
            self.refused("0.001 to 0.999", *predict, "--conformal", evaluation, "--level", "1")
            self.refused("version 2 is asked for", *predict, "--weights", evaluation, "--version", "2")
            plain, _ = self.evaluated(job, "--dataset", "plane-test")
            self.refused("had no calibration_dataset", *predict, "--conformal", plain)
            self.refused("has no weights", *predict, "--weights", plain)
            self.refused("leave it out", *predict, "--weights", evaluation, "--point", "0")
            other = self.finished(NUMBERS.replace("name: numbers", "name: other"))
            self.refused(f"is of job {job}", "predict", other, "--input", self.x_path, "--conformal", evaluation)

    def test_classes(self):
        def target(a, b, noise):
            return int(a + noise > 0) + int(b + noise > 1)

        self.put("sides", 400, 1, target)
        self.put("held-out", 300, 2, target)
        x, y = self.put("sides-test", 400, 3, target)
        fleets.write_npy(self.x_path, "<f4", x.shape, x.tobytes())
        job = self.finished(CLASSES)
        asked = ["--dataset", "sides-test", "--calibrate", "held-out", "--stack", "held-out"]
        self.assertIn("MEAN CLASSES", self.fleet.run("evaluate", job, *asked, check=True).stdout)
        evaluation, found = self.evaluated(job, *asked)
        answer = self.predict(job, "--conformal", evaluation)  # at 0.9
        sets = numpy.reshape(answer["prediction_set"], (len(y), -1))
        probability = numpy.reshape(answer["scores"]["mean_probability"], sets.shape)
        numpy.testing.assert_array_equal(sets, 1 - probability <= found["conformal_thresholds"][899])
        numpy.testing.assert_array_equal(self.infer(job, x, ["prediction_set"], conformal=evaluation)["prediction_set"], sets == 1)
        covered = numpy.mean(sets[numpy.arange(len(y)), y.astype(int)])
        row = next(row for row in found["conformal"] if row["level"] == 0.9)
        self.assertAlmostEqual(covered, row["coverage"], places=9)
        self.assertAlmostEqual(covered, 0.9, delta=0.07)
        self.assertAlmostEqual(numpy.mean(numpy.sum(sets, 1)), row["mean_size"], places=9)
        self.assertIn("PREDICTION SET", self.fleet.run(
            "predict", job, "--input", self.x_path, "--conformal", evaluation, check=True).stdout)
        weights = {int(row["chain"].get("index", 0)): row["pseudo_bma"] for row in found["weights"]}
        weighted = self.predict(job, "--weights", evaluation, "--pseudo-bma")["scores"]["mean_probability"]
        expected = sum(weight * numpy.array(self.predict(job, "--chains", str(chain))["scores"]["mean_probability"])
                       for chain, weight in weights.items())
        numpy.testing.assert_allclose(weighted, expected, rtol=1e-9)


if __name__ == "__main__":
    unittest.main()
