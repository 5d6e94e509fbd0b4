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

    def run_as(self, token, *arguments, fleet=None):
        return (fleet or self.fleet).run(*arguments, env={"CHAINFLEET_TOKEN": token})

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
        audited = self.fleet.run("audit", "--folder", os.path.join(self.fleet.data(0), "audit"), "--raw", check=True).stdout
        refused = [line for line in map(json.loads, audited.splitlines()) if line.get("method") == "GET /metrics"]
        self.assertEqual((refused[0]["peer"], refused[0]["code"], refused[0]["refusals"]), ("ipv4:127.0.0.1", "UNAUTHENTICATED", 1))

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

    def test_whoami_shows_a_caller_and_the_usage_of_its_own_tenant_only(self):
        self.fleet.submit(fleets.walk())
        theirs = json.loads(self.run_as(VISION, "whoami", "-o", "json").stdout)
        self.assertEqual((theirs["tenant"], theirs["role"], "expires_at" in theirs), ("vision", "WRITER", False))
        limits = {limit["name"]: limit for limit in theirs["limits"]}
        self.assertEqual(limits["jobs"], {"name": "jobs", "used": "0", "limit": "10000"})
        self.assertEqual(set(limits), {"jobs", "chains", "kept_chains", "contents", "stored_bytes", "calls", "rows_per_second"})
        own = self.fleet.run("whoami", check=True).stdout
        self.assertRegex(own, r"(?m)^[0-9a-f]{12} +default +operator +never$")
        self.assertRegex(own, r"(?m)^jobs +[1-9]\d* +10000$")
        self.assertNotIn(CALLER, own)
        self.assertEqual(self.run_as("guessed", "whoami").returncode, 4)

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

    def test_an_admin_of_a_tenant_administers_that_tenant_only(self):
        fleet = started_fleet.StartedFleet()
        self.addCleanup(fleet.close)
        fleet.environment = {"CHAINFLEET_TOKEN": CALLER}
        fleet.start_server(environment=fleet.environment)
        fleet.wait_until_served()
        fleets_own = fleet.run("token", "create", "--role", "reader", check=True).stdout.strip()
        theirs = {"CHAINFLEET_TOKEN": fleet.run("token", "create", "--role", "admin", "--tenant", "vision", check=True).stdout.strip()}
        worker = fleet.run("token", "create", "--role", "worker", "--uses", "1", env=theirs, check=True).stdout.strip()
        listed = json.loads(fleet.run("get", "tokens", "-o", "json", env=theirs, check=True).stdout)["tokens"]
        self.assertEqual(sorted((token["role"], token["tenant"]) for token in listed), [("ADMIN", "vision"), ("WORKER", "vision")])
        [reader] = [token["id"] for token in fleet.json("get", "tokens")["tokens"] if token["role"] == "READER"]
        self.assertEqual(fleet.run("token", "revoke", reader, env=theirs).returncode, 3)
        self.assertEqual(fleet.run("get", "jobs", env={"CHAINFLEET_TOKEN": fleets_own}).returncode, 0)
        for arguments in (["token", "create", "--role", "admin", "--tenant", "default"], ["backup", fleet.path("copy")]):
            refused = fleet.run(*arguments, env=theirs)
            self.assertEqual(refused.returncode, 4, refused.stderr)
            self.assertIn("an admin of the fleet", refused.stderr)
        fleet.start_worker(0, environment={"CHAINFLEET_TOKEN": "", "CHAINFLEET_WORKER_TOKEN": worker})
        fleet.environment = theirs
        fleet.run("wait", fleet.submit(fleets.walk()), "--timeout", "60s", check=True)
        fleet.run("drain", "worker-0", check=True)
        lines = [json.loads(line) for line in fleet.run("audit", "--raw", check=True).stdout.splitlines()]
        self.assertEqual({line["tenant"] for line in lines}, {"vision"})
        self.assertIn("DrainWorker", [line["method"].split("/")[-1] for line in lines])

    def test_tokens_of_files_change_while_server_and_worker_run(self):
        fleet = started_fleet.StartedFleet(lease="60s")  # none ends by itself
        self.addCleanup(fleet.close)
        paths = {f"CHAINFLEET_{name}TOKEN_FILE": fleet.path(f"{name}tokens") for name in ("", "WORKER_", "METRICS_")}

        def write(name, text):
            path = paths[f"CHAINFLEET_{name}TOKEN_FILE"]
            with open(path + ".new", "w") as f:
                f.write(text)
            os.replace(path + ".new", path)

        def status_as(token):
            return self.run_as(token, "get", "jobs", fleet=fleet).returncode

        def joins_of(worker):
            lines = [json.loads(line) for line in fleet.run("audit", "--raw", check=True).stdout.splitlines() if "/Join" in line]
            return [line["code"] for line in lines if line.get("worker") == worker].count("OK")

        write("", f"{CALLER} admin\n")
        write("WORKER_", WORKER)
        write("METRICS_", METRICS)
        fleet.start_server(environment=paths)
        fleet.environment = {"CHAINFLEET_TOKEN": CALLER}
        fleet.wait_until_served()
        fleet.start_worker(0, environment={"CHAINFLEET_TOKEN": "", **paths})
        runs = fleet.path("runs")  # a line for each run of the command
        command = f"echo >> {runs}; cat {paths['CHAINFLEET_WORKER_TOKEN_FILE']}"
        fleet.start_worker(1, environment={"CHAINFLEET_TOKEN": "", "CHAINFLEET_WORKER_TOKEN_COMMAND": command})
        fleet.wait_until(0, lambda answer: joins_of("worker-1") > 0)
        job = fleet.submit(fleets.walk(4_000_000).replace("every_steps: 10", "every_steps: 20000"))
        fleet.wait_for_draws(job, 1)
        self.assertEqual(status_as(VISION), 4)
        write("", f"{CALLER} admin\n{VISION} vision\n")
        fleet.wait_until(0, lambda answer: status_as(VISION) == 0)
        write("", f"{VISION} admin\n")
        fleet.wait_until(0, lambda answer: answer.returncode == 4)
        fleet.environment = {"CHAINFLEET_TOKEN": VISION}
        for wrong in ("", f"{VISION} admin\n{CALLER} two words more\n"):
            before = fleet.logged()["server-0.log"].count("secret not read again")
            write("", wrong)
            fleet.wait_until(0, lambda answer: fleet.logged()["server-0.log"].count("secret not read again") > before)
            self.assertEqual([status_as(token) for token in (VISION, CALLER, "")], [0, 4, 4])
        write("", f"{VISION} admin\n{CALLER} admin\n")
        fleet.environment = {"CHAINFLEET_TOKEN": CALLER}
        fleet.wait_until_served()
        joined = joins_of("worker-1")
        changes = fleet.logged()["server-0.log"].count("secret has changed")
        write("WORKER_", "The-next-token-of-all-workers")
        write("METRICS_", "The-next-token-of-Prometheus")
        metrics = fleet.metrics_addresses[0]
        fleet.wait_until(0, lambda answer: self.read(metrics, "/metrics", "The-next-token-of-Prometheus")[0] == 200
                         and fleet.logged()["server-0.log"].count("secret has changed") == changes + 2)
        self.assertEqual(self.read(metrics, "/metrics", METRICS)[0], 401)
        fleet.wait_until(0, lambda answer: joins_of("worker-1") > joined)
        with open(runs) as f:
            self.assertEqual(f.read(), "\n\n", "at the start, and for the refused join")
        fleet.run("wait", fleet.submit(fleets.walk()), "--timeout", "60s", check=True)
        self.assertEqual({int(chain["lease_epoch"]) for chain in fleet.json("describe", job)["chains"]}, {1}, "it kept them")
        self.assertEqual([fleet.processes[name].poll() for name in ("worker-0", "worker-1")], [None, None])
        # The lone token without a role is an admin's, and no longer after the change.
        changed, started = "the changed tokens have no admin of the fleet", "no admin of the fleet: nobody may"
        self.assertNotIn(changed, fleet.logged()["server-0.log"])
        write("", f"{CALLER}\n{VISION}\n")
        fleet.wait_until(0, lambda answer: changed in fleet.logged()["server-0.log"])
        self.assertNotIn(started, fleet.logged()["server-0.log"])
        fleet.environment = {}  # else the server would take this token instead of the file's
        fleet.start_server(environment=paths)
        fleet.environment = {"CHAINFLEET_TOKEN": CALLER}
        fleet.wait_until_served()
        self.assertIn(started, fleet.logged()["server-0.log"])
        self.assertEqual(fleet.logged()["server-0.log"].count(changed), 1)
        # An emptied file of the worker's token does not make it send a caller's.
        write("WORKER_", "")
        fleet.start_worker(0, environment={"CHAINFLEET_TOKEN": CALLER, **paths})
        fleet.processes["worker-0"].wait(60)
        self.assertIn("this server wants a token", fleet.logged()["worker-0.log"])
        for token in (CALLER, VISION, WORKER, METRICS):
            self.assertNotIn(token, "".join(fleet.logged().values()))

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
        folder = os.path.join(fleet.data(0), "audit")
        self.assertEqual(fleet.run("audit", "--folder", folder, "--verify", check=True).stdout, verified)
        wrong = fleet.run("audit", "--folder", fleet.data(0))
        self.assertEqual(wrong.returncode, 3)
        self.assertIn("no audit log in", wrong.stderr)
        with open(os.path.join(folder, "audit-000001.jsonl"), "r+") as log:
            text = log.read()
            log.seek(0)
            log.write(text.replace('"intent":"CANCEL"', '"intent":"FINISH"'))
        changed = fleet.run("audit", "--verify")
        self.assertEqual(changed.returncode, 6)
        self.assertIn("line 2 is not the one that line 3 was written after", changed.stderr)
        self.assertEqual(fleet.run("audit", "--folder", folder, "--verify").returncode, 6)

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
