"""Runs the notebooks of docs/guides against a fleet of this machine.

As a unittest it runs a copy of each, and checks its results and that the stored outputs are of the same kinds. As a
program it writes the outputs into the tree:
    CHAINFLEET_BIN=build/release/bin CHAINFLEET_NEWEST_WHEELS=1 PYTHONPATH=tests/support /usr/bin/python3 -B tests/docs/notebooks.py
"""
import base64
import io
import os
import subprocess
import sys
import tempfile
import unittest

os.environ.setdefault("PYDEVD_DISABLE_FILE_VALIDATION", "1")  # a warning of the kernel's debugger, which nobody uses
import nbformat
from nbclient import NotebookClient
from nbformat.v4 import new_code_cell
from PIL import Image
from traitlets.config import Config

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
FOLDER = os.path.join(ROOT, "docs", "guides", "notebooks")
SECONDS = 300  # for a cell
MOST_BYTES = {"image/png": 40_000, "notebook": 300_000}
# Runs before a notebook: it finds the package, torch, and a free port, as port 7400 may be in use by others.
BEFORE = """
import os, warnings
import python_package
with warnings.catch_warnings():  # Debian's mpl_toolkits do not fit the newest matplotlib
    warnings.simplefilter("ignore")
    import matplotlib.projections
from chainfleet import local_fleet
local_fleet._is_free = lambda address: False
if os.environ["WITH_TORCH"]:
    import real_torch
"""
# Runs after a notebook. It raises if a result is not what the text around it says.
AFTER = {
    "python": """
assert job.state() == "SUCCEEDED"
assert p.mean_probability.shape == (200, 2) and (p.predicted_class == y[1000:]).mean() > 0.95
assert doubt.shape == (60, 80) and doubt[0, 0] > 5 * np.median(far.mutual_information)
""",
    "own_model": """
assert len(curves) == 20 and "mixes examples" in refused
at = {where: job.predict([[where]]).variance_epistemic[0] for where in (-3.0, 0.3, 5.5)}
assert at[5.5] > at[0.3] > 2 * at[-3.0], at
assert np.abs(average(grid).numpy() - p.mean).max() < 1e-5
""",
    "diagnostics": """
summary = az.summary(idata).astype(float)
assert list(summary.index) == ["weights[0]", "weights[1]", "weights[2]", "intercept[0]"] and summary["r_hat"].max() < 1.02
assert np.median(rows) < 1.2 < 1.5 < np.median(weights) and len(weights) == 52
""",
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
        kernel = Config(KernelManager={"transport": "ipc", "connection_file": os.path.join(folder, "kernel.json")})
        client = NotebookClient(book, config=kernel, timeout=SECONDS, resources={"metadata": {"path": folder}}, record_timing=False)
        book.cells = [new_code_cell(BEFORE), *cells, new_code_cell(AFTER[name])]
        try:
            client.execute(env=environment)
        finally:
            subprocess.run([os.path.join(environment["CHAINFLEET_BIN"], "chainfleet"), "down"], env=environment, check=True, capture_output=True)
    book.cells = cells
    for number, cell in enumerate(codes(book), 1):
        cell.execution_count = number
        cell.outputs = [output for output in cell.outputs if any(output.get("data", {"text": 1}).values())]  # a line that was cleared
        for output in cell.outputs:
            if "execution_count" in output:
                output.execution_count = number
    return book


def codes(book):
    return [cell for cell in book.cells if cell.cell_type == "code"]


def kinds(book):
    """Returns the types of the outputs of each cell of code. Text in a row is one: a slow kernel sends it in parts."""
    types = [[sorted(output.get("data", [output.get("name")])) for output in cell.outputs] for cell in codes(book)]
    return [[kind for i, kind in enumerate(outputs) if kind != ["stdout"] or outputs[:i][-1:] != [kind]] for outputs in types]


def pictures(book):
    """The data of outputs that have a picture."""
    return [output.data for cell in codes(book) for output in cell.outputs if "image/png" in output.get("data", {})]


def shrink(data):
    """A palette of 64 colours makes the picture of a plot a third as large."""
    made = io.BytesIO()
    Image.open(io.BytesIO(base64.b64decode(data["image/png"]))).convert("RGB").quantize(64).save(made, "PNG", optimize=True)
    data["image/png"] = base64.b64encode(made.getvalue()).decode()


class Notebooks(unittest.TestCase):
    def check(self, name):
        stored, made = nbformat.read(path(name), as_version=4), execute(name)
        self.assertEqual(kinds(made), kinds(stored), "render the notebooks again: see the top of this file")
        self.assertTrue(all(base64.b64decode(data["image/png"]).startswith(b"\x89PNG") for data in pictures(made)))
        self.assertTrue(pictures(made))
        self.assertLess(max(len(base64.b64decode(data["image/png"])) for data in pictures(stored)), MOST_BYTES["image/png"])
        self.assertLess(os.path.getsize(path(name)), MOST_BYTES["notebook"])

    def test_python(self):
        self.check("python")

    def test_own_model(self):
        self.check("own_model")

    def test_diagnostics(self):
        self.check("diagnostics")


if __name__ == "__main__":
    for notebook in sys.argv[1:] or AFTER:
        rendered = execute(notebook)
        for picture in pictures(rendered):
            shrink(picture)
        nbformat.write(rendered, path(notebook))
