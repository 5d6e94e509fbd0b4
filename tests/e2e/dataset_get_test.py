"""Data sets written to files by `dataset get`: put again they are the same, and files of others come back byte by byte."""
import csv
import gzip
import math
import os
import random
import struct
import unittest
import zipfile

import bad_input_test
import fleet as fleets

HOUSES, COLUMNS = 3000, 3
WAVES = 120


def read_npy(data):
    """(header, bytes) of a .npy file of version 1."""
    size = struct.unpack("<H", data[8:10])[0]
    return data[10:10 + size].decode(), data[10 + size:]


class DatasetGet(bad_input_test.Refusals):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()  # puts fashion: uint8 [1, 28, 28] with labels
        put = lambda name, *arguments: cls.fleet.run("dataset", "put", name, *arguments, check=True)
        source = random.Random(7)
        cls.waves = struct.pack(f"<{WAVES * 2 * 5 * 5}f", *(math.sin(i) for i in range(WAVES * 2 * 5 * 5)))
        fleets.write_npy(cls.fleet.path("x.npy"), "<f4", (WAVES, 2, 5, 5), cls.waves)
        fleets.write_npy(cls.fleet.path("y.npy"), "<i8", (WAVES,), struct.pack(f"<{WAVES}q", *(i % 700 for i in range(WAVES))))
        put("waves", cls.fleet.path("x.npy"), cls.fleet.path("y.npy"))
        cls.houses = [[source.choice((source.gauss(0, 1e-20), source.uniform(-1e6, 1e6), 0.1, -0.0, 1e-45, 3.4028234e38, 7))
                       for _ in range(COLUMNS + 1)] for _ in range(HOUSES)]
        with open(cls.fleet.path("houses.csv"), "w", newline="") as f:
            csv.writer(f).writerows([["rooms", "area", "age", "price"], *cls.houses])
        put("houses", cls.fleet.path("houses.csv"), "--target", "price", "--target-type", "float32")
        cls.pictures = b"".join(bytes([i % 10]) + source.randbytes(3072) for i in range(137))
        for name, content in (("pictures", cls.pictures), ("hundred", b"".join(bytes([i % 20, i]) + bytes(3072) for i in range(100)))):
            with open(cls.fleet.path(name + ".bin"), "wb") as f:
                f.write(content)
            put(name, cls.fleet.path(name + ".bin"))
        fleets.write_npy(cls.fleet.path("codes.npy"), "|u1", (300, 4), bytes(i % 256 for i in range(1200)))
        fleets.write_npy(cls.fleet.path("kinds.npy"), "|u1", (300,), bytes(i % 256 for i in range(300)))
        put("codes", cls.fleet.path("codes.npy"), cls.fleet.path("kinds.npy"))
        # More rows than one call gives.
        cls.long = struct.pack("<600000f", *(float(i) for i in range(600000)))
        fleets.write_npy(cls.fleet.path("long.npy"), "<f4", (600000, 1), cls.long)
        fleets.write_npy(cls.fleet.path("long-y.npy"), "<f4", (600000,), cls.long)
        put("long", cls.fleet.path("long.npy"), cls.fleet.path("long-y.npy"), "--target-type", "float32")

    def get(self, name, kind):
        """(the paths, what was printed)"""
        start = self.fleet.path("got", f"{name}-{kind}")
        os.makedirs(os.path.dirname(start), exist_ok=True)
        path = start + {"npz": ".npz", "cifar": ".bin", "csv": ".csv"}.get(kind, "")
        done = self.fleet.run("dataset", "get", name, "--format", kind, "-o", path, check=True)
        command = done.stdout.splitlines()[1].split()
        self.assertEqual(command[:4], ["chainfleet", "dataset", "put", "NAME"], done.stdout)
        self.assertEqual([file for file in os.listdir(os.path.dirname(start)) if file.endswith(".partial")], [])
        return command[4:], done

    def digest(self, name):
        return {dataset["name"]: dataset["digest"] for dataset in self.fleet.json("dataset", "list")["datasets"]}[name]

    def content(self, path):
        with open(path, "rb") as f:
            return f.read()

    def test_a_written_data_set_is_read_back_the_same(self):
        holds = {"fashion": ("npz", "zarr", "idx"), "waves": ("npz", "zarr"), "houses": ("npz", "zarr", "csv"),
                 "pictures": ("npz", "zarr", "idx", "cifar"), "hundred": ("npz", "zarr", "idx"), "codes": ("npz", "zarr", "idx"),
                 "long": ("npz", "csv")}
        for name, formats in holds.items():
            for kind in formats:
                with self.subTest(name=name, kind=kind):
                    files, _ = self.get(name, kind)
                    again = self.fleet.json("dataset", "put", f"{name}-{kind}", *files)
                    self.assertEqual(again["digest"], self.digest(name))
                    self.assertEqual(self.digest(f"{name}-{kind}"), self.digest(name))

    def test_files_of_others_come_back_byte_by_byte(self):
        files, _ = self.get("fashion", "idx")
        self.assertEqual([file.rsplit("fashion-idx-")[-1] for file in files], ["images-idx3-ubyte", "labels-idx1-ubyte"])
        for file, kind in zip(files, ("images-idx3", "labels-idx1")):
            with gzip.open(self.fleet.path(f"fashion-{kind}-ubyte.gz")) as f:
                self.assertEqual(self.content(file), f.read(), kind)
        self.assertEqual(self.content(self.get("pictures", "cifar")[0][0]), self.pictures)
        with zipfile.ZipFile(self.get("waves", "npz")[0][0]) as archive:
            header, data = read_npy(archive.read("x.npy"))
            self.assertIn("'<f4'", header)
            self.assertIn(f"({WAVES}, 2, 5, 5)", header)
            self.assertEqual(data, self.waves)

    def test_a_csv_has_few_digits_and_names(self):
        files, done = self.get("houses", "csv")
        self.assertEqual(files[1:], ["--target-type", "float32"])
        self.assertNotIn("note:", done.stderr)
        with open(files[0], newline="") as f:
            rows = list(csv.reader(f))
        self.assertEqual(rows[0], ["x0", "x1", "x2", "y"])
        self.assertEqual(len(rows), HOUSES + 1)
        float32 = lambda value: struct.pack("<f", value)
        for got, put in zip(rows[1:], self.houses):
            self.assertEqual([float32(float(cell)) for cell in got], [float32(value) for value in put])
            self.assertTrue(all(cell == "0.1" for cell, value in zip(got, put) if value == 0.1), got)

    def test_a_note_says_what_a_format_cannot_hold(self):
        self.assertIn("standardised with 1 mean and deviation for all columns, not with 3", self.get("houses", "npz")[1].stderr)
        self.assertNotIn("note:", self.get("pictures", "npz")[1].stderr)
        nine = self.fleet.path("nine.bin")
        with open(nine, "wb") as f:
            f.write(self.pictures[:3073 * 9])
        self.fleet.run("dataset", "put", "nine", nine, "--class-names", ",".join("abcdefghij"), check=True)
        self.assertIn("`describe dataset nine` lists them", self.get("nine", "npz")[1].stderr)
        self.assertIn('"i", "j"]', self.fleet.run("describe", "dataset", "nine", check=True).stdout)
        self.assertIn("has 9, not 10", self.get("nine", "npz")[1].stderr)
        self.assertNotIn("has 9", self.get("nine", "cifar")[1].stderr)

    def test_formats_that_cannot_hold_it_are_refused_before_anything_is_written(self):
        wanted = {("fashion", "cifar"): "uint8 [3, 32, 32], these inputs are uint8 [1, 28, 28]",
                  ("fashion", "csv"): "these inputs are uint8 [1, 28, 28]; choose --format npz or zarr or idx\n",
                  ("waves", "idx"): "idx holds uint8 inputs, these are float32 [2, 5, 5]; choose --format npz or zarr\n",
                  ("waves", "csv"): "float32 [2, 5, 5]", ("houses", "idx"): "float32 [3]; choose --format npz or zarr or csv",
                  ("houses", "cifar"): "float32 [3]", ("codes", "csv"): "uint8 [4]",
                  ("hundred", "cifar"): "coarse labels, which are not stored"}
        for (name, kind), words in wanted.items():
            path = self.fleet.path("refused" + {"cifar": ".bin", "csv": ".csv"}.get(kind, ""))
            self.refused(1, f"data set {name} cannot be written as {kind}: ", words,
                         arguments=["dataset", "get", name, "--format", kind, "-o", path])
        self.assertEqual([file for file in os.listdir(self.fleet.folder) if file.startswith("refused")], [])

    def test_names_paths_and_servers_that_are_not_there(self):
        get = lambda name, kind, path, *more: ["dataset", "get", name, "--format", kind, "-o", path, *more]
        self.refused(3, "no data set nowhere", arguments=get("nowhere", "npz", self.fleet.path("a.npz")))
        self.refused(2, ".npz", "dataset put", arguments=get("fashion", "npz", "json"))
        self.refused(2, ".csv", arguments=get("houses", "csv", self.fleet.path("houses.txt")))
        self.refused(2, "--format", arguments=["dataset", "get", "fashion", "-o", "a.npz"])
        self.refused(2, "png", arguments=get("fashion", "png", "a.png"))
        self.refused(1, "no such folder", arguments=get("fashion", "npz", self.fleet.path("missing", "a.npz")))
        self.refused(5, "no chainfleet server", arguments=get("fashion", "npz", self.fleet.path("a.npz"), "--address", "127.0.0.1:1",
                                                              "--timeout", "2s"))


if __name__ == "__main__":
    unittest.main(verbosity=2)
