"""Zarr folders as data sets and as inputs of predictions: the same as the files that hold the same arrays."""
import json
import math
import os
import shutil
import struct
import unittest
import zipfile
import zlib

import bad_input_test
import fleet as fleets

ROWS, COLUMNS = 60, 5


def write_zarr(folder, dtype, shape, chunks, data):
    """A zarr array with zlib chunks; edge chunks are padded with 0xff."""
    os.makedirs(folder)
    with open(os.path.join(folder, ".zarray"), "w") as f:
        json.dump({"zarr_format": 2, "shape": shape, "chunks": chunks, "dtype": dtype, "compressor": {"id": "zlib", "level": 1},
                   "fill_value": 0, "order": "C", "filters": None}, f)
    item, columns, width = int(dtype[-1]), math.prod(shape[1:]), math.prod(chunks[1:])
    for row in range(0, shape[0], chunks[0]):
        for column in range(0, columns, width):
            chunk = b""
            for r in range(row, row + chunks[0]):
                inside = data[item * (r * columns + column):item * (r * columns + min(column + width, columns))] if r < shape[0] else b""
                chunk += inside.ljust(item * width, b"\xff")
            key = ".".join(str(i) for i in (row // chunks[0], column // width)[:len(shape)])
            with open(os.path.join(folder, key), "wb") as f:
                f.write(zlib.compress(chunk))


class Zarr(bad_input_test.Refusals):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.x = struct.pack(f"<{ROWS * COLUMNS}f", *(math.sin(i) for i in range(ROWS * COLUMNS)))
        y = struct.pack(f"<{ROWS}q", *(i % 3 for i in range(ROWS)))
        fleets.write_npy(cls.fleet.path("x.npy"), "<f4", (ROWS, COLUMNS), cls.x)
        fleets.write_npy(cls.fleet.path("y.npy"), "<i8", (ROWS,), y)
        with zipfile.ZipFile(cls.fleet.path("mine.npz"), "w") as archive:
            for name in ("x.npy", "y.npy"):
                archive.write(cls.fleet.path(name), name)
        cls.folder = cls.fleet.path("mine.zarr")
        write_zarr(os.path.join(cls.folder, "x"), "<f4", [ROWS, COLUMNS], [16, 2], cls.x)
        write_zarr(os.path.join(cls.folder, "y"), "<i8", [ROWS], [25], y)

    def test_a_folder_and_its_archive_are_the_data_set_of_the_npz(self):
        archive = shutil.make_archive(self.folder, "zip", self.fleet.folder, "mine.zarr")
        paths = [self.fleet.path("mine.npz"), self.folder, self.folder + "/", archive]
        put = [self.fleet.json("dataset", "put", f"mine-{i}", path) for i, path in enumerate(paths)]
        self.assertEqual([int(dataset["num_rows"]) for dataset in put], [ROWS] * len(paths))
        self.assertEqual(len({dataset["digest"] for dataset in put}), 1, put)

    def test_predictions_read_a_folder_or_an_array_in_it(self):
        self.fleet.run("dataset", "put", "waves", self.folder, check=True)
        job = self.fleet.submit(bad_input_test.GOOD.replace("fashion", "waves").replace("batch_size: 50", "batch_size: 10"))
        self.fleet.run("wait", job, "--timeout", "120s", check=True)
        wanted = self.fleet.json("predict", job, "--input", self.fleet.path("x.npy"))
        self.assertEqual(int(wanted["num_rows"]), ROWS)
        for path in (self.folder, os.path.join(self.folder, "x")):
            self.assertEqual(self.fleet.json("predict", job, "--input", path)["scores"], wanted["scores"], path)

    def test_folders_and_chunks_that_are_no_zarr_are_named(self):
        self.refused(1, "run is a folder without a Zarr group", arguments=["dataset", "put", "bad", self.fleet.path("run")])
        broken = self.fleet.path("broken.zarr")
        shutil.copytree(self.folder, broken)
        with open(os.path.join(broken, "x", "1.2"), "wb") as f:
            f.write(zlib.compress(b"short"))
        self.refused(1, "broken.zarr.zip: chunk x/1.2", "5 bytes", "128", arguments=["dataset", "put", "bad", broken])


if __name__ == "__main__":
    unittest.main(verbosity=2)
