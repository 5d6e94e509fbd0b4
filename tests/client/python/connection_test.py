"""Calls against servers of the test's own: retries, addresses, deadlines, the token, errors with their details."""
import concurrent.futures
import contextlib
import http.server
import io
import pickle
import socket
import sys
import tempfile
import threading
import time
import unittest
import unittest.mock

import python_package  # noqa: F401  first: it says where the next ones are
import chainfleet as cf
import grpc
import numpy
from chainfleet import addresses, arrays, connection, resources, tls, uploads
from chainfleet.rpc import error_details_pb2, status_pb2
from chainfleet.v1 import jobs_pb2, types_pb2
from google.protobuf import any_pb2
from real_server import free_ports

REQUESTS = {"GetJob": jobs_pb2.GetJobRequest, "PutDataset": jobs_pb2.PutDatasetRequest, "WatchJob": jobs_pb2.WatchJobRequest,
            "ListAliases": jobs_pb2.ListAliasesRequest, "SetAlias": jobs_pb2.SetAliasRequest,
            "GetServerInfo": jobs_pb2.GetServerInfoRequest, "DeleteModel": jobs_pb2.DeleteModelRequest,
            "DrainWorker": jobs_pb2.DrainWorkerRequest, "ListWorkers": jobs_pb2.ListWorkersRequest}


class Server(grpc.GenericRpcHandler):
    """Answers each method as `answers` says: a function of request and context, by the method's name."""

    def __init__(self, **answers):
        self.answers, self.metadata = answers, []
        self.server = grpc.server(concurrent.futures.ThreadPoolExecutor(4))
        self.server.add_generic_rpc_handlers((self,))
        self.address = f"127.0.0.1:{self.server.add_insecure_port('127.0.0.1:0')}"
        self.server.start()

    def service(self, details):
        name = details.method.rpartition("/")[2]
        if name not in self.answers:
            return None

        def answer(request, context):
            self.metadata.append(dict(context.invocation_metadata()))
            return self.answers[name](request, context)

        kind = {"PutDataset": grpc.stream_unary_rpc_method_handler, "WatchJob": grpc.unary_stream_rpc_method_handler}
        return kind.get(name, grpc.unary_unary_rpc_method_handler)(answer, REQUESTS[name].FromString, lambda reply: reply.SerializeToString())


def refuse(context, code, message, *details):
    status = status_pb2.Status(message=message)
    for name, detail in details:
        status.details.append(any_pb2.Any(type_url=f"type.googleapis.com/google.rpc.{name}", value=detail.SerializeToString()))
    context.set_trailing_metadata((("grpc-status-details-bin", status.SerializeToString()),))
    context.abort(code, message)


def reason(name):
    return "ErrorInfo", error_details_pb2.ErrorInfo(reason=name, domain="chainfleet")


class Served(unittest.TestCase):
    def serve(self, **answers):
        server = Server(**answers)
        self.addCleanup(server.server.stop, 0)
        return server

    def connect(self, *servers, token="", timeout=10, files=tls.NO_TLS, **options):
        made = connection.Connection([getattr(server, "address", server) for server in servers], token, timeout, files, **options)
        self.addCleanup(made.close)
        return made


