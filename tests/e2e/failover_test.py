"""Two coordinators on one PostgreSQL: one leads, the other takes over when it dies."""
import datetime
import hashlib
import json
import os
import subprocess
import sys
import tempfile
import unittest
import urllib.request

import fleet as fleets
from extent_test import FOUR_CHAINS, check_diagnostics
from journeys_test import JOB, check_draws
from started_fleet import StartedFleet
from with_postgres import Postgres

PASSWORD = "a-password-that-nobody-may-read"
TOKENS = {"CHAINFLEET_TOKEN": "The-token-of-an-administrator", "CHAINFLEET_WORKER_TOKEN": "The-token-of-all-workers"}


class Failover(unittest.TestCase):
    def setUp(self):
        self.postgres = Postgres()
        self.addCleanup(self.postgres.close)
        self.postgres.start()
        uri = self.postgres.uri.replace("chainfleet@", f"chainfleet:{PASSWORD}@") + "/postgres"
        self.fleet = StartedFleet(servers=2, environment={"CHAINFLEET_STATE": uri, **TOKENS})
        self.addCleanup(self.fleet.close)
        self.fleet.log_everything()
        self.fleet.start_server(0)
        self.fleet.wait_until_served(by=0)
        for worker in range(2):
            self.fleet.start_worker(worker)
        self.fleet.put_fashion("fashion", 2000)

    def make_token(self):
        return self.fleet.run("token", "create", "--role", "reader", check=True).stdout.strip()

    def assert_tokens(self, known, revoked):
        """By the server that leads now."""
        self.assertEqual([self.fleet.run("get", "jobs", env={"CHAINFLEET_TOKEN": token}).returncode for token in (known, revoked)], [0, 4])

    def targets(self, server):
        """Where its list of workers sends Prometheus; these workers serve no metrics."""
        with urllib.request.urlopen(f"http://{self.fleet.metrics_addresses[server]}/sd", timeout=10) as reply:
            return json.load(reply)

    def assert_serves_within_ten_seconds(self, server, killed):
        """By the server's own log: clients pause between their calls, and notice later."""
        lines = [json.loads(line) for line in self.fleet.logged()[f"server-{server}.log"].splitlines()]
        [serving] = [line["time"] for line in lines if line["message"] == "serving"]
        took = (datetime.datetime.fromisoformat(serving) - killed).total_seconds()
        said = f"the standby served {took:.1f} s after the leader was killed"
        print(f"\n{said}", file=sys.stderr)
        self.assertGreater(took, 0, said)
        self.assertLess(took, 10, said)

    def assert_no_log_has_the_password(self):
        logged = self.fleet.logged()
        self.assertEqual(sorted(logged), ["server-0.log", "server-1.log", "worker-0.log", "worker-1.log"])
        for name, text in logged.items():
            self.assertIn('"lease granted"' if "worker" in name else '"level":"debug"', text, name)
            self.assertNotIn(PASSWORD, text, name)

    def test_a_standby_takes_over_from_a_killed_leader(self):
        self.fleet.start_server(1)
        known, revoked = self.make_token(), self.make_token()
        self.fleet.run("token", "revoke", hashlib.sha256(revoked.encode()).hexdigest()[:12], check=True)
        self.assert_tokens(known, revoked)
        job = self.fleet.submit(JOB.format(name="failover", epochs=120, keep=10))
        refused = self.fleet.wait_until(1, lambda answer: self.fleet.addresses[0] in answer.stderr)
        self.assertEqual(refused.returncode, 5, refused.stderr)
        self.assertEqual([self.fleet.leads(0), self.fleet.leads(1)], [True, False])
        self.assertEqual([self.targets(0), self.targets(1)], [[], []])
        self.fleet.wait_for_draws(job, 8)
        killed = datetime.datetime.now(datetime.timezone.utc)
        self.fleet.kill("server-0")
        self.fleet.wait_until_served(by=1)
        self.assertTrue(self.fleet.leads(1))
        self.assert_serves_within_ten_seconds(1, killed)
        self.assert_tokens(known, revoked)
        self.fleet.run("wait", job, "--timeout", "240s", check=True)
        check_draws(self, self.fleet, job, per_chain=30)
        self.assert_no_log_has_the_password()

    def test_the_next_leader_has_the_diagnostics_of_a_running_job(self):
        self.fleet.start_server(1)
        job = self.fleet.submit(FOUR_CHAINS)
        next(state for state in self.fleet.watch(job) if any("nested_rhat" in row for row in state.get("diagnostics", [])))
        size = "SELECT coalesce(max(length(body)), 0) FROM findings WHERE part = 'traces while running'"
        before = self.postgres.answer(size)
        next(state for state in self.fleet.watch(job) if self.postgres.answer(size) != before)
        for worker in range(2):
            self.fleet.kill(f"worker-{worker}")
        self.fleet.kill("server-0")
        self.fleet.wait_until_served(by=1)
        check_diagnostics(self, self.fleet, job, by=1)


