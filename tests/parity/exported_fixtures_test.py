"""tests/data/exported has what make_exported.py makes with this host's PyTorch: the same graphs, the same results."""
import json
import math
import os
import sys
import tempfile
import unittest
import zipfile

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "support"))
import python_package  # noqa: F401, E402  first: it says where the next ones are
import make_exported  # noqa: E402
from real_torch import torch  # noqa: E402

KEPT = os.path.join(HERE, "..", "data", "exported")
MADE_BY = "2.11"  # the release whose files have no version in their names


def graph_of(path):
    """The operators of a file in their order, with their arguments."""
    with zipfile.ZipFile(path) as archive:
        name, = [name for name in archive.namelist() if name.endswith("models/model.json")]
        return json.loads(archive.read(name))["graph_module"]["graph"]["nodes"]


def numbers(value):
    """All numbers of nested lists and objects, in order."""
    if isinstance(value, dict):
        return [number for key in sorted(value) for number in numbers(value[key])]
    if isinstance(value, list):
        return [number for one in value for number in numbers(one)]
    return [value] if isinstance(value, (int, float)) else []


@unittest.skipUnless(torch.__version__.startswith(MADE_BY), f"the files are those of PyTorch {MADE_BY}")
class ExportedFixtures(unittest.TestCase):
    def test_they_are_made_again_by_their_script(self):
        with tempfile.TemporaryDirectory() as folder:
            make_exported.main(folder, list(make_exported.NETWORKS))
            with open(os.path.join(folder, "expected.json")) as made, open(os.path.join(KEPT, "expected.json")) as kept:
                made_results, kept_results = json.load(made), json.load(kept)
            self.assertGreaterEqual(len(made_results), 12)
            for name in sorted(made_results):
                with self.subTest(name):
                    self.assertEqual(graph_of(os.path.join(folder, f"{name}.pt2")), graph_of(os.path.join(KEPT, f"{name}.pt2")))
                    pairs = list(zip(numbers(made_results[name]), numbers(kept_results[name]), strict=True))
                    self.assertTrue(all(math.isclose(a, b, rel_tol=1e-4, abs_tol=1e-5) for a, b in pairs), pairs[:8])


if __name__ == "__main__":
    unittest.main(verbosity=2)