class Calls(Served):
    def get(self, connected):
        return connected.call("JobService/GetJob", jobs_pb2.GetJobRequest(name="a"), jobs_pb2.Job)

    def test_a_call_has_the_token_and_an_id(self):
        server = self.serve(GetJob=lambda request, context: jobs_pb2.Job(id=request.name))
        self.assertEqual(self.get(self.connect(server, token="secret")).id, "a")
        self.assertEqual(server.metadata[0]["authorization"], "Bearer secret")
        self.assertEqual(len(server.metadata[0]["x-request-id"]), 32)

    def wanting(self, token):
        """A server that knows this token only."""
        def answer(request, context):
            if dict(context.invocation_metadata()).get("authorization") != f"Bearer {token}":
                context.abort(grpc.StatusCode.UNAUTHENTICATED, "unknown token")
            return jobs_pb2.Job(id=request.name)

        return self.serve(GetJob=answer, WatchJob=lambda request, context: iter([answer(request, context)]))

    def test_a_call_whose_token_is_refused_is_repeated_with_the_token_that_is_found_now(self):
        server = self.wanting("new")
        connected = self.connect(server, token="old", find_token=lambda: "new")
        self.assertEqual([self.get(connected).id for _ in range(2)], ["a", "a"])
        self.assertEqual(len(server.metadata), 3)
        self.assertEqual(server.metadata[0]["x-request-id"], server.metadata[1]["x-request-id"])
        connected = self.connect(server, token="old", find_token=lambda: "new")
        watch = connected.watch("JobService/WatchJob", jobs_pb2.WatchJobRequest(name="a"), jobs_pb2.Job, 10)
        self.assertEqual(next(watch).id, "a")
        watch.close()

    def test_a_call_whose_token_is_refused_is_not_repeated_without_another_token(self):
        for found in ("old", ""):
            server = self.wanting("new")
            with self.assertRaises(cf.errors.Unauthenticated):
                self.get(self.connect(server, token="old", find_token=lambda found=found: found))
            self.assertEqual(len(server.metadata), 1)

    def test_calls_whose_token_is_refused_at_once_find_another_one_once(self):
        all_refused, found = threading.Barrier(4), []

        def answer(request, context):
            if dict(context.invocation_metadata())["authorization"] == "Bearer old":
                all_refused.wait(60)
                context.abort(grpc.StatusCode.UNAUTHENTICATED, "unknown token")
            return jobs_pb2.Job(id=request.name)

        def find_token():
            found.append(f"new-{len(found)}")
            return found[-1]

        connected = self.connect(self.serve(GetJob=answer), token="old", timeout=60, find_token=find_token)
        with concurrent.futures.ThreadPoolExecutor(4) as threads:
            self.assertEqual([job.id for job in threads.map(lambda _: self.get(connected), range(4))], ["a"] * 4)
        self.assertEqual(found, ["new-0"])

    def test_a_refusal_has_its_code_reason_fields_and_hint(self):
        wrong = error_details_pb2.BadRequest()
        wrong.field_violations.add(field="chains", description="must be 1 or more")
        server = self.serve(GetJob=lambda request, context: refuse(
            context, grpc.StatusCode.INVALID_ARGUMENT, "no", reason("INVALID_FIELD"), ("BadRequest", wrong),
            ("RequestInfo", error_details_pb2.RequestInfo(request_id="7"))))
        with self.assertRaises(cf.reasons.InvalidField) as caught:
            self.get(self.connect(server))
        for error in (caught.exception, pickle.loads(pickle.dumps(caught.exception))):
            self.assertIsInstance(error, cf.errors.InvalidArgument)
            self.assertIsInstance(error, ValueError)
            self.assertEqual((error.code, error.reason, error.request_id), ("INVALID_ARGUMENT", "INVALID_FIELD", "7"))
            self.assertEqual(error.violations, (cf.FieldViolation("chains", "must be 1 or more"),))
            self.assertIn("chains: must be 1 or more\n  what to do: ", str(error))
        self.assertEqual(len(server.metadata), 1, "it is not repeated")

    def test_a_refusal_says_when_to_try_again(self):
        wait = error_details_pb2.RetryInfo()
        wait.retry_delay.FromMilliseconds(2500)
        bounded = error_details_pb2.ErrorInfo(reason="TENANT_LIMIT", domain="chainfleet", metadata={"bound": "tenant_jobs"})
        details = (("ErrorInfo", bounded), ("RetryInfo", wait)), (reason("TENANT_LIMIT"),)
        for given, seconds, bound in zip(details, (2.5, None), ("tenant_jobs", "")):
            server = self.serve(GetJob=lambda request, context, given=given: refuse(
                context, grpc.StatusCode.RESOURCE_EXHAUSTED, "full", *given))
            with self.assertRaises(cf.reasons.TenantLimit) as caught:
                self.get(self.connect(server))
            for error in (caught.exception, pickle.loads(pickle.dumps(caught.exception))):
                self.assertEqual((error.message, error.retry_after, error.bound), ("full", seconds, bound))
            self.assertEqual(len(server.metadata), 1, "it is not repeated")

    def test_an_error_without_a_reason_of_its_own_has_its_code_as_reason_and_a_hint(self):
        wrong = error_details_pb2.BadRequest()
        wrong.field_violations.add(field="inputs", description="has 3 axes")
        for details in ((), (reason("INVALID_ARGUMENT"),)):  # the answers of an older server and of this release
            server = self.serve(GetJob=lambda request, context, details=details: refuse(
                context, grpc.StatusCode.INVALID_ARGUMENT, "no", *details, ("BadRequest", wrong)))
            with self.assertRaises(cf.errors.InvalidArgument) as caught:
                self.get(self.connect(server))
            for error in (caught.exception, pickle.loads(pickle.dumps(caught.exception))):
                self.assertIs(type(error), cf.errors.InvalidArgument)
                self.assertEqual((error.reason, error.violations), ("INVALID_ARGUMENT", (cf.FieldViolation("inputs", "has 3 axes"),)))
                self.assertIn("what to do: correct the request as the message says", str(error))

    def test_every_code_has_a_hint(self):
        for code in (code.name for code in grpc.StatusCode if code is not grpc.StatusCode.OK):
            error = cf.errors.refusal(code, "", "no")
            self.assertEqual((error.reason, bool(error.hint)), (code, True))

    def test_unavailable_is_repeated_at_the_next_address(self):
        standby = self.serve(GetJob=lambda request, context: refuse(context, grpc.StatusCode.UNAVAILABLE, "no", reason("NOT_LEADER")))
        leader = self.serve(GetJob=lambda request, context: jobs_pb2.Job(id="found"))
        dead = f"127.0.0.1:{free_ports(1)[0]}"
        self.assertEqual(self.get(self.connect(dead, standby, leader)).id, "found")
        self.assertEqual(standby.metadata[0]["x-request-id"], leader.metadata[0]["x-request-id"], "one call in the logs")

    def test_a_repeated_deletion_of_nothing_is_not_said_to_be_done(self):
        server = self.serve(DeleteModel=lambda request, context: refuse(context, grpc.StatusCode.NOT_FOUND, "no", reason("MODEL_NOT_FOUND")))
        for addresses, is_repeated in (((server,), False), ((f"127.0.0.1:{free_ports(1)[0]}", server), True)):
            with self.assertRaises(cf.errors.NotFound) as caught:
                cf.Fleet(self.connect(*addresses)).delete_model("gone")
            self.assertEqual("earlier attempt" in str(caught.exception), is_repeated)

    def test_no_server_is_said_with_the_addresses_after_the_timeout(self):
        dead = f"127.0.0.1:{free_ports(1)[0]}"
        with self.assertRaises(ConnectionError) as caught:
            self.get(self.connect(dead, timeout=0.5))
        self.assertIn(dead, str(caught.exception))
        self.assertIn("chainfleet up", str(caught.exception))

    def test_transfers_without_a_server_end_after_the_timeout_of_calls(self):
        connected = self.connect(f"127.0.0.1:{free_ports(1)[0]}", timeout=0.5)
        data = arrays.check_data(numpy.zeros((3, 2)), numpy.zeros(3))
        begun = time.monotonic()
        for transfer in (lambda: uploads.put_data(connected, "d", data, lambda sent, total: None),
                         lambda: connected.read("JobService/ReadSegment", jobs_pb2.ReadSegmentRequest(), jobs_pb2.Chunk, list)):
            with self.assertRaises(cf.errors.Unavailable) as caught:
                transfer()
            self.assertEqual(caught.exception.reason, "NO_SERVER")
        self.assertLess(time.monotonic() - begun, 20)

    def test_a_port_for_http_is_said_to_be_one(self):
        server = http.server.HTTPServer(("127.0.0.1", 0), http.server.BaseHTTPRequestHandler)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        self.addCleanup(server.server_close)
        self.addCleanup(server.shutdown)
        with unittest.mock.patch.object(sys, "stderr", io.StringIO()), self.assertRaises(ConnectionError) as caught:
            self.get(self.connect(f"127.0.0.1:{server.server_port}", timeout=0.5))
        self.assertEqual(caught.exception.hint, f"127.0.0.1:{server.server_port} is a port for HTTP; give connect the port for gRPC, which is 7400 by default")

    def test_a_server_that_speaks_tls_and_one_that_does_not_are_told_from_none(self):
        listener = socket.create_server(("127.0.0.1", 0))
        self.addCleanup(listener.close)
        threading.Thread(target=self.close_all_connections, args=(listener,), daemon=True).start()
        with self.assertRaises(cf.errors.Unavailable) as caught:
            self.get(self.connect(f"127.0.0.1:{listener.getsockname()[1]}", timeout=0.3))
        self.assertIn("does the server speak TLS? Then give connect", caught.exception.hint)
        with self.assertRaises(cf.errors.Unavailable) as caught:
            self.get(self.connect(self.serve(), timeout=0.3, files=tls.TlsFiles("system")))
        self.assertIn("does the server speak TLS? If not, give connect no ca_file", caught.exception.hint)

    @staticmethod
    def close_all_connections(listener):
        """As a server for TLS does with what is no handshake."""
        with contextlib.suppress(OSError):
            while True:
                made, _ = listener.accept()
                made.recv(3)
                made.close()

    def test_a_certificate_that_is_not_accepted_names_the_files(self):
        for words in ("SSL routines::certificate verify failed", "OPENSSL_internal:CERTIFICATE_VERIFY_FAILED: self signed certificate",
                      "Peer name 127.0.0.1 is not in peer certificate", "Hostname Verification Check failed."):
            self.assertIn("not signed by an authority of ca_file", connection._remedy(words, words, "h:1", has_tls=True))
        for words in ("SSL routines::wrong version number", "OPENSSL_internal:WRONG_VERSION_NUMBER: Invalid certificate verification context"):
            self.assertIn("give connect no ca_file", connection._remedy(words, f"Tls handshake failed: {words}", "h:1", has_tls=True))
        self.assertIn("chainfleet.local()", connection._remedy("", "Connection refused", "h:1", has_tls=True))

    def test_programs_get_the_folders_of_files_for_tls(self):
        with unittest.mock.patch.dict("os.environ", {"HOME": "/home/one"}):
            named = tls.TlsFiles("~/ca.crt", "/etc/a.crt", "~/a.key").environment()
            self.assertEqual([*named.values()], ["/home/one/ca.crt", "/etc/a.crt", "/home/one/a.key"])
            self.assertEqual([*tls.TlsFiles("system").environment().values()], ["system", "", ""])

    def test_an_empty_file_for_tls_is_refused(self):
        with tempfile.NamedTemporaryFile() as empty, self.assertRaisesRegex(cf.errors.InvalidArgument, f"{empty.name} is empty"):
            tls.TlsFiles("system", empty.name, empty.name).credentials()

    def test_a_call_ends_at_its_deadline(self):
        server = self.serve(GetJob=lambda request, context: context.add_callback(done.set) and done.wait(20) and jobs_pb2.Job())
        done = threading.Event()
        with self.assertRaises(TimeoutError):
            self.get(self.connect(server, timeout=0.3))

    def test_all_pages_are_asked_for(self):
        pages = {"": jobs_pb2.ListAliasesResponse(aliases=[jobs_pb2.Alias(name="a")], next_page_token="2"),
                 "2": jobs_pb2.ListAliasesResponse(aliases=[jobs_pb2.Alias(name="b")])}
        server = self.serve(ListAliases=lambda request, context: pages[request.page_token])
        self.assertEqual([alias.name for alias in cf.Fleet(self.connect(server)).aliases()], ["a", "b"])

    def test_an_upload_begins_anew_after_an_outage(self):
        seen = []

        def put(requests, context):
            first = not seen
            seen.append([])
            for request in requests:
                seen[-1].append(request)
                if first and len(seen[-1]) == 3:
                    refuse(context, grpc.StatusCode.UNAVAILABLE, "no", reason("STORE_FAULT"))
            return types_pb2.Dataset(name="d")

        data = arrays.check_data(numpy.zeros((300_000, 2)), numpy.zeros(300_000))
        made = uploads.put_data(self.connect(self.serve(PutDataset=put)), "d", data, lambda sent, total: None)
        self.assertEqual((made.name, len(seen)), ("d", 2))
        header, *rest = seen[1]
        self.assertEqual((header.header.num_files, header.header.target_type), (2, types_pb2.FLOAT32_TARGETS))
        sizes = [request.file.size_bytes for request in rest if request.WhichOneof("part") == "file"]
        self.assertEqual(sum(sizes), sum(len(request.data) for request in rest))


