"""Writes the archives next to this file with zarr 2.18.7 and numcodecs 0.15.2."""
import os
import tempfile
import zipfile

import numcodecs
import numpy
import zarr

FOLDER = os.path.dirname(os.path.abspath(__file__))
X = numpy.arange(40 * 30, dtype="<f4").reshape(40, 30) / 4
Y = numpy.arange(40, dtype="<i8") % 3


def write(name, **options):
    with tempfile.TemporaryDirectory() as folder:
        store = zarr.DirectoryStore(folder)
        group = zarr.open_group(store, mode="w")
        group.create_dataset("x", data=X, chunks=(24, 16), **options)
        group.create_dataset("y", data=Y, chunks=(32,), **options)
        with zipfile.ZipFile(os.path.join(FOLDER, name + ".zip"), "w") as archive:
            for key in sorted(store.keys()):
                archive.writestr(zipfile.ZipInfo(key), store[key])


write("blosc")  # the defaults: Blosc, lz4, shuffle
write("blosc_zstd_bitshuffle", compressor=numcodecs.Blosc("zstd", 5, numcodecs.Blosc.BITSHUFFLE))
write("zstd", compressor=numcodecs.Zstd())
write("zlib", compressor=numcodecs.Zlib(), order="F")
write("gzip", compressor=numcodecs.GZip(), dimension_separator="/")
