"""Strangers, other tenants and invented workers against a server."""
import os
import resource
import select
import socket
import subprocess
import threading
import unittest
import urllib.request

from coordinator import Caller, message
import fleet as fleets
import started_fleet

ADMIN, VISION, WORKER, GUESS = "The-token-of-an-admin-1", "The-token-of-tenant-vision", "The-token-of-all-workers", "A-guess-of-some-stranger"
WORKERS = "chainfleet.v1.WorkerService"
CALLS_OF_A_WORKER = ("Synchronize", "CommitProgress", "PutBlob", "SignUpload", "GetBlob", "ServeShards")
OTHER_CALLS = [("chainfleet.v1.JobService", name) for name in (
    "CreateJob", "ListJobs", "GetJob", "SetIntent", "ReadRows", "ReadSegment", "PutDataset", "DeleteDataset", "DeleteModel", "DrainWorker",
    "ListWorkers", "GetServerInfo")] + [("chainfleet.v1.PredictService", "Predict"), ("inference.GRPCInferenceService", "ModelInfer"),
                                        ("chainfleet.v1.AccessService", "CreateToken"), ("chainfleet.v1.AccessService", "ListAudit")]


class Served(unittest.TestCase):
    """A server and no workers but those that a test invents."""

    TOKENS = f"{ADMIN} admin\n{VISION} vision\n{WORKER} worker\n"
    FLAGS = ()
    LEASE = "2s"

    @classmethod
    def setUpClass(cls):
        cls.fleet = started_fleet.StartedFleet(lease=cls.LEASE)
        cls.addClassCleanup(cls.fleet.close)
        cls.fleet.log_everything()
        with open(cls.fleet.path("tokens"), "w") as f:
            f.write(cls.TOKENS)
        cls.fleet.start_server(0, *cls.FLAGS, environment={"CHAINFLEET_TOKEN_FILE": cls.fleet.path("tokens")} if cls.TOKENS else {})
        cls.fleet.environment = {**cls.fleet.environment, **({"CHAINFLEET_TOKEN": ADMIN} if cls.TOKENS else {})}
        cls.fleet.wait_until_served()
        cls.port = int(cls.fleet.address.rpartition(":")[2])

    def caller(self, token):
        caller = Caller(self.port, token)
        self.addCleanup(caller.channel.close)
        return caller

    def log(self):
        return self.fleet.logged()["server-0.log"]


class Tokens(Served):
    def test_a_callers_token_makes_no_call_of_a_worker(self):
        for token in (VISION, ADMIN):
            for method in CALLS_OF_A_WORKER:
                self.assertEqual(self.caller(token).code(method, message(f1=2, f2="w0", f3="1"), service=WORKERS)[0], "PERMISSION_DENIED", method)
        self.assertEqual(self.fleet.json("get", "workers").get("workers", []), [])

    def test_a_workers_token_makes_no_other_call(self):
        for service, method in OTHER_CALLS:
            self.assertEqual(self.caller(WORKER).code(method, service=service)[0], "PERMISSION_DENIED", method)

    def test_only_operators_see_where_the_data_are(self):
        self.assertNotIn(self.fleet.folder.encode(), self.caller(VISION).call())
        self.assertIn(self.fleet.folder.encode(), self.caller(ADMIN).call())

    def test_a_stranger_gets_no_description_of_the_methods(self):
        for token in ("", ADMIN):
            code, _ = self.caller(token).code("ServerReflectionInfo", message(f7="*"), service="grpc.reflection.v1alpha.ServerReflection")
            self.assertIn(code, ("UNIMPLEMENTED", "UNAUTHENTICATED", "PERMISSION_DENIED"))

    def test_guesses_are_counted_logged_and_audited_with_their_address(self):
        for service, method in OTHER_CALLS:
            code, text = self.caller(GUESS).code(method, service=service)
            self.assertEqual(code, "UNAUTHENTICATED", method)
            self.assertNotIn(GUESS, text)
        [count] = [line for line in self.fleet.metrics().splitlines() if line.startswith("chainfleet_tokens_refused_total ")]
        self.assertGreaterEqual(float(count.split()[1]), len(OTHER_CALLS))
        self.assertIn("127.0.0.1", self.fleet.run("audit", "--raw", check=True).stdout)
        self.assertTrue([line for line in self.log().splitlines() if "token" in line and "peer" in line and "127.0.0.1" in line])

    def test_bytes_that_are_no_text_fill_no_log(self):
        for method in ("GetJob", "SetIntent", "DeleteDataset"):
            self.assertEqual(self.caller(VISION).code(method, message(f1=b"\xff"))[0], "INVALID_ARGUMENT", method)
        self.assertNotIn("libprotobuf", self.log())