class Versions(Served):
    def test_a_server_of_another_release_is_refused_with_the_release_to_install(self):
        for version, fits in ((cf.__version__, True), ("9.9.9", False)):
            server = self.serve(GetServerInfo=lambda request, context, version=version: jobs_pb2.ServerInfo(version=version))
            if fits:
                cf.connect(server.address).close()
                continue
            with self.assertRaisesRegex(cf.reasons.VersionMismatch, f"server is chainfleet 9.9.9, this package is {cf.__version__}") as caught:
                cf.connect(server.address)
            self.assertEqual((caught.exception.reason, "9.9.9" in caught.exception.hint), ("VERSION_MISMATCH", True))
        fits = {version: cf.fleet._fits(version, "1.3.0") for version in ("1.2.9", "1.3.1", "1.4.0", "1.1.0", "1.5.0", "2.3.0", "0.3.0")}
        self.assertEqual([version for version, fit in fits.items() if fit], ["1.2.9", "1.3.1", "1.4.0"])

    def test_a_call_that_the_server_does_not_know_is_a_mismatch_too(self):
        with self.assertRaises(cf.reasons.VersionMismatch) as caught:
            cf.Fleet(self.connect(self.serve())).aliases()
        self.assertEqual(caught.exception.reason, "VERSION_MISMATCH")
        self.assertTrue(caught.exception.hint)


