"""Tests with the real binaries who a worker is: its id, its tenant, and what it signed."""
import json
import os
import re
import shutil
import signal
import sqlite3
import subprocess
import unittest

import fleet as fleets
import started_fleet

ADMIN, VISION, SPEECH = "The-token-of-an-administrator", "The-token-of-tenant-vision", "The-token-of-tenant-speech"


class Identity(unittest.TestCase):
    def setUp(self):
        self.fleet = started_fleet.StartedFleet()
        self.addCleanup(self.fleet.close)
        self.tokens = self.fleet.path("tokens")
        with open(self.tokens, "w") as f:
            f.write(f"{ADMIN} admin\n{VISION} vision\n{SPEECH} speech\n")
        self.serve()

    def serve(self):
        self.fleet.environment = {}  # that of callers
        self.fleet.start_server(environment={"CHAINFLEET_TOKEN_FILE": self.tokens})
        self.fleet.environment = {"CHAINFLEET_TOKEN": VISION}
        self.fleet.wait_until_served()

    def as_admin(self, *arguments):
        return self.fleet.run(*arguments, env={"CHAINFLEET_TOKEN": ADMIN}, check=True).stdout

    def join_token(self, *flags):
        return self.as_admin("token", "create", "--role", "worker", "--ttl", "1h", *flags).strip()

    def start_worker(self, index, token):
        self.fleet.start_worker(index, environment={"CHAINFLEET_TOKEN": "", "CHAINFLEET_WORKER_TOKEN": token})

    def log_of(self, name):
        with open(self.fleet.path("run", f"{name}.log")) as f:
            return f.read()

    def states(self, token, job):
        described = json.loads(self.fleet.run("describe", job, "-o", "json", env={"CHAINFLEET_TOKEN": token}, check=True).stdout)
        return described["state"]

    def test_another_tenants_worker_gets_neither_the_id_nor_the_chains_of_one_that_runs(self):
        self.start_worker(0, self.join_token("--tenant", "vision"))
        job = self.fleet.submit(fleets.walk(100000000))
        self.fleet.wait_for_draws(job, 10)
        before = self.fleet.json("describe", job)["chains"]
        self.fleet.start("thief", "chainfleet-worker", "--server", self.fleet.address, "--id", "worker-0", "--threads", "1", "--metrics-port", "0",
                         environment={"CHAINFLEET_TOKEN": "", "CHAINFLEET_WORKER_TOKEN": self.join_token("--tenant", "speech")})
        self.fleet.wait_until(0, lambda answer: "let in by another token" in self.log_of("thief"))
        self.assertIsNone(self.fleet.processes["worker-0"].poll())
        after = self.fleet.json("describe", job)["chains"]
        self.assertEqual([chain["lease_epoch"] for chain in after], [chain["lease_epoch"] for chain in before])

    def test_a_worker_of_a_tenant_takes_no_chain_of_another(self):
        self.start_worker(0, self.join_token("--tenant", "vision"))
        self.fleet.environment = {"CHAINFLEET_TOKEN": SPEECH}
        waiting = self.fleet.submit(fleets.walk())
        self.fleet.environment = {"CHAINFLEET_TOKEN": VISION}
        self.fleet.run("wait", self.fleet.submit(fleets.walk()), "--timeout", "60s", check=True)
        self.assertEqual(self.states(SPEECH, waiting), "PENDING")
        self.start_worker(1, self.join_token())
        self.fleet.run("wait", waiting, "--timeout", "60s", env={"CHAINFLEET_TOKEN": SPEECH}, check=True)

    def test_a_token_lets_in_as_many_workers_as_it_says(self):
        token = self.join_token("--uses", "1")
        self.start_worker(0, token)
        self.fleet.run("wait", self.fleet.submit(fleets.walk()), "--timeout", "60s", check=True)
        self.start_worker(1, token)
        self.assertEqual(self.fleet.processes["worker-1"].wait(60), 1)
        self.assertIn("was made for 1 joins of workers", self.log_of("worker-1"))
        self.assertIn("1 of 1", self.as_admin("token", "list"))
        joins = [json.loads(line) for line in self.as_admin("audit", "--raw").splitlines() if "/Join" in line]
        self.assertEqual([(line["worker"], line["code"]) for line in joins], [("worker-0", "OK"), ("worker-1", "RESOURCE_EXHAUSTED")])

    def test_a_restarted_server_knows_its_workers(self):
        self.start_worker(0, self.join_token("--uses", "1"))
        job = self.fleet.submit(fleets.walk(200000))
        self.fleet.wait_for_draws(job, 10)
        self.fleet.kill("server-0")
        self.serve()
        self.fleet.run("wait", job, "--timeout", "120s", check=True)
        self.assertIn("every segment has the digest that its worker signed", self.fleet.run("verify", job, check=True).stdout)

    def test_draws_that_nobody_signed_are_found(self):
        self.start_worker(0, self.join_token())
        job = self.fleet.submit(fleets.walk())
        self.fleet.run("wait", job, "--timeout", "60s", check=True)
        authority = self.fleet.path("authority.crt")
        shutil.copy(os.path.join(self.fleet.data(0), "authority", "ca.crt"), authority)
        table = self.fleet.run("verify", job, "--authority", authority, check=True).stdout
        self.assertEqual(table.count(" worker-0 "), 2, table)
        self.assertIn("sampled again, 20 draws", self.fleet.run("verify", job, "--replay", check=True).stdout)
        self.assertEqual([found["id"] for found in self.fleet.json("get", "jobs")["jobs"] if found["state"] != "DELETING"], [job])
        self.fleet.kill("server-0")
        state = os.path.join(self.fleet.data(0), "state.db")
        with sqlite3.connect(state) as database:
            [record] = database.execute("SELECT record FROM segments WHERE job = ? AND chain = 1 ORDER BY first_index LIMIT 1", (job,)).fetchone()
        for said, change in (("it is not signed", lambda r: r.pop("signature")),
                             ("it is signed by worker worker-0", lambda r: r.update(worker="somebody")),
                             ("the signature is not that of its worker", lambda r: r.update(signature="A" * 86 + "==")),
                             ("the signature is not that of its worker", lambda r: r.update(resume_step=r["resume_step"] + 1)),
                             ("the signature is not that of its worker", lambda r: r.pop("resume_sha256")),
                             ("its object has the name of another segment", lambda r: r.update(lease_epoch=r["lease_epoch"] + 1)),
                             ("its object has the name of another segment", lambda r: r.update(digest="0" * 64)),
                             ("the parent digest is not that of the segment before", lambda r: r.update(parent_digest="f" * 64))):
            changed = json.loads(record)
            change(changed)
            with sqlite3.connect(state) as database:
                database.execute("UPDATE segments SET record = ? WHERE job = ? AND chain = 1 AND first_index = ?", (json.dumps(changed), job, changed["first_index"]))
            self.serve()
            refused = self.fleet.run("verify", job)
            self.assertEqual(refused.returncode, 6, refused.stderr)
            self.assertIn(said, refused.stderr)
            self.assertIn(f"chain {job}/1", refused.stderr)
            self.assertEqual(self.fleet.run("verify", job, "--chain", "0").returncode, 0)
            self.fleet.kill("server-0")
        with sqlite3.connect(state) as database:
            database.execute("UPDATE segments SET record = ? WHERE job = ? AND chain = 1 AND first_index = ?", (record, job, json.loads(record)["first_index"]))
        shutil.rmtree(os.path.join(self.fleet.data(0), "authority"))
        self.serve()
        self.assertIn("another authority", self.fleet.run("verify", job).stderr)
        self.assertEqual(self.fleet.run("verify", job, "--authority", authority).returncode, 0)

    def test_a_chain_waits_while_its_resume_point_is_not_the_one_that_its_worker_signed(self):
        def chains():
            return self.fleet.json("describe", job)["chains"]

        self.start_worker(0, self.join_token())
        job = self.fleet.submit(fleets.walk(10**9, chains=1))
        self.fleet.wait_for_draws(job, 10)
        self.fleet.run("pause", job, check=True)
        self.fleet.wait_until(0, lambda _: not chains()[0].get("worker"))
        step = chains()[0]["step"]
        self.assertRegex(self.fleet.run("verify", job, check=True).stdout, rf"step {step} by worker-0\n")
        state = os.path.join(self.fleet.data(0), "state.db")
        with sqlite3.connect(state) as database:
            [proof] = database.execute("SELECT proof FROM resume_points").fetchone()
        former = json.loads(proof)
        for said, changed in (("sign", None),
                              ("after other draws", {**former, "last_digest": "0" * 64}),
                              ("not that of its worker", {**former, "signature": "A" * 86 + "=="})):
            self.fleet.kill("server-0")
            with sqlite3.connect(state) as database:
                database.execute("UPDATE resume_points SET proof = ?", (changed and json.dumps(changed),))
            self.serve()
            refused = self.fleet.run("verify", job)
            self.assertEqual(refused.returncode, 6, refused.stderr)
            self.assertIn(f"chain {job}/0, resume point at step {step}: ", refused.stderr)
            self.assertIn(said, refused.stderr)
            self.fleet.run("resume", job, check=True)
            self.fleet.wait_until(0, lambda _: re.search(f"not trusted: .*{said}", chains()[0].get("reason", "")))
            self.assertEqual((chains()[0]["step"], chains()[0].get("attempts", 0)), (step, 0))
            self.fleet.run("pause", job, check=True)
        self.fleet.kill("server-0")
        with sqlite3.connect(state) as database:
            database.execute("UPDATE resume_points SET proof = ?", (proof,))
        self.serve()
        self.fleet.run("resume", job, check=True)
        self.fleet.wait_until(0, lambda _: int(chains()[0]["step"]) > int(step))

    def test_draws_of_another_job_file_are_found_by_a_replay(self):
        self.start_worker(0, self.join_token())
        job = self.fleet.submit(fleets.walk() + "seed: 3\n")
        self.fleet.run("wait", job, "--timeout", "60s", check=True)
        self.fleet.kill("server-0")
        with sqlite3.connect(os.path.join(self.fleet.data(0), "state.db")) as database:
            changed = database.execute("""UPDATE jobs SET plan = replace(plan, '"seed":3', '"seed":4') WHERE plan LIKE '%"seed":3,%'""").rowcount
        self.assertEqual(changed, 1)
        self.serve()
        self.assertEqual(self.fleet.run("verify", job).returncode, 0, "the records are as they were signed")
        refused = self.fleet.run("verify", job, "--replay")
        self.assertEqual(refused.returncode, 6, refused)
        self.assertRegex(refused.stderr, rf"chain {job}/0, draw 0: job replay-\w+, a copy of {job}, has another one")

    def sampled_long(self):
        """A job that has ended early, by its stop rule: all its steps would take days."""
        job = self.fleet.submit(fleets.walk(10**12).replace("every_steps: 10", "every_steps: 20000") + "seed: 3\nuntil: {max_draws: 20}\n")
        self.fleet.run("wait", job, "--timeout", "120s", check=True)
        return job

    def jobs(self):
        return [found["id"] for found in self.fleet.json("get", "jobs")["jobs"] if found["state"] != "DELETING"]

    def test_a_replay_of_one_segment_samples_its_chain_up_to_there(self):
        self.start_worker(0, self.join_token())
        job = self.sampled_long()
        last = len(self.fleet.json("get", "draws", job, "--chain", "1")["segments"][0]["segment"]["steps"]) - 1
        replay = ("verify", job, "--replay", "--chain", "1", "--draws", f"0:{last}")
        self.assertEqual(self.fleet.json(*replay)["replays"], [{"chain": 1, "first_draw": "0", "last_draw": str(last), "draws": str(last + 1)}])
        one = self.fleet.run("verify", job, "--replay", "--chain", "1", "--draws", str(last), check=True)
        self.assertIn(f"sampled again, draws {last} to {last} of chain 1 have the same bits", one.stdout)
        self.assertRegex(one.stderr, rf"replay-\w+ .* {last + 1} of {last + 1} draws")
        self.assertEqual(self.jobs(), [job])
        self.fleet.kill("server-0")
        with sqlite3.connect(os.path.join(self.fleet.data(0), "state.db")) as database:
            changed = database.execute("""UPDATE jobs SET plan = replace(plan, '"seed":3', '"seed":4') WHERE id = ?""", (job,)).rowcount
        self.assertEqual(changed, 1)
        self.serve()
        refused = self.fleet.run(*replay)
        self.assertEqual(refused.returncode, 6, refused)
        copy = re.search(rf"chain {job}/1, draw 0: job (replay-\w+), a copy of {job}, has another one", refused.stderr)
        self.assertTrue(copy, refused.stderr)
        kept = self.fleet.json("describe", copy.group(1))
        self.assertEqual(kept["state"], "SUCCEEDED")
        self.assertEqual([(chain["state"], chain["step"]) for chain in kept["chains"]][0], ("CANCELLED", "0"), "only chain 1 was sampled")

    def test_a_replay_of_what_a_job_does_not_have_samples_nothing(self):
        self.start_worker(0, self.join_token())
        job = self.sampled_long()
        for flags, status, said in ((("--chain", "2"), 3, f"job {job} has no chain 2, only 0 to 1"),
                                    (("--chain", "1", "--draws", "0:999999999"), 3, "has no draw 999999999, only 0 to "),
                                    (("--draws", "0"), 2, "--draws requires --chain"),
                                    (("--chain", "1", "--draws", "5:4"), 2, "is not a draw or a range")):
            refused = self.fleet.run("verify", job, "--replay", *flags)
            self.assertEqual(refused.returncode, status, refused)
            self.assertIn(said, refused.stderr)
        self.fleet.kill("worker-0")
        idle = self.fleet.submit(fleets.walk())
        for flags, whose in (((), f"job {idle}"), (("--chain", "1"), f"chain {idle}/1")):
            self.assertIn(f"{whose} has no draws to replay", self.fleet.run("verify", idle, "--replay", *flags).stderr)
        self.assertEqual({found["id"] for found in self.fleet.json("get", "jobs")["jobs"]}, {job, idle})

    def test_an_interrupted_replay_leaves_no_job(self):
        self.start_worker(0, self.join_token())
        job = self.sampled_long()
        self.fleet.kill("worker-0")  # the copy waits for ever
        command = [os.path.join(fleets.BIN, "chainfleet"), "verify", job, "--replay", "--chain", "0", "--draws", "0"]
        environment = {**os.environ, **self.fleet.environment, "CHAINFLEET_ADDRESS": self.fleet.address}
        with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, env=environment) as replay:
            self.addCleanup(replay.kill)
            self.assertRegex(replay.stderr.readline(), r"replay-\w+ .* 0 of 1 draws")
            replay.send_signal(signal.SIGINT)
            while "deleting the copy; Ctrl-C again stops at once" not in (line := replay.stderr.readline()):
                self.assertTrue(line, "it ended without a word")
            replay.send_signal(signal.SIGTERM)  # as from a program that got the same Ctrl-C
            self.assertIn("interrupted", replay.stderr.read())
            self.assertEqual(replay.wait(60), 130)
        self.assertEqual(self.jobs(), [job])


if __name__ == "__main__":
    unittest.main()
