"""Data as files, URIs and frames, and the name by which the same content is stored once."""
import os
import pathlib
import tempfile
import types
import unittest

import python_package  # noqa: F401  first: it says where the next ones are
import chainfleet as cf
import numpy
from chainfleet import arrays, sources, uploads
from chainfleet.v1 import jobs_pb2, types_pb2

X, Y = numpy.arange(12.0).reshape(4, 3), numpy.array([0, 1, 2, 1])


class Named(unittest.TestCase):
    def setUp(self):
        self.folder = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory()))
        self.x, self.y = self.folder / "x.npy", self.folder / "y.npy"
        numpy.save(self.x, X)
        numpy.save(self.y, Y)

    def name(self, data, numbers=None):
        return sources.source_of(data, numbers)[0]

    def test_names_pairs_and_files_are_recognised(self):
        self.assertEqual(sources.source_of("mnist", None), ("mnist", None))
        self.assertEqual(sources.source_of(None, None), ("", None))
        self.assertIsInstance(sources.source_of((X, Y), None)[1], arrays.Data)
        for data in (self.x, (self.x, self.y), "s3://b/x.npz", ["file:///x.npy", "file:///y.npy"], cf.Files(str(self.x))):
            self.assertIsInstance(sources.source_of(data, None)[1], cf.Files, data)
        for wrong in (3, (X,), ("x.npy", "y.npy")):
            with self.assertRaises(cf.errors.InvalidArgument):
                sources.source_of(wrong, None)
        with self.assertRaisesRegex(cf.errors.InvalidArgument, "no file"):
            sources.source_of(cf.Files(), None)

    def test_the_same_content_has_the_same_name_and_other_content_another(self):
        first = self.name((self.x, self.y))
        copied = self.folder / "copy"
        copied.mkdir()
        for path in (self.x, self.y):
            (copied / path.name).write_bytes(path.read_bytes())
        self.assertEqual(self.name((copied / "x.npy", copied / "y.npy")), first)
        numpy.save(copied / "y.npy", Y + 1)
        others = [self.name((copied / "x.npy", copied / "y.npy")), self.name(cf.Files(self.x, self.y, numbers=True)),
                  self.name((self.x, self.y), numbers=True), self.name((self.y, self.x)), self.name(cf.Files(self.x, self.y, target="y"))]
        self.assertEqual(len({first, *others}), 5, "numbers may be said by the likelihood or by Files")
        self.assertNotEqual(self.name("s3://b/x.npz"), self.name("s3://b/y.npz"))

    def test_a_missing_file_is_an_error_before_anything_is_sent(self):
        with self.assertRaisesRegex(cf.errors.NotFound, "cannot read .*nowhere.npz") as caught:
            self.name(self.folder / "nowhere.npz")
        self.assertIn("URI", caught.exception.hint)

    def test_files_are_sent_whole_and_uris_by_name(self):
        sent = []
        connection = types.SimpleNamespace(upload=lambda method, messages, reply: sent.extend(messages()) or types_pb2.Dataset())
        files = cf.Files(self.x, "s3://b/y.npy", numbers=True, class_names=["cat", "dog"])
        uploads.put_files(connection, "d", files, lambda done, total: None)
        header, *rest = sent
        self.assertEqual((header.header.num_files, header.header.target_type), (2, types_pb2.FLOAT32_TARGETS))
        self.assertEqual(list(header.header.class_names), ["cat", "dog"])
        started = [part.file for part in rest if part.WhichOneof("part") == "file"]
        self.assertEqual([(f.file_name, f.size_bytes, f.uri) for f in started],
                         [("x.npy", os.path.getsize(self.x), ""), ("y.npy", 0, "s3://b/y.npy")])
        self.assertEqual(b"".join(part.data for part in rest), self.x.read_bytes())


class Frames(unittest.TestCase):
    """Debian's pandas, on the numpy that it was built for."""

    @classmethod
    def setUpClass(cls):
        import pandas

        cls.pandas = pandas

    def test_a_frame_and_a_series_are_arrays(self):
        frame = self.pandas.DataFrame({"a": [1, 2, 3], "b": [0.5, 1.5, 2.5]})
        made = arrays.check_data(frame, self.pandas.Series([True, False, True]))
        numpy.testing.assert_array_equal(made.x, [[1, 0.5], [2, 1.5], [3, 2.5]])
        self.assertEqual((made.x.dtype, made.y.tolist(), made.numbers), (numpy.float32, [1, 0, 1], False))

    def test_columns_that_hold_no_numbers_are_named(self):
        frame = self.pandas.DataFrame({"a": [1, 2], "city": ["x", "y"], "day": self.pandas.to_datetime(["2020-01-01"] * 2)})
        with self.assertRaisesRegex(cf.errors.InvalidArgument, "columns city, day of x hold no numbers"):
            arrays.check_data(frame, [0, 1])

    def test_missing_values_are_named_by_their_row(self):
        for frame in (self.pandas.DataFrame({"a": [1.0, None]}), self.pandas.DataFrame({"a": self.pandas.array([1, None], dtype="Int64")})):
            with self.assertRaisesRegex(cf.errors.InvalidArgument, r"x\[1\] holds NaN") as caught:
                arrays.check_data(frame, [0, 1])
            self.assertEqual(caught.exception.reason, "INVALID_DATA")

    def test_categories_are_refused_as_targets(self):
        with self.assertRaisesRegex(cf.errors.InvalidArgument, "y holds") as caught:
            arrays.check_data(X[:2], self.pandas.Series(["a", "b"], dtype="category"))
        self.assertIn("np.unique", caught.exception.hint)


class Traces(unittest.TestCase):
    def test_traces_are_arrays_and_a_frame(self):
        import pandas

        reply = jobs_pb2.Traces(quantity="energy")
        reply.chains.add(chain=0, steps=[10, 20], values=[1.5, 2.5])
        reply.chains.add(chain=1, point=3, steps=[10], values=[4.0])
        made = cf.Traces(reply)
        self.assertEqual([(t.chain, t.steps.tolist(), t.values.tolist()) for t in made], [(0, [10, 20], [1.5, 2.5]), (1, [10], [4.0])])
        frame = made.to_pandas()
        self.assertIsInstance(frame, pandas.DataFrame)
        self.assertEqual(frame.to_dict("list"), {"chain": [0, 0, 1], "point": [0, 0, 3], "step": [10, 20, 10], "energy": [1.5, 2.5, 4.0]})
        self.assertEqual(len(cf.Traces(jobs_pb2.Traces(quantity="energy")).to_pandas()), 0)


if __name__ == "__main__":
    unittest.main()