class Watches(Served):
    def job(self, server):
        return cf.Job(cf.Fleet(self.connect(server)), "j")

    def test_a_watch_that_breaks_goes_on(self):
        states = [[jobs_pb2.Job.RUNNING], [jobs_pb2.Job.RUNNING, jobs_pb2.Job.SUCCEEDED]]

        def watch(request, context):
            for state in states[len(server.metadata) - 1]:
                yield jobs_pb2.Job(id="j", state=state)
            if len(server.metadata) == 1:
                context.abort(grpc.StatusCode.UNAVAILABLE, "gone")

        server = self.serve(WatchJob=watch)
        self.assertEqual([state.state for state in self.job(server).watch()], [2, 2, 4])

    def test_a_watch_that_breaks_after_a_long_silence_goes_on(self):
        def watch(request, context):
            left.append(context.time_remaining())
            if len(left) > 1:
                yield jobs_pb2.Job(id="j", state=jobs_pb2.Job.SUCCEEDED)
                return
            yield jobs_pb2.Job(id="j", state=jobs_pb2.Job.RUNNING)
            time.sleep(0.5)
            context.abort(grpc.StatusCode.UNAVAILABLE, "gone")

        left = []
        job = self.job(self.serve(WatchJob=watch))
        with unittest.mock.patch.object(connection, "_PATIENCE", 0.2):
            self.assertIs(job.wait(), job)
        self.assertEqual(len(left), 2)
        self.assertTrue(all(seconds is None or seconds > 1e6 for seconds in left), "without a timeout a stream has no deadline")

    def test_wait_ends_with_the_reasons_of_failed_chains(self):
        failed = jobs_pb2.Job(id="j", state=jobs_pb2.Job.FAILED)
        for index in (0, 1):
            failed.chains.add(id=types_pb2.ChainId(index=index), state=types_pb2.DIVERGED, reason="energy is not finite")
        fleet = cf.Fleet(self.connect(self.serve(WatchJob=lambda request, context: iter([failed]), GetJob=lambda request, context: failed)))
        job = cf.Job(fleet, "j")
        self.assertEqual(repr(job), "<chainfleet job j>")
        with self.assertRaisesRegex(cf.JobFailed, "chains 0, 1 DIVERGED: energy is not finite"):
            job.wait()
        for known in (job, fleet.job("j")):
            self.assertEqual(repr(known), "<chainfleet job j ended FAILED: chains 0, 1 DIVERGED: energy is not finite>")

    def test_an_interrupt_says_how_to_find_the_job_again(self):
        job = self.job(self.serve(WatchJob=lambda request, context: iter([jobs_pb2.Job(id="j")])))
        job.watch = lambda *arguments: (_ for _ in ()).throw(KeyboardInterrupt)
        said = io.StringIO()
        with self.assertRaises(KeyboardInterrupt), contextlib.redirect_stderr(said):
            job.wait()
        self.assertIn("fleet.job('j')", said.getvalue())

    def test_a_watch_ends_at_its_deadline(self):
        def watch(request, context):
            yield jobs_pb2.Job(id="j", state=jobs_pb2.Job.RUNNING)
            done = threading.Event()
            context.add_callback(done.set)
            done.wait(20)

        with self.assertRaisesRegex(cf.errors.DeadlineExceeded, "^job j is still RUNNING after 0.5 s\n") as caught:
            self.job(self.serve(WatchJob=watch)).wait(timeout=0.5)
        self.assertEqual(caught.exception.reason, "TIMED_OUT")
        self.assertIn("fleet.job('j').wait()", caught.exception.hint)

    def test_a_watch_that_heard_nothing_does_not_name_a_state(self):
        server = self.serve(WatchJob=lambda request, context: context.add_callback(done.set) and done.wait(20) and iter(()))
        done = threading.Event()
        with self.assertRaisesRegex(cf.errors.DeadlineExceeded, "did not answer in time"):
            self.job(server).wait(timeout=0.3)


