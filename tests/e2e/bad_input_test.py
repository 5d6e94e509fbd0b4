"""Bad input gets one clear error with the right exit status, and nothing that was committed is lost."""
import os
import re
import socket
import struct
import subprocess
import tempfile
import unittest

import fleet as fleets

GOOD = """
name: small
model: {builtin: softmax_regression}
dataset: {name: fashion}
sampler: {sgld: {}}
learning_rate: {constant: 0.01}
temperature: 1.0e-4
batch_size: 50
num_epochs: 4
chains: 2
collect: {last_epochs_of_cycle: 2}
"""


class Refusals(unittest.TestCase):
    """A fleet with a worker and 500 images of fashion-MNIST."""

    @classmethod
    def setUpClass(cls):
        cls.fleet = fleets.Fleet(workers=1)
        cls.fleet.up()
        cls.addClassCleanup(cls.fleet.close)
        cls.fleet.put_fashion("fashion", 500)

    def refused(self, exit_status, *words, arguments=None, job=None):
        """The command fails with this status and one error that has all the words; returns it."""
        if job is not None:
            path = self.fleet.path("bad.yaml")
            with open(path, "w") as f:
                f.write(job)
            arguments = ["submit", "-f", path]
        done = self.fleet.run(*arguments)
        self.assertEqual(done.returncode, exit_status, done.stdout + done.stderr)
        self.assertEqual(len(re.findall("^error: ", done.stderr, re.M)), 1, done.stderr)
        for word in words:
            self.assertIn(word, done.stderr)
        return done.stderr


