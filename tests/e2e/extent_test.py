"""How much is drawn after all: jobs that end when their chains agree, and chains that are added to a running job."""
import contextlib
import re
import sqlite3
import tempfile
import unittest

import fleet as fleets
import started_fleet

# Steps enough for days: what ends this job is its rule.
JOB = """
name: {name}
model: {{potential: {{gaussian: {{dimension: 2, covariance: [4, 2, 2, 3], mean: [1, 0]}}}}}}
sampler: {{hmc: {{leapfrog_steps: 6}}}}
step_size: {{constant: 0.7}}
num_steps: 2000000000
burn_in: {{steps: 100}}
chains: 2
collect: {{every_steps: 500}}
seed: 1
{more}
"""


FOUR_CHAINS = JOB.format(name="kept", more="trace_every: 5\ninit: {theta: [0, 0, 2, 1]}").replace("chains: 2", "chains: 4")
STORED_TRACES = "SELECT count(*) FROM findings WHERE part = 'traces while running' AND length(body) > 40000"


def check_diagnostics(test, fleet, job, by):
    """A server that heard of no new step has what another one before it found of FOUR_CHAINS."""
    fleet.wait_until(by, lambda _: fleet.json("get", "jobs", job).get("diagnostics"))
    found = fleet.json("get", "jobs", job)["diagnostics"][0]
    test.assertEqual(found["quantity"], "energy")
    test.assertGreaterEqual(int(found["values"]), 4)
    test.assertGreaterEqual(found["nested_rhat"], 1)
    test.assertRegex(fleet.run("describe", job, check=True).stdout, r"(?m)^QUANTITY .* NESTED R-HAT$")


def draws_of(state):
    return [int(chain.get("num_draws", 0)) for chain in state["chains"]]


class Served(unittest.TestCase):
    def setUp(self):
        self.fleet = fleets.Fleet(workers=1)
        self.addCleanup(self.fleet.close)
        self.fleet.up()

    def submit(self, name, more=""):
        return self.fleet.submit(JOB.format(name=name, more=more))


class StopRules(Served):
    def test_a_job_ends_when_its_chains_agree_and_says_what_it_found(self):
        rule = "until: {rhat_below: 1.01, ess_above: 400}\ntrace_every: 5"
        job = self.submit("agree", rule)
        self.fleet.run("wait", job, "--timeout", "120s", check=True)
        state = self.fleet.json("get", "jobs", job)
        self.assertEqual(state["state"], "SUCCEEDED")
        self.assertLess(int(state["steps_done"]), int(state["steps_total"]))
        stopped, = state["stopped"]
        rhat, ess, values = re.fullmatch(
            r"R-hat (\S+) is below 1.01, ESS (\S+) above 400, over (\d+) values of each of 2 chains", stopped["why"]).groups()
        self.assertLess(float(rhat), 1.01)
        self.assertGreater(float(ess), 400)
        self.assertGreaterEqual(int(values), 100)
        chains = self.fleet.json("get", "chains", job)["chains"]
        self.assertEqual({(chain["state"], chain["reason"]) for chain in chains}, {("SUCCEEDED", stopped["why"])})
        described = self.fleet.run("describe", job, check=True).stdout
        self.assertRegex(described, r"(?m)^Until +R-hat is below 1.01 and ESS above 400$")
        self.assertRegex(described, rf"(?m)^Enough +{re.escape(stopped['why'])}$")
        snapshots = self.fleet.json("get", "snapshots", job)["snapshots"]
        self.assertEqual(int(snapshots[-1]["num_draws"]), int(state["num_draws"]), "what was drawn is served")

    def test_a_job_ends_when_its_chains_have_forgotten_their_starts(self):
        rule = "until: {nested_rhat_below: 1.05}\ntrace_every: 5\ninit: {theta: [9, 9, -9, -9]}"
        job = self.fleet.submit(JOB.format(name="forget", more=rule).replace("chains: 2", "chains: 4"))
        self.fleet.run("wait", job, "--timeout", "120s", check=True)
        self.assertRegex(self.fleet.json("get", "jobs", job)["stopped"][0]["why"],
                         r"^nested R-hat 1\.\d+ is below 1.05, over \d+ values of each of 4 chains$")
        refused = self.fleet.submit_status(JOB.format(name="alone", more="until: {nested_rhat_below: 1.05}"))
        self.assertEqual(refused.returncode, 2)
        self.assertRegex(refused.stderr, r":\d+: until.nested_rhat_below: compares starts that chains share")

    def test_a_job_ends_after_so_many_draws(self):
        job = self.submit("count", "until: {max_draws: 50}")
        self.fleet.run("wait", job, "--timeout", "120s", check=True)
        state = self.fleet.json("get", "jobs", job)
        self.assertEqual(state["state"], "SUCCEEDED")
        self.assertGreaterEqual(int(state["num_draws"]), 50)
        self.assertRegex(state["stopped"][0]["why"], r"max_draws 50 is reached: \d+ committed")

    def test_a_rule_that_cannot_hold_is_refused_at_its_line(self):
        refused = self.fleet.submit_status(JOB.format(name="short", more="until: {rhat_below: 0.9}"))
        self.assertEqual(refused.returncode, 2)
        self.assertRegex(refused.stderr, r":\d+: until.rhat_below: must be above 1, is 0.9")


