"""Tenants by their tokens, and the tiers, preemption and success policy that they share a fleet under."""
import os
import tempfile
import unittest

import fleet as fleets

# A chain that draws until it is told otherwise: the fleet stays full for as long as a test looks at it.
JOB = """
name: {name}
model: {{potential: {{gaussian: {{dimension: 2}}}}}}
sampler: {{sgld: {{}}}}
step_size: {{constant: 0.1}}
num_steps: {steps}
chains: {chains}
collect: {{every_steps: {every}}}
scheduling: {{{scheduling}}}
seed: 7
"""
LONG = 2_000_000_000


def job(name, chains=1, steps=LONG, every=1_000_000, **scheduling):
    return JOB.format(name=name, chains=chains, steps=steps, every=every, scheduling=", ".join(f"{k}: {v}" for k, v in scheduling.items()))


def leased(state):
    return sum(chain["state"] == "LEASED" for chain in state.get("chains", []))


class Tenants(unittest.TestCase):
    def setUp(self):
        tokens = tempfile.NamedTemporaryFile("w", suffix=".tokens")
        tokens.write("everybody\none tenant-one\nthree tenant-three\n")
        tokens.flush()
        self.addCleanup(tokens.close)
        self.fleet = fleets.Fleet(workers=1, environment={"CHAINFLEET_TOKEN_FILE": tokens.name})
        self.addCleanup(self.fleet.close)
        self.fleet.up()

    def test_a_tenant_sees_its_own_jobs_alone(self):
        one, three = {"CHAINFLEET_TOKEN": "one"}, {"CHAINFLEET_TOKEN": "three"}
        with tempfile.NamedTemporaryFile("w", suffix=".yaml") as file:
            file.write(job("walk", steps=100, every=10))
            file.flush()
            mine = self.fleet.run("submit", "-f", file.name, "-o", "name", "--request-id", "r", check=True, env=one).stdout.strip()
            theirs = self.fleet.run("submit", "-f", file.name, "-o", "name", "--request-id", "r", check=True, env=three).stdout.strip()
        self.assertNotEqual(mine, theirs)
        self.assertEqual(self.fleet.json("get", "jobs", "walk", env=one)["id"], mine)
        self.assertEqual(self.fleet.json("get", "jobs", "walk", env=one)["tenant"], "tenant-one")
        self.assertEqual(self.fleet.json("get", "jobs", "walk", env=three)["id"], theirs)
        self.fleet.run("wait", mine, "--timeout", "60s", check=True, env=one)
        self.assertEqual(self.fleet.run("get", "jobs", mine, env=three).returncode, 3)
        self.assertEqual(self.fleet.run("cancel", mine, env=three).returncode, 3)
        self.assertEqual(self.fleet.run("get", "jobs", mine).returncode, 3, "nor does the tenant of a token without a name")
        self.assertEqual(self.fleet.run("get", "jobs", mine, env={"CHAINFLEET_TOKEN": "wrong"}).returncode, 4)


if __name__ == "__main__":
    unittest.main(verbosity=2)