class BadInput(Refusals):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.job = cls.fleet.submit(GOOD)
        cls.fleet.run("wait", cls.job, "--timeout", "120s", check=True)

    def tearDown(self):
        self.assertEqual(len(self.fleet.json("get", "draws", self.job)["segments"]) > 0, True)

    def test_missing_data_set(self):
        self.refused(3, "nowhere", "dataset", job=GOOD.replace("{name: fashion}", "{name: nowhere}"))

    def test_malformed_yaml_names_its_line(self):
        self.refused(2, "bad.yaml:3", job=GOOD.replace("{builtin: softmax_regression}", "{builtin: [softmax_regression"))

    def test_unknown_field_names_its_line_and_what_is_allowed(self):
        self.refused(2, "bad.yaml:6", "learning_rat", "learning_rate", job=GOOD.replace("learning_rate:", "learning_rat:"))

    def test_negative_step_size(self):
        self.refused(2, "bad.yaml:6", "learning_rate", "-0.01", job=GOOD.replace("0.01", "-0.01"))

    def test_unknown_model_names_the_known_ones(self):
        self.refused(2, "bad.yaml:3", "lenet6", "lenet5", job=GOOD.replace("softmax_regression", "lenet6"))

    def test_dry_run_stores_nothing(self):
        before = self.fleet.json("get", "jobs")
        path = self.fleet.path("dry.yaml")
        with open(path, "w") as f:
            f.write(GOOD)
        self.fleet.run("submit", "-f", path, "--dry-run", check=True)
        self.refused(2, "--follow", arguments=["submit", "-f", path, "--dry-run", "--follow"])
        self.assertEqual(self.fleet.json("get", "jobs"), before)

    def test_missing_job(self):
        self.refused(3, "no-such-job", arguments=["describe", "no-such-job"])

    def test_usage(self):
        self.assertEqual(self.fleet.run("submit").returncode, 2)
        alone = self.fleet.run(check=True)
        self.assertIn("Usage: chainfleet", alone.stdout)

    def test_no_server(self):
        done = self.fleet.run("get", "jobs", "--timeout", "1s", env={"CHAINFLEET_ADDRESS": "127.0.0.1:1"})
        self.assertEqual(done.returncode, 5, done.stderr)
        self.assertIn("127.0.0.1:1", done.stderr)

    def test_predict_input_of_the_wrong_shape(self):
        path = self.fleet.path("x.npy")
        fleets.write_npy(path, "<f4", (2, 10), b"\0" * 80)
        self.refused(1, "[2, 10]", "28", arguments=["predict", self.job, "--input", path])

    def test_predict_input_of_the_wrong_type(self):
        path = self.fleet.path("x.npy")
        fleets.write_npy(path, "<i8", (1, 1, 28, 28), b"\0" * 8 * 784)
        self.refused(1, "i8", arguments=["predict", self.job, "--input", path])

    def test_broken_data_set_file(self):
        path = self.fleet.path("broken-images-idx3-ubyte")
        with open(path, "wb") as f:
            f.write(struct.pack(">IIII", 2051, 10, 28, 28) + b"\0" * 100)
        self.refused(1, "broken-images-idx3-ubyte", arguments=["dataset", "put", "broken", path])

    def test_data_that_looks_wrong_is_stored_with_a_warning(self):
        x, y = self.fleet.path("last.npy"), self.fleet.path("labels.npy")
        fleets.write_npy(x, "|u1", (3, 8, 8, 3), b"\1" * 3 * 192)
        fleets.write_npy(y, "|u1", (3,), b"\0\1\3")
        done = self.fleet.run("dataset", "put", "last", x, y, check=True)
        self.assertRegex(done.stderr, "warning: inputs of shape .8, 8, 3. look like images whose channels come last.*\nwarning: no row has label 2, but")
        self.fleet.run("delete", "dataset", "last", "--yes", check=True)

    def test_data_set_with_a_size_of_zero(self):
        x, y = self.fleet.path("x.npy"), self.fleet.path("y.npy")
        fleets.write_npy(y, "<i8", (5,), b"\0" * 40)
        for shape in ((5, 0, 28, 28), (5, 2**50, 0, 8)):
            fleets.write_npy(x, "<f4", shape, b"")
            self.refused(1, "x.npy", str(list(shape)), "the size of each axis must be at least 1", arguments=["dataset", "put", "empty", x, y])
        self.assertEqual([d["name"] for d in self.fleet.json("dataset", "list")["datasets"]], ["fashion"], "the server still answers")

    def test_address_without_a_port(self):
        for program in ("chainfleet-server", "chainfleet up"):
            done = subprocess.run([os.path.join(fleets.BIN, program.split()[0]), *program.split()[1:], "--listen", "7560"],
                                  capture_output=True, text=True, timeout=60)
            self.assertEqual(done.returncode, 2, done.stderr)
            self.assertIn('--listen: "7560" is not HOST:PORT', done.stderr)

    def test_settings_file_says_file_and_line(self):
        path = self.fleet.path("settings.toml")
        for program in ("chainfleet-server", "chainfleet-worker"):
            for line, wrong in (("bogus = 3", "bogus"), ("threads = many", "many")):
                with open(path, "w", encoding="utf-8") as f:
                    f.write(f"# settings\nlog-level = info\n{line}\n")
                done = subprocess.run([os.path.join(fleets.BIN, program), "--config", path], capture_output=True, text=True, timeout=60)
                self.assertEqual(done.returncode, 2, done.stderr)
                self.assertIn(f"{program}: {path}:3: ", done.stderr)
                self.assertIn(wrong, done.stderr)

    def test_taken_port(self):
        with socket.socket() as taken, tempfile.TemporaryDirectory() as folder:
            taken.bind(("127.0.0.1", 0))
            taken.listen()
            address = f"127.0.0.1:{taken.getsockname()[1]}"
            done = server("--data-dir", folder, "--listen", address)
            self.assertEqual(done.returncode, 1, done.stderr)
            self.assertIn(address, done.stderr)

    def test_data_directory_in_use(self):
        done = server("--data-dir", self.fleet.folder, "--listen", "127.0.0.1:0")
        self.assertEqual(done.returncode, 1, done.stderr)
        self.assertIn("in use", done.stderr)

    def test_device_of_no_kind(self):
        for device in ("frog", "MIG-12", "cuda:-1", "cuda:1x"):
            done = subprocess.run([os.path.join(fleets.BIN, "chainfleet-worker"), "--device", device], capture_output=True, text=True, timeout=60)
            self.assertEqual(done.returncode, 2, done.stderr)
            self.assertIn(f"{device} is no device: give cpu or cuda:N", done.stderr)

    def test_device_that_is_not_there(self):
        done = subprocess.run([os.path.join(fleets.BIN, "chainfleet-worker"), "--server", self.fleet.address, "--device", "cuda:0"],
                              capture_output=True, text=True, timeout=120)
        if done.returncode == 0:
            self.skipTest("this host has a GPU")
        self.assertEqual(done.returncode, 1)
        self.assertIn("cuda:0", done.stderr)


def server(*arguments):
    return subprocess.run([os.path.join(fleets.BIN, "chainfleet-server"), "--metrics-listen", "off", "--http-listen", "off", *arguments], capture_output=True,
                          text=True, timeout=60)


if __name__ == "__main__":
    unittest.main(verbosity=2)
