"""Tests with the real binaries who a worker is: its id, its tenant, and what it signed."""
import json
import os
import shutil
import sqlite3
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
        self.assertRegex(refused.stderr, rf"chain {job}/0, draw 0: job replay-\w+, which has the same job file, has another one")


if __name__ == "__main__":
    unittest.main()