class Claims(Served):
    """A worker's words about itself reach terminals and Prometheus. Here each process of this host may be a worker."""

    TOKENS = ""

    def synchronize(self, **fields):
        claims = dict(f1=2, f2="invented", f3="1a", f4=1, f5="host", f7=message(f1="cpu", f3=1))
        return self.caller("").code("Synchronize", message(**{**claims, **fields}), service=WORKERS)

    def test_only_plain_names_are_taken(self):
        for fields in (dict(f2="\x1b]0;owned\x07"), dict(f5="a\nb"), dict(f5="h" * (9 << 20)), dict(f3="\u202e"), dict(f7=message(f1="<b>", f3=1)),
                       dict(f11="http://169.254.169.254:80/"), dict(f11="host:80/../x"), dict(f11="host\r\nx: y:80"), dict(f11="169.254.169.254"),
                       dict(f11="169.254.169.254:80"), dict(f11="[fe80::1]:80"), dict(f11="[::ffff:169.254.169.254]:80")):
            code, text = self.synchronize(**fields)
            self.assertEqual(code, "INVALID_ARGUMENT", repr(fields)[:80])
            self.assertTrue(text.isprintable() and len(text) < 1000, text[:200])
        self.assertEqual(self.fleet.json("get", "workers").get("workers", []), [])
        with urllib.request.urlopen(f"http://{self.fleet.metrics_addresses[0]}/sd", timeout=10) as reply:
            self.assertEqual(reply.read().split(), [b"[]"])

    def test_objects_and_files_are_not_read_by_a_guessed_name(self):
        for name in ("../../../../etc/passwd", "/etc/passwd", "datasets/../state.db", "state.db", "tokens", "\x00", "a" * 5000,
                     "0123456789abcdef/datasets/" + "0" * 64 + "-0123456789abcdef"):
            blob = message(f1=name, f2=10, f3="0" * 64)
            for request in (message(f1=blob), message(f2=blob), message(f1=name)):
                code, text = self.caller("").code("GetBlob", request, service=WORKERS)
                self.assertNotEqual(code, "OK", name)
                self.assertNotIn(self.fleet.folder, text, "the data directory is not named")


