"""Draws are read when they are asked for, and compared with their records."""
import hashlib
import json
import tracemalloc
import types
import unittest
import unittest.mock

import python_package  # noqa: F401  first: it says where the next ones are
import chainfleet as cf
import numpy
from chainfleet import draws
from chainfleet.v1 import jobs_pb2, types_pb2


def safetensors(arrays):
    header, data = {"__metadata__": {"job": "j"}}, b""
    for name, array in arrays.items():
        dtype = {"f": f"F{8 * array.itemsize}", "i": f"I{8 * array.itemsize}"}[array.dtype.kind]
        header[name] = {"dtype": dtype, "shape": list(array.shape), "data_offsets": [len(data), len(data) + array.nbytes]}
        data += array.tobytes()
    text = json.dumps(header).encode()
    return len(text).to_bytes(8, "little") + text + data


class Store:
    """Segments as a server has them. Counts what is read."""

    def __init__(self):
        self.objects, self.records, self.read_names = {}, [], []

    def add(self, chain, first, weights, more=(), **flags):
        values = numpy.arange(len(weights) * 6, dtype=numpy.float32).reshape(len(weights), 2, 3) + 100 * chain + 6 * first
        content = safetensors({"steps": numpy.arange(len(weights)), "theta/fc1.weight": values, "theta_a/fc1.weight": -values, **dict(more)})
        record = types_pb2.SegmentRecord(chain=types_pb2.ChainId(job="j", index=chain), **flags)
        record.segment.first_index = first
        record.segment.steps.extend(range(10 * first, 10 * (first + len(weights)), 10))
        record.segment.weights.extend(weights)
        record.segment.kinds.extend([types_pb2.THETA, types_pb2.THETA_A])
        record.segment.object.name = f"{chain}-{first}"
        record.segment.object.size_bytes = len(content)
        record.segment.object.sha256 = hashlib.sha256(content).hexdigest()
        record.segment.digest = f"digest {chain} {first}"
        before = [r.segment.digest for r in self.records if r.chain.index == chain]
        record.segment.parent_digest = before[-1] if before else "0" * 64
        self.objects[f"{chain}-{first}"] = content
        self.records.append(record)

    def read(self, method, request, reply, take):
        self.read_names.append(request.object)
        content = self.objects[request.object]
        return take(iter([jobs_pb2.Chunk(data=content[:50]), jobs_pb2.Chunk(data=content[50:])]))

    def draws(self):
        return draws.Draws(self, self.records)


