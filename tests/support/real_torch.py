"""Imports the real torch: the wheel that deploy/install_deps.sh unpacks for LibTorch, on a machine without CUDA, with the modules that torch.export imports.

The wheel is built for CUDA, and its libraries name ten more of CUDA's. Tests run on the CPU and never call those, so empty
libraries of the same names stand in for them; functions of theirs are looked up only when they are called.
"""
import ctypes
import logging
import os
import subprocess
import sys
import tempfile

import python_package

LIBTORCH = os.path.join(python_package.DEPS, "libtorch-2.11.0")
EXPORT = os.path.join(python_package.DEPS, "torch-export-2.11")
LIBRARIES = {  # name: version of its symbols, "" without one
    "libcublas.so.13": "libcublas.so.13", "libcublasLt.so.13": "libcublasLt.so.13", "libcudnn.so.9": "libcudnn.so.9", "libcufft.so.12": "libcufft.so.12",
    "libcufile.so.0": "", "libcurand.so.10": "libcurand.so.10", "libcusparse.so.12": "libcusparse.so.12", "libcusparseLt.so.0": "",
    "libnccl.so.2": "", "libnvshmem_host.so.3": "NVSHMEM"}


def load_empty(folder, name, version):
    """Loads an empty library, so that a library that needs one of this name finds it loaded."""
    script, path = os.path.join(folder, "version.map"), os.path.join(folder, name)
    with open(script, "w") as file:
        file.write(f"{version} {{ global: *; }};" if version else "{ global: *; };")
    subprocess.run(["gcc", "-shared", "-nostdlib", "-x", "c", "/dev/null", f"-Wl,-soname,{name}", f"-Wl,--version-script={script}", "-o", path], check=True)
    ctypes.CDLL(path, mode=ctypes.RTLD_GLOBAL)


with tempfile.TemporaryDirectory() as made:
    for soname, symbols in LIBRARIES.items():
        load_empty(made, soname, symbols)
sys.path[:0] = [LIBTORCH, EXPORT]
flags = sys.getdlopenflags()
sys.setdlopenflags(os.RTLD_LAZY)
import torch  # noqa: E402

sys.setdlopenflags(flags)
torch.set_num_threads(1)
logging.getLogger("torch.utils.flop_counter").setLevel(logging.ERROR)  # torch.export warns that there is no triton
