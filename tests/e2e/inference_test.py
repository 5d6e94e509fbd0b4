"""The Open Inference Protocol as its public client speaks it: synchronous, with callbacks and with asyncio."""
import asyncio
import json
import os
import queue
import socket
import struct
import time
import unittest
import urllib.request

import bad_input_test
import fleet as fleets
from public_client import service_pb2, tensor, triton  # first: it says where the next two are
from started_fleet import PATIENCE
import ml_dtypes
import numpy
import tritonclient.grpc.aio as triton_aio
from tritonclient.utils import InferenceServerException


CLOTHES = ["T-shirt/top", "Trouser", "Pullover", "Dress", "Coat", "Sandal", "Shirt", "Sneaker", "Bag", "Ankle boot"]


def open_call(address, message, whole):
    """A ModelInfer by hand on a connection of its own (RFC 9113), whose answer the server may not send: its window is 0."""
    def frame(kind, flags, stream, payload):
        return struct.pack(">I", len(payload))[1:] + struct.pack(">BBI", kind, flags, stream) + payload

    def header(name, value):  # literal, never compressed (RFC 7541, 6.2.2)
        return b"\0" + b"".join(bytes([len(text)]) + text for text in (name, value))

    headers = b"".join(header(*pair) for pair in (
        (b":method", b"POST"), (b":scheme", b"http"), (b":path", b"/inference.GRPCInferenceService/ModelInfer"),
        (b":authority", b"slow"), (b"te", b"trailers"), (b"content-type", b"application/grpc")))
    data = b"\0" + struct.pack(">I", len(message)) + message
    host, port = address.rsplit(":", 1)
    connection = socket.create_connection((host, int(port)))
    connection.sendall(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + frame(4, 0, 0, struct.pack(">HI", 4, 0)) +
                       frame(1, 4, 1, headers) + frame(0, 1 if whole else 0, 1, data if whole else data[:100]))
    return connection