class Read(unittest.TestCase):
    def setUp(self):
        self.store = Store()
        self.store.add(0, 0, [1.0, 3.0])
        self.store.add(0, 2, [2.0])
        self.store.add(1, 0, [1.0])

    def test_draws_come_by_chain_and_index_and_one_object_at_a_time(self):
        found = self.store.draws()
        self.assertEqual((len(found), found.chains, found.kinds, self.store.read_names), (4, (0, 1), ("theta", "theta_a"), []))
        numpy.testing.assert_array_equal(found.weights(0), [1, 3, 2])
        numpy.testing.assert_array_equal(found.steps(0), [0, 10, 20])
        self.assertEqual(self.store.read_names, [])
        first = next(iter(found))
        self.assertEqual(self.store.read_names, ["0-0"])
        self.assertEqual((first.chain, first.index, first.step, first.weight, first.kind), (0, 0, 0, 1, "theta"))
        self.assertEqual([(d.chain, d.index, d.weight) for d in found], [(0, 0, 1), (0, 1, 3), (0, 2, 2), (1, 0, 1)])
        self.assertEqual([d.parameters["fc1.weight"][0, 0] for d in found], [0, 6, 12, 100])
        self.assertEqual([d.parameters["fc1.weight"][0, 1] for d in found["theta_a"]], [-1, -7, -13, -101])

    def test_an_iteration_holds_a_few_objects_however_many_there_are(self):
        record, size = self.store.records[0], 1 << 20
        values = numpy.zeros((1, size // 8), numpy.float32)
        content = safetensors({"theta/w": values, "theta_a/w": values})
        self.store.records, self.store.objects = [], {}
        for index in range(64):
            made = types_pb2.SegmentRecord()
            made.CopyFrom(record)
            del made.segment.steps[1:], made.segment.weights[1:]
            made.segment.first_index, made.segment.object.name = index, f"0-{index}"
            made.segment.object.size_bytes, made.segment.object.sha256 = len(content), hashlib.sha256(content).hexdigest()
            made.segment.digest, made.segment.parent_digest = str(index), str(index - 1) if index else "0" * 64
            self.store.records.append(made)
        self.store.read = lambda *arguments: arguments[-1](jobs_pb2.Chunk(data=content[at:at + size // 8]) for at in range(0, len(content), size // 8))
        found = self.store.draws()
        tracemalloc.start()
        self.addCleanup(tracemalloc.stop)
        self.assertEqual(sum(draw.parameters["w"].size for draw in found), 64 * size // 8)
        self.assertLess(tracemalloc.get_traced_memory()[1], 2.5 * size, "the last draw holds its object while the next one is read")
        tracemalloc.reset_peak()
        for draw in found:
            del draw
        self.assertLess(tracemalloc.get_traced_memory()[1], 1.5 * size)

    def test_the_draws_of_some_chains_are_read_alone(self):
        chosen = self.store.draws().of_chains([1])
        self.assertEqual(([draw.chain for draw in chosen], len(chosen), chosen.chains, chosen.kinds), ([1], 1, (1,), ("theta", "theta_a")))
        self.assertEqual([draw.kind for draw in chosen["theta_a"]], ["theta_a"])
        self.assertEqual(self.store.read_names, ["1-0", "1-0"])

    def test_one_draw_by_its_number(self):
        found = self.store.draws()
        self.assertEqual((found.get(0, 1).index, found.get(0, -1).index, found.get(1, 0).chain), (1, 2, 1))
        self.assertEqual(self.store.read_names, ["0-0", "0-2", "1-0"], "one object for each draw")
        for chain, draw, words in ((0, 3, "draws 0 to 2"), (0, -4, "draws 0 to 2"), (5, 0, "with draws are \\[0, 1\\]")):
            with self.assertRaisesRegex(cf.reasons.InvalidField, f"{words}\n  what to do: "):
                found.get(chain, draw)
        with self.assertRaisesRegex(cf.errors.InvalidArgument, "it keeps theta, theta_a"):
            found["theta_b"]

    def test_a_state_dict_has_tensors_by_name_and_needs_torch(self):
        with unittest.mock.patch.dict("sys.modules", {"torch": types.SimpleNamespace(from_numpy=lambda array: ("tensor", array))}):
            (kind, values), = self.store.draws()["theta_a"].state_dict(0, 2).values()
        self.assertEqual((kind, values.dtype, values.flags.writeable), ("tensor", numpy.float32, True))
        numpy.testing.assert_array_equal(values, [[-12, -13, -14], [-15, -16, -17]])
        with unittest.mock.patch.dict("sys.modules", {"torch": None}):
            with self.assertRaisesRegex(cf.errors.InvalidArgument, "needs torch"):
                self.store.draws().state_dict(0, 0)

    def test_a_stack_has_room_for_the_longest_chain(self):
        stacked = self.store.draws().stack()
        self.assertEqual(stacked["fc1.weight"].shape, (2, 3, 2, 3))
        numpy.testing.assert_array_equal(stacked["draw/weight"], [[1, 3, 2], [1, 0, 0]])
        self.assertTrue(numpy.isnan(stacked["fc1.weight"][1, 1:]).all())
        self.assertEqual(stacked["fc1.weight"][0, 2, 0, 0], 12)

    def test_parameters_without_dimensions_are_arrays_and_any_name_can_be_stacked(self):
        self.store = Store()
        numbers = numpy.array([5, 6], numpy.float32)
        self.store.add(0, 0, [1.0, 3.0], more={"theta/scale": numbers, "theta/weight": numbers + 2})
        value = self.store.draws().get(0, 1).parameters["scale"]
        self.assertEqual((type(value), value.shape, float(value)), (numpy.ndarray, (), 6))
        stacked = self.store.draws().stack()
        numpy.testing.assert_array_equal(stacked["weight"], [[7, 8]])
        numpy.testing.assert_array_equal(stacked["draw/weight"], [[1, 3]])

    def test_deleted_and_corrupt_draws_are_left_out(self):
        self.store.records[1].deleted = True
        self.assertEqual([draw.index for draw in self.store.draws()], [0, 1, 0])

    def test_bytes_that_are_not_those_of_the_record_are_refused(self):
        self.store.objects["0-2"] = self.store.objects["0-2"][:-1] + b"\1"
        with self.assertRaisesRegex(cf.errors.DataLoss, "0-2.*SHA-256"):
            list(self.store.draws())

    def test_a_missing_or_foreign_segment_is_noticed_before_anything_is_read(self):
        for spoil in (lambda: self.store.records.pop(0), lambda: setattr(self.store.records[1].segment, "parent_digest", "x")):
            self.setUp()
            spoil()
            with self.assertRaises(cf.reasons.DigestMismatch):
                self.store.draws()
            self.assertEqual(self.store.read_names, [])

    def test_a_damaged_object_is_one_error(self):
        good = self.store.objects["0-0"]
        for bad in (b"", good[:20], good[:8] + b"x" + good[9:], good[:-1]):
            with self.assertRaises(cf.errors.DataLoss):
                draws.parse_safetensors(bad)


if __name__ == "__main__":
    unittest.main()
