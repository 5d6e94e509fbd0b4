"""Data sets and networks by URI: read by the server below its roots, refused elsewhere."""
import hashlib
import http.client
import json
import math
import os
import struct
import subprocess
import unittest

import fleet as fleets
import with_s3

START = """
name: start
model: {builtin: softmax_regression}
init: {weights: ["URI"]}
dataset: {name: digits}
prior: {gaussian: {precision: 1}}
sampler: {sgld: {}}
learning_rate: {constant: 0.001}
batch_size: 4
num_steps: 10
"""


def write_digits(folder, rows=12):
    """Images and labels in IDX; returns the paths."""
    os.makedirs(folder, exist_ok=True)
    paths = [os.path.join(folder, name) for name in ("images-idx3-ubyte", "labels-idx1-ubyte")]
    with open(paths[0], "wb") as f:
        f.write(struct.pack(">IIII", 0x803, rows, 4, 4) + bytes(i % 251 for i in range(rows * 16)))
    with open(paths[1], "wb") as f:
        f.write(struct.pack(">II", 0x801, rows) + bytes(i % 3 for i in range(rows)))
    return paths


def write_weights(path, shapes):
    """A file of safetensors with zeros; returns its bytes."""
    tensors, end = {}, 0
    for name, shape in shapes.items():
        begin, end = end, end + 4 * math.prod(shape)
        tensors[name] = {"dtype": "F32", "shape": shape, "data_offsets": [begin, end]}
    header = json.dumps(tensors).encode()
    content = struct.pack("<Q", len(header)) + header + bytes(end)
    with open(path, "wb") as file:
        file.write(content)
    return content


class Roots(unittest.TestCase):
    def start(self, environment):
        self.fleet = fleets.Fleet(workers=0, environment=environment)
        self.addCleanup(self.fleet.close)
        self.files = write_digits(self.fleet.path("data"))
        self.outside = write_digits(self.fleet.path("database"), rows=6)

    def put(self, name, *files):
        """Its digest."""
        return self.fleet.json("dataset", "put", name, *files)["digest"]

    def assert_same_model(self, uri, content):
        stored = self.fleet.json("model", "put", "by-uri", uri)["object"]
        self.assertEqual(stored["sha256"], hashlib.sha256(content).hexdigest())

    def refused(self, exit_status, *words, files):
        done = self.fleet.run("dataset", "put", "refused", *files)
        self.assertEqual(done.returncode, exit_status, done.stdout + done.stderr)
        for word in words:
            self.assertIn(word, done.stderr)
        names = [dataset["name"] for dataset in self.fleet.json("dataset", "list")["datasets"]]
        self.assertNotIn("refused", names)


class InAFolder(Roots):
    def setUp(self):
        self.start({})
        self.fleet.environment = {"CHAINFLEET_DATASET_ROOT": self.fleet.path("data")}
        self.fleet.up()

    def test_a_data_set_by_file_is_the_one_that_is_uploaded(self):
        digest = self.put("uploaded", *self.files)
        self.assertEqual(self.put("read", *(f"file://{path}" for path in self.files)), digest)
        self.assertEqual(self.put("mixed", f"file://{self.files[0]}", self.files[1]), digest)
        self.assertEqual(self.put("read", *self.files), digest, "the same content again is fine")

    def test_a_model_by_file_is_the_one_in_the_file(self):
        path = self.fleet.path("data", "map.safetensors")
        self.assert_same_model(f"file://{path}", write_weights(path, {"fc1.bias": (4,)}))
        for refused, words in ((f"file://{self.fleet.path('secret')}", "--dataset-root"), ("no-such-file", "no-such-file")):
            done = self.fleet.run("model", "put", "refused", refused)
            self.assertNotEqual(done.returncode, 0)
            self.assertIn(words, done.stderr)

    def test_a_job_starts_at_the_file_of_its_uri(self):
        path = self.fleet.path("data", "map.safetensors")
        content = write_weights(path, {"fc1.weight": (3, 16), "fc1.bias": (3,)})
        self.put("digits", *self.files)
        uri = f"file://{path}"
        for _ in range(2):
            job = self.fleet.json("describe", self.fleet.submit(START.replace("URI", uri)))
        stored = self.fleet.json("model", "list")["models"]
        self.assertEqual([model["object"]["sha256"] for model in stored], [hashlib.sha256(content).hexdigest()])
        self.assertEqual(job["spec"]["init"]["weights"], [stored[0]["name"]])
        request = {"spec": {**job["spec"], "name": "http", "init": {"weights": [uri]}}}
        connection = http.client.HTTPConnection(self.fleet.http_address, timeout=60)
        self.addCleanup(connection.close)
        connection.request("POST", "/v1/jobs", json.dumps(request), {"Content-Type": "application/json"})
        answer = connection.getresponse()
        made = json.load(answer)
        self.assertEqual(answer.status, http.client.OK, made)
        self.assertEqual(made["spec"]["init"]["weights"], [stored[0]["name"]])
        outside = self.fleet.submit_status(START.replace("URI", f"file://{self.outside[0]}"))
        self.assertEqual(outside.returncode, 4, outside.stderr)
        self.assertIn("init.weights[0]: ", outside.stderr)

    def test_outside_the_root_nothing_is_read(self):
        labels = self.files[1]
        link = self.fleet.path("data", "link-images-idx3-ubyte")
        os.symlink(self.outside[0], link)
        for path in (self.outside[0], link, self.fleet.path("data", "..", "database", "images-idx3-ubyte"),
                     self.fleet.path("data", "%2e%2e", "database", "images-idx3-ubyte"), "/no/such/images-idx3-ubyte"):
            self.refused(4, f"file://{path}", "--dataset-root", files=[f"file://{path}", labels])
        self.refused(4, "s3://bucket/key", "--dataset-root", files=["s3://bucket/key", labels])

    def test_files_that_cannot_be_read_are_named(self):
        folder = self.fleet.path("data")
        self.refused(3, f"file://{folder}/missing", files=[f"file://{folder}/missing", self.files[1]])
        self.refused(1, f"file://{folder}", "regular file", files=[f"file://{folder}"])
        self.refused(1, "http://host/x", "s3://BUCKET/KEY", files=["http://host/x"])
        self.refused(1, "file://other/x", "three slashes", files=["file://other/x"])
        self.refused(1, "file:///x%", "%25", files=["file:///x%"])
        self.refused(2, "no-such-file", files=["no-such-file"])


