"""Evaluations as operations: they go on without their caller, over the deaths of a server and of a worker."""
import signal
import unittest

from started_fleet import StartedFleet

JOB = """
name: scored
model: {builtin: softmax_regression}
dataset: {name: fashion}
prior: {gaussian: {precision: 10}}
sampler: {sgld: {}}
learning_rate: {constant: 0.01}
batch_size: 50
num_epochs: 4
chains: 3
collect: {every_steps: 2}
seed: 7
"""


class Evaluations(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.fleet = StartedFleet()
        cls.addClassCleanup(cls.fleet.close)
        cls.fleet.start_server()
        for index in range(2):
            cls.fleet.start_worker(index)
        cls.fleet.wait_until_served()
        cls.fleet.put_fashion("fashion", 2000)
        cls.job = cls.fleet.submit(JOB)
        cls.fleet.run("wait", cls.job, "--timeout", "300s", check=True)

    def states(self):
        return {row["id"]: row["state"] for row in self.fleet.json("get", "evaluations", self.job)["evaluations"]}

    def signal_workers(self, what):
        for index in range(2):
            self.fleet.processes[f"worker-{index}"].send_signal(what)

    def start(self):
        return self.fleet.run("evaluate", self.job, "--dataset", "fashion", "--ood", "fashion", "--detach", "-o", "name",
                              check=True).stdout.strip()

    def test_it_outlives_the_server_and_a_worker_with_the_same_numbers(self):
        calm = self.fleet.json("evaluate", self.job, "--dataset", "fashion", "--ood", "fashion")
        self.signal_workers(signal.SIGSTOP)  # so that it is in the middle of it
        evaluation = self.start()
        self.assertEqual(self.states()[evaluation], "RUNNING")
        self.fleet.kill("server-0")
        self.fleet.kill("worker-0")
        self.fleet.start_server()
        self.fleet.wait_until_served()
        self.assertEqual(self.states()[evaluation], "RUNNING", "it is known to the new one")
        self.fleet.processes["worker-1"].send_signal(signal.SIGCONT)
        again = self.fleet.json("evaluate", "--attach", evaluation, "--timeout", "120s")
        self.assertEqual(again, {**calm, "id": evaluation})
        self.assertEqual(self.states()[evaluation], "SUCCEEDED")
        self.fleet.start_worker(0)

    def test_it_can_be_cancelled(self):
        self.signal_workers(signal.SIGSTOP)
        evaluation = self.start()
        cancelled = self.fleet.run("evaluate", "--cancel", evaluation, check=True)
        self.signal_workers(signal.SIGCONT)
        self.assertEqual((cancelled.stdout, self.states()[evaluation]), (f"{evaluation} CANCELLED\n", "CANCELLED"))

    def test_it_is_found_by_its_id_under_both_words(self):
        for target in ("eval-nobody", "nobody"):
            none = self.fleet.run("get", "evaluation", target)
            self.assertEqual(none.returncode, 3)
            self.assertIn(f"no evaluation {target}, and no job {target}: ", none.stderr)
        evaluation = self.fleet.run("evaluate", self.job, "--dataset", "fashion", "--detach", "-o", "name", check=True).stdout.strip()
        for kind in ("evaluation", "evaluations"):
            self.assertEqual(self.fleet.run("get", kind, evaluation, "-o", "name", check=True).stdout, evaluation + "\n")
        for kind, name in (("evaluation", evaluation), ("dataset", "fashion"), ("job", self.job), ("worker", "worker-0")):
            for word in (kind, kind + "s"):
                self.assertEqual(self.fleet.run("describe", word, name, "-o", "name", check=True).stdout, name + "\n")
        refused = self.fleet.run("describe", "aliases", "nobody")
        self.assertIn("no alias nobody", refused.stderr)
        self.assertEqual(self.fleet.run("describe", "thing", "nobody").returncode, 2)
        self.fleet.run("evaluate", "--attach", evaluation, "--timeout", "120s", check=True)

    def test_it_runs_beside_a_chain_that_goes_on(self):
        calm = self.fleet.json("evaluate", self.job, "--dataset", "fashion")
        endless = JOB.replace("name: scored", "name: beside").replace("num_epochs: 4", "num_epochs: 1000000").replace("chains: 3", "chains: 2")
        beside = self.fleet.submit(endless.replace("every_steps: 2", "every_steps: 500"))
        self.fleet.wait_for_draws(beside, 2)
        again = self.fleet.json("evaluate", self.job, "--dataset", "fashion")
        self.assertNotEqual(again["id"], calm["id"])
        self.assertEqual({**again, "id": calm["id"]}, calm)
        self.fleet.wait_for_draws(beside, int(self.fleet.json("get", "jobs", beside)["num_draws"]) + 2)
        self.assertEqual([chain["lease_epoch"] for chain in self.fleet.json("get", "chains", beside)["chains"]], ["1", "1"])
        self.fleet.run("cancel", beside, check=True)

    def test_it_prints_its_id(self):
        asked = ["evaluate", self.job, "--dataset", "fashion"]
        named = self.fleet.run(*asked, "-o", "name", check=True)
        self.assertRegex(named.stdout, r"^eval-[a-z0-9]{10}\n$")
        self.assertEqual(self.states()[named.stdout.strip()], "SUCCEEDED")
        self.assertEqual(self.fleet.run("evaluate", "--attach", named.stdout.strip(), "-o", "name", check=True).stdout, named.stdout)
        shown = self.fleet.run(*asked, check=True)
        self.assertIn(shown.stderr.split()[1], self.states(), shown.stderr)
        every = self.fleet.run(*asked, "--point", "all", "-o", "name", check=True).stdout.split()
        self.assertLessEqual(set(every), self.states().keys())

    def test_it_reads_the_draws_that_are_chosen(self):
        asked = ["evaluate", self.job, "--dataset", "fashion", "--detach"]
        evaluation = self.fleet.run(*asked, "--chains", "0,2", "--members", "1", "--kinds", "theta", check=True).stdout.strip()
        self.assertEqual(int(self.fleet.json("evaluate", "--attach", evaluation)["draws_used"]), 2)

    def test_options_that_would_be_ignored_are_refused(self):
        for more in (["--ood", "fashion"], ["--corruptions", "fog"], ["--curve", "3"], ["--calibrate", "fashion"], ["--stack", "fashion"],
                     ["--flatness"], ["--ece-bins", "5"], ["--chains", "0"], ["--include-failed"], ["--detach"], ["--point", "all"]):
            for verb in ("--attach", "--cancel"):
                refused = self.fleet.run("evaluate", verb, "eval-none", *more)
                self.assertEqual((refused.returncode, "alone" in refused.stderr), (2, True), (verb, more, refused.stderr))

    def test_wrong_options_are_refused_with_the_right_ones(self):
        self.assertEqual(self.fleet.run("evaluate", "--attach", "eval-none").returncode, 3)
        both = self.fleet.run("evaluate", self.job, "--attach", "eval-none")
        self.assertEqual((both.returncode, "leave JOB" in both.stderr), (2, True), both.stderr)
        self.assertEqual(self.fleet.run("evaluate", self.job).returncode, 2)
        self.assertEqual(self.fleet.run("evaluate", self.job, "--dataset", "fashion", "--curve", "-3").returncode, 2)
        typo = self.fleet.run("evaluate", self.job, "--dataset", "fashion", "--corruptions", "foog")
        self.assertEqual((typo.returncode, "pixelate" in typo.stderr), (1, True), typo.stderr)
        many = self.fleet.run("evaluate", self.job, "--dataset", "fashion", "--curve", "1000")
        self.assertEqual((many.returncode, "0 to 64" in many.stderr), (1, True), many.stderr)


if __name__ == "__main__":
    unittest.main(verbosity=2)