class Shares(Served):
    """One tenant against the others."""

    FLAGS = ("--tenant-chains", "10", "--tenant-chains", "default=20", "--tenant-jobs", "3")

    def submit(self, token, text, *flags):
        path = self.fleet.path("job.yaml")
        with open(path, "w") as f:
            f.write(text)
        return self.fleet.run("submit", "-f", path, "-o", "name", *flags, env={"CHAINFLEET_TOKEN": token}, timeout=60)

    def test_a_tenant_has_bounds_of_its_own(self):
        self.assertEqual(self.submit(VISION, fleets.walk(chains=8)).returncode, 0)
        refused = self.submit(VISION, fleets.walk(chains=8))
        self.assertNotEqual(refused.returncode, 0)
        self.assertIn("has 8 of 10 chains", refused.stderr)
        for _ in range(2):
            self.assertEqual(self.submit(ADMIN, fleets.walk(chains=8)).returncode, 0, "another tenant has its own")
        self.assertIn("has 16 of 20 chains", self.submit(ADMIN, fleets.walk(chains=8)).stderr)

    def test_a_specification_that_no_grant_can_carry_is_refused(self):
        for size in (4 << 20, 8 << 20, 15 << 20):
            code, text = self.caller(VISION).code("CreateJob", message(f1=message(f1="n" * size)))
            self.assertIn(code, ("INVALID_ARGUMENT", "RESOURCE_EXHAUSTED"), size)
            self.assertLess(len(text), 4096)

    def test_sizes_beyond_64_bits_do_not_wrap_around(self):
        wide = "model: {layers: [{linear: {outputs: 2147483647}}, {linear: {outputs: 2147483647}}, {linear: {outputs: 2}}]}"
        with open(self.fleet.path("tiny.csv"), "w") as f:
            f.write("1,2,0\n3,4,1\n" * 4)
        self.fleet.run("dataset", "put", "tiny", self.fleet.path("tiny.csv"), env={"CHAINFLEET_TOKEN": VISION}, check=True)
        refused = self.submit(VISION, f"name: wide\n{wide}\ndataset: {{name: tiny}}\nsampler: {{sgld: {{}}}}\nlearning_rate: {{constant: 0.01}}\n"
                                      "prior: {gaussian: {precision: 1}}\nbatch_size: 2\nnum_epochs: 4\n", "--dry-run")
        self.assertNotEqual(refused.returncode, 0, refused.stdout)
        self.assertNotIn("-", refused.stderr.split("GiB")[0].rpartition(" ")[2] if "GiB" in refused.stderr else "", "no negative estimate")

    def test_a_job_file_of_aliases_ends_at_once(self):
        text = "a0: &a0 [{relu: {}}, {relu: {}}]\n" + "".join(f"a{i}: &a{i} [*a{i - 1}, *a{i - 1}, *a{i - 1}, *a{i - 1}]\n" for i in range(1, 15))
        refused = self.submit(VISION, text + "name: laughs\nmodel: {layers: *a14}\n")
        self.assertNotEqual(refused.returncode, 0)

    def test_uploads_that_send_nothing_keep_nobody_out(self):
        held = []
        for number in range(15):
            release = threading.Event()
            self.addCleanup(release.set)

            def parts(release=release, number=number):
                yield message(f1=message(f1=f"idle-{number}"))
                release.wait(60)

            caller = self.caller(VISION)
            held.append(caller.channel.stream_unary("/chainfleet.v1.JobService/PutDataset").future(
                parts(), metadata=[("authorization", "Bearer " + VISION)]))
        with open(self.fleet.path("own.csv"), "w") as f:
            f.write("a,b\n1,0\n2,1\n")
        self.fleet.run("dataset", "put", "own", self.fleet.path("own.csv"), "--target", "b", check=True, timeout=60)
        self.fleet.run("get", "datasets", check=True)
        for call in held:
            call.cancel()


class Relay:
    """Passes bytes on to a port, and keeps those that it has seen."""

    def __init__(self, port):
        self.server, self.target, self.seen = socket.create_server(("127.0.0.1", 0)), port, bytearray()
        self.port = self.server.getsockname()[1]
        self.thread = threading.Thread(target=self.run, daemon=True)
        self.thread.start()

    def run(self):
        client, _ = self.server.accept()
        with client, socket.create_connection(("127.0.0.1", self.target)) as upstream:
            ways = {client: upstream, upstream: client}
            while True:
                for source in select.select(list(ways), [], [])[0]:
                    got = source.recv(1 << 16)
                    if not got:
                        return
                    self.seen += got
                    ways[source].sendall(got)

    def close(self):
        self.server.close()
        self.thread.join(20)