class Inference(bad_input_test.Refusals):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.fleet.put_fashion("fashion", 500, "--class-names", ",".join(CLOTHES))
        cls.job = cls.fleet.submit(bad_input_test.GOOD.replace("last_epochs_of_cycle: 2", "every_steps: 4"))
        cls.fleet.run("wait", cls.job, "--timeout", "120s", check=True)
        cls.images = numpy.random.default_rng(1).integers(0, 256, (5, 1, 28, 28), dtype=numpy.uint8)
        fleets.write_npy(cls.fleet.path("x.npy"), "|u1", cls.images.shape, cls.images.tobytes())
        cls.expected = cls.fleet.json("predict", cls.job, "--input", cls.fleet.path("x.npy"))
        cls.client = triton.InferenceServerClient(cls.fleet.address)
        cls.addClassCleanup(cls.client.close)

    def not_inferred(self, code, *words, **arguments):
        """The call fails with this status and one message that has all the words and nothing of the inside."""
        arguments = {"model_name": "small", "inputs": [tensor(self.images, "UINT8")], **arguments}
        with self.assertRaises(InferenceServerException) as caught:
            self.client.infer(**arguments)
        self.assertEqual(caught.exception.status(), "StatusCode." + code)
        for word in words:
            self.assertIn(word, caught.exception.message())
        for inside in ("proto", "chainfleet::", ".cc", "absl"):
            self.assertNotIn(inside, caught.exception.message())

    def expect(self, result, name="mean_probability", decimal=12):
        wanted = numpy.array(self.expected["scores"][name]).reshape(result.as_numpy(name).shape)
        numpy.testing.assert_almost_equal(result.as_numpy(name), wanted, decimal)

    def test_server_and_model_are_ready_and_described(self):
        self.assertTrue(self.client.is_server_live())
        self.assertTrue(self.client.is_server_ready())
        self.assertTrue(self.client.is_model_ready("small"))
        self.assertFalse(self.client.is_model_ready("nowhere"))
        self.assertEqual(self.client.get_server_metadata().name, "chainfleet")
        metadata = self.client.get_model_metadata("small")
        self.assertEqual(metadata.inputs[0].datatype, "UINT8")
        self.assertEqual(list(metadata.inputs[0].shape), [-1, 1, 28, 28])
        self.assertIn("mutual_information", [output.name for output in metadata.outputs])
        config = self.client.get_model_config("small").config
        self.assertEqual(list(config.input[0].dims), [1, 28, 28])
        self.assertEqual({output.name: list(output.dims) for output in config.output}["mean_probability"], [10])
        self.assertEqual(config.max_batch_size, 15 * 2**20 // (28 * 28 * 4), "rows of a message in FP32, and room for its frame")
        batching = config.dynamic_batching
        self.assertEqual((list(batching.preferred_batch_size), batching.max_queue_delay_microseconds), ([512], 0))
        self.assertEqual((batching.priority_levels, batching.default_priority_level), (3, 2))
        self.assertEqual(batching.default_queue_policy.max_queue_size, 1024)

    def test_answers_are_those_of_predict(self):
        result = self.client.infer("small", [tensor(self.images, "UINT8")], request_id="seven")
        self.assertEqual(result.get_response().id, "seven")
        self.assertEqual(result.get_response().parameters["draws_used"].int64_param, int(self.expected["draws_used"]))
        scores = [name for name, values in self.expected["scores"].items() if values]
        self.assertEqual([output.name for output in result.get_response().outputs], scores)
        for name in scores:
            self.expect(result, name)
        asked = [triton.InferRequestedOutput("mutual_information_error"), triton.InferRequestedOutput("mean_probability")]
        result = self.client.infer("small", [tensor(self.images, "UINT8")], outputs=asked)
        self.assertEqual([output.name for output in result.get_response().outputs], [o.name() for o in asked])
        wanted = self.expected["errors"]["mutual_information"]
        numpy.testing.assert_almost_equal(result.as_numpy("mutual_information_error"), wanted, 12)

    def test_the_best_classes_are_named_as_triton_names_them(self):
        self.assertIn("classification", self.client.get_server_metadata().extensions)
        probabilities = numpy.array(self.expected["scores"]["mean_probability"]).reshape(5, 10)
        asked = triton.InferRequestedOutput("mean_probability", class_count=3)
        found = self.client.infer("small", [tensor(self.images, "UINT8")], outputs=[asked]).as_numpy("mean_probability")
        self.assertEqual(found.shape, (5, 3))
        for row, p in zip(found, probabilities):
            best = numpy.argsort(-p, kind="stable")[:3]
            self.assertEqual([text.decode() for text in row], [f"{p[k]:f}:{k}:{CLOTHES[k]}" for k in best])
        with urllib.request.urlopen(f"http://{self.fleet.http_address}/v2/models/small") as reply:
            self.assertEqual(json.loads(json.load(reply)["properties"]["class_names"]), CLOTHES)
        self.assertEqual(self.expected["class_names"], CLOTHES)
        asked = triton.InferRequestedOutput("max_probability", class_count=3)
        self.not_inferred("INVALID_ARGUMENT", "'max_probability'", "[n, classes]", outputs=[asked])
        many = numpy.zeros((21_000, 1, 28, 28), numpy.uint8)  # fit a message; their answers, counted by 786 bytes, do not
        asked = triton.InferRequestedOutput("mean_probability", class_count=10)
        self.not_inferred("INVALID_ARGUMENT", "more than a message holds", inputs=[tensor(many, "UINT8")], outputs=[asked])

    def test_every_datatype_of_the_same_images(self):
        scaled = self.images / 255.0
        for datatype, array, decimal in (("FP32", scaled.astype(numpy.float32), 5), ("FP64", scaled, 5),
                                         ("FP16", scaled.astype(numpy.float16), 2), ("BF16", scaled.astype(ml_dtypes.bfloat16), 1)):
            self.expect(self.client.infer("small", [tensor(array, datatype)]), decimal=decimal)

    def test_versions_and_choice_of_draws(self):
        version = self.expected["version"]
        result = self.client.infer("small", [tensor(self.images, "UINT8")], model_version=version)
        self.assertEqual(result.get_response().model_version, version)
        newest = self.client.infer("small", [tensor(self.images, "UINT8")], parameters={"members": 1, "kinds": "theta"})
        self.assertEqual(newest.get_response().parameters["draws_used"].int64_param, 2)  # one of each chain
        self.not_inferred("NOT_FOUND", "version", model_version="999")
        self.not_inferred("INVALID_ARGUMENT", "version", model_version="first")

    def infer(self, *outputs, x=None, timeout=None, **parameters):
        asked = [triton.InferRequestedOutput(name) for name in outputs] or None
        x = x or tensor(self.images, "UINT8")
        return self.client.infer("small", [x], outputs=asked, timeout=timeout, parameters=parameters)

    def draws_used(self, result):
        return result.get_response().parameters["draws_used"].int64_param

    def test_choice_of_chains_every_kth_and_a_budget(self):
        draws = int(self.expected["draws_used"])
        self.assertEqual(draws % 2, 0)
        one = self.infer(chains="1")
        self.assertEqual(self.draws_used(one), draws // 2)
        self.assertEqual(self.draws_used(self.infer(every=2)), 2 * ((draws // 2 + 1) // 2))
        self.assertEqual(self.draws_used(self.infer(every=draws)), 2)
        self.assertEqual(self.draws_used(self.infer(max_draws=3)), 3)
        self.assertEqual(self.draws_used(self.infer(max_draws=1)), 1)
        newest = self.infer(members=1).as_numpy("mean_probability")
        numpy.testing.assert_array_equal(self.infer(max_draws=2).as_numpy("mean_probability"), newest)
        by_cli = self.fleet.json("predict", self.job, "--input", self.fleet.path("x.npy"), "--chains", "1", "--every", "1")
        numpy.testing.assert_almost_equal(by_cli["scores"]["mean_probability"], one.as_numpy("mean_probability").ravel(), 15)
        self.not_inferred("INVALID_ARGUMENT", "no chain 2", "0 to 1", parameters={"chains": "2"})
        self.not_inferred("INVALID_ARGUMENT", "'chains'", parameters={"chains": "first"})

    def test_anytime_answers_with_the_same_bits_and_its_error(self):
        plain = self.infer("mean_probability", "expected_entropy", "mutual_information_error")
        anytime = self.infer(anytime=True, timeout=30_000_000)
        self.assertEqual(self.draws_used(anytime), int(self.expected["draws_used"]))
        for name in ("mean_probability", "expected_entropy", "mutual_information_error"):
            numpy.testing.assert_array_equal(anytime.as_numpy(name), plain.as_numpy(name))
        self.not_inferred("DEADLINE_EXCEEDED", timeout=1, parameters={"anytime": True})
        many = int(self.expected["draws_used"]) + 1
        self.not_inferred("FAILED_PRECONDITION", str(many), parameters={"anytime": True, "min_draws": many})

    def test_one_chain_has_an_error_and_the_bits_it_has_without(self):
        names = ("mean_probability", "expected_entropy")
        bare = self.infer(*names, chains="1")
        self.assertGreaterEqual(self.draws_used(bare), 8)
        plain = self.infer(*names, "mean_probability_error", "mutual_information_error", chains="1")
        anytime = self.infer(chains="1", anytime=True, timeout=30_000_000)
        self.assertEqual(self.draws_used(anytime), self.draws_used(bare))
        for name in names:
            numpy.testing.assert_array_equal(plain.as_numpy(name), bare.as_numpy(name))
            numpy.testing.assert_array_equal(anytime.as_numpy(name), bare.as_numpy(name))
        for name in ("mean_probability_error", "mutual_information_error"):
            self.assertTrue((plain.as_numpy(name) > 0).all())
            numpy.testing.assert_array_equal(anytime.as_numpy(name), plain.as_numpy(name))
        few = self.infer("mean_probability_error", chains="1", members=3)
        self.assertTrue(numpy.isnan(few.as_numpy("mean_probability_error")).all())

    def test_member_probabilities_make_the_averages(self):
        result = self.infer("member_probabilities", "mean_probability", "expected_entropy", "variation_ratio")
        members = result.as_numpy("member_probabilities").astype(numpy.float64)
        draws = int(self.expected["draws_used"])
        self.assertEqual(members.shape, (5, draws, 10))
        names = result.get_response().parameters["members"].string_param
        self.assertEqual(names, f"0/theta:{draws // 2},1/theta:{draws // 2}")
        numpy.testing.assert_almost_equal(members.mean(1), result.as_numpy("mean_probability"), 12)
        entropy = -(members * numpy.log(numpy.maximum(members, 1e-300))).sum(2).mean(1)
        numpy.testing.assert_almost_equal(entropy, result.as_numpy("expected_entropy"), 12)
        counts = [numpy.bincount(votes, minlength=10).max() for votes in members.argmax(2)]
        numpy.testing.assert_almost_equal(1 - numpy.array(counts) / draws, result.as_numpy("variation_ratio"), 12)
        self.fleet.run("predict", self.job, "--input", self.fleet.path("x.npy"), "--member-probabilities", "--output",
                       self.fleet.path("m.npz"), check=True)
        written = numpy.load(self.fleet.path("m.npz"))
        by_chain = [written[f"member_theta_{chain}_probabilities"] for chain in (0, 1)]
        numpy.testing.assert_array_equal(numpy.concatenate(by_chain).transpose(1, 0, 2), members.astype(numpy.float32))
        numpy.testing.assert_array_equal(written["member_theta_0_weights"], numpy.ones(draws // 2))
        self.not_inferred("INVALID_ARGUMENT", "quantiles", parameters={"quantiles": "0.5"})
        status = self.fleet.run("predict", self.job, "--input", self.fleet.path("x.npy"), "--quantiles", "95")
        self.assertNotEqual(status.returncode, 0)
        self.assertIn("95", status.stderr)

    def test_gradients_are_the_slopes_of_the_average(self):
        x = tensor((self.images[:2] / 255).astype(numpy.float32), "FP32")
        gradient = self.infer("mean_gradient", "member_gradients", x=x)
        slopes, members = gradient.as_numpy("mean_gradient"), gradient.as_numpy("member_gradients")
        draws = int(self.expected["draws_used"])
        self.assertEqual((slopes.shape, members.shape), ((2, 10, 1, 28, 28), (2, draws, 10, 1, 28, 28)))
        numpy.testing.assert_allclose(members.mean(1), slopes, rtol=1e-4, atol=1e-6)
        direction = slopes[:, 3] / numpy.sqrt((slopes[:, 3] ** 2).sum((1, 2, 3), keepdims=True))

        def probability(step):
            moved = (self.images[:2] / 255 + step * direction).astype(numpy.float32)
            return self.infer("mean_probability", x=tensor(moved, "FP32")).as_numpy("mean_probability")

        difference = (probability(0.002) - probability(-0.002)) / 0.004
        expected = (slopes * direction[:, None]).sum((2, 3, 4))
        numpy.testing.assert_allclose(difference, expected, rtol=0.1, atol=0.02 * numpy.abs(expected).max())
        many = tensor(numpy.zeros((500, 1, 28, 28), numpy.uint8), "UINT8")
        self.not_inferred("INVALID_ARGUMENT", "rows at a time", inputs=[many], outputs=[triton.InferRequestedOutput("mean_gradient")])

    def test_an_urgent_prediction_has_the_same_answer(self):
        asked = ["predict", self.job, "--input", self.fleet.path("x.npy"), "--priority"]
        self.assertEqual(self.fleet.json(*asked, "high")["scores"], self.expected["scores"])
        refused = self.fleet.run(*asked, "urgent")
        self.assertNotEqual(refused.returncode, 0)
        self.assertIn("--priority", refused.stderr)

    def test_metadata_and_config_name_the_same_tensors(self):
        metadata = self.client.get_model_metadata("small")
        config = self.client.get_model_config("small").config
        for described, configured in ((metadata.inputs, config.input), (metadata.outputs, config.output)):
            self.assertEqual([t.name for t in described], [t.name for t in configured])
            self.assertEqual([list(t.shape)[1:] for t in described], [list(t.dims) for t in configured])
            kinds = {"BOOL": 1, "UINT8": 2, "FP32": 11, "FP64": 12}
            self.assertEqual([kinds[t.datatype] for t in described], [t.data_type for t in configured])

    def test_bad_requests(self):
        self.not_inferred("NOT_FOUND", "nowhere", model_name="nowhere")
        self.not_inferred("INVALID_ARGUMENT", "'x'", inputs=[triton.InferInput("y", [1, 1, 28, 28], "UINT8")])
        self.not_inferred("INVALID_ARGUMENT", "INT64", inputs=[tensor(self.images.astype(numpy.int64), "INT64")])
        self.not_inferred("INVALID_ARGUMENT", "27", inputs=[tensor(self.images[:, :, :27], "UINT8")])
        self.not_inferred("INVALID_ARGUMENT", "output", "logits", outputs=[triton.InferRequestedOutput("logits")])
        self.not_inferred("INVALID_ARGUMENT", "unknown parameter", "wish", parameters={"wish": 1})
        self.not_inferred("INVALID_ARGUMENT", "float32", inputs=[tensor(numpy.full((1, 1, 28, 28), 1e300), "FP64")])
        self.not_inferred("INVALID_ARGUMENT", "bytes", inputs=[self.cut_short()])

    def cut_short(self):
        made = triton.InferInput("x", list(self.images.shape), "UINT8")
        made.set_data_from_numpy(self.images)
        made._raw_content = made._raw_content[:-1]
        return made

    def test_callbacks(self):
        answers = queue.Queue()
        for _ in range(8):
            self.client.async_infer("small", [tensor(self.images, "UINT8")], lambda result, error: answers.put((result, error)))
        for _ in range(8):
            result, error = answers.get(timeout=60)
            self.assertIsNone(error)
            self.expect(result)

    def test_a_stream_answers_in_order_and_survives_errors(self):
        """Triton's own client."""
        answers = queue.Queue()
        client = triton.InferenceServerClient(self.fleet.address)
        self.addCleanup(client.close)
        client.start_stream(lambda result, error: answers.put((result, error)))
        good, asked = [tensor(self.images, "UINT8")], 40  # many more than are read ahead
        for i in range(asked):
            model, version = ("nowhere", "") if i % 4 == 1 else ("small", "999") if i % 4 == 2 else ("small", "")
            client.async_stream_infer(model, [self.cut_short()] if i % 4 == 3 else good, model_version=version, request_id=str(i),
                                      enable_empty_final_response=True)
        for i in range(asked):
            result, error = answers.get(timeout=PATIENCE)
            if i % 4 == 0:
                self.assertIsNone(error)
                self.assertEqual(result.get_response().id, str(i))
                self.assertTrue(result.get_response().parameters["triton_final_response"].bool_param)
                self.expect(result)
            else:
                self.assertIn(("nowhere", "999", "bytes")[i % 4 - 1], error.message())
        client.stop_stream()
        self.assertTrue(answers.empty())
        client.start_stream(lambda result, error: answers.put((result, error)))  # and is given up in the middle
        for _ in range(asked):
            client.async_stream_infer("small", [tensor(numpy.tile(self.images, (200, 1, 1, 1)), "UINT8")])
        client.stop_stream(cancel_requests=True)
        self.expect(self.infer("mean_probability"))

    def test_asyncio(self):
        async def ask():
            async with triton_aio.InferenceServerClient(self.fleet.address) as client:
                return await asyncio.gather(*(client.infer("small", [tensor(self.images, "UINT8")]) for _ in range(8)))

        for result in asyncio.run(ask()):
            self.expect(result)

    def test_cancelled_requests_hurt_no_worker(self):
        worker = self.fleet.pid("worker-0")
        many = numpy.tile(self.images, (200, 1, 1, 1))
        for _ in range(20):
            calls = [self.client.async_infer("small", [tensor(many, "UINT8")], lambda result, error: None) for _ in range(10)]
            for call in calls:
                call.cancel()
        self.expect(self.infer("mean_probability"))
        os.kill(worker, 0)  # it lives
        self.assertTrue(self.client.is_server_ready())

    def test_clients_that_do_not_read_block_no_other(self):
        """Requests whose answers must wait for flow control that never comes, and halves of requests."""
        request = service_pb2.ModelInferRequest(model_name="small")
        request.inputs.add(name="x", datatype="UINT8", shape=self.images.shape)
        request.raw_input_contents.append(self.images.tobytes())
        slow = [open_call(self.fleet.address, request.SerializeToString(), whole=i % 4 != 0) for i in range(40)]
        try:
            began = time.monotonic()
            for _ in range(20):
                self.expect(self.client.infer("small", [tensor(self.images, "UINT8")], client_timeout=30))
            self.assertLess(time.monotonic() - began, 30)
        finally:
            for connection in slow:
                connection.close()
        self.expect(self.infer("mean_probability"))

    def test_statistics_count_what_was_asked(self):
        def rows():
            return sum(s.inference_count for s in self.client.get_inference_statistics("small").model_stats)

        before = rows()
        self.client.infer("small", [tensor(self.images, "UINT8")])
        self.assertEqual(rows(), before + len(self.images))
        for statistics in self.client.get_inference_statistics("small").model_stats:
            requests = statistics.inference_stats
            self.assertEqual(requests.queue.count, requests.success.count)
            parts = [requests.queue, requests.compute_input, requests.compute_infer, requests.compute_output]
            self.assertLessEqual(sum(part.ns for part in parts), requests.success.ns)
            self.assertEqual(sum(batch.compute_infer.count for batch in statistics.batch_stats), statistics.execution_count)
        batches = {batch.batch_size: batch for s in self.client.get_inference_statistics("small").model_stats
                   for batch in s.batch_stats}
        self.assertGreater(batches[len(self.images)].compute_infer.ns, 0)


class Cancelled(unittest.TestCase):
    """Calls that are given up while the only worker, which has a chain to step as well, is in the middle of them."""

    def setUp(self):
        self.fleet = fleets.Fleet(workers=1, lease_seconds=15)  # a machine that is slow and busy loses it for no other reason
        self.addCleanup(self.fleet.close)
        self.fleet.log_everything()  # the lowest level has the shards of workers
        self.fleet.up()
        self.fleet.put_fashion("fashion", 500)
        self.client = triton.InferenceServerClient(self.fleet.address)
        self.addCleanup(self.client.close)
        self.images = numpy.random.default_rng(1).integers(0, 256, (15_000, 1, 28, 28), dtype=numpy.uint8)

    def rows(self, end):
        """How many rows there were in shards of large requests that have ended so."""
        lines = [json.loads(line) for line in self.fleet.logged()["worker-0.log"].splitlines()
                 if line.startswith("{") and line.endswith("}")]  # not what libraries write, nor what is being written
        return sum(line["rows"] for line in lines if line["message"] == "shard " + end and line["rows"] > 1)

    def small_ones_until(self, condition):
        end = time.monotonic() + PATIENCE
        while time.monotonic() < end:
            self.small_one()
            if condition():
                return
        self.fail(f"it did not come about within {PATIENCE} s")

    def small_one(self):
        self.client.infer("small", [tensor(self.images[:1], "UINT8")], client_timeout=PATIENCE)

    def beside(self):
        return self.fleet.json("get", "chains", "beside")["chains"][0]

    def test_ends_the_work_that_is_under_way_and_leaves_the_chain_its_lease(self):
        many = bad_input_test.GOOD.replace("last_epochs_of_cycle: 2", "every_steps: 1")
        slow = many.replace("num_epochs: 4", "num_epochs: 20")  # its 400 members take longer than its images to come
        self.fleet.run("wait", self.fleet.submit(slow), "--timeout", "120s", check=True)
        endless = many.replace("name: small", "name: beside").replace("num_epochs: 4", "num_epochs: 1000000")
        job = self.fleet.submit(endless.replace("chains: 2", "chains: 1").replace("every_steps: 1", "every_steps: 1000"))
        self.fleet.wait_for_draws(job, 1)
        before = self.beside()
        self.small_one()  # the worker has the draws at hand from here on
        ends = queue.Queue()
        calls = [self.client.async_infer("small", [tensor(self.images, "UINT8")], lambda result, error: ends.put(error))
                 for _ in range(4)]
        self.small_ones_until(lambda: self.rows("served") > 0)
        for call in calls:
            call.cancel()
        for _ in calls:
            self.assertIsNotNone(ends.get(timeout=PATIENCE), "it was answered before it was cancelled")
        self.small_ones_until(lambda: self.rows("cancelled") > 0)
        served = -1  # shards that had begun still end: until there is no more of them
        while served != (served := self.rows("served")):
            for _ in range(20):
                self.small_one()
        self.assertLess(served, len(calls) * len(self.images) / 2, "the worker went on with what nobody waits for")
        self.fleet.wait_for_draws(job, int(self.fleet.json("get", "jobs", job)["num_draws"]) + 1)
        after = self.beside()
        self.assertEqual((after["state"], after["lease_epoch"], after["worker"]), ("LEASED", before["lease_epoch"], before["worker"]))
        self.fleet.run("cancel", job, check=True)


if __name__ == "__main__":
    unittest.main()
