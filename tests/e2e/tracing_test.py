"""One request in the logs of server and worker, by the id that its client gave it or was told."""
import json
import re
import sys
import unittest

import started_fleet
from public_client import DEPS, service_pb2  # first: it says where the next two are
import numpy

sys.path.append(DEPS)
import grpc  # noqa: E402

TOKEN, WORKER_TOKEN = "a-token-that-nobody-may-read", "another-one-that-workers-send"
TRACE = "4bf92f3577b34da6a3ce929d0e0e4736"
JOB = """
name: traced
model: {builtin: softmax_regression}
dataset: {name: fashion}
sampler: {sgld: {}}
learning_rate: {constant: 0.01}
temperature: 1.0e-4
batch_size: 50
num_steps: 60
chains: 2
collect: {every_steps: 20}
"""


class Tracing(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.fleet = started_fleet.StartedFleet(environment={"CHAINFLEET_TOKEN": TOKEN, "CHAINFLEET_WORKER_TOKEN": WORKER_TOKEN}, lease="5s")
        cls.addClassCleanup(cls.fleet.close)
        with open(cls.fleet.path("debug.conf"), "w") as f:
            f.write("log-level = debug\n")
        debug = {"CHAINFLEET_CONFIG": cls.fleet.path("debug.conf")}
        cls.fleet.start_server(environment=debug)
        cls.fleet.wait_until_served()
        cls.fleet.start_worker(0, environment=debug)
        cls.fleet.put_fashion("fashion", 500)
        cls.job = cls.fleet.submit(JOB)
        cls.fleet.run("wait", cls.job, "--timeout", "120s", check=True)

    def lines(self, name, request=None):
        """The log lines of a process about one request, one JSON object per line."""
        with open(self.fleet.path("run", name + ".log")) as f:
            logged = [json.loads(line) for line in f]
        return [line for line in logged if request is None or line.get("request") == request]

    def infer(self, *metadata):
        """The ids in the metadata of a prediction's answer."""
        images = numpy.random.default_rng(1).integers(0, 256, (5, 1, 28, 28), dtype=numpy.uint8)
        request = service_pb2.ModelInferRequest(model_name="traced", raw_input_contents=[images.tobytes()])
        request.inputs.add(name="x", datatype="UINT8", shape=images.shape)
        with grpc.insecure_channel(self.fleet.address) as channel:
            call = channel.unary_unary("/inference.GRPCInferenceService/ModelInfer", type(request).SerializeToString,
                                       service_pb2.ModelInferResponse.FromString)
            _, ended = call.with_call(request, timeout=60, metadata=[("authorization", "Bearer " + TOKEN), *metadata])
        return [value for part in (ended.initial_metadata(), ended.trailing_metadata()) for key, value in part if key == "x-request-id"]

    def test_a_prediction_has_its_trace_id_everywhere(self):
        self.assertEqual(self.infer(("traceparent", f"00-{TRACE}-00f067aa0ba902b7-01")), [TRACE, TRACE])
        answered, = self.lines("server-0", TRACE)
        self.assertEqual((answered["method"], answered["code"]), ("/inference.GRPCInferenceService/ModelInfer", "OK"))
        self.assertGreater(answered["duration_ms"], 0)
        shard, = self.lines("worker-0", TRACE)
        self.assertEqual((shard["message"], shard["job"], shard["chains"], shard["rows"], shard["worker"]),
                         ("shard served", self.job, 2, 5, "worker-0"))
        self.assertGreater(shard["ms"], 0)

    def test_an_evaluation_is_followed_by_its_own_id(self):
        self.fleet.run("evaluate", self.job, "--dataset", "fashion", check=True)
        begun, = [line for line in self.lines("server-0") if line["message"] == "evaluation begun"]
        started, = [line for line in self.lines("server-0", begun["request"]) if line["message"] == "call answered"]
        self.assertEqual((started["evaluation"], started["job"]), (begun["evaluation"], begun["job"]))
        served = self.lines("worker-0", begun["evaluation"])
        self.assertEqual({line["message"] for line in served}, {"shard served"})

    def test_the_command_line_says_which_request_failed(self):
        said = self.fleet.run("describe", "nowhere").stderr
        request = re.fullmatch(r"error: .* \(request ([0-9a-f]{32})\)\n", said)
        self.assertTrue(request, said)
        failed, = self.lines("server-0", request[1])
        self.assertEqual((failed["code"], failed["message"]), ("NOT_FOUND", "call failed"))

    def test_lines_about_chains_name_job_chain_epoch_and_worker(self):
        commits = [line for line in self.lines("server-0") if line.get("method") == "/chainfleet.v1.WorkerService/CommitProgress"]
        granted = [line for line in self.lines("worker-0") if line["message"] == "lease granted"]
        self.assertEqual({line["chain"] for line in granted}, {0, 1})
        self.assertEqual({line["chain"] for line in commits}, {0, 1})
        for line in commits + granted:
            self.assertEqual((line["job"], line["lease_epoch"], line["worker"]), (self.job, 1, "worker-0"))

    def test_every_line_of_a_worker_names_it_and_none_has_the_token(self):
        self.assertEqual({line["worker"] for line in self.lines("worker-0")}, {"worker-0"})
        for name in ("server-0", "worker-0"):
            with open(self.fleet.path("run", name + ".log")) as f:
                text = f.read()
            for token in (TOKEN, WORKER_TOKEN):
                self.assertNotIn(token, text)


# Runs on, as long as anybody looks.
LONG = """
name: long
model: {potential: {gaussian: {dimension: 10, precision: 1}}}
sampler: {sgld: {}}
step_size: {constant: 0.1}
num_steps: 500000000
chains: 2
collect: {every_steps: 100000}
"""
URGENT = LONG.replace("long", "urgent").replace("500000000", "20000").replace("100000", "5000").replace("chains: 2", "chains: 1") + (
    "scheduling: {priority: high}\n")


class Leases(unittest.TestCase):
    """The server's log has the events of leases at its default level."""

    @classmethod
    def setUpClass(cls):
        cls.fleet = started_fleet.StartedFleet()
        cls.addClassCleanup(cls.fleet.close)
        cls.fleet.start_server()
        cls.fleet.wait_until_served()
        cls.start_worker("worker-0")
        cls.job = cls.fleet.submit(LONG)
        cls.fleet.wait_for_draws(cls.job, 1)
        cls.fleet.kill("worker-0")
        cls.start_worker("worker-1")
        cls.wait_for_holder("worker-1")
        cls.urgent = cls.fleet.submit(URGENT)  # one of the two gives way
        cls.fleet.run("wait", cls.urgent, "--timeout", "120s", check=True)
        cls.fleet.run("abort", cls.job, check=True)
        cls.fleet.run("wait", cls.job, "--timeout", "60s", check=True)
        with open(cls.fleet.path("run", "server-0.log")) as f:
            cls.lines = [json.loads(line) for line in f]

    @classmethod
    def start_worker(cls, name):
        cls.fleet.start(name, "chainfleet-worker", "--server", cls.fleet.address, "--threads", "1", "--id", name, "--chain-slots", "2",
                        "--host", f"node-of-{name}")

    @classmethod
    def wait_for_holder(cls, worker):
        for state in cls.fleet.watch(cls.job):
            if all(chain.get("worker") == worker for chain in state["chains"]):
                return
        raise AssertionError(cls.fleet.logs())

    def leases(self, message, **having):
        """(job, chain, epoch, worker) of each such line."""
        return [(line["job"], line["chain"], line["lease_epoch"], line["worker"]) for line in self.lines
                if line["message"] == message and all(line.get(key) == value for key, value in having.items())]

    def test_each_grant_has_one_line(self):
        granted = self.leases("lease granted", level="info")
        self.assertEqual(len(set(granted)), len(granted))
        first = {(self.job, chain, epoch, worker) for chain in (0, 1) for epoch, worker in ((1, "worker-0"), (2, "worker-1"))}
        self.assertLessEqual(first | {(self.urgent, 0, 1, "worker-1")}, set(granted))

    def test_a_worker_that_dies_is_named_with_each_of_its_leases(self):
        lost = self.leases("lease ended", level="warning", cause="lost")
        self.assertEqual(sorted(lost), [(self.job, chain, 1, "worker-0") for chain in (0, 1)])
        for line in self.lines:
            if line.get("cause") == "lost":
                self.assertEqual(line["reason"], "worker worker-0 did not renew its lease")
        silent, = [line for line in self.lines if line["message"] == "worker fell silent"]
        self.assertEqual((silent["level"], silent["worker"], silent["host"]), ("warning", "worker-0", "node-of-worker-0"))

    def test_a_chain_that_gives_way_is_named_with_its_lease(self):
        given, = self.leases("lease preempted", level="info")
        self.assertEqual((given[0], given[3]), (self.job, "worker-1"))
        self.assertIn(given, self.leases("lease granted"))

    def test_lines_about_chains_name_their_jobs_and_those_about_leases_all_of_them(self):
        for name in ("server-0", "worker-0", "worker-1"):
            with open(self.fleet.path("run", name + ".log")) as f:
                about = [line for line in map(json.loads, f) if "chain" in line]
            self.assertGreater(len(about), 0, name)
            for line in about:
                self.assertIn("job", line)
                if "lease_epoch" in line or "lease" in line["message"]:
                    self.assertGreater(line["lease_epoch"], 0)
                    self.assertRegex(line["worker"], "^worker-[01]$", line)


if __name__ == "__main__":
    unittest.main(verbosity=2)