class Drains(Served):
    def drain(self, *later, **options):
        """Drains a worker of 2 chains. `later`: the chains that it holds at each look, None once it is gone."""
        looks = iter(later)

        def look(request, context):
            chains = next(looks)
            return jobs_pb2.ListWorkersResponse(workers=[] if chains is None else [jobs_pb2.Worker(id="gpu-7", host="h", chains=chains)])

        server = self.serve(DrainWorker=lambda request, context: jobs_pb2.Worker(id=request.worker, host="h", chains=2), ListWorkers=look)
        with unittest.mock.patch.object(resources, "_DRAIN_LOOK", 0.01):
            return cf.Fleet(self.connect(server)).drain("gpu-7", **options)

    def test_drain_returns_when_the_worker_holds_no_chains_or_is_gone(self):
        self.assertEqual(self.drain(2, 1, 0).chains, 0)
        gone = self.drain(2, None)
        self.assertEqual((gone.id, gone.host, gone.chains), ("gpu-7", "h", 0))
        self.assertEqual(self.drain(wait=False).chains, 2)

    def test_drain_ends_some_time_after_its_deadline(self):
        with unittest.mock.patch.object(resources, "_DRAIN_PATIENCE", 0.1), self.assertRaisesRegex(TimeoutError, "gpu-7 still holds 2 chains"):
            self.drain(*[2] * 1000, deadline=0.1)


