"""The Open Inference Protocol as its public client speaks it: synchronous, with callbacks and with asyncio."""
import asyncio
import os
import queue
import sys
import unittest

import bad_input_test
import fleet as fleets

DEPS = os.environ.get("CHAINFLEET_DEPS") or os.path.expanduser("~/.cache/chainfleet")
sys.path.insert(0, os.path.join(DEPS, "tritonclient-2.73.0"))
import ml_dtypes  # noqa: E402
import numpy  # noqa: E402
import tritonclient.grpc as triton  # noqa: E402
import tritonclient.grpc.aio as triton_aio  # noqa: E402
from tritonclient.utils import InferenceServerException  # noqa: E402


def tensor(array, datatype):
    made = triton.InferInput("x", list(array.shape), datatype)
    made.set_data_from_numpy(array)
    return made


class Inference(bad_input_test.Refusals):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.job = cls.fleet.submit(bad_input_test.GOOD)
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

    def test_asyncio(self):
        async def ask():
            async with triton_aio.InferenceServerClient(self.fleet.address) as client:
                return await asyncio.gather(*(client.infer("small", [tensor(self.images, "UINT8")]) for _ in range(8)))

        for result in asyncio.run(ask()):
            self.expect(result)

    def test_statistics_count_what_was_asked(self):
        def rows():
            return sum(s.inference_count for s in self.client.get_inference_statistics("small").model_stats)

        before = rows()
        self.client.infer("small", [tensor(self.images, "UINT8")])
        self.assertEqual(rows(), before + len(self.images))


if __name__ == "__main__":
    unittest.main()
