"""Tests access to the real binaries: tokens, hosts, files, signals."""
import json
import os
import signal
import subprocess
import tempfile
import unittest
import urllib.error
import urllib.request
import zipfile

import fleet as fleets
import started_fleet

CALLER, VISION, WORKER = "The-token-of-an-operator", "The-token-of-tenant-vision", "The-token-of-all-workers"
METRICS = "The-token-of-Prometheus"
OTHER_HOSTS = ("0.0.0.0:0", "[::]:0", "10.1.2.3:7400", "coordinator:7400")


class Start(unittest.TestCase):
    """Settings with which a server refuses to start. Each ends at once, before it creates a file."""

    def refused(self, *said, listen="127.0.0.1:0", metrics="off", http="off", flags=(), **environment):
        with tempfile.TemporaryDirectory() as folder:
            data = os.path.join(folder, "data")
            done = subprocess.run([os.path.join(fleets.BIN, "chainfleet-server"), "--data-dir", data, "--listen", listen,
                                   "--metrics-listen", metrics, "--http-listen", http, *flags], capture_output=True, text=True,
                                  timeout=60, env={**os.environ, **environment})
            self.assertNotEqual(done.returncode, 0)
            for words in said:
                self.assertIn(words, done.stderr)
            self.assertFalse(os.path.exists(data))
            return done.stderr

    def test_other_hosts_without_a_token(self):
        for listen in OTHER_HOSTS:
            self.refused(f"--listen {listen} ", "--insecure", "CHAINFLEET_TOKEN", listen=listen)
            self.refused(f"--http-listen {listen} ", "--insecure", "CHAINFLEET_TOKEN", http=listen)

    def test_other_hosts_without_tls(self):
        for listen in OTHER_HOSTS:
            self.refused(f"--listen {listen} ", "--insecure", "--tls-cert", listen=listen, CHAINFLEET_TOKEN=CALLER)
            self.refused(f"--http-listen {listen} ", "--insecure", "--tls-cert", http=listen, CHAINFLEET_TOKEN=CALLER)
        self.refused("both a certificate", flags=("--tls-key", "missing.key"))
        self.refused("missing.crt", flags=("--tls-cert", "missing.crt", "--tls-key", "missing.key"))

    def test_metrics_for_other_hosts_without_their_token(self):
        for listen in OTHER_HOSTS:
            said = f"--metrics-listen {listen} "
            self.refused(said, "--insecure", "CHAINFLEET_METRICS_TOKEN", metrics=listen, CHAINFLEET_TOKEN=CALLER)
            # With the token or --insecure the next mistake is the one that ends the start.
            later = ("--draw-keys", "missing.keys")
            for flags, token in ((later, {"CHAINFLEET_METRICS_TOKEN": METRICS}), ((*later, "--insecure"), {})):
                error = self.refused("missing.keys", metrics=listen, flags=flags, CHAINFLEET_TOKEN=CALLER, **token)
                self.assertNotIn("--metrics-listen", error)

    def test_a_token_that_is_empty_or_weak(self):
        for weak in ("", "secret"):
            self.refused("CHAINFLEET_METRICS_TOKEN", "128 bits", CHAINFLEET_METRICS_TOKEN=weak)
        self.refused("no token for callers", CHAINFLEET_TOKEN="")
        self.refused("128 bits", CHAINFLEET_TOKEN="secret")
        self.refused("CHAINFLEET_WORKER_TOKEN", CHAINFLEET_TOKEN=CALLER, CHAINFLEET_WORKER_TOKEN="")
        with tempfile.NamedTemporaryFile("w", suffix=".tokens") as tokens:
            self.refused("no token for callers", CHAINFLEET_TOKEN_FILE=tokens.name)
            tokens.write(f"{CALLER}\nsecret vision\n")
            tokens.flush()
            self.assertNotIn("secret", self.refused("line 2", "128 bits", CHAINFLEET_TOKEN_FILE=tokens.name))


