"""The HTTP port of a real fleet: Triton's public client, plain requests as curl sends them, and bad ones."""
import base64
import contextlib
import http.client
import io
import json
import os
import socket
import subprocess
import threading
import unittest

import bad_input_test
import fleet as fleets
from public_client import tensor, triton  # first: it says where the others are
from coordinator import Coordinator
from real_server import running
import ml_dtypes
import numpy
import tritonclient.http as triton_http
from tritonclient.utils import InferenceServerException

INFER = "/v2/models/small/infer"


def http_tensor(array, datatype, binary=True):
    made = triton_http.InferInput("x", list(array.shape), datatype)
    made.set_data_from_numpy(array, binary_data=binary)
    return made


class Http(bad_input_test.Refusals):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        job = cls.fleet.submit(bad_input_test.GOOD.replace("last_epochs_of_cycle: 2", "every_steps: 4"))
        cls.fleet.run("wait", job, "--timeout", "120s", check=True)
        cls.images = numpy.random.default_rng(1).integers(0, 256, (5, 1, 28, 28), dtype=numpy.uint8)
        cls.by_grpc = triton.InferenceServerClient(cls.fleet.address).infer("small", [tensor(cls.images, "UINT8")])
        cls.client = triton_http.InferenceServerClient(cls.fleet.http_address)
        cls.addClassCleanup(cls.client.close)

    def ask(self, verb, path, body=None, **headers):
        """Code, headers and parsed body."""
        connection = http.client.HTTPConnection(self.fleet.http_address, timeout=60)
        try:
            connection.request(verb, path, body, {name.replace("_", "-"): value for name, value in headers.items()})
            reply = connection.getresponse()
            return reply.status, reply.headers, json.loads(reply.read())
        finally:
            connection.close()

    def body(self, images=None, **members):
        images = self.images if images is None else images
        x = {"name": "x", "shape": list(images.shape), "datatype": "UINT8", "data": images.tolist()}
        return {"inputs": [x], **members}

    def expect(self, result):
        for output in self.by_grpc.get_response().outputs:
            numpy.testing.assert_array_equal(result.as_numpy(output.name), self.by_grpc.as_numpy(output.name))

    def test_server_and_model_are_described(self):
        self.assertTrue(self.client.is_server_live() and self.client.is_server_ready() and self.client.is_model_ready("small"))
        self.assertFalse(self.client.is_model_ready("nowhere"))
        self.assertIn("binary_tensor_data", self.client.get_server_metadata()["extensions"])
        self.assertEqual(self.client.get_model_metadata("small")["inputs"], [{"name": "x", "datatype": "UINT8", "shape": [-1, 1, 28, 28]}])
        self.assertEqual(self.client.get_model_config("small")["input"], [{"name": "x", "data_type": "TYPE_UINT8", "dims": [1, 28, 28]}])
        self.assertEqual([s["name"] for s in self.client.get_inference_statistics("small")["model_stats"]], ["small"])

    def test_answers_are_those_of_grpc_in_json_and_binary(self):
        for binary_in in (True, False):
            for binary_out in (True, False):
                names = [output.name for output in self.by_grpc.get_response().outputs]
                asked = [triton_http.InferRequestedOutput(name, binary_data=binary_out) for name in names]
                self.expect(self.client.infer("small", [http_tensor(self.images, "UINT8", binary_in)], outputs=asked))
        result = self.client.infer("small", [http_tensor(self.images, "UINT8")], request_id="seven")
        self.expect(result)
        self.assertEqual(result.get_response()["id"], "seven")
        draws = self.by_grpc.get_response().parameters["draws_used"].int64_param
        self.assertEqual(result.get_response()["parameters"]["draws_used"], draws)

    def test_the_best_classes_are_those_of_grpc_in_json_and_binary(self):
        asked = [triton.InferRequestedOutput("mean_probability", class_count=2)]
        by_grpc = triton.InferenceServerClient(self.fleet.address)
        wanted = by_grpc.infer("small", [tensor(self.images, "UINT8")], outputs=asked).as_numpy("mean_probability")
        for binary in (True, False):
            asked = [triton_http.InferRequestedOutput("mean_probability", binary_data=binary, class_count=2)]
            found = self.client.infer("small", [http_tensor(self.images, "UINT8")], outputs=asked).as_numpy("mean_probability")
            decoded = [[text if isinstance(text, str) else text.decode() for text in row] for row in found]
            self.assertEqual(decoded, [[text.decode() for text in row] for row in wanted])

    def test_every_datatype(self):
        scaled = self.images / 255.0
        for datatype, array, binary in (("FP32", scaled.astype(numpy.float32), False), ("FP64", scaled, False),
                                        ("FP16", scaled.astype(numpy.float16), True), ("BF16", scaled.astype(ml_dtypes.bfloat16), True)):
            result = self.client.infer("small", [http_tensor(array, datatype, binary)])
            wanted = self.by_grpc.as_numpy("mean_probability")
            numpy.testing.assert_allclose(result.as_numpy("mean_probability"), wanted, atol=0.1 if datatype == "BF16" else 1e-2)

    def test_the_index_is_that_of_grpc(self):
        [model] = [model for model in self.client.get_model_repository_index() if model["name"].startswith("small-")]
        self.assertEqual((model["state"], model["reason"]), ("READY", ""))
        by_grpc = triton.InferenceServerClient(self.fleet.address).get_model_repository_index().models
        self.assertIn((model["name"], model["version"], "READY"), [(m.name, m.version, m.state) for m in by_grpc])

    def test_plain_requests(self):
        code, headers, reply = self.ask("POST", INFER, json.dumps(self.body(outputs=[{"name": "mean_probability"}])))
        self.assertEqual((code, headers["Content-Type"]), (200, "application/json"))
        [output] = reply["outputs"]
        self.assertEqual((output["name"], output["datatype"], output["shape"]), ("mean_probability", "FP64", [5, 10]))
        self.assertEqual(output["data"], self.by_grpc.as_numpy("mean_probability").ravel().tolist())
        code, _, reply = self.ask("POST", f"/v2/models/small/versions/{reply['model_version']}/infer",
                                  json.dumps(self.body(parameters={"members": 1, "kinds": "theta"})))
        self.assertEqual((code, reply["parameters"]["draws_used"]), (200, 2))
        curl = subprocess.run(["curl", "-sS", "-d", "@-", f"http://{self.fleet.http_address}{INFER}"], input=json.dumps(self.body()),
                              capture_output=True, text=True, timeout=60)
        self.assertEqual(json.loads(curl.stdout)["model_name"], "small", curl.stderr)

    def test_the_job_api(self):
        _, _, info = self.ask("GET", "/v1/server")
        self.assertEqual(info["version"], self.ask("GET", "/v2")[2]["version"])
        spec = {"name": "walk", "model": {"potential": {"gaussian": {"dimension": 2}}}, "sampler": {"sgld": {}},
                "step_size": {"constant": 0.1}, "batch_size": 1, "num_steps": 1000, "chains": 2, "collect": {"every_steps": 100}}
        code, _, job = self.ask("POST", "/v1/jobs", json.dumps({"spec": spec}))
        self.assertEqual(code, 200, job)
        self.fleet.run("wait", job["id"], "--timeout", "120s", check=True)
        done = self.ask("GET", "/v1/jobs/walk")[2]
        self.assertEqual((done["state"], done["num_draws"]), ("SUCCEEDED", "20"))
        segments = self.ask("GET", f"/v1/jobs/{job['id']}/segments?chain=1")[2]["segments"]
        self.assertEqual(sum(len(segment["segment"]["steps"]) for segment in segments), 10)
        inputs = {"type": "UINT8", "shape": list(self.images.shape), "data": base64.b64encode(self.images.tobytes()).decode()}
        code, _, reply = self.ask("POST", "/v1/jobs/small/predict", json.dumps({"inputs": inputs, "selection": {"version": "1"}}))
        self.assertEqual(code, 200, reply)
        self.assertEqual(reply["scores"]["mean_probability"], self.by_grpc.as_numpy("mean_probability").ravel().tolist())
        self.assertIn("/v1/jobs/{name}", self.ask("GET", "/openapi.json")[2]["paths"])

    @contextlib.contextmanager
    def watch(self, job):
        """Yields the events of a job as they come: the name, "" of a message, and the data."""
        with contextlib.closing(http.client.HTTPConnection(self.fleet.http_address, timeout=60)) as connection:
            connection.request("GET", f"/v1/jobs/{job}/watch?min_interval_seconds=0.01")
            reply = connection.getresponse()
            self.assertEqual((reply.status, reply.headers["Content-Type"]), (200, "text/event-stream"))

            def events():
                name = ""
                for line in reply:
                    if line.startswith(b"event: "):
                        name = line[7:].strip().decode()
                    elif line.startswith(b"data: "):
                        yield name, json.loads(line[6:])

            yield events()

    def test_server_sent_events_show_progress_to_the_end(self):
        spec = {"name": "watched", "model": {"potential": {"gaussian": {"dimension": 2}}}, "sampler": {"sgld": {}},
                "step_size": {"constant": 0.1}, "batch_size": 1, "num_steps": 1_000_000_000, "collect": {"every_steps": 100_000_000}}
        job = self.ask("POST", "/v1/jobs", json.dumps({"spec": spec}))[2]["id"]
        self.addCleanup(self.fleet.run, "cancel", job)
        steps = [-1]
        with self.watch(job) as events:
            while len(set(steps)) < 5:
                name, message = next(events)
                self.assertEqual((name, message["id"]), ("", job))
                steps.append(int(message["steps_done"]))
        self.assertEqual(steps, sorted(steps))
        with self.watch(job) as events:  # a client that was cut off asks again: an event is all that the job is by now
            _, message = next(events)
            self.assertGreaterEqual(int(message["steps_done"]), steps[-1])
            self.fleet.run("cancel", job, check=True)
            *messages, end = events
        self.assertEqual((end, messages[-1][1]["state"]), (("end", {}), "CANCELLED"))

    def put(self, name, content, query=""):
        """Returns the server's answer to a file that curl puts."""
        path = self.fleet.path("given")
        with open(path, "wb") as file:
            file.write(content)
        url = f"http://{self.fleet.http_address}/v1/datasets/{name}{query}"
        return json.loads(subprocess.run(["curl", "-sS", "-T", path, url], capture_output=True, check=True, timeout=60).stdout)

    def test_curl_puts_data_sets(self):
        arrays = io.BytesIO()
        numpy.savez(arrays, x=self.images, y=numpy.arange(5) % 2)
        stored = self.put("curled", arrays.getvalue(), "?class_names=even&class_names=odd")
        self.assertEqual((stored["num_rows"], stored["input_shape"], stored["class_names"]), ("5", ["1", "28", "28"], ["even", "odd"]))
        [listed] = [one for one in self.fleet.json("dataset", "list")["datasets"] if one["name"] == "curled"]
        self.assertEqual(listed["digest"], stored["digest"])
        self.assertIn("16 MiB", self.put("large", b"1,0\n" * (5 << 20))["error"])
        self.assertIn("line 2", self.put("text", b"1,0\n1,many\n")["error"])

    def test_a_large_request_in_json_and_in_binary(self):
        many = numpy.tile(self.images, (700, 1, 1, 1))
        wanted = numpy.tile(self.by_grpc.as_numpy("mutual_information"), 700)
        for binary in (True, False):
            result = self.client.infer("small", [http_tensor(many, "UINT8", binary)])
            numpy.testing.assert_allclose(result.as_numpy("mutual_information"), wanted, atol=1e-12)

    def test_bad_requests_say_what_is_wrong(self):
        good = json.dumps(self.body())
        for body, code, words in (
                ("{", 400, "no JSON"), (good.replace("UINT8", "INT64"), 400, "INT64"), (good.replace("UINT8", "BYTES"), 400, "BYTES"),
                (good.replace('"x"', '"y"'), 400, "'x'"), (good.replace("[5, 1, 28, 28]", "[5, 1, 28, 27]"), 400, "elements"),
                (good.replace("[5, 1, 28, 28]", "[1, 5, 28, 28]"), 400, "28"), (good[:-1] + ', "outputs": [{"name": "logits"}]}', 400, "logits"),
                (good[:-1] + ', "parameters": {"wish": 1}}', 400, "wish"), (json.dumps(self.body(self.images[:0])), 400, ""),
                (json.dumps({"inputs": [{"name": "x", "shape": [1, 1, 28, 28], "datatype": "FP32", "data": [float("nan")] * 784}]}), 400, "no JSON"),
                ("[" * 10**6, 400, "deeper"), ("[" * 10**6 + "]" * 10**6, 400, "deeper"), ('{"inputs":' * 10**5, 400, "deeper"),
                ("x" * (17 << 20), 413, "16 MiB")):
            with self.subTest(body[:60] + body[-60:]):
                status, _, reply = self.ask("POST", INFER, body)
                self.assertEqual(status, code, reply)
                self.assertIn(words, reply["error"])
        with self.assertRaises(InferenceServerException) as caught:
            self.client.infer("small", [http_tensor(self.images.astype(numpy.int64), "INT64")])
        self.assertIn("INT64", caught.exception.message())
        nan = numpy.full((1, 1, 28, 28), numpy.nan, numpy.float32)
        with self.assertRaises(InferenceServerException):
            self.client.infer("small", [http_tensor(nan, "FP32")])

    def test_clients_that_stop_midway_hurt_nobody(self):
        host, port = self.fleet.http_address.split(":")
        stuck = [socket.create_connection((host, int(port))) for _ in range(100)]
        try:
            for number, connection in enumerate(stuck):
                connection.sendall([b"", b"POST ", b"POST /v2/models/small/infer HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100\r\n\r\n{",
                                    b"GET /v2 HTTP/1.1\r\nHost: localhost\r\n\r\n" * 100][number % 4])
            for _ in range(20):
                self.expect(self.client.infer("small", [http_tensor(self.images, "UINT8")]))
        finally:
            for connection in stuck:
                connection.close()
        self.assertEqual(self.ask("GET", "/healthz")[0], 200)