class Without(Roots):
    def test_a_root_no_uri_is_read(self):
        self.start({})
        self.fleet.up()
        self.refused(1, f"file://{self.files[0]}", "has no --dataset-root", files=[f"file://{self.files[0]}", self.files[1]])


class Settings(unittest.TestCase):
    def refused(self, exit_status, root, *words):
        done = subprocess.run([os.path.join(fleets.BIN, "chainfleet-server"), "--dataset-root", root], capture_output=True, text=True,
                              timeout=60, env={**os.environ, "HOME": "/nonexistent"})
        self.assertEqual(done.returncode, exit_status, done.stderr)
        for word in ("--dataset-root", *words):
            self.assertIn(word, done.stderr)

    def test_a_root_that_is_none_is_refused_at_the_start(self):
        self.refused(2, "data", "data", "absolute")
        self.refused(2, "http://host/data", "s3://BUCKET/PREFIX")
        self.refused(2, "s3://B", "bucket")
        self.refused(1, "/no/such/folder", "/no/such/folder")
        self.refused(1, "s3://bucket/prefix", "AWS_ACCESS_KEY_ID")


class InS3(Roots):
    def setUp(self):
        self.s3 = with_s3.S3Server()
        self.addCleanup(self.s3.close)
        self.s3.start()
        self.start({})
        self.fleet.environment = {**self.s3.environment, "CHAINFLEET_DATASET_ROOT": f"s3://{with_s3.BUCKET}/lab/data"}
        self.fleet.up()
        for key, path in (("/lab/data/images-idx3-ubyte", self.files[0]), ("/lab/data/the%20labels-idx1-ubyte", self.files[1]),
                          ("/lab/database/images-idx3-ubyte", self.files[0])):
            with open(path, "rb") as f:
                self.assertEqual(self.s3.status_of("PUT", key, f.read()), http.client.OK)

    def test_a_model_by_s3_is_the_object_also_in_several_parts(self):
        content = write_weights(self.fleet.path("map.safetensors"), {"fc1.bias": (5 << 20,)})
        self.assertEqual(self.s3.status_of("PUT", "/lab/data/map.safetensors", content), http.client.OK)
        self.assert_same_model(f"s3://{with_s3.BUCKET}/lab/data/map.safetensors", content)

    def test_a_job_starts_at_the_object_of_its_uri(self):
        uri = f"s3://{with_s3.BUCKET}/lab/data/map"
        self.put("digits", *self.files)
        missing = self.fleet.submit_status(START.replace("URI", uri))
        self.assertEqual(missing.returncode, 3, missing.stderr)
        self.assertIn(f"init.weights[0]: {uri}", missing.stderr)
        content = write_weights(self.fleet.path("map"), {"fc1.weight": (3, 16), "fc1.bias": (3,)})
        self.assertEqual(self.s3.status_of("PUT", "/lab/data/map", content), http.client.OK)
        job = self.fleet.submit(START.replace("URI", uri))
        # The job keeps its start if the object changes.
        self.assertEqual(self.s3.status_of("PUT", "/lab/data/map", b"other"), http.client.OK)
        [name] = self.fleet.json("describe", job)["spec"]["init"]["weights"]
        stored = {model["name"]: model["object"]["sha256"] for model in self.fleet.json("model", "list")["models"]}
        self.assertEqual(stored, {name: hashlib.sha256(content).hexdigest()})
        for status, refused in ((2, uri), (4, f"s3://{with_s3.BUCKET}/lab/database/map"), (4, "s3://other/lab/data/map")):
            done = self.fleet.submit_status(START.replace("URI", refused))
            self.assertEqual(done.returncode, status, done.stderr)
            self.assertIn(f"init.weights[0]: {refused}", done.stderr)

    def test_a_data_set_by_s3_is_the_one_that_is_uploaded(self):
        root = f"s3://{with_s3.BUCKET}/lab/data"
        digest = self.put("uploaded", *self.files)
        self.assertEqual(self.put("read", f"{root}/images-idx3-ubyte", f"{root}/the%20labels-idx1-ubyte"), digest)
        self.assertEqual(self.put("mixed", f"{root}/images-idx3-ubyte", self.files[1]), digest)
        for outside in (f"{root}base/images-idx3-ubyte", f"s3://{with_s3.BUCKET}/.ready", "s3://other/lab/data/images-idx3-ubyte",
                        f"file://{self.files[0]}"):
            self.refused(4, outside, "--dataset-root", files=[outside, self.files[1]])
        self.refused(1, "/../", files=[f"{root}/../database/images-idx3-ubyte", self.files[1]])
        self.refused(3, f"{root}/missing", files=[f"{root}/missing", self.files[1]])
        self.refused(3, f"s3://{with_s3.BUCKET}/lab/data/deeper", files=[f"{root}/deeper", self.files[1]])


if __name__ == "__main__":
    unittest.main(verbosity=2)