class Secrets(unittest.TestCase):
    def setUp(self):
        self.fleet = started_fleet.StartedFleet()
        self.addCleanup(self.fleet.close)
        self.fleet.log_everything()

    def heard(self):
        relay = Relay(int(self.fleet.addresses[0].rpartition(":")[2]))
        self.fleet.run("get", "jobs", "--address", f"127.0.0.1:{relay.port}", check=True)
        relay.close()
        self.assertGreater(len(relay.seen), 0)
        return bytes(relay.seen)

    def test_a_token_is_read_off_the_wire_only_without_tls(self):
        self.fleet.environment |= {"CHAINFLEET_TOKEN": ADMIN}
        self.fleet.start_server()
        self.fleet.wait_until_served()
        self.assertIn(ADMIN.encode(), self.heard(), "the relay sees what is in clear")
        pki = self.fleet.path("pki")
        self.fleet.run("pki", "init", "--folder", pki, check=True)
        self.fleet.run("pki", "issue", "server", "--host", "127.0.0.1", "--folder", pki, check=True)
        self.fleet.environment |= {"CHAINFLEET_CA_FILE": os.path.join(pki, "ca.crt")}
        self.fleet.start_server(0, "--tls-cert", os.path.join(pki, "server.crt"), "--tls-key", os.path.join(pki, "server.key"))
        self.fleet.wait_until_served()
        self.assertNotIn(ADMIN.encode(), self.heard())

    def test_tokens_are_in_no_argument_log_metric_answer_or_file(self):
        for name, token in (("callers", ADMIN), ("workers", WORKER)):
            with open(self.fleet.path(name), "w") as f:
                f.write(token + "\n")
        callers, workers = {"CHAINFLEET_TOKEN_FILE": self.fleet.path("callers")}, {"CHAINFLEET_WORKER_TOKEN_FILE": self.fleet.path("workers")}
        self.fleet.start_server(environment={**callers, **workers})
        self.fleet.environment |= callers
        self.fleet.wait_until_served()
        self.fleet.start_worker(0, environment=workers)
        self.fleet.run("wait", self.fleet.submit(fleets.walk(chains=2)), "--timeout", "60s", check=True)
        said = self.fleet.run("get", "jobs", "--log-level", "debug").stderr
        said += self.fleet.run("get", "jobs", env={"CHAINFLEET_TOKEN": GUESS, "CHAINFLEET_TOKEN_FILE": ""}).stderr
        said += self.fleet.metrics() + self.fleet.run("audit", "--raw", check=True).stdout + "".join(self.fleet.logged().values())
        for process in self.fleet.processes.values():
            with open(f"/proc/{process.pid}/cmdline") as f:
                said += f.read()
        for folder, _, files in os.walk(self.fleet.data(0)):
            for name in files:
                with open(os.path.join(folder, name), "rb") as f:
                    said += f.read().decode("latin-1")
        for token in (ADMIN, WORKER, GUESS):
            self.assertNotIn(token, said)

    def test_no_core_is_dumped(self):
        self.fleet.start_server()
        self.fleet.wait_until_served()
        job = self.fleet.submit(fleets.walk(chains=1))
        watch = subprocess.Popen([os.path.join(fleets.BIN, "chainfleet"), "watch", job, "-o", "jsonl", "--timeout", "60s"], stdout=subprocess.PIPE,
                                 env={**os.environ, **self.fleet.environment, "CHAINFLEET_ADDRESS": self.fleet.address})
        try:
            self.assertTrue(watch.stdout.readline(), "it watches: the job has no worker yet")
            self.expect_no_core("watch", watch)
        finally:
            watch.kill()
            watch.communicate()
        self.fleet.start_worker(0)
        self.fleet.run("wait", job, "--timeout", "60s", check=True)
        for name, process in self.fleet.processes.items():
            self.expect_no_core(name, process)

    def expect_no_core(self, name, process):
        """Only the limit 1 stops files and pipes (core_pattern)."""
        with open(f"/proc/{process.pid}/limits") as f:
            [limit] = [line.split()[-3:-1] for line in f if line.startswith("Max core file size")]
        possible = [["1", "1"]] if resource.getrlimit(resource.RLIMIT_CORE)[1] else [["0", "0"], ["1", "1"]]
        self.assertIn(limit, possible, name)


if __name__ == "__main__":
    unittest.main()