class ChangedPassword(unittest.TestCase):
    """The password of the database changes while a leader and a standby run."""

    def give(self, password):
        self.postgres.answer(f"ALTER ROLE keeper PASSWORD '{password}'")
        with open(self.passwords, "w", opener=lambda path, flags: os.open(path, flags, 0o600)) as f:
            f.write(f"{self.before}{password}\n")

    def setUp(self):
        self.postgres = Postgres()
        self.addCleanup(self.postgres.close)
        rules = os.path.join(self.postgres.folder, "data", "pg_hba.conf")
        with open(rules) as f:
            others = f.read()
        with open(rules, "w") as f:
            f.write("local all keeper scram-sha-256\n" + others)
        self.postgres.start()
        self.postgres.answer("CREATE ROLE keeper LOGIN SUPERUSER")
        state = self.postgres.uri.replace("chainfleet@", "keeper@") + "/postgres"
        self.fleet = StartedFleet(servers=2, environment={"CHAINFLEET_STATE": state, **TOKENS})
        self.addCleanup(self.fleet.close)
        self.passwords = self.fleet.path("passwords")

    def test_a_standby_connects_again_by_the_password_that_is_in_the_file_then(self):
        self.fleet.environment["PGPASSFILE"], self.before = self.passwords, "*:*:*:keeper:"
        self.check_takeover()

    def test_a_standby_connects_again_by_the_password_that_the_command_prints_then(self):
        self.fleet.environment["CHAINFLEET_STATE_PASSWORD_COMMAND"], self.before = f"cat {self.passwords}", ""
        self.fleet.log_everything()
        self.check_takeover()
        self.fleet.run("backup", self.fleet.path("backup"), check=True)
        for name, text in self.fleet.logged().items():
            self.assertNotIn("%of&a-database", text, name)

    def check_takeover(self):
        self.give("first%of&a-database")
        self.fleet.start_server(0)
        self.fleet.wait_until_served(by=0)
        self.fleet.start_server(1)
        self.fleet.wait_until(1, lambda answer: self.fleet.addresses[0] in answer.stderr)
        self.give("second%of&a-database")
        self.postgres.answer("SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity WHERE usename = 'keeper'")
        self.fleet.kill("server-0")
        self.fleet.wait_until_served(by=1)
        self.assertTrue(self.fleet.leads(1))


class Refused(unittest.TestCase):
    def refusal(self, state, *flags):
        with tempfile.TemporaryDirectory() as folder:
            done = subprocess.run([os.path.join(fleets.BIN, "chainfleet-server"), "--data-dir", folder, "--listen", "127.0.0.1:0",
                                   "--metrics-listen", "off", "--http-listen", "off", "--log-level", "debug", *flags],
                                  env={**os.environ, "CHAINFLEET_STATE": state}, capture_output=True, text=True, timeout=60)
        self.assertNotEqual(done.returncode, 0, state)
        return done.stdout + done.stderr


class WrongState(Refused):
    """An invalid database address is refused, and the error quotes nothing of its password."""

    def test_a_password_that_is_not_percent_encoded(self):
        for password, parts in (("p%zz", ["p%", "zz"]), ("pa/ss", ["pa/", "ss@"]), ("12/ss", ["12/", "ss@"]), ("pa@ss", ["pa@", "ss@"])):
            said = self.refusal(f"postgresql://user:{password}@127.0.0.1:1/postgres")
            self.assertIn("percent-encoded", said)
            for part in parts:
                self.assertNotIn(part, said)

    def test_a_password_among_the_arguments_is_warned_of(self):
        without = "postgresql://user@127.0.0.1:1/postgres"
        state = without.replace("user", "user:tell-nobody")
        for flags, warnings in (((), 0), (("--state", without), 0), (("--state", state), 1), ((f"--state={state}",), 1)):
            said = self.refusal(state, *flags)
            self.assertEqual(said.count("set CHAINFLEET_STATE or PGPASSFILE instead"), warnings, flags)
            self.assertNotIn("tell-nobody", said)

    def test_a_command_for_the_password_that_gives_none(self):
        state = "postgresql://user@127.0.0.1:1/postgres"
        for command, words in (("echo tell-nobody; exit 3", "--state-password-command: /bin/sh: exit 3"),
                               ("echo tell-nobody; echo more", "print the password alone")):
            said = self.refusal(state, "--state-password-command", command)
            self.assertIn(words, said)
            self.assertNotIn("tell-nobody", said)
        self.assertIn("needs --state postgresql", self.refusal("sqlite", "--state-password-command", "true"))

    def test_a_scheme_that_is_mistyped(self):
        for state in ("postgresq://user:tell-nobody@127.0.0.1:1/postgres", "postgresql:/user:tell-nobody@127.0.0.1/db"):
            said = self.refusal(state)
            self.assertIn("--state postgresq", said)
            self.assertIn("give sqlite or postgresql://", said)
            self.assertNotIn("tell-nobody", said)
            self.assertNotIn("user", said)


class StateOverTls(Refused):
    """PostgreSQL takes TLS only, with a certificate of `chainfleet pki`."""

    def setUp(self):
        self.fleet = StartedFleet()
        self.addCleanup(self.fleet.close)
        self.fleet.pki("init")
        self.fleet.pki("issue", "server", "--host", "127.0.0.1")
        self.postgres = Postgres(host="127.0.0.1", network="127.0.0.1/32", pki=self.fleet.path("pki"))
        self.addCleanup(self.postgres.close)
        self.postgres.start()

    def state(self, settings):
        return f"{self.postgres.uri}/postgres?{settings}"

    def verified(self, *pki):
        return self.state(f"sslmode=verify-full&sslrootcert={self.fleet.path(*pki, 'ca.crt')}")

    def test_a_server_trusts_only_a_database_with_a_certificate_of_the_named_authority(self):
        self.fleet.pki("init", folder="other")
        self.assertIn("certificate verify failed", self.refusal(self.verified("other")))
        self.assertIn("no encryption", self.refusal(self.state("sslmode=disable")))
        self.fleet.environment = {"CHAINFLEET_STATE": self.verified("pki")}
        self.fleet.start_server()
        self.fleet.wait_until_served()
        self.fleet.submit(fleets.walk())


if __name__ == "__main__":
    unittest.main()
