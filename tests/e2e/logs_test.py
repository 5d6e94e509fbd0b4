"""`chainfleet logs` and job.logs() of a job whose worker and server are killed."""
import json
import os
import re
import subprocess
import unittest

import fleet as fleets
import python_package  # noqa: F401  first: it says where the next ones are
import chainfleet as cf
import numpy

JOB = """
name: {name}
model: {{potential: {{gaussian: {{dimension: 2}}}}}}
sampler: {{sgld: {{}}}}
step_size: {{constant: 0.01}}
num_steps: 2000000000
chains: 2
collect: {{every_steps: 100000}}
seed: 1
"""
X = numpy.random.default_rng(7).normal(size=(600, 4)).astype(numpy.float32)


class Logs(unittest.TestCase):
    def setUp(self):
        self.fleet = fleets.Fleet(workers=2)
        self.addCleanup(self.fleet.close)
        self.fleet.up()
        self.python = cf.connect(self.fleet.address)
        self.addCleanup(self.python.close)

    def follow(self, job, *flags):
        """The events of `logs -f` as they come, until the job ends."""
        command = [os.path.join(fleets.BIN, "chainfleet"), "logs", job, "-f", "-o", "json", *flags]
        process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env={**os.environ, "CHAINFLEET_ADDRESS": self.fleet.address})
        self.addCleanup(process.stdout.close)
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)
        return process, map(json.loads, process.stdout)

    def test_a_killed_worker_is_in_the_lines_of_its_chains(self):
        job = self.fleet.submit(JOB.format(name="killed"))
        lost = next(state["chains"][0]["worker"] for state in self.fleet.watch(job)
                    if all(int(chain.get("num_draws", 0)) > 1 for chain in state["chains"]))
        process, events = self.follow(job)
        submitted = next(events)
        self.assertEqual((submitted["message"], submitted["fields"]), ("job submitted", {"chains": "2"}))
        self.fleet.kill(lost)
        ended = next(event for event in events if event["message"] == "lease ended")
        self.assertEqual((ended["level"], ended["fields"]["cause"], ended["fields"]["worker"]), ("WARNING", "lost", lost))
        self.assertEqual(ended["fields"]["reason"], f"worker {lost} did not renew its lease")
        again = next(event for event in events if event["message"] == "lease granted" and event["chain"] == ended["chain"])
        self.assertNotEqual(again["fields"]["worker"], lost)
        self.assertGreater(int(again["fields"]["step"]), 0, "it resumes from its last commit")
        for verb in ("pause", "resume", "abort"):
            self.fleet.run(verb, job, check=True)
        rest = list(events)
        self.assertEqual(process.wait(60), 0, "it ends with the job")
        told = [event["message"] for event in rest if "chain" not in event]
        self.assertEqual(told, ["job paused", "job resumed", "job aborted", "job ended"])
        self.assertEqual(rest[-1]["fields"]["state"], "SUCCEEDED_EARLY")
        self.check_views(job, ended, rest[-1])

    def check_views(self, job, ended, last):
        """The same events in other formats, filters and programs."""
        text = self.fleet.run("logs", job, check=True).stdout.splitlines()
        line, = [line for line in text if f"chain {ended['chain']}: interrupted on " in line and "cause=lost" in line]
        self.assertRegex(line, r"^\d{4}-\d\d-\d\d \d\d:\d\d:\d\d  WARNING  chain \d: interrupted on worker-\d  cause=lost "
                               r"reason=\"worker worker-\d did not renew its lease\"$")
        again = "\n".join(text).split(line, 1)[1]
        self.assertRegex(text[1], r"  INFO     chain \d: begins on worker-\d at step 0  waited_s=[\d.e-]+$")
        self.assertRegex(again, rf"  INFO     chain {ended['chain']}: continues on worker-\d at step [1-9]\d*  waited_s=")
        events = [json.loads(line) for line in self.fleet.run("logs", job, "-o", "json", check=True).stdout.splitlines()]
        self.assertEqual(len(events), len(text))
        self.assertEqual(events[-1], last)
        yaml = self.fleet.run("logs", job, "-o", "yaml", check=True).stdout
        self.assertEqual(sum(line == "---" for line in yaml.splitlines()), len(events))
        tail = self.fleet.run("logs", job, "--tail", "2", "-o", "name", check=True).stdout.split()
        self.assertEqual(tail, [event["number"] for event in events[-2:]])
        chain = self.fleet.run("logs", job, "--chain", "1", "-o", "name", check=True).stdout.split()
        self.assertEqual(chain, [event["number"] for event in events if event.get("chain") == 1])
        self.assertEqual(self.fleet.run("logs", job, "--since", "1ns", check=True).stdout, "")
        self.assertEqual(self.fleet.run("logs", job, "--since", "1h", check=True).stdout.splitlines(), text)
        self.assertEqual([str(event.number) for event in self.python.job(job).logs()], [event["number"] for event in events])
        self.assertEqual([event.message for event in self.python.job(job).logs(follow=True, after=int(tail[0]))], ["job ended"])
        self.assertEqual(self.fleet.run("logs", "nothing").returncode, 3)

    def test_events_begin_anew_with_the_server_and_a_follower_goes_on(self):
        job = self.fleet.submit(JOB.format(name="restarted"))
        process, events = self.follow(job, "--tail", "0")
        self.fleet.wait_for_draws(job, 2)
        self.fleet.kill("server")
        self.fleet.up()
        gap = next(event for event in events if event["message"] == "earlier events are not kept")
        self.assertIn("this server began or took over", gap["fields"]["reason"])
        self.fleet.run("cancel", job, check=True)
        self.assertEqual([event["message"] for event in events][-2:], ["job cancelled", "job ended"])
        first = self.fleet.run("logs", job, check=True).stdout.splitlines()[0]
        self.assertTrue(re.search("INFO     earlier events are not kept  reason=", first), first)

    def test_evaluations_begin_and_end_in_the_lines(self):
        data = (X, (X[:, 0] > 0).astype(int))
        job = self.python.sample(cf.Model(builtin="mlp", hidden=[16]), data=data, sampler=cf.SGLD(), epochs=4, chains=2, progress=False)
        job.evaluate(data, progress=False)
        events = list(job.logs())
        self.assertEqual([event.message for event in events[-3:]], ["job ended", "evaluation begun", "evaluation succeeded"])
        self.assertEqual(events[-1].fields["evaluation"], job.evaluations()[0].id)
        self.assertEqual([event.message for event in events].count("chain succeeded"), 2)
        text = self.fleet.run("logs", job.id, check=True).stdout
        self.assertEqual(sorted(re.findall(r"INFO     (chain \d: succeeded)  ", text)), ["chain 0: succeeded", "chain 1: succeeded"], text)


if __name__ == "__main__":
    unittest.main()