class Tokens(unittest.TestCase):
    """A fleet with a token."""

    def test_one_authentication_for_both(self):
        fleet = fleets.Fleet(workers=0, environment={"CHAINFLEET_TOKEN": os.urandom(16).hex()})
        self.addCleanup(fleet.close)
        fleet.up()
        token = {"Authorization": "Bearer " + fleet.environment["CHAINFLEET_TOKEN"]}
        connection = http.client.HTTPConnection(fleet.http_address, timeout=60)
        self.addCleanup(connection.close)
        for path, headers, code in (("/healthz", {}, 200), ("/readyz", {}, 200), ("/v2", {}, 401), ("/v2", {"Authorization": "Bearer guess"}, 401),
                                    ("/v2", token, 200), ("/v2/models/nowhere", token, 404)):
            connection.request("GET", path, headers=headers)
            reply = connection.getresponse()
            self.assertEqual((path, reply.status), (path, code), reply.read())
            reply.read()

class Ending(unittest.TestCase):
    """A server that is asked to end while requests come and streams are open."""

    def test_it_ends_in_order(self):
        with running(Coordinator()) as server:
            def ask(verb, path, body=None):
                connection = http.client.HTTPConnection("127.0.0.1", server.http_port, timeout=60)
                with contextlib.closing(connection):
                    connection.request(verb, path, body)
                    reply = connection.getresponse()
                    return reply.status, reply.read()

            spec = {"name": "walk", "model": {"potential": {"gaussian": {"dimension": 2}}}, "sampler": {"sgld": {}},
                    "step_size": {"constant": 0.1}, "batch_size": 1, "num_steps": 1000, "chains": 2}
            self.assertEqual(ask("POST", "/v1/jobs", json.dumps({"spec": spec}))[0], 200)
            codes, served = set(), threading.Event()

            def hammer():
                with contextlib.suppress(OSError, http.client.HTTPException):
                    while True:
                        codes.add(ask("GET", "/v1/jobs/walk")[0])
                        served.set()

            def watch():
                with contextlib.suppress(OSError, http.client.HTTPException):
                    codes.add(ask("GET", "/v1/jobs/walk/watch")[0])

            threads = [threading.Thread(target=work) for work in (hammer, hammer, hammer, hammer, watch, watch)]
            for thread in threads:
                thread.start()
            self.assertTrue(served.wait(60))
            server.process.terminate()
            self.assertEqual(server.process.wait(60), 0)
            for thread in threads:
                thread.join(60)
            self.assertLessEqual(codes, {200, 503})


if __name__ == "__main__":
    unittest.main()
