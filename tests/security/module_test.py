"""TorchScript modules that read or write files of their worker: refused by a worker, however the call is spelled. And the
process that runs a module: it has nothing of the worker's."""
import os
import select
import stat
import subprocess
import tempfile
import unittest
import zipfile

import fleet as fleets
from module_process import DONE, REFUSED, ModuleProcess, loaded

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

    def refused(self, path, said):
        kind, why = loaded(path)
        self.assertEqual(kind, REFUSED)
        self.assertIn(said, why)

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

    def test_a_good_module_passes_and_its_process_ends_with_its_starter(self):
        process = ModuleProcess()
        self.assertEqual(process.load(self.module("return self.logits(x)")), (DONE, ""))
        self.assertEqual(process.close(), 0)


class Confinement(unittest.TestCase):
    """The process of a module while a chain runs on it, seen from outside."""

    JOB = """
name: scripted
model: {torchscript: mine}
dataset: {name: fashion}
prior: {gaussian: {precision: 10}}
sampler: {sgld: {}}
step_size: {constant: 1.0e-6}
batch_size: 50
num_steps: 10000000
chains: 1
collect: {every_steps: 100}
"""

    def children(self, pid):
        found = []
        for task in os.listdir(f"/proc/{pid}/task"):
            with open(f"/proc/{pid}/task/{task}/children") as f:
                found += f.read().split()
        return found

    def test_the_process_has_no_token_no_sockets_and_a_filter_of_system_calls(self):
        fleet = fleets.Fleet(workers=1, environment={"CHAINFLEET_TOKEN": "t" * 32})
        self.addCleanup(fleet.close)
        fleet.up("--allow-modules")
        fleet.put_fashion("fashion", 200)
        subprocess.run([os.environ["CHAINFLEET_SCRIPT_FILE"], fleet.path("mine.pt"), "784", "10"], check=True)
        fleet.run("model", "put", "mine", fleet.path("mine.pt"), check=True)
        job = fleet.submit(self.JOB)
        fleet.wait_for_draws(job, 1)
        modules = self.children(fleet.pid("worker-0"))
        self.assertTrue(modules)
        for pid in modules:
            with open(f"/proc/{pid}/environ") as f:
                self.assertNotIn("CHAINFLEET", f.read())
            with open(f"/proc/{pid}/status") as f:
                status = dict(line.split(":\t", 1) for line in f.read().splitlines())
            self.assertEqual((status["Seccomp"], status["NoNewPrivs"]), ("2", "1"))
            self.assertEqual(sorted(os.listdir(f"/proc/{pid}/fd")), ["0", "1", "2"])
            self.assertTrue(stat.S_ISSOCK(os.stat(f"/proc/{pid}/fd/0").st_mode), "the pair with its worker")
            self.assertIn("memfd:module", os.readlink(f"/proc/{pid}/fd/1"))
            self.assertEqual(os.readlink(f"/proc/{pid}/fd/2"), "/dev/null")
            with open(f"/proc/{pid}/limits") as f:
                limits = {line[:26].strip(): line[26:].split()[0] for line in f}
            self.assertEqual((limits["Max open files"], limits["Max file size"]), ("0", "0"))
        watched = [os.pidfd_open(int(pid)) for pid in modules]
        fleet.kill("worker-0")
        for process in watched:
            self.addCleanup(os.close, process)
            self.assertTrue(select.select([process], [], [], 30)[0], "it ends with its worker")


if __name__ == "__main__":
    unittest.main()