class Access(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.fleet = started_fleet.StartedFleet()
        cls.addClassCleanup(cls.fleet.close)
        cls.tokens = cls.fleet.path("tokens")
        with open(cls.tokens, "w") as f:
            f.write(f"{CALLER} operator\n{VISION} vision\n{WORKER} worker\n")
        before = os.umask(0o022)
        cls.addClassCleanup(os.umask, before)
        cls.fleet.start_server(environment={"CHAINFLEET_TOKEN_FILE": cls.tokens, "CHAINFLEET_METRICS_TOKEN": METRICS})
        cls.fleet.environment = {"CHAINFLEET_TOKEN": CALLER}
        cls.fleet.wait_until_served()
        tokens = {"CHAINFLEET_TOKEN": "", "CHAINFLEET_WORKER_TOKEN": WORKER, "CHAINFLEET_METRICS_TOKEN": METRICS}
        cls.fleet.start("worker-0", "chainfleet-worker", "--server", cls.fleet.address, "--threads", "1", "--id", "worker-0",
                        "--metrics-port", "auto", environment=tokens)
        cls.fleet.put_noise("noise", 20)

    def run_as(self, token, *arguments):
        return self.fleet.run(*arguments, env={"CHAINFLEET_TOKEN": token})

    def test_a_hangup_ends_neither_server_nor_worker(self):
        for name in ("server-0", "worker-0"):
            self.fleet.processes[name].send_signal(signal.SIGHUP)
        job = self.fleet.submit(fleets.walk())
        self.fleet.run("wait", job, "--timeout", "60s", check=True)
        self.assertEqual([self.fleet.processes[name].poll() for name in ("server-0", "worker-0")], [None, None])

    def test_other_users_read_nothing_of_the_store(self):
        self.fleet.run("wait", self.fleet.submit(fleets.walk()), "--timeout", "60s", check=True)
        found = []
        for folder, folders, files in os.walk(self.fleet.data(0)):
            found += [folder] + [os.path.join(folder, name) for name in files]
        self.assertTrue(any(path.endswith("state.db") for path in found) and any("/blobs/" in path for path in found), found)
        found.remove(os.path.join(self.fleet.data(0), "authority", "ca.crt"))  # for everybody, in a folder that is not
        self.assertEqual([path for path in found if os.stat(path).st_mode & 0o077], [])

    @staticmethod
    def read(address, path, token=None):
        """The status and the body of a page of metrics."""
        request = urllib.request.Request(f"http://{address}{path}")
        if token:
            request.add_header("Authorization", f"Bearer {token}")
        try:
            with urllib.request.urlopen(request, timeout=10) as reply:
                return reply.status, reply.read().decode()
        except urllib.error.HTTPError as refused:
            with refused:
                return refused.code, refused.read().decode()

    def test_metrics_of_server_and_workers_want_a_token_that_no_caller_has(self):
        # A job that ends proves that the worker has joined, so /sd lists it.
        self.fleet.run("wait", self.fleet.submit(fleets.walk()), "--timeout", "60s", check=True)
        server = self.fleet.metrics_addresses[0]
        status, listed = self.read(server, "/sd", METRICS)
        self.assertEqual(status, 200)
        [worker] = [address for target in json.loads(listed) for address in target["targets"]]
        for address, path in ((server, "/metrics"), (server, "/sd"), (worker, "/metrics")):
            for token in (None, CALLER, WORKER):
                status, said = self.read(address, path, token)
                self.assertEqual(status, 401)
                self.assertNotIn("worker-0", said)
            self.assertEqual(self.read(address, path, METRICS)[0], 200)
        self.assertEqual([self.read(address, "/healthz") for address in (server, worker)], [(200, "ok\n")] * 2)

    def test_a_callers_token_lets_no_worker_in(self):
        worker = subprocess.run([os.path.join(fleets.BIN, "chainfleet-worker"), "--server", self.fleet.address, "--id", "intruder"],
                                capture_output=True, text=True, timeout=60, env={**os.environ, "CHAINFLEET_TOKEN": VISION})
        self.assertEqual(worker.returncode, 1, worker.stderr)
        self.assertIn("CHAINFLEET_WORKER_TOKEN", worker.stderr)
        listed = [worker["id"] for worker in self.fleet.json("get", "workers")["workers"]]
        self.assertEqual(listed, ["worker-0"])

    def test_only_an_operator_drains_workers_and_deletes_data_sets_of_others(self):
        theirs = self.run_as(VISION, "delete", "dataset", "noise", "--yes")
        self.assertEqual(theirs.returncode, 3)
        self.assertIn("no data set noise: list them", theirs.stderr)
        self.fleet.run("dataset", "share", "noise", "--with", "vision,speech", check=True)
        self.assertEqual(self.run_as(VISION, "get", "datasets", "-o", "name").stdout, "default/noise\n")
        for arguments in (["drain", "worker-0"], ["delete", "dataset", "default/noise", "--yes"], ["dataset", "share", "default/noise", "--with-all"]):
            refused = self.run_as(VISION, *arguments)
            self.assertEqual(refused.returncode, 4, refused.stderr)
            self.assertIn("operator", refused.stderr)
        stopped = self.fleet.run("dataset", "share", "noise", "--stop", "--with", "vision", "-o", "json", check=True)
        self.assertEqual(json.loads(stopped.stdout)["shared_with"], ["speech"])
        self.assertEqual(self.run_as(VISION, "get", "datasets", "-o", "name").stdout, "")
        self.assertEqual(self.run_as(WORKER, "get", "jobs").returncode, 4)
        own = self.fleet.path("own.csv")
        with open(own, "w") as f:
            f.write("a,b\n1,0\n2,1\n")
        for token, name in ((VISION, "own"), (CALLER, "vision/own")):
            self.assertEqual(self.run_as(VISION, "dataset", "put", "own", own, "--target", "b").returncode, 0)
            deleted = self.run_as(token, "delete", "dataset", name, "--yes")
            self.assertEqual(deleted.returncode, 0, deleted.stderr)

    def test_an_admin_makes_tokens_that_outlive_the_server_and_revokes_them(self):
        fleet = started_fleet.StartedFleet()
        self.addCleanup(fleet.close)
        server = {"CHAINFLEET_TOKEN": CALLER}
        fleet.environment = dict(server)
        fleet.start_server(environment=server)
        fleet.wait_until_served()
        made = fleet.run("token", "create", "--role", "reader", "--tenant", "vision", "--note", "a <b>notebook</b>", check=True)
        token = made.stdout.strip()
        self.assertRegex(token, "^cf_[0-9a-f]{64}$")
        self.assertNotIn(token, made.stderr)
        worker = fleet.run("token", "create", "--role", "worker", "--ttl", "1h", check=True).stdout.strip()
        fleet.start_worker(0, environment={"CHAINFLEET_TOKEN": "", "CHAINFLEET_WORKER_TOKEN": worker})
        fleet.run("wait", fleet.submit(fleets.walk()), "--timeout", "60s", check=True)
        self.assertEqual(fleet.run("get", "jobs", env={"CHAINFLEET_TOKEN": token}).returncode, 0)
        self.assertEqual(fleet.run("token", "list", env={"CHAINFLEET_TOKEN": token}).returncode, 4)
        fleet.start_server(environment={"CHAINFLEET_TOKEN": "Another-token-of-an-admin"})
        fleet.environment = {"CHAINFLEET_TOKEN": "Another-token-of-an-admin"}
        fleet.wait_until_served()
        self.assertEqual(fleet.run("get", "jobs", env={"CHAINFLEET_TOKEN": CALLER}).returncode, 4)
        self.assertEqual(fleet.run("get", "jobs", env={"CHAINFLEET_TOKEN": token}).returncode, 0)
        [reader] = [found for found in fleet.json("get", "tokens")["tokens"] if found["role"] == "READER"]
        self.assertEqual((reader["tenant"], reader["note"]), ("vision", "a <b>notebook</b>"))
        self.assertNotIn(token, fleet.run("get", "tokens", "-o", "yaml", check=True).stdout)
        fleet.run("token", "revoke", reader["id"], check=True)
        refused = fleet.run("get", "jobs", env={"CHAINFLEET_TOKEN": token})
        self.assertEqual(refused.returncode, 4, refused.stderr)
        self.assertEqual(fleet.run("token", "revoke", reader["id"]).returncode, 3)
        with open(os.path.join(fleet.data(0), "state.db"), "rb") as f:
            self.assertNotIn(token.encode(), f.read())

    def test_changes_and_refusals_are_in_an_audit_log_that_shows_tampering(self):
        fleet = started_fleet.StartedFleet()
        self.addCleanup(fleet.close)
        fleet.environment = {"CHAINFLEET_TOKEN": CALLER}
        fleet.start_server(environment=fleet.environment)
        fleet.wait_until_served()
        job = fleet.submit(fleets.walk())
        fleet.run("cancel", job, check=True)
        user = fleet.run("token", "create", "--role", "reader", check=True).stdout.strip()
        fleet.run("delete", "job", job, "--yes", env={"CHAINFLEET_TOKEN": user})
        fleet.run("get", "jobs", env={"CHAINFLEET_TOKEN": "guessed"})
        fleet.kill("server-0")
        fleet.start_server(environment=fleet.environment)
        fleet.wait_until_served()
        lines = [json.loads(line) for line in fleet.run("audit", "--raw", check=True).stdout.splitlines()]
        self.assertEqual([(line.get("method", "").split("/")[-1], line["code"]) for line in lines],
                         [("CreateJob", "OK"), ("SetIntent", "OK"), ("CreateToken", "OK"), ("SetIntent", "PERMISSION_DENIED"), ("", "UNAUTHENTICATED")])
        self.assertEqual([line.get("job") for line in lines[:2]], [job, job])
        self.assertEqual(lines[2]["token"], lines[3]["principal"])
        self.assertIn(job, fleet.run("audit", check=True).stdout)
        self.assertEqual(fleet.run("audit", env={"CHAINFLEET_TOKEN": user}).returncode, 4)
        verified = fleet.run("audit", "--verify", check=True).stdout
        self.assertIn("lines 1 to 6 are as they were written", verified)  # the last is the refusal above
        with open(os.path.join(fleet.data(0), "audit", "audit-000001.jsonl"), "r+") as log:
            text = log.read()
            log.seek(0)
            log.write(text.replace('"intent":"CANCEL"', '"intent":"FINISH"'))
        changed = fleet.run("audit", "--verify")
        self.assertEqual(changed.returncode, 6)
        self.assertIn("line 2 is not the one that line 3 was written after", changed.stderr)

    def test_programs_are_not_taken_unless_the_server_was_told_to(self):
        module = self.fleet.path("module.pt")
        with zipfile.ZipFile(module, "w") as archive:  # as far as the server looks
            archive.writestr("module/data.pkl", "")
            archive.writestr("module/code/module.py", "")
        refused = self.run_as(CALLER, "model", "put", "mine", module)
        self.assertEqual(refused.returncode, 1, refused.stderr)
        self.assertIn("--allow-modules", refused.stderr)
        self.assertEqual(self.run_as(VISION, "model", "put", "mine", module).returncode, 4)


if __name__ == "__main__":
    unittest.main()
