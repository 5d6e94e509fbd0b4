"""Transformers of lists of layers and of presets, from texts and images to predictions."""
import struct
import unittest

import fleet as fleets

JOB = """
name: texts
model: {MODEL}
dataset: {name: texts}
prior: {gaussian: {precision: 1}}
sampler: {sgld: {}}
learning_rate: {constant: 0.05}
temperature: 1.0e-3
batch_size: 50
num_epochs: 60
chains: 2
collect: {last_epochs_of_cycle: 4}
seed: 7
"""
LAYERS = ("layers: [{embedding: {count: 6, width: 8, padding: 0}}, {position: {}}, "
          "{residual: {branch: [{layer_norm: {}}, {attention: {heads: 2}}]}}, {global_avg_pool: {}}, {linear: {}}]")
LENGTH = 8


def text(i):
    """2 to 8 tokens from 1 to 5, then padding."""
    return [1 + (i * (7 + 5 * j) % 31) % 5 for j in range(2 + i % 7)] + [0] * (6 - i % 7)


class Sequences(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.fleet = fleets.Fleet()
        cls.addClassCleanup(cls.fleet.close)
        cls.fleet.up()
        path = cls.fleet.path("texts.csv")
        with open(path, "w") as file:  # class: the token of 1, 2 and 3 that the text has most of
            for i in range(400):
                counts = [text(i).count(token) for token in (1, 2, 3)]
                print(*text(i), counts.index(max(counts)), sep=",", file=file)
        cls.fleet.run("dataset", "put", "texts", path, check=True)
        cls.fleet.put_fashion("fashion", 100)

    def row(self, values):
        fleets.write_npy(self.fleet.path("x.npy"), "<f4", (1, LENGTH), struct.pack(f"<{LENGTH}f", *values))
        return self.fleet.path("x.npy")

    def test_texts_of_a_layer_list_are_classified(self):
        job = self.fleet.submit(JOB.replace("MODEL", LAYERS))
        self.fleet.run("wait", job, "--timeout", "120s", check=True)
        rows = {row["what"]: row for row in self.fleet.json("evaluate", job, "--dataset", "texts")["scores"]}
        self.assertGreater(rows["all"]["accuracy"], 0.8)
        found = self.fleet.json("predict", job, "--input", self.row([0] * LENGTH))["scores"]["mean_probability"]
        self.assertAlmostEqual(sum(found), 1, places=5, msg="a text without a word is no NaN")
        for token in (6, -1, 0.5):
            refused = self.fleet.run("predict", job, "--input", self.row([1] * (LENGTH - 1) + [token]))
            self.assertIn("takes indices from 0 to 5, but the inputs have others", refused.stderr)

    def test_an_unknown_token_ends_a_chain(self):
        job = self.fleet.submit(JOB.replace("MODEL", LAYERS.replace("count: 6", "count: 5")))
        self.assertNotEqual(self.fleet.run("wait", job, "--timeout", "120s").returncode, 0)
        for chain in self.fleet.json("get", "chains", job)["chains"]:
            self.assertRegex(chain["reason"], "rejected the job: .*the network takes indices from 0 to 4, but the inputs have others")

    def test_presets_sample(self):
        for model, dataset in (("{builtin: text-transformer, vocabulary: 6, width: 0.125}", "texts"),
                               ("{builtin: vit-tiny, width: 0.1}", "fashion")):
            with self.subTest(model):
                job = self.fleet.submit(JOB.replace("{MODEL}", model).replace("name: texts}", f"name: {dataset}}}")
                                        .replace("batch_size: 50\nnum_epochs: 60", "batch_size: 5\nnum_steps: 4")
                                        .replace("last_epochs_of_cycle: 4", "every_steps: 2"))
                self.fleet.run("wait", job, "--timeout", "120s", check=True)
                rows = {row["what"]: row for row in self.fleet.json("evaluate", job, "--dataset", dataset)["scores"]}
                self.assertEqual(int(rows["all"]["num_draws"]), 4)
