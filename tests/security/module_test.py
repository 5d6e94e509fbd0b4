"""TorchScript modules that read or write files of their worker: refused by a worker, however the call is spelled."""
import os
import subprocess
import tempfile
import unittest
import zipfile

BIN = os.environ["CHAINFLEET_BIN"]
READS = 'torch.from_file("%s", False, 1)'


class Modules(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name

    def path(self, name):
        return os.path.join(self.folder, name)

    def module(self, body):
        subprocess.run([os.environ["CHAINFLEET_SCRIPT_FILE"], self.path("module.pt"), "784", "10"], check=True, env={**os.environ, "BODY": body})
        return self.path("module.pt")

    def check(self, path):
        with open(path) as f:
            return subprocess.run([os.path.join(BIN, "chainfleet-worker"), "--check-module"], stdin=f, capture_output=True, text=True, timeout=120)

    def refused(self, path, said):
        done = self.check(path)
        self.assertEqual(done.returncode, 3, (done.stdout, done.stderr))
        self.assertIn(said, done.stdout)

    def test_files_are_neither_read_nor_written(self):
        victim = self.path("victim")
        for call in (READS % victim, '(torch.from_file #\n    ("%s", True, 64))[0]' % victim):
            self.refused(self.module("return self.logits(x) + " + call), "uses aten::from_file")
        self.refused(self.module("torch.save(x, '%s')\n  return self.logits(x)" % victim), "uses aten::save")
        self.assertFalse(os.path.exists(victim), "nothing is run by the check")

    def test_code_in_members_of_other_names_is_found(self):
        path = self.module("return self.logits(x) + " + READS % self.path("victim"))
        renamed = self.path("renamed.pt")
        with zipfile.ZipFile(path) as read, zipfile.ZipFile(renamed, "w", zipfile.ZIP_STORED) as written:
            for name in read.namelist():
                written.writestr(name.replace("/code/", "/CODE/").replace(".py", ".PY") if "debug_pkl" not in name else name, read.read(name))
        self.refused(renamed, "uses aten::from_file")

    def test_a_good_module_passes(self):
        self.assertEqual(self.check(self.module("return self.logits(x)")).returncode, 0)


if __name__ == "__main__":
    unittest.main()
