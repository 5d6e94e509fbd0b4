"""TLS between the real binaries: who gets in, and certificates that are replaced while a server runs."""

import http.client
import os
import re
import shutil
import socket
import ssl
import subprocess
import unittest
import urllib.request
import warnings

import python_package  # noqa: F401  before chainfleet: it says where the package is
import chainfleet as cf
from chainfleet.v1 import jobs_pb2
import fleet as fleets
import grpc
import started_fleet
from real_server import RealServer, free_ports

JOB = """
name: secured
model: {potential: {gaussian: {dimension: 10, precision: 1}}}
sampler: {sgld: {}}
step_size: {constant: 0.1}
num_steps: 100
chains: 2
collect: {every_steps: 10}
"""
EXPIRY = "^chainfleet_tls_certificate_expiry_timestamp_seconds"
HANDSHAKES = 100_000  # more than fit into the seconds after which a server has loaded a new certificate


def status(connection):
    """The status of /readyz. The connection stays open."""
    connection.request("GET", "/readyz")
    reply = connection.getresponse()
    reply.read()
    return reply.status


class SecuredFleet(started_fleet.StartedFleet):
    """A server with a certificate for 127.0.0.1, and the files of its authority in `pki`."""

    def __init__(self, client_certificates=False):
        super().__init__()
        self.pki("init")
        self.pki("issue", "server", "--host", "127.0.0.1")
        self.pki("issue", "client")
        shutil.copy(self.file("ca.crt"), self.file("clients.crt"))
        self.http_port = free_ports(1)[0]
        self.environment = {"CHAINFLEET_CA_FILE": self.file("ca.crt")}
        self.serve(client_certificates)

    def serve(self, client_certificates):
        """In place of an earlier server, which it kills."""
        self.start_server(0, "--tls-cert", self.file("server.crt"), "--tls-key", self.file("server.key"), *self.metrics_flags(),
                          *(("--tls-client-ca", self.file("clients.crt")) if client_certificates else ()), http=f"127.0.0.1:{self.http_port}")

    def file(self, name):
        return self.path("pki", name)

    def metrics_flags(self):
        return "--metrics-tls-cert", self.file("server.crt"), "--metrics-tls-key", self.file("server.key")

    def ports(self):
        """The ports of gRPC, HTTP and metrics."""
        return (int(self.addresses[0].rpartition(":")[2]), self.http_port, int(self.metrics_addresses[0].rpartition(":")[2]))

    def page(self, address, path):
        with urllib.request.urlopen(f"https://{address}{path}", timeout=10, context=self.context()) as reply:
            return reply.read().decode()

    def metrics(self, index=0):
        return self.page(self.metrics_addresses[index], "/metrics")

    def client_certificate(self, folder="pki"):
        return {"CHAINFLEET_CERT_FILE": self.path(folder, "client.crt"), "CHAINFLEET_KEY_FILE": self.path(folder, "client.key")}

    def context(self, client=None):
        """`client`: the folder of the client's certificate."""
        context = ssl.create_default_context(cafile=self.file("ca.crt"))
        if client:
            context.load_cert_chain(*self.client_certificate(client).values())
        return context

    def connect(self, **options):
        return http.client.HTTPSConnection("127.0.0.1", self.http_port, timeout=20, context=self.context(**options))

    def ready(self, **options):
        """The status of /readyz by HTTPS."""
        connection = self.connect(**options)
        try:
            return status(connection)
        finally:
            connection.close()

    def chosen(self, port, suites):
        """The cipher suite of TLS 1.2 for a client that likes `suites` best first."""
        context = self.context()
        context.maximum_version = ssl.TLSVersion.TLSv1_2
        context.set_ciphers(suites)
        with socket.create_connection(("127.0.0.1", port), timeout=20) as plain, context.wrap_socket(plain, server_hostname="127.0.0.1") as secured:
            return secured.cipher()[0]

    def open_watch(self, job):
        """A stream of the job's states on a connection that nothing repeats: it raises if the server drops the call."""
        with open(self.file("ca.crt"), "rb") as f:
            channel = grpc.secure_channel(self.addresses[0], grpc.ssl_channel_credentials(f.read()))
        watch = channel.unary_stream("/chainfleet.v1.JobService/WatchJob", jobs_pb2.WatchJobRequest.SerializeToString, jobs_pb2.Job.FromString)
        return channel, watch(jobs_pb2.WatchJobRequest(name=job, min_interval_seconds=0.05), timeout=120)

    def callers_serial(self):
        """The serial number of the certificate that the command line shows a server."""
        context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH, cafile=self.file("ca.crt"))
        context.verify_mode = ssl.CERT_REQUIRED
        context.load_cert_chain(self.file("server.crt"), self.file("server.key"))
        context.set_alpn_protocols(["h2"])
        with socket.create_server(("127.0.0.1", 0)) as server:
            server.settimeout(20)
            caller = subprocess.Popen(
                [os.path.join(fleets.BIN, "chainfleet"), "get", "jobs", "--address", f"127.0.0.1:{server.getsockname()[1]}"],
                stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env={**os.environ, **self.environment}, preexec_fn=RealServer.die_with_parent)
            try:
                plain, _ = server.accept()
                plain.settimeout(20)
                with context.wrap_socket(plain, server_side=True) as secured:
                    return secured.getpeercert()["serialNumber"]
            finally:
                caller.kill()
                caller.wait()

    def serial(self, port):
        """The serial number of the certificate that a port shows."""
        with socket.create_connection(("127.0.0.1", port), timeout=20) as plain, \
                self.context().wrap_socket(plain, server_hostname="127.0.0.1") as secured:
            return secured.getpeercert()["serialNumber"]


