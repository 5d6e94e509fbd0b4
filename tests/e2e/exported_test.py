"""Networks of torch.export from their files to predictions, on a server that takes no TorchScript."""
import json
import os
import struct
import unittest
import urllib.error
import urllib.request
import zipfile

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

    def put_bars(self):
        images, labels = self.fleet.path("images.npy"), self.fleet.path("labels.npy")
        classes = [i % 10 for i in range(300)]  # a class has a row of the image that is bright
        pixels = [float(8 * (i // 10 % 2) + j % 8 - 4 + 9 * (j // 8 == classes[i] % 8) - 5 * (classes[i] > 7)) for i in range(300) for j in range(64)]
        fleets.write_npy(images, "<f4", (300, 1, 8, 8), struct.pack("<19200f", *pixels))
        fleets.write_npy(labels, "<i8", (300,), struct.pack("<300q", *classes))
        self.fleet.run("dataset", "put", "bars", images, labels, check=True)
        return images

    def test_a_file_of_training_mode_samples_as_it_says(self):
        self.put_bars()
        self.put("trains", "train_norm")
        self.assertIn('name: "6.running_var"', self.fleet.run("describe", "model", "trains", check=True).stdout)
        job = self.fleet.submit(self.job("trains", "bars"))
        self.fleet.run("wait", job, "--timeout", "120s", check=True)
        rows = {row["what"]: row for row in self.fleet.json("evaluate", job, "--dataset", "bars")["scores"]}
        self.assertGreater(rows["all"]["accuracy"], 0.9)
        self.fleet.run("export", job, "--format", "npz", "-o", self.fleet.path("trains.npz"), check=True)
        with zipfile.ZipFile(self.fleet.path("trains.npz")) as archive:
            self.assertTrue([name for name in archive.namelist() if "1.running_mean" in name])
        refused = self.fleet.submit_status(self.job("trains", "bars").replace("sgld: {}", "gradient_uncertainty: {threshold: 1}"))
        self.assertIn("batch norm over mini-batches is not: export net.eval()", refused.stderr)

    def test_a_head_alone_is_sampled_over_a_frozen_trunk(self):
        self.put("frozen", "mlp")
        job = self.fleet.submit(self.job("frozen") + 'sample: ["5.*"]\ninit: {model: true}\n')
        self.fleet.run("wait", job, "--timeout", "120s", check=True)
        self.assertEqual(int(self.fleet.json("describe", job)["report"]["num_parameters"]), 51)
        self.fleet.run("export", job, "--format", "npz", "-o", self.fleet.path("head.npz"), check=True)
        with zipfile.ZipFile(self.fleet.path("head.npz")) as archive:
            names = [parameter["name"] for parameter in json.loads(archive.read("manifest.json"))["parameters"]]
        self.assertEqual(names, ["theta/5.weight", "theta/5.bias"])
        rows = {row["what"]: row for row in self.fleet.json("evaluate", job, "--dataset", "wide-6")["scores"]}
        self.assertGreater(rows["all"]["accuracy"], 0.5, "features of an untrained trunk")
        refused = self.fleet.submit_status(self.job("frozen") + 'sample: ["7.*"]\n')
        self.assertIn("sample[0]: 7.* matches no parameter of the network, which has 0.weight", refused.stderr)

    def test_a_network_of_tokens_samples_and_predicts(self):
        def write(name, tokens):  # class: the remainder of the last token by 5
            path = self.fleet.path(name)
            with open(path, "w") as file:
                for row in tokens:
                    print(*row, int(row[-1]) % 5, sep=",", file=file)
            return path

        rows = [[(7 * i + j * j * 3) % 50 for j in range(6)] for i in range(300)]
        self.put("words", "causal")
        self.fleet.run("dataset", "put", "words", write("words.csv", rows), check=True)
        job = self.fleet.submit(self.job("words", "words").replace("0.05", "0.5"))
        self.fleet.run("wait", job, "--timeout", "120s", check=True)
        self.assertEqual(self.fleet.json("describe", job)["inputs"]["normalisation"], {"mean": [0], "stddev": [1]})
        scores = {row["what"]: row for row in self.fleet.json("evaluate", job, "--dataset", "words")["scores"]}
        self.assertGreater(scores["all"]["accuracy"], 0.6)
        fleets.write_npy(self.fleet.path("x.npy"), "<f4", (2, 6), struct.pack("<12f", *rows[0], *rows[1]))
        predicted = self.fleet.json("predict", job, "--input", self.fleet.path("x.npy"))
        self.assertEqual(len(predicted["scores"]["mean_probability"]), 10)
        for value, words in ((50.0, "index out of range"), (0.5, "takes indices, but the inputs are not whole numbers")):
            fleets.write_npy(self.fleet.path("x.npy"), "<f4", (1, 6), struct.pack("<6f", *[value] * 6))
            refused = self.fleet.run("predict", job, "--input", self.fleet.path("x.npy"))
            self.assertNotEqual(refused.returncode, 0)
            self.assertIn(words, refused.stderr)
        self.fleet.run("dataset", "put", "strange", write("strange.csv", [[50 * (i % 2)] * 5 + [i % 50] for i in range(300)]), check=True)
        job = self.fleet.submit(self.job("words", "strange"))
        self.assertNotEqual(self.fleet.run("wait", job, "--timeout", "120s").returncode, 0)
        self.assertIn("index out of range", self.fleet.run("get", "chains", job, "-o", "json", check=True).stdout)

    def test_a_network_of_several_inputs(self):
        def row(i):
            ids, mask = [(7 * i + j) % 50 for j in range(6)], [int(j == 0 or (i + j) % 3 == 0) for j in range(6)]
            return ids + mask + [(i * (3 + j) % 11) / 2 + 5 for j in range(8)]

        path, rows = self.fleet.path("masked.csv"), [row(i) for i in range(200)]
        with open(path, "w") as file:
            for i, values in enumerate(rows):
                print(*values, i % 4, sep=",", file=file)
        self.fleet.run("dataset", "put", "masked", path, check=True)
        self.assertIn("int64 [6] + bool [6] + float32 [2, 4]", self.put("masked", "masked"))
        job = self.fleet.submit(self.job("masked", "masked"))
        self.fleet.run("wait", job, "--timeout", "120s", check=True)
        inputs = self.fleet.json("describe", job)["inputs"]
        self.assertEqual([column["name"] for column in inputs["columns"]], ["ids", "mask", "numbers"])
        mean, stddev = inputs["normalisation"]["mean"], inputs["normalisation"]["stddev"]
        self.assertEqual((mean[:12], stddev[:12]), ([0] * 12, [1] * 12), "indices and masks stay as they are")
        self.assertTrue(all(value > 5 for value in mean[12:]))

        fleets.write_npy(self.fleet.path("x.npy"), "<f4", (2, 20), struct.pack("<40f", *rows[0], *rows[1]))
        by_row = self.fleet.json("predict", job, "--input", self.fleet.path("x.npy"))["scores"]["mean_probability"]
        ids, mask, numbers = ([one[begin:end] for one in rows[:2]] for begin, end in ((0, 6), (6, 12), (12, 20)))
        url = f"http://{self.fleet.http_address}/v2/models/{job}"
        described = json.load(urllib.request.urlopen(url))["inputs"]
        self.assertEqual([(one["name"], one["datatype"], [int(size) for size in one["shape"]]) for one in described],
                         [("ids", "INT64", [-1, 6]), ("mask", "BOOL", [-1, 6]), ("numbers", "FP32", [-1, 2, 4])])
        given = [{"name": "numbers", "datatype": "FP32", "shape": [2, 2, 4], "data": numbers},
                 {"name": "ids", "datatype": "INT64", "shape": [2, 6], "data": ids},
                 {"name": "mask", "datatype": "BOOL", "shape": [2, 6], "data": [[bool(one) for one in of] for of in mask]}]

        def infer(body, **headers):
            request = urllib.request.Request(url + "/infer", body, headers={name.replace("_", "-"): value for name, value in headers.items()})
            return json.load(urllib.request.urlopen(request))["outputs"][0]["data"]

        outputs = [{"name": "mean_probability"}]
        self.assertEqual(infer(json.dumps({"inputs": given, "outputs": outputs}).encode()), by_row)
        raw = [struct.pack("<16f", *numbers[0], *numbers[1]), struct.pack("<12q", *ids[0], *ids[1]), bytes(mask[0] + mask[1])]
        for one, data in zip(given, raw):
            one.update(data=[], parameters={"binary_data_size": len(data)})
            del one["data"]
        head = json.dumps({"inputs": given, "outputs": outputs}).encode()
        self.assertEqual(infer(head + b"".join(raw), Inference_Header_Content_Length=str(len(head))), by_row)
        head = json.dumps({"inputs": given[:2]}).encode()
        with self.assertRaises(urllib.error.HTTPError) as caught:
            infer(head + raw[0] + raw[1], Inference_Header_Content_Length=str(len(head)))
        self.assertIn("the inputs are ['numbers', 'ids']: ['ids', 'mask', 'numbers'], or rows of all of them as one input, 'x', is expected",
                      json.load(caught.exception)["error"])
        refused = self.fleet.submit_status(self.job("masked", "wide-6"))
        self.assertIn("takes int64 [n, 6] and bool [n, 6] and float32 [n, 2, 4] in rows float32 [n, 20], the data set has float32 [n, 6]", refused.stderr)

    def test_an_ensemble_trained_elsewhere_is_a_finished_job(self):
        with zipfile.ZipFile(os.path.join(DATA, "mlp.pt2")) as archive:
            config = json.loads(archive.read("mlp/data/weights/model_weights_config.json"))["config"]
            tensors = {name: archive.read("mlp/data/weights/" + entry["path_name"]) for name, entry in config.items()}
        shapes = {name: [int(size["as_int"]) for size in entry["tensor_meta"]["sizes"]] for name, entry in config.items()}
        paths = [self.fleet.path(f"member-{i}.safetensors") for i in range(2)]
        for i, path in enumerate(paths):
            ends, header = 0, {}
            for name, data in tensors.items():
                header[name] = {"dtype": "F32", "shape": shapes[name], "data_offsets": [ends, ends + len(data)]}
                ends += len(data)
            text = json.dumps(header).encode()
            body = b"".join(tensors.values())
            with open(path, "wb") as file:  # the second member has all signs turned
                file.write(len(text).to_bytes(8, "little") + text)
                file.write(body if i == 0 else bytes(b ^ 0x80 if at % 4 == 3 else b for at, b in enumerate(body)))
        job = self.fleet.run("import", "members", "--model", os.path.join(DATA, "mlp.pt2"), "--weights", *paths, "--dataset", "wide-6",
                             "-o", "name", check=True).stdout.strip()
        self.assertEqual(self.fleet.json("describe", job)["state"], "SUCCEEDED")
        self.fleet.run("export", job, "--format", "npz", "-o", self.fleet.path("members.npz"), check=True)
        with zipfile.ZipFile(self.fleet.path("members.npz")) as archive:
            bias = archive.read(next(name for name in archive.namelist() if name.endswith("5.bias.npy")))
        turned = bytes(b ^ 0x80 if at % 4 == 3 else b for at, b in enumerate(tensors["5.bias"]))
        self.assertTrue(bias.endswith(tensors["5.bias"] + turned))
        refused = self.fleet.run("import", "other", "--model", os.path.join(DATA, "norm.pt2"), "--weights", paths[0], "--dataset", "wide-6")
        self.assertNotEqual(refused.returncode, 0)
        self.assertIn("the network takes float32 [n, 8], the data set has float32 [n, 6]", refused.stderr)
        self.assertEqual([name for name in self.models() if name.startswith("other")], [], "a failed import leaves nothing")

    def models(self):
        return self.fleet.run("model", "list", "-o", "name", check=True).stdout.split()

    def imported(self, name, *arguments):
        return self.fleet.run("import", name, *arguments, "-o", "name", check=True).stdout.strip()

    def answers(self, job, rows, kinds):
        path = self.fleet.path(f"{job}.npz")
        self.fleet.run("predict", job, "--input", rows, "--kinds", kinds, "--output", path, check=True)
        with zipfile.ZipFile(path) as archive:
            return {name: archive.read(name) for name in archive.namelist() if name.endswith(".npy")}

    def exported(self, name, *options):
        """Returns all that an export has of each chain but its steps: draws of all kinds, weights and statistics."""
        self.fleet.run("export", name, "--format", "safetensors", "-o", self.fleet.path(f"draws-{name}"), *options, check=True)
        chains = []
        for chain in sorted(os.listdir(self.fleet.path(f"draws-{name}"))):
            if chain.endswith(".safetensors"):
                with open(self.fleet.path(f"draws-{name}", chain), "rb") as file:
                    length = int.from_bytes(file.read(8), "little")
                    header, data = json.loads(file.read(length)), file.read()
                chains.append({key: data[slice(*about["data_offsets"])] for key, about in header.items() if key not in ("__metadata__", "steps")})
        return chains

    def test_chains_that_were_exported_are_imported_to_the_bit(self):
        images = self.put_bars()
        self.put("anchored", "train_norm")
        job = self.fleet.submit(self.job("anchored", "bars").replace("sgld: {}", "emcmc: {}").replace("epochs_of_cycle: 4", "epochs_of_cycle: 10"))
        self.fleet.run("wait", job, "--timeout", "120s", check=True)
        drawn = self.exported(job)
        self.assertEqual(len(drawn), 2)
        self.assertEqual(len(drawn[0]["theta_a/6.running_var"]), 10 * 12 * 4)
        arguments = ["--model", os.path.join(DATA, "train_norm.pt2"), "--weights", self.fleet.path(f"draws-{job}"), "--dataset", "bars"]
        again = self.imported("again", *arguments)
        self.assertEqual(self.exported(again), drawn)
        kinds = [self.answers(job, images, kind) for kind in ("theta", "theta_a")]
        self.assertNotEqual(kinds[0], kinds[1])
        self.assertEqual([self.answers(again, images, kind) for kind in ("theta", "theta_a")], kinds)

    def test_chains_of_different_lengths_and_weights_are_imported(self):
        self.put("walks", "mlp")
        walk = self.job("walks").replace("sgld: {}", "random_walk: {}").replace("learning_rate: {constant: 0.05}", "step_size: {constant: 0.004}")
        walk = walk.replace("num_epochs: 40", "num_steps: 40").replace("batch_size: 50\n", "").replace("{last_epochs_of_cycle: 4}", "{every_steps: 1}")
        job = self.fleet.submit(walk.replace("temperature: 1.0e-3\n", ""))
        self.fleet.run("wait", job, "--timeout", "120s", check=True)
        drawn = self.exported(job, "--weighted")
        self.assertNotEqual(len(drawn[0]["weights"]), len(drawn[1]["weights"]))
        again = self.imported("walked", "--model", os.path.join(DATA, "mlp.pt2"), "--weights", self.fleet.path(f"draws-{job}"), "--dataset", "wide-6")
        self.assertEqual(self.exported(again, "--weighted"), drawn)

    def test_chains_with_a_learned_variance_are_imported(self):
        path = self.fleet.path("line.csv")
        with open(path, "w") as file:
            for i in range(200):
                print(i / 100 - 1, 2 * i / 100 + (i * 7 % 11) / 50, sep=",", file=file)
        self.fleet.run("dataset", "put", "line", path, "--target-type", "float32", check=True)
        self.put("sloped", "line")
        job = self.fleet.submit(self.job("sloped", "line") + "likelihood: {gaussian: {learned: true}}\n")
        self.fleet.run("wait", job, "--timeout", "120s", check=True)
        drawn = self.exported(job)
        self.assertIn("theta/likelihood.log_variance", drawn[0])
        again = self.imported("sloped-again", "--model", os.path.join(DATA, "line.pt2"), "--weights", self.fleet.path(f"draws-{job}"),
                              "--dataset", "line", "--likelihood", "{gaussian: {learned: true}}")
        self.assertEqual(self.exported(again), drawn)

    def test_a_sampled_part_is_imported(self):
        self.put("trunk", "mlp")
        job = self.fleet.submit(self.job("trunk") + 'sample: ["5.*"]\ninit: {model: true}\n')
        self.fleet.run("wait", job, "--timeout", "120s", check=True)
        drawn = self.exported(job)
        arguments = ["--model", os.path.join(DATA, "mlp.pt2"), "--weights", self.fleet.path(f"draws-{job}"), "--dataset", "wide-6"]
        refused = self.fleet.run("import", "whole", *arguments)
        self.assertIn("lacks 0.weight, 0.bias", refused.stderr)
        self.assertEqual([name for name in self.models() if name.startswith("whole")], [])
        self.assertEqual(self.exported(self.imported("part", *arguments, "--sample", "5.*")), drawn)

    def test_networks_that_do_not_fit_are_refused_at_submit(self):
        self.put("narrow", "mlp")
        self.put("tokens", "causal")
        for job, words in ((self.job("narrow", "wide-4"), "model.exported: the network takes float32 [n, 6], the data set has float32 [n, 4]"),
                           (self.job("tokens", "wide-4"), "takes int64 [n, 6], the data set has float32 [n, 4]"),
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
