"""Runs the notebooks of docs/guides against a fleet of this machine.

As a unittest it runs a copy of each, and checks its results and that the stored outputs are of the same kinds. As a
program it writes the outputs into the tree:
    CHAINFLEET_BIN=build/release/bin CHAINFLEET_NEWEST_WHEELS=1 PYTHONPATH=tests/support /usr/bin/python3 -B tests/docs/notebooks.py
"""
import base64
import contextlib
import os
import subprocess
import sys
import tempfile
import unittest

import nbformat
from jupyter_client.manager import AsyncKernelManager
from nbclient import NotebookClient
from nbformat.v4 import new_code_cell

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
FOLDER = os.path.join(ROOT, "docs", "guides", "notebooks")
SECONDS = 300  # of a cell
MOST_BYTES = {"image/png": 40_000, "notebook": 300_000}
# Runs before a notebook: it finds the package, torch, and a free port, as port 7400 may be in use by others.
BEFORE = """
import importlib, os
import python_package
from chainfleet import local_fleet
local_fleet._is_free = lambda address: False
if os.environ["WITH_TORCH"]:
    import real_torch
"""
# Runs after a notebook. It raises if a result is not what the text beside it says.
AFTER = {
    "python": """
assert job.state() == "SUCCEEDED"
assert p.mean_probability.shape == (200, 2) and (p.predicted_class == y[1000:]).mean() > 0.95
assert doubt.shape == (60, 80) and doubt[0, 0] > 5 * np.median(far.mutual_information)
""",
    "own_model": "",
    "diagnostics": "",
}


def path(name):
    return os.path.join(FOLDER, name + ".ipynb")


def execute(name):
    """The notebook with the outputs of a run just now. Raises CellExecutionError where a cell raised."""
    book = nbformat.read(path(name), as_version=4)
    cells = book.cells
    with tempfile.TemporaryDirectory(prefix="chainfleet-notebook-", ignore_cleanup_errors=True) as folder:
        environment = {**os.environ, "PYTHONPATH": os.path.join(ROOT, "tests", "support"), "WITH_TORCH": "1" * (name == "own_model"),
                       "CHAINFLEET_BIN": os.path.abspath(os.environ["CHAINFLEET_BIN"]), "IPYTHONDIR": folder, "MPLCONFIGDIR": folder,
                       "XDG_DATA_HOME": folder, "XDG_CONFIG_HOME": folder}
        kernel = AsyncKernelManager(transport="ipc", connection_file=os.path.join(folder, "kernel.json"))
        client = NotebookClient(book, km=kernel, timeout=SECONDS, resources={"metadata": {"path": folder}}, record_timing=False)
        book.cells = [new_code_cell(BEFORE), *cells, new_code_cell(AFTER[name])]
        try:
            client.execute(env=environment)
        finally:
            subprocess.run([os.path.join(environment["CHAINFLEET_BIN"], "chainfleet"), "down"], env=environment, check=True, capture_output=True)
    book.cells = cells
    for number, cell in enumerate(codes(book), 1):
        cell.execution_count = number
        for output in cell.outputs:
            if "execution_count" in output:
                output.execution_count = number
    return book


def codes(book):
    return [cell for cell in book.cells if cell.cell_type == "code"]


def kinds(book):
    """What each cell of code shows: the types of its outputs."""
    return [[sorted(output.get("data", [output.get("name")])) for output in cell.outputs] for cell in codes(book)]


def pictures(book):
    return [base64.b64decode(output.data["image/png"]) for cell in codes(book) for output in cell.outputs if "image/png" in output.get("data", {})]


class Notebooks(unittest.TestCase):
    def check(self, name):
        stored, made = nbformat.read(path(name), as_version=4), execute(name)
        self.assertEqual(kinds(made), kinds(stored), "render the notebooks again: see the top of this file")
        self.assertTrue(pictures(made))
        for picture in pictures(made) + pictures(stored):
            self.assertTrue(picture.startswith(b"\x89PNG"))
            self.assertLess(len(picture), MOST_BYTES["image/png"])
        self.assertLess(os.path.getsize(path(name)), MOST_BYTES["notebook"])

    def test_python(self):
        self.check("python")

    def test_own_model(self):
        self.check("own_model")

    def test_diagnostics(self):
        self.check("diagnostics")


if __name__ == "__main__":
    for notebook in sys.argv[1:] or AFTER:
        nbformat.write(execute(notebook), path(notebook))
        print(path(notebook), os.path.getsize(path(notebook)), "bytes")