class Tls(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.fleet = SecuredFleet()
        cls.addClassCleanup(cls.fleet.close)
        cls.fleet.wait_until_served()
        cls.fleet.start_worker(0)

    def test_a_job_runs(self):
        job = self.fleet.submit(JOB)
        self.fleet.run("wait", job, "--timeout", "60s", check=True)
        self.fleet.wait_until(0, lambda _: self.fleet.json("get", "workers")["workers"][0].get("serving"))
        self.assertEqual(self.fleet.ready(), 200)

    def test_python_calls_by_tls(self):
        with cf.connect(self.fleet.addresses[0], ca_file=self.fleet.file("ca.crt")) as fleet:
            self.assertEqual(fleet.info().version, cf.__version__)
        with self.assertRaises(cf.errors.Unavailable):
            cf.connect(self.fleet.addresses[0], timeout=1)
        with self.assertRaisesRegex(cf.errors.InvalidArgument, "nowhere"):
            cf.connect(self.fleet.addresses[0], ca_file="/nowhere")

    def test_python_reads_replaced_files_when_it_connects_again(self):
        ours, theirs, read = self.fleet.file("ca.crt"), self.fleet.path("theirs", "ca.crt"), self.fleet.path("read.crt")
        self.fleet.pki("init", folder="theirs")
        shutil.copy(ours, read)
        with cf.connect(self.fleet.addresses[0], ca_file=read, timeout=3) as fleet:
            for authority, is_accepted in ((theirs, False), (ours, True), (os.devnull, True)):  # an empty file is not used
                shutil.copy(authority, read)
                fleet.close()
                if is_accepted:
                    self.assertEqual(fleet.info().version, cf.__version__)
                else:
                    self.assertRaises(cf.errors.Unavailable, fleet.info)

    def test_plaintext_and_strangers_get_no_answer(self):
        self.fleet.pki("init", folder="other")
        for authority, said in (("", "set CHAINFLEET_CA_FILE"), (self.fleet.path("other", "ca.crt"), "not signed by an authority")):
            refused = self.fleet.run("get", "jobs", "--timeout", "2s", env={"CHAINFLEET_CA_FILE": authority})
            self.assertEqual(refused.returncode, 5, refused)
            self.assertIn(said, refused.stderr)

    def test_a_certificate_of_another_host_is_refused(self):
        port = self.fleet.addresses[0].rpartition(":")[2]
        refused = self.fleet.run("get", "jobs", "--timeout", "2s", "--address", f"localhost:{port}")
        self.assertEqual(refused.returncode, 5, refused)
        self.assertIn("names another host", refused.stderr)

    def test_older_versions_are_refused(self):
        for port in self.fleet.ports():
            context = self.fleet.context()
            context.set_ciphers("ALL:@SECLEVEL=0")
            with warnings.catch_warnings(action="ignore", category=DeprecationWarning):
                context.minimum_version, context.maximum_version = ssl.TLSVersion.TLSv1, ssl.TLSVersion.TLSv1_1
            with socket.create_connection(("127.0.0.1", port), timeout=20) as plain, self.assertRaises((ssl.SSLError, ConnectionError)):
                context.wrap_socket(plain, server_hostname="127.0.0.1")

    def test_the_server_chooses_the_cipher_suite(self):
        suites = ["ECDHE-ECDSA-CHACHA20-POLY1305", "ECDHE-ECDSA-AES256-GCM-SHA384", "ECDHE-RSA-CHACHA20-POLY1305", "ECDHE-RSA-AES256-GCM-SHA384"]
        for port in self.fleet.ports():
            self.assertEqual(self.fleet.chosen(port, ":".join(suites)), self.fleet.chosen(port, ":".join(suites[::-1])))

    def test_a_renewed_certificate_is_shown_without_a_restart_and_no_open_call_ends(self):
        ports = self.fleet.ports()
        job = self.fleet.submit(fleets.walk(100000000))
        channel, watch = self.fleet.open_watch(job)
        self.addCleanup(channel.close)
        self.assertEqual(next(watch).id, job)
        before = {port: self.fleet.serial(port) for port in ports}
        self.fleet.pki("renew", "server")
        for port in ports:
            self.assertTrue(any(self.fleet.serial(port) != before[port] for _ in range(HANDSHAKES)), port)
        self.fleet.run("cancel", job, check=True)
        self.assertIn(jobs_pb2.Job.CANCELLED, (state.state for state in watch), "the stream of before delivers what happened since")
        port = ports[0]
        with socket.create_connection(("127.0.0.1", port), timeout=20) as plain, \
                self.fleet.context().wrap_socket(plain, server_hostname="127.0.0.1") as secured:
            until = ssl.cert_time_to_seconds(secured.getpeercert()["notAfter"])
        [shown] = re.findall(EXPIRY + r'{certificate="server"} (\S+)$', self.fleet.metrics(), re.M)
        self.assertEqual(float(shown), until)

    def test_workers_serve_metrics_by_tls_with_files_of_their_own(self):
        self.fleet.pki("issue", "worker", "--host", "127.0.0.1")
        port = free_ports(1)[0]
        self.fleet.start("worker-7", "chainfleet-worker", "--server", self.fleet.address, "--threads", "1", "--id", "worker-7",
                         "--metrics-port", str(port), "--metrics-tls-cert", self.fleet.file("worker.crt"),
                         "--metrics-tls-key", self.fleet.file("worker.key"))
        self.addCleanup(self.fleet.kill, "worker-7")
        address = f"127.0.0.1:{port}"
        self.fleet.wait_until(0, lambda _: address in self.fleet.page(self.fleet.metrics_addresses[0], "/sd"))
        page = self.fleet.page(address, "/metrics")
        self.assertIn('program="worker"', page)
        self.assertEqual(self.fleet.page(address, "/healthz"), "ok\n", "a probe of Kubernetes has no certificate")
        self.assertEqual(re.findall(EXPIRY + r'{certificate="(\w+)"} ', page, re.M), ["metrics", "server_ca"])
        before = self.fleet.serial(port)
        self.fleet.pki("renew", "worker")
        self.assertNotEqual(self.fleet.serial(port), before)

    def test_plaintext_gets_no_metrics(self):
        with self.assertRaises((http.client.HTTPException, OSError)):
            urllib.request.urlopen(f"http://{self.fleet.metrics_addresses[0]}/metrics", timeout=10)

    def test_wrong_files_of_metrics_end_the_start(self):
        certificate, key = self.fleet.file("server.crt"), self.fleet.file("client.key")
        for program in ("chainfleet-server", "chainfleet-worker"):
            for flags, said in ((("--metrics-tls-cert", certificate), "give both a certificate and its private key"),
                                (("--metrics-tls-cert", certificate, "--metrics-tls-key", key), f"the key {key} is not that of"),
                                (("--metrics-tls-cert", "/nowhere", "--metrics-tls-key", key), "/nowhere")):
                with self.subTest(program=program, flags=flags):
                    ended = subprocess.run([os.path.join(fleets.BIN, program), *flags], capture_output=True, text=True, timeout=60)
                    self.assertEqual(ended.returncode, 1, ended)
                    self.assertIn("TLS of metrics: ", ended.stderr)
                    self.assertIn(said, ended.stderr)

    def test_wrong_files_are_named(self):
        wrong = self.fleet.run("get", "jobs", env={"CHAINFLEET_CA_FILE": self.fleet.file("server.key")})
        self.assertEqual(wrong.returncode, 2, wrong)
        self.assertIn("server.key holds no certificate", wrong.stderr)


class ClientCertificates(unittest.TestCase):
    def setUp(self):
        self.fleet = SecuredFleet(client_certificates=True)
        self.addCleanup(self.fleet.close)
        self.fleet.environment |= self.fleet.client_certificate()
        self.fleet.wait_until_served()

    def test_only_their_holders_get_in_also_with_a_renewed_one(self):
        fleet = self.fleet
        fleet.start_worker(0)
        fleet.run("wait", fleet.submit(JOB), "--timeout", "60s", check=True)
        nobody = {"CHAINFLEET_CERT_FILE": "", "CHAINFLEET_KEY_FILE": ""}
        self.assertEqual(fleet.run("get", "jobs", "--timeout", "2s", env=nobody).returncode, 5)
        self.assertEqual(fleet.ready(client="pki"), 200)
        with self.assertRaises((ssl.SSLError, ConnectionError)):
            fleet.ready()
        before = fleet.callers_serial()
        fleet.pki("renew", "client")
        self.assertNotEqual(fleet.callers_serial(), before)
        fleet.run("wait", fleet.submit(JOB), "--timeout", "60s", check=True)  # by the worker, which shows the same files

    def test_a_new_authority_of_clients_needs_no_restart_and_ends_no_connection(self):
        fleet = self.fleet
        fleet.pki("init", folder="next")
        fleet.pki("issue", "client", folder="next")
        opened = fleet.connect(client="pki")
        self.addCleanup(opened.close)
        self.assertEqual(status(opened), 200)
        socket_before = opened.sock
        with self.assertRaises((ssl.SSLError, ConnectionError)):
            fleet.ready(client="next")
        os.replace(fleet.path("next", "ca.crt"), fleet.file("clients.crt"))
        self.assertEqual(fleet.ready(client="next"), 200)
        with self.assertRaises((ssl.SSLError, ConnectionError)):
            fleet.ready(client="pki")
        self.assertEqual(status(opened), 200)
        self.assertIs(opened.sock, socket_before)
        fleet.environment |= fleet.client_certificate("next")
        fleet.wait_until_served()  # gRPC looks at the file every other second
        self.assertEqual(fleet.run("get", "jobs", "--timeout", "2s", env=fleet.client_certificate()).returncode, 5)

    def test_a_worker_connects_again_with_replaced_files_without_a_restart(self):
        fleet = self.fleet
        fleet.start_worker(0)
        fleet.run("wait", fleet.submit(JOB), "--timeout", "60s", check=True)
        worker = fleet.processes["worker-0"]
        shutil.copytree(fleet.path("pki"), fleet.path("before"))
        fleet.pki("init", folder="next")
        fleet.pki("issue", "server", "--host", "127.0.0.1", folder="next")
        fleet.pki("issue", "client", folder="next")
        shutil.copy(fleet.path("next", "ca.crt"), fleet.path("next", "clients.crt"))
        for name in ("ca.crt", "clients.crt", "server.crt", "server.key", "client.crt", "client.key"):
            os.replace(fleet.path("next", name), fleet.file(name))
        fleet.serve(client_certificates=True)  # so that the worker loses its connection
        fleet.wait_until_served()
        self.assertEqual(fleet.run("get", "jobs", "--timeout", "2s", env=fleet.client_certificate("before")).returncode, 5,
                         "the files of before let nobody in")
        fleet.wait_until(0, lambda _: fleet.json("get", "workers").get("workers"))
        fleet.run("wait", fleet.submit(JOB), "--timeout", "60s", check=True)
        self.assertIsNone(worker.poll(), "the same process")


if __name__ == "__main__":
    unittest.main()
