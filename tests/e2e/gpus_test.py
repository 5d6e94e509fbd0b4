"""A host with two GPUs, fake ones (tests/support/fake_cuda), whose module lies next to copies of the programs."""
import os
import shutil
import subprocess
import tempfile
import unittest
import unittest.mock

import fleet as fleets

JOB = """
name: small
model: {builtin: softmax_regression}
dataset: {name: fashion}
sampler: {sgld: {}}
learning_rate: {constant: 0.01}
temperature: 1.0e-4
batch_size: 50
num_epochs: 4
chains: 4
collect: {last_epochs_of_cycle: 2}
"""
PART = "MIG-8f6ae3a4-91d9-4f0e-b6f2-0123456789ab"


class Gpus(unittest.TestCase):
    def setUp(self):
        programs = self.enterContext(tempfile.TemporaryDirectory())
        module = os.path.join(fleets.BIN, "..", "tests", "fake_cuda", "libchainfleet_cuda.so")
        for file in (*(os.path.join(fleets.BIN, name) for name in ("chainfleet", "chainfleet-server", "chainfleet-worker")), module):
            shutil.copy(file, programs)
        self.enterContext(unittest.mock.patch.object(fleets, "BIN", programs))

    def up(self, devices):
        fleet = fleets.Fleet(workers=2)
        self.addCleanup(fleet.close)
        fleet.up("--device", devices)
        return fleet, [worker["device"] for worker in fleet.json("get", "workers")["workers"]]

    def test_each_gpu_of_a_list_has_a_worker(self):
        self.assertEqual(self.up("cuda:0,cuda:1")[1], ["cuda:0", "cuda:1"])

    def test_a_part_of_a_gpu_steps_chains_and_says_what_they_take(self):
        fleet, devices = self.up(f"{PART},cuda:0")
        self.assertEqual(devices, ["cuda:0", "cuda:0"])
        fleet.put_fashion("fashion", 500)
        job = fleet.submit(JOB)
        fleet.run("wait", job, check=True)
        made_by = {(record["worker"], record["device_kind"]) for record in fleet.json("get", "draws", job)["segments"]}
        self.assertEqual(made_by, {("worker-0", "cuda"), ("worker-1", "cuda")})
        for chain in fleet.json("describe", job)["chains"]:
            self.assertGreater(int(chain["stats"]["device_bytes"]), 2 * 7850 * 4)  # theta and its gradient

    def test_a_gpu_given_by_its_name_is_the_only_one_that_cuda_sees(self):
        worker = subprocess.Popen([os.path.join(fleets.BIN, "chainfleet-worker"), "--server", "127.0.0.1:1", "--device", PART, "--metrics-port", "auto"],
                                  stderr=subprocess.PIPE, text=True)
        self.addCleanup(worker.stderr.close)
        self.addCleanup(worker.wait)
        self.addCleanup(worker.kill)
        for line in worker.stderr:
            if "no metrics of GPUs" in line:
                break
        self.assertIn(f"CUDA_VISIBLE_DEVICES={PART} names no number for cuda:0", line)


if __name__ == "__main__":
    unittest.main()
