"""Networks of torch.export from their files to predictions, on a server that takes no TorchScript."""
import os
import unittest

import fleet as fleets

DATA = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "data", "exported")
JOB = """
name: exported
model: {exported: NAME}
dataset: {name: DATASET}
prior: {gaussian: {precision: 1}}
sampler: {sgld: {}}
learning_rate: {constant: 0.05}
temperature: 1.0e-3
batch_size: 50
num_epochs: 40
chains: 2
collect: {last_epochs_of_cycle: 4}
seed: 7
"""


class Exported(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.fleet = fleets.Fleet()
        cls.addClassCleanup(cls.fleet.close)
        cls.fleet.up()
        for width in (6, 4):  # class: which of three sums of inputs is largest
            path = cls.fleet.path(f"wide-{width}.csv")
            with open(path, "w") as file:
                for i in range(300):
                    row = [(i * (7 + 3 * j) % 31) / 31 - 0.5 for j in range(width)]
                    sums = [row[k] + row[k + 1] for k in range(3)]
                    print(*row, sums.index(max(sums)), sep=",", file=file)
            cls.fleet.run("dataset", "put", f"wide-{width}", path, check=True)

    def job(self, name, dataset="wide-6"):
        return JOB.replace("NAME", name).replace("DATASET", dataset)

    def put(self, name, network):
        return self.fleet.run("model", "put", name, os.path.join(DATA, network + ".pt2"), check=True).stdout

    def test_a_network_samples_and_predicts(self):
        self.assertRegex(self.put("mlp", "mlp"), r"mlp +float32 \[6\] +\[3\] +435 ")
        described = self.fleet.run("describe", "model", "mlp", check=True).stdout
        self.assertIn('name: "0.weight"', described)
        job = self.fleet.submit(self.job("mlp"))
        self.fleet.run("wait", job, "--timeout", "120s", check=True)
        self.assertEqual(int(self.fleet.json("describe", job)["report"]["num_parameters"]), 435)
        rows = {row["what"]: row for row in self.fleet.json("evaluate", job, "--dataset", "wide-6")["scores"]}
        self.assertGreater(rows["all"]["accuracy"], 0.8)
        refused = self.fleet.run("delete", "model", "mlp", "--yes")
        self.assertIn(job, refused.stderr)

    def test_what_does_not_fit_is_refused_at_submit(self):
        self.put("narrow", "mlp")
        self.put("tokens", "causal")
        for job, words in ((self.job("narrow", "wide-4"), "model.exported: the network takes float32 [n, 6], the data set has float32 [n, 4]"),
                           (self.job("tokens"), "takes int64 [n, 6], the data set has float32 [n, 6]"),
                           (self.job("narrow").replace("{exported:", "{torchscript:"), "--allow-modules"),
                           (self.job("nowhere"), "no model nowhere")):
            refused = self.fleet.submit_status(job)
            self.assertIn(words, refused.stderr)
            self.assertNotEqual(refused.returncode, 0)

    def test_a_file_that_is_no_network_is_not_stored(self):
        path = self.fleet.path("cut.pt2")
        with open(os.path.join(DATA, "mlp.pt2"), "rb") as whole, open(path, "wb") as cut:
            cut.write(whole.read()[:-300])
        refused = self.fleet.run("model", "put", "cut", path)
        self.assertEqual(refused.returncode, 1, refused.stderr)
        self.assertIn("model cut: not a .pt2 or TorchScript archive", refused.stderr)


if __name__ == "__main__":
    unittest.main()
