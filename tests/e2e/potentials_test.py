"""Densities with known moments through the whole service: submitted, sampled by workers, committed, exported, compared."""
import math
import random
import re
import statistics
import struct
import unittest
import zipfile

import fleet as fleets

GAUSSIAN = """
name: gaussian
model: {potential: {gaussian: {dimension: 2, covariance: [4, 2, 2, 3], mean: [1, 0]}}}
sampler: {hmc: {leapfrog_steps: 6}}
step_size: {constant: 0.7}
num_steps: 6000
burn_in: {steps: 500}
chains: 4
collect: {every_steps: 2}
seed: 1
"""
MIXTURE = """
name: mixture
model: {potential: {gaussian_mixture: {weights: [1, 3], means: [-2, 2], stddev: [0.5, 1]}}}
sampler: {random_walk: {}}
step_size: {constant: 3}
num_steps: 60000
burn_in: {steps: 1000}
chains: 4
collect: {every_steps: 5}
seed: 2
"""
LOGISTIC = """
name: logistic
model: {potential: {logistic_regression: {}}}
dataset: {name: coins}
prior: {gaussian: {precision: 0.25}}
sampler: {mala: {}}
step_size: {constant: 0.03}
num_steps: 8000
burn_in: {steps: 1000}
batch_size: 200
chains: 4
collect: {every_steps: 4}
seed: 3
"""


def read_npy(archive, name):
    """Shape and numbers, row-major, of an array in an .npz."""
    raw = archive.read(name + ".npy")
    length, = struct.unpack_from("<H", raw, 8)
    header = raw[10:10 + length].decode()
    kind = {"<f4": "f", "<f8": "d", "<i8": "q", "<i4": "i"}[re.search(r"'descr': '([^']+)'", header).group(1)]
    shape = [int(n) for n in re.findall(r"\d+", re.search(r"'shape': \(([^)]*)\)", header).group(1))]
    return shape, struct.unpack_from(f"<{math.prod(shape)}{kind}", raw, 10 + length)


def read_draws(archive):
    """Rows of theta, one for each draw of each chain: [chain, draw, ...] of all parameters, side by side."""
    _, counts = read_npy(archive, "draws")
    rows = [[] for _ in range(sum(counts))]
    for name in (name.removesuffix(".npy") for name in archive.namelist() if name.startswith("theta/")):
        (_, longest, *own), values = read_npy(archive, name)
        width = math.prod(own)
        places = [chain * longest + draw for chain, count in enumerate(counts) for draw in range(count)]
        for row, place in zip(rows, places):
            row.extend(values[place * width:(place + 1) * width])
    return rows


def moments(rows, weights):
    """The weighted mean and covariance."""
    total, size = sum(weights), len(rows[0])
    mean = [sum(w * row[i] for w, row in zip(weights, rows)) / total for i in range(size)]
    covariance = [[sum(w * (row[i] - mean[i]) * (row[j] - mean[j]) for w, row in zip(weights, rows)) / total
                   for j in range(size)] for i in range(size)]
    return mean, covariance


def logistic_posterior(data, precision):
    """Mean and covariance of (weight, intercept) by summing over a grid."""
    grid = [-1 + 0.05 * i for i in range(61)]
    points = [(w, b) for w in grid for b in grid]
    energies = [precision / 2 * (w * w + b * b) + sum(math.log1p(math.exp(-(2 * y - 1) * (w * x + b))) for x, y in data)
                for w, b in points]
    least = min(energies)
    return moments(points, [math.exp(least - e) for e in energies])


class Potentials(unittest.TestCase):
    def setUp(self):
        self.fleet = fleets.Fleet()
        self.addCleanup(self.fleet.close)
        self.fleet.up()

    def sampled(self, text):
        """Moments of the job's exported draws, which are repeated by weight: a plain mean is right."""
        job = self.fleet.submit(text)
        self.fleet.run("wait", job, "--timeout", "240s", check=True)
        path = self.fleet.path("draws.npz")
        self.fleet.run("export", job, "--format", "npz", "--output", path, check=True)
        with zipfile.ZipFile(path) as archive:
            rows = read_draws(archive)
        return moments(rows, [1] * len(rows))

    def check(self, text, mean, covariance, tolerance):
        """Within `tolerance` standard deviations, and as a part of the variances."""
        got_mean, got_covariance = self.sampled(text)
        for i, expected in enumerate(mean):
            self.assertAlmostEqual(got_mean[i], expected, delta=tolerance * math.sqrt(covariance[i][i]))
            for j in range(len(mean)):
                scale = math.sqrt(covariance[i][i] * covariance[j][j])
                self.assertAlmostEqual(got_covariance[i][j], covariance[i][j], delta=2 * tolerance * scale)

    def test_a_gaussian_with_a_covariance(self):
        self.check(GAUSSIAN, [1, 0], [[4, 2], [2, 3]], tolerance=0.05)
        found = {row["quantity"]: row for row in self.fleet.json("describe", "gaussian")["diagnostics"]}
        self.assertEqual(sorted(found), ["energy", "theta.norm", "theta[0]", "theta[1]"])
        for coordinate, mean in ((0, 1), (1, 0)):
            row = found[f"theta[{coordinate}]"]
            self.assertAlmostEqual(row.get("mean", 0), mean, delta=5 * row["mcse_mean"])
        for row in found.values():
            self.assertEqual((row["chains"], row["values"]), (4, "367"))  # every fifteenth of 5,500 steps
            self.assertLess(row["rhat"], 1.02)
            self.assertGreater(row["ess_bulk"], 800)
        energy = found["energy"]
        self.assertAlmostEqual(energy["mean"], 1, delta=4 * energy["mcse_mean"])  # half the dimension

    def test_a_mixture_of_gaussians(self):
        self.check(MIXTURE, [1], [[0.25 * 0.25 + 0.75 + 3]], tolerance=0.05)

    def test_logistic_regression_of_a_csv(self):
        source = random.Random(8)
        data = []
        for _ in range(200):
            x = source.gauss(0, 1)
            data.append((round(x, 3), int(source.random() < 1 / (1 + math.exp(-(0.8 * x + 0.5))))))
        path = self.fleet.path("coins.csv")
        with open(path, "w") as f:
            f.write("x,side\n" + "".join(f"{x},{y}\n" for x, y in data))
        self.fleet.run("dataset", "put", "coins", path, "--target", "side", "--target-type", "label", check=True)
        mean = statistics.fmean(x for x, _ in data)
        stddev = statistics.pstdev(x for x, _ in data)  # a table's columns are standardised
        self.check(LOGISTIC, *logistic_posterior([((x - mean) / stddev, y) for x, y in data], 0.25), tolerance=0.08)


if __name__ == "__main__":
    unittest.main(verbosity=2)