class Addresses(unittest.TestCase):
    def test_one_several_or_those_of_the_environment(self):
        self.assertEqual(addresses.parse_addresses("a:1, [::1]:2"), ["a:1", "[::1]:2"])
        self.assertEqual(addresses.parse_addresses(["a:1", "b:2"]), ["a:1", "b:2"])
        with unittest.mock.patch.dict("os.environ", {"CHAINFLEET_ADDRESS": "c:3"}):
            self.assertEqual(addresses.parse_addresses(None), ["c:3"])
        for wrong in ("a", "a:0", "a:99999", "http://a:1", ""):
            with self.assertRaisesRegex(cf.errors.InvalidArgument, "host:port"):
                addresses.parse_addresses(wrong)

    def test_a_token_is_one_word(self):
        with unittest.mock.patch.dict("os.environ", {"CHAINFLEET_TOKEN": "t", "CHAINFLEET_TOKEN_FILE": "/nowhere"}):
            self.assertEqual((addresses.find_token(None), addresses.find_token("u")), ("t", "u"))
        with unittest.mock.patch.dict("os.environ", {"CHAINFLEET_TOKEN": "", "CHAINFLEET_TOKEN_FILE": "/nowhere"}):
            with self.assertRaisesRegex(cf.errors.InvalidArgument, "CHAINFLEET_TOKEN_FILE"):
                addresses.find_token(None)
        with self.assertRaises(cf.errors.InvalidArgument) as caught:
            addresses.find_token("two words")
        self.assertNotIn("two", str(caught.exception), "a token is not shown")


if __name__ == "__main__":
    unittest.main()
