"""Shares of the fleet: tenants by their tokens, tiers, preemption, and a number of chains that is enough."""
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


TOKENS = {tenant: f"the-token-of-{tenant or 'everybody'}" for tenant in ("", "tenant-one", "tenant-three")}


class Tenants(unittest.TestCase):
    def setUp(self):
        tokens = tempfile.NamedTemporaryFile("w", suffix=".tokens")
        tokens.write("".join(f"{token} {tenant}\n" for tenant, token in TOKENS.items()))
        tokens.flush()
        self.addCleanup(tokens.close)
        self.fleet = fleets.Fleet(workers=1, environment={"CHAINFLEET_TOKEN_FILE": tokens.name})
        self.addCleanup(self.fleet.close)
        self.fleet.up()

    def test_a_tenant_sees_its_own_jobs_alone(self):
        one, three = {"CHAINFLEET_TOKEN": TOKENS["tenant-one"]}, {"CHAINFLEET_TOKEN": TOKENS["tenant-three"]}
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


class Scheduling(unittest.TestCase):
    SLOTS = 16  # slots of a worker on a CPU

    def setUp(self):
        self.fleet = fleets.Fleet(workers=1)
        self.addCleanup(self.fleet.close)
        self.fleet.up()

    def when(self, job, reached):
        for state in self.fleet.watch(job):
            if reached(state):
                return state
        raise AssertionError(f"{job} ended before\n{self.fleet.logs()}")

    def test_a_higher_tier_goes_first_and_the_lower_one_goes_on_from_where_it_was(self):
        low = self.fleet.submit(job("low", chains=self.SLOTS, every=1000, priority="low"))
        self.when(low, lambda state: leased(state) == self.SLOTS and all(int(c.get("num_draws", 0)) > 0 for c in state["chains"]))
        high = self.fleet.submit(job("high", chains=2, steps=1000, every=100, priority="high"))
        self.fleet.run("wait", high, "--timeout", "120s", check=True)
        back = self.when(low, lambda state: leased(state) == self.SLOTS)
        gave_way = [chain for chain in back["chains"] if int(chain["lease_epoch"]) > 1]
        self.assertEqual(len(gave_way), 2)
        for chain in gave_way:
            self.assertEqual(int(chain.get("attempts", 0)), 0)
            self.assertGreater(int(chain["num_draws"]), 0)
        self.fleet.run("abort", low, check=True)

    def test_chains_end_where_they_are_when_enough_have_succeeded(self):
        enough = self.fleet.submit(job("enough", chains=self.SLOTS + 4, steps=20000, every=100, success_chains=3))
        self.fleet.run("wait", enough, "--timeout", "120s", check=True)
        state = self.fleet.json("get", "jobs", enough)
        self.assertEqual(state["state"], "SUCCEEDED")
        chains = self.fleet.json("get", "chains", enough)["chains"]
        self.assertEqual({chain["state"] for chain in chains}, {"SUCCEEDED"})
        not_needed = [chain for chain in chains if chain.get("reason")]
        self.assertGreaterEqual(len(not_needed), 1)
        self.assertGreaterEqual(sum(int(chain.get("num_draws", 0)) == 200 for chain in chains), 3)


class Drain(unittest.TestCase):
    def test_a_drained_worker_gives_its_chains_to_the_others_for_free(self):
        fleet = fleets.Fleet(workers=2)
        self.addCleanup(fleet.close)
        fleet.up()
        walk = fleet.submit(job("walk", chains=4, every=1000))
        for state in fleet.watch(walk):
            if leased(state) == 4 and all(int(chain.get("num_draws", 0)) > 0 for chain in state["chains"]):
                break
        gone = state["chains"][0]["worker"]
        drained = fleet.json("drain", gone)
        self.assertTrue(drained["draining"])
        self.assertEqual(int(drained.get("chains", 0)), 0)
        for state in fleet.watch(walk):
            if leased(state) == 4:
                break
        self.assertNotIn(gone, {chain["worker"] for chain in state["chains"]})
        self.assertEqual({int(chain.get("attempts", 0)) for chain in state["chains"]}, {0})
        self.assertEqual(fleet.run("drain", "nobody").returncode, 3)
        fleet.run("abort", walk, check=True)


if __name__ == "__main__":
    unittest.main(verbosity=2)
