"""Networks and draws from elsewhere, before they are sent."""
import os
import pathlib
import tempfile
import unittest

import python_package  # noqa: F401  first: it says where the next ones are
import chainfleet as cf
import numpy
from chainfleet import members
from chainfleet.draws import parse_safetensors
from chainfleet.weights import weights_file

EXPORTED = pathlib.Path(os.path.dirname(os.path.abspath(__file__))).parents[1] / "data" / "exported"


def state(value, **more):
    return {"fc.bias": numpy.full(2, value, numpy.float32), **more}


def draws(number, kind="theta"):
    return {f"{kind}/fc.bias": numpy.zeros((number, 2), numpy.float32)}


class Members(unittest.TestCase):
    def setUp(self):
        self.folder = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory()))

    def write(self, name, tensors):
        path = self.folder / f"{name}.safetensors"
        path.write_bytes(weights_file(tensors))
        return path

    def check(self, weights, own=(), statistics=(), name="abcd"):
        return members.check_members(name, weights, dict(own), set(statistics))

    def test_a_folder_is_the_chains_of_an_export(self):
        second, first = self.write("chain-0001", draws(5)), self.write("chain-0000", draws(3))
        found = self.check(self.folder)
        self.assertEqual(found, members.Members(([first], [second]), 5, False))
        self.assertEqual(members.file_of(found.chains[1], ()), second.read_bytes())

    def test_anchors_are_draws_of_a_second_kind(self):
        self.assertTrue(self.check([self.write("both", {**draws(3), **draws(3, "theta_a")})]).anchor)

    def test_more_networks_than_chains_are_draws_of_chains(self):
        found = self.check([state(i) for i in range(300)])
        self.assertEqual((len(found.chains), found.draws), (150, 2))
        stacked = parse_safetensors(members.file_of(found.chains[-1], ()))
        numpy.testing.assert_array_equal(stacked["theta/fc.bias"], [[298, 298], [299, 299]])
        self.assertEqual(len(self.check([state(i) for i in range(256)]).chains), 256)
        self.assertEqual(len(self.check([state(i) for i in range(64)], name="a" * 60).chains), 32)

    def test_statistics_are_kept_with_each_draw_and_other_buffers_are_compared(self):
        norm = state(1, **{"norm.running_mean": numpy.ones(2, numpy.float32), "norm.num_batches_tracked": numpy.array(3)})
        own = {"norm.running_mean": numpy.zeros(2, numpy.float32)}
        found = self.check([norm], own, own)
        kept = parse_safetensors(members.file_of(found.chains[0], own))
        self.assertEqual({name: value.shape for name, value in kept.items()}, {"theta/fc.bias": (1, 2), "theta/norm.running_mean": (1, 2)})
        with self.assertRaisesRegex(cf.errors.InvalidArgument, "another norm.running_mean than the module") as caught:
            self.check([norm], own)
        self.assertIn("training=True", caught.exception.hint)
        self.check([{**norm, **own}], own)

    def test_buffers_of_a_file_are_read_without_torch(self):
        found = members.buffers_of(EXPORTED / "train_norm.pt2")
        self.assertEqual({name: value.shape for name, value in found.items()},
                         {"1.running_mean": (4,), "1.running_var": (4,), "6.running_mean": (12,), "6.running_var": (12,)})
        junk = self.folder / "junk.pt2"
        junk.write_bytes(b"PK junk")
        self.assertEqual(members.buffers_of(junk), {})

    def test_refusals_say_what_to_do(self):
        junk = self.folder / "junk"
        junk.write_bytes(b"junk")
        empty = self.folder / "empty"
        empty.mkdir()
        both = self.write("both", {**draws(3), **draws(3, "theta_a")})
        for weights, words, hint in (([], "there are 0 networks", "give 1 to 4096"),
                                     ([state(0)] * 4097, "there are 4097 networks", "give 1 to 4096"),
                                     ([junk], "is no safetensors file", "safetensors.torch.save_file"),
                                     (empty, "has no .safetensors files", "job.export"),
                                     ([both, self.write("one", draws(3))], "lack theta_a", "as two jobs"),
                                     ([self.write("anchors", draws(3, "theta_a"))], "has no draws of theta", "export the job again"),
                                     ([self.write("none", draws(0))], "has no draws of theta", "export the job again"),
                                     ([self.write("odd", {**draws(3), "theta/a": numpy.zeros((2, 1))})], "different numbers", "export the job again"),
                                     ([both] * 257, "257 chains, and a job of this name has at most 256", "a shorter name")):
            with self.assertRaisesRegex(cf.errors.InvalidArgument, words) as caught:
                self.check(weights)
            self.assertIn(hint, caught.exception.hint)
        with self.assertRaises(cf.errors.NotFound):
            self.check([self.folder / "nowhere"])
        with self.assertRaisesRegex(cf.errors.InvalidArgument, "different tensors"):
            members.file_of([state(0), {"fc.weight": numpy.zeros(2)}], ())


if __name__ == "__main__":
    unittest.main()
