"""Arrays are checked before anything is sent, and files hold what NumPy reads again."""
import io
import os
import subprocess
import sys
import tempfile
import types
import unittest

import python_package  # noqa: F401  first: it says where the next ones are
import chainfleet as cf
import numpy
from chainfleet import arrays

X, Y = numpy.arange(12.0).reshape(4, 3), numpy.array([0, 1, 2, 1])


class Checked(unittest.TestCase):
    def refused(self, words, x=X, y=Y, numbers=None):
        with self.assertRaisesRegex(cf.errors.InvalidArgument, words) as caught:
            arrays.check_data(x, y, numbers)
        self.assertTrue(caught.exception.hint, "a remedy")
        return str(caught.exception)

    def test_types_become_those_of_the_server(self):
        for given, stored in ((numpy.uint8, "|u1"), (numpy.float64, "<f4"), (">f8", "<f4"), (numpy.float16, "<f4"), (numpy.int64, "<f4"), (bool, "<f4")):
            self.assertEqual(arrays.check_data(X.astype(given), Y).x.dtype.str, stored)
        self.assertEqual(arrays.check_data(X.tolist(), Y.tolist()).y.dtype.str, "<i4")
        self.assertTrue(arrays.check_data(X, Y.astype(float)).numbers)
        self.assertTrue(arrays.check_data(X, Y, numbers=True).numbers)

    def test_wrong_values_are_refused_with_a_remedy(self):
        self.refused("Python objects", x=X.astype(object))
        self.refused("text", y=numpy.array(["a", "b", "c", "d"]))
        self.refused("complex", x=X + 1j)
        for value in (numpy.nan, numpy.inf, -numpy.inf):
            self.refused(r"x\[2\] holds NaN", x=numpy.where(X == 7, value, X))
        self.refused(r"x\[3\] holds", x=numpy.where(X == 11, 1e300, X))
        self.refused(r"y\[1\] holds", y=numpy.array([0, numpy.inf, 1, 2]))
        self.refused("2\\^24", x=(X + 2**25).astype(numpy.int64))
        self.refused(r"y\[3\] is -1", y=numpy.array([0, 1, 2, -1]))
        self.refused("65535", y=numpy.array([0, 1, 2, 65536]))

    def test_wrong_shapes_are_refused_with_a_remedy(self):
        self.refused("4 rows, y has 3", y=Y[:3])
        self.assertIn("y.ravel()", self.refused(r"\[4, 1\]", y=Y[:, None]))
        self.assertIn("x[:, None]", self.refused(r"x has shape \[12\]", x=X.ravel()))
        self.refused("holds nothing", x=X[:0], y=Y[:0])
        self.refused("the same length|Python objects", x=[[1.0], [1.0, 2.0]])

    def test_several_inputs_are_side_by_side(self):
        ids, mask, age = numpy.arange(12).reshape(4, 3), numpy.arange(8).reshape(4, 2, 1) % 2 == 0, numpy.array([0.5, 1.5, 2.5, 3.5])
        wanted = (arrays.Part("age"), arrays.Part("ids", "int32", (3,)), arrays.Part("mask"))
        data = arrays.check_data({"ids": ids, "mask": mask, "age": age}, Y, wanted=wanted)
        numpy.testing.assert_array_equal(data.x, numpy.concatenate([age[:, None], ids, mask[:, :, 0]], axis=1))
        self.assertEqual(data.x.dtype.str, "<f4")
        self.assertEqual(data.parts, (arrays.Part("age", "float32", ()), arrays.Part("ids", "int32", (3,)), arrays.Part("mask", "bool", (2, 1))))
        numpy.testing.assert_array_equal(arrays.check_data((age, ids, mask), Y, wanted=wanted).x, data.x)
        self.assertEqual(arrays.check_data((ids, age), Y).x.tolist()[1], [3.0, 4.0, 5.0, 1.5])
        self.assertEqual(arrays.check_data((ids[0].tolist(), ids[1].tolist()), Y[:2]).parts, (), "a tuple of rows")
        for x, words in (({"ids": ids, "mask": mask}, "x has the inputs ids, mask, the network takes age, ids, mask"),
                         ((age, ids), "x has 2 inputs, the network takes 3"),
                         ({"ids": ids[:, :2], "mask": mask, "age": age}, r"ids has shape \[4, 2\], the network takes \['n', 3\]"),
                         ({"ids": ids, "mask": mask[:3], "age": age}, "mask has 3 rows, age has 4"),
                         ({"ids": ids + 2**25, "mask": mask, "age": age}, "ids holds integers beyond 2")):
            with self.assertRaisesRegex(cf.errors.InvalidArgument, words) as caught:
                arrays.check_data(x, Y, wanted=wanted)
            self.assertTrue(caught.exception.hint, "a remedy")

    def test_a_frame_is_an_array_and_its_text_columns_are_named(self):
        frame = types.SimpleNamespace(columns=["a"], dtypes={"a": X.dtype, "b": numpy.dtype(object)}, to_numpy=lambda: X)
        self.refused("columns b of x", x=frame)
        del frame.dtypes["b"]
        numpy.testing.assert_array_equal(arrays.check_data(frame, Y).x, X)

    def test_the_package_does_not_import_torch(self):
        with tempfile.TemporaryDirectory() as folder:
            open(os.path.join(folder, "torch.py"), "w").close()  # an import of torch would succeed
            script = "import sys, chainfleet; sys.exit('torch' in sys.modules)"
            path = os.pathsep.join([folder, *sys.path])
            done = subprocess.run([sys.executable, "-B", "-c", script], env={**os.environ, "PYTHONPATH": path}, timeout=60)
        self.assertEqual(done.returncode, 0)


class Files(unittest.TestCase):
    def test_chunks_are_a_file_that_numpy_reads(self):
        data = arrays.check_data(X[:, ::-1], Y)
        for name, values in (("x.npy", data.x), ("y.npy", data.y)):
            parts = list(arrays.chunks(data.files()[name], 50))
            self.assertLessEqual(max(map(len, parts)), 50)
            numpy.testing.assert_array_equal(numpy.load(io.BytesIO(b"".join(parts))), values)

    def test_the_digest_tells_values_types_and_shapes_apart(self):
        same = arrays.check_data(X.copy(), Y.astype(numpy.int8)).digest()
        self.assertEqual(arrays.check_data(X, Y).digest(), same)
        others = [arrays.check_data(*pair).digest() for pair in ((X + 1, Y), (X, Y + 1), (X, Y * 1.0), (X[:, None], Y), (X.astype("u1"), Y))]
        self.assertEqual(len({same, *others}), 6)


if __name__ == "__main__":
    unittest.main()