class Restart(unittest.TestCase):
    def most_traces_are_stored(self):
        with contextlib.closing(sqlite3.connect(f"file:{self.fleet.data(0)}/state.db?mode=ro", uri=True)) as state:
            return state.execute(STORED_TRACES).fetchone() == (1,)

    def test_a_killed_server_goes_on_with_the_diagnostics_of_a_running_job(self):
        self.fleet = started_fleet.StartedFleet()
        self.addCleanup(self.fleet.close)
        self.fleet.start_server()
        self.fleet.start_worker(0)
        self.fleet.wait_until_served()
        job = self.fleet.submit(FOUR_CHAINS)
        next(state for state in self.fleet.watch(job) if self.most_traces_are_stored())
        self.fleet.kill("worker-0")
        self.fleet.kill("server-0")
        self.fleet.start_server()
        self.fleet.wait_until_served()
        check_diagnostics(self, self.fleet, job, by=0)


class AddedChains(Served):
    def test_added_chains_draw_beside_those_that_run(self):
        with tempfile.NamedTemporaryFile("w", suffix=".yaml") as file:
            file.write(JOB.format(name="grow", more=""))
            file.flush()
            submit = lambda: self.fleet.run("submit", "-f", file.name, "-o", "name", "--request-id", "r", check=True).stdout.strip()
            job = submit()
            before = next(draws_of(state) for state in self.fleet.watch(job) if min(draws_of(state)) > 0)
            scaled = self.fleet.json("scale", job, "--chains", "4")
            self.assertEqual(int(scaled["num_chains"]), 4)
            self.assertEqual(submit(), job, "the request still finds its job")
        state = next(state for state in self.fleet.watch(job) if len(state["chains"]) == 4 and min(draws_of(state)) > 0)
        for old, chain in zip(before, state["chains"]):
            self.assertGreaterEqual(int(chain["num_draws"]), old)
            self.assertEqual(int(chain["lease_epoch"]), 1, "those that ran went on as they were")
        self.assertEqual(self.fleet.run("scale", job, "--chains", "3").returncode, 1)
        self.fleet.run("abort", job, check=True)
        self.fleet.run("wait", job, "--timeout", "60s", check=True)
        draws = self.fleet.json("get", "draws", job)
        segments = draws["segments"] if isinstance(draws, dict) else draws
        self.assertEqual({int(segment["chain"].get("index", 0)) for segment in segments}, {0, 1, 2, 3})
        refused = self.fleet.run("scale", job, "--chains", "5")
        self.assertEqual(refused.returncode, 1)
        self.assertIn("has ended", refused.stderr)


if __name__ == "__main__":
    unittest.main(verbosity=2)
