"""Stores and servers that are away for a while: chains wait, clients repeat, and nothing counts against a job."""
import os
import signal
import subprocess
import time
import unittest
import urllib.request

import fleet as fleets

# Resume points of this dimension are objects, and segments come several times a second.
JOB = """
name: patient
model: {{potential: {{gaussian: {{dimension: 20000}}}}}}
sampler: {{sgld: {{}}}}
step_size: {{constant: 0.1}}
num_steps: {steps}
chains: 4
collect: {{every_steps: {every}, segment_draws: 1}}
resume_point_every_steps: {every}
seed: 7
"""
STEPS, EVERY = 30000, 300
PATIENCE = 60


def has_ended(pid):
    try:
        with open(f"/proc/{pid}/stat") as f:
            return f.read().rsplit(")", 1)[1].split()[0] == "Z"
    except FileNotFoundError:
        return True


class Stores(unittest.TestCase):
    def setUp(self):
        # Long leases: a machine that stands still for a while must not look like a chain that was lost.
        self.fleet = fleets.Fleet(workers=2, lease_seconds=PATIENCE)
        self.addCleanup(self.fleet.close)
        self.fleet.up()

    def until(self, what, happened):
        end = time.monotonic() + PATIENCE
        while not happened():
            self.assertLess(time.monotonic(), end, f"{what}\n{self.fleet.logs()}")
            self.fleet.run("get", "workers", "--timeout", "200ms")  # a pause

    def finish(self, job):
        """Each chain under its first lease: what the fault cost is no attempt."""
        self.fleet.run("wait", job, "--timeout", "240s", check=True)
        chains = self.fleet.json("get", "chains", job)["chains"]
        self.assertEqual([(chain["state"], int(chain["lease_epoch"])) for chain in chains], [("SUCCEEDED", 1)] * 4, self.fleet.logs())
        self.assertEqual(sum(int(chain["num_draws"]) for chain in chains), 4 * STEPS // EVERY)

    def test_a_server_that_is_restarted_under_load_costs_no_attempt_and_no_call(self):
        job = self.fleet.submit(JOB.format(steps=STEPS, every=EVERY))
        self.fleet.wait_for_draws(job, 8)
        client = [os.path.join(fleets.BIN, "chainfleet"), "get", "draws", job, "-o", "json", "--timeout", f"{PATIENCE}s", "--address", self.fleet.address]
        for _ in range(2):
            pid = self.fleet.pid("server")
            calls = [subprocess.Popen(client, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True) for _ in range(4)]
            os.kill(pid, signal.SIGTERM)
            late = subprocess.Popen(client, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
            self.until("the server ends", lambda: has_ended(pid))
            self.fleet.up()
            for call in calls + [late]:
                said = call.communicate(timeout=PATIENCE)[1]
                self.assertEqual(call.returncode, 0, said)
        self.finish(job)

    def test_chains_wait_for_a_folder_of_objects_that_is_gone(self):
        job = self.fleet.submit(JOB.format(steps=STEPS, every=EVERY))
        self.fleet.wait_for_draws(job, 8)
        blobs = self.fleet.path("blobs")
        os.rename(blobs, blobs + ".away")  # as a mount that is lost
        os.mkdir(blobs)
        self.until("chains wait", lambda: all("uploads wait" in text for name, text in self.fleet.logged().items() if "worker" in name))
        self.assertEqual(os.listdir(blobs), [], "what is written below a bare mount point is lost")
        exported = self.fleet.run("export", job, "--format", "npz", "--output", self.fleet.path("away.npz"), "--timeout", "1s")
        self.assertEqual(exported.returncode, 5, exported.stderr)
        self.assertIn("is gone: mount it", exported.stderr)
        os.rmdir(blobs)
        os.rename(blobs + ".away", blobs)
        self.finish(job)

    def test_an_object_that_is_gone_costs_its_own_draws_alone(self):
        job = self.fleet.submit(JOB.format(steps=3000, every=30))
        self.fleet.run("wait", job, check=True)
        records = self.fleet.json("get", "draws", job)["segments"]
        self.assertEqual(len(records), 400)
        os.remove(self.fleet.path("blobs", records[17]["segment"]["object"]["name"]))
        for _ in range(2):  # found, and marked
            exported = self.fleet.run("export", job, "--format", "npz", "--output", self.fleet.path("draws.npz"), check=True)
            self.assertIn("399 of 400 draws", exported.stdout)
            self.assertIn("left out", exported.stderr)
        with urllib.request.urlopen(f"http://{self.fleet.metrics_address}/metrics", timeout=10) as reply:
            self.assertIn("\nchainfleet_corrupt_segments 1\n", reply.read().decode())

    def test_a_damaged_resume_point_is_waited_for(self):
        job = self.fleet.submit(JOB.format(steps=STEPS, every=EVERY))
        self.fleet.wait_for_draws(job, 8)
        self.fleet.run("pause", job, check=True)
        self.until("all chains rest", lambda: not any(c.get("worker") for c in self.fleet.json("get", "chains", job)["chains"]))
        folder = self.fleet.path("blobs")
        objects = [os.path.join(where, name) for where, _, names in os.walk(folder) for name in names if "/resume/" in where + "/"]
        self.assertGreaterEqual(len(objects), 4)
        for path in objects:
            os.rename(path, path + ".away")
        self.fleet.run("resume", job, check=True)

        def said():
            chains = self.fleet.json("get", "chains", job)["chains"]
            return all("waits for the store" in chain.get("reason", "") for chain in chains)

        self.until("the chains say why they wait", said)
        for path in objects:
            os.rename(path + ".away", path)
        self.fleet.run("wait", job, "--timeout", "240s", check=True)


if __name__ == "__main__":
    unittest.main(verbosity=2)
