"""Tests the cost of importing the package, its lists of names, and the programs that it finds and runs."""
import ast
import os
import signal
import stat
import subprocess
import sys
import tempfile
import time
import unittest
import unittest.mock
import warnings

import python_package  # first: it says where the next ones are
import chainfleet as cf
from chainfleet import local_fleet, programs


class Imports(unittest.TestCase):
    def test_importing_the_package_imports_nothing_heavy(self):
        heavy = "('grpc', 'numpy', 'google.protobuf', 'torch', 'pandas', 'dataclasses', 'asyncio')"
        script = f"import sys, chainfleet; print([name for name in {heavy} if name in sys.modules])"
        done = subprocess.run([sys.executable, "-B", "-S", "-c", script], env={**os.environ, "PYTHONPATH": python_package.PACKAGE},
                              capture_output=True, text=True, timeout=60)
        self.assertEqual((done.stdout.strip(), done.stderr), ("[]", ""))

    def test_each_name_is_there_and_type_checkers_see_the_same_ones(self):
        with open(cf.__file__, encoding="utf-8") as file:
            tree = ast.parse(file.read())
        checked = next(node for node in tree.body if isinstance(node, ast.If))
        seen = {name.asname or name.name for node in checked.body for name in node.names}
        self.assertEqual(seen, set(cf.__all__))
        for name in cf.__all__:
            self.assertIsNotNone(getattr(cf, name), name)
            self.assertIn(name, dir(cf))
        with self.assertRaisesRegex(AttributeError, "no attribute 'conect'"):
            cf.conect  # noqa: B018


class Programs(unittest.TestCase):
    def setUp(self):
        self.folder = self.enterContext(tempfile.TemporaryDirectory())
        self.environment = self.enterContext(unittest.mock.patch.dict(os.environ, {"PATH": "/usr/bin:/bin", "CHAINFLEET_BIN": ""}))

    def program(self, script, *folders):
        folder = os.path.join(self.folder, *folders)
        os.makedirs(folder, exist_ok=True)
        path = os.path.join(folder, "chainfleet")
        with open(path, "w") as file:
            file.write(f"#!/bin/sh\n{script}\n")
        os.chmod(path, stat.S_IRWXU)
        return folder

    def test_the_program_is_found_in_its_three_places(self):
        wheel = self.program("echo wheel", "site", "chainfleet_server", "bin")
        open(os.path.join(self.folder, "site", "chainfleet_server", "__init__.py"), "w").close()
        with unittest.mock.patch.object(sys, "path", [*sys.path, os.path.join(self.folder, "site")]):
            self.assertEqual(programs.find_program(), os.path.join(wheel, "chainfleet"))
            os.environ["PATH"] += ":" + self.program("echo path", "path")
            self.assertEqual(programs.run_program(["x"]), "path\n")
            os.environ["CHAINFLEET_BIN"] = self.program("echo named", "named")
            self.assertEqual(programs.run_program(["x"]), "named\n")

    def test_a_missing_program_has_a_remedy(self):
        for folder, words in (("", "not in PATH"), ("/nowhere", "CHAINFLEET_BIN, which is /nowhere")):
            os.environ["CHAINFLEET_BIN"] = folder
            with self.assertRaisesRegex(cf.errors.NotFound, words) as caught:
                cf.local()
            self.assertEqual(caught.exception.reason, "NO_PROGRAM")
            self.assertIn("chainfleet[server]", caught.exception.hint)

    def test_the_exit_status_decides_the_class_and_the_message_begins_at_error(self):
        for status, failure in ((1, cf.errors.FailedPrecondition), (2, cf.errors.InvalidArgument), (3, cf.errors.NotFound),
                                (4, cf.errors.PermissionDenied), (5, cf.errors.Unavailable), (6, cf.errors.DataLoss)):
            os.environ["CHAINFLEET_BIN"] = self.program(f"echo a log line >&2; echo error: it broke >&2; exit {status}")
            with self.assertRaisesRegex(failure, "^`chainfleet report` failed: it broke(\n|$)") as caught:
                programs.run_program(["report"])
            self.assertEqual(caught.exception.reason, "PROGRAM_FAILED")

    def test_warnings_of_a_program_that_succeeds_are_warnings_here(self):
        os.environ["CHAINFLEET_BIN"] = self.program("echo a log line >&2; echo 'warning: 2 draws are left out' >&2; echo done")
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            self.assertEqual(programs.run_program(["export"]), "done\n")
        self.assertEqual([str(one.message) for one in caught], ["2 draws are left out"])

    def test_the_table_of_a_failed_program_is_in_the_error(self):
        os.environ["CHAINFLEET_BIN"] = self.program("echo 'CHECK  RESULT'; echo 'server FAILED'; echo error: no server answers >&2; exit 5")
        with cf.Fleet(unittest.mock.Mock(environment=dict)) as fleet, self.assertRaises(cf.errors.Unavailable) as caught:
            fleet.doctor()
        self.assertEqual(caught.exception.message, "`chainfleet doctor` failed: no server answers\nCHECK  RESULT\nserver FAILED")

    def runs(self, script):
        """A Python that runs the program `script`, which has written its id to the file `pid`, and reads its output."""
        fills_the_pipe = "head -c 100000 /dev/zero"  # ends once Python reads
        os.environ["CHAINFLEET_BIN"] = self.program(f"{fills_the_pipe}\n{script}")
        code = "import chainfleet; chainfleet.run_program(['up'])"
        child = subprocess.Popen([sys.executable, "-B", "-c", code], env={**os.environ, "PYTHONPATH": python_package.PACKAGE}, stderr=subprocess.DEVNULL)
        self.addCleanup(child.wait)
        self.addCleanup(child.kill)
        self.wait_for(child, "pid")
        return child

    def wait_for(self, child, name):
        path = os.path.join(self.folder, name)
        while not os.path.exists(path) or not os.path.getsize(path):
            self.assertIsNone(child.poll())
            time.sleep(0.01)

    def ends_by_ctrl_c(self, child):
        child.send_signal(signal.SIGINT)  # to Python alone, not as a terminal sends it
        self.assertNotEqual(child.wait(20), 0)
        with open(os.path.join(self.folder, "pid")) as file, self.assertRaises(ProcessLookupError):
            os.kill(int(file.read()), 0)

    def test_ctrl_c_leaves_no_program(self):
        self.ends_by_ctrl_c(self.runs(f"echo $$ > {self.folder}/pid; exec sleep 100"))

    def test_the_first_ctrl_c_lets_a_program_clean_up_and_the_second_one_kills_it(self):
        stays = f"""
import os, signal
def note(name):
    with open(os.path.join({self.folder!r}, name), "w") as file:
        file.write(str(os.getpid()))
signal.signal(signal.SIGTERM, lambda *_: note("told"))
note("pid")
while True:
    signal.pause()
"""
        child = self.runs(f"exec {sys.executable} -B -c '{stays.replace(chr(39), chr(34))}'")
        child.send_signal(signal.SIGINT)
        self.wait_for(child, "told")
        self.ends_by_ctrl_c(child)

    def fails(self, *lines):
        os.environ["CHAINFLEET_BIN"] = self.program("cat >&2 <<'EOF'\n" + "\n".join(lines) + "\nEOF\nexit 2")
        with self.assertRaises(cf.errors.InvalidArgument) as caught:
            programs.run_program(["submit"])
        self.assertTrue(caught.exception.hint)
        return caught.exception

    def test_the_whole_message_is_told_and_its_fields_are_violations(self):
        error = self.fails("error: --format: blah not in {npz,zarr}", "chainfleet export --help shows how to use it")
        self.assertEqual((error.message, error.reason), ("`chainfleet submit` failed: --format: blah not in {npz,zarr}", "PROGRAM_FAILED"))
        eta, chains = cf.FieldViolation("sampler.emcmc.eta", "must be above 0, is -1"), cf.FieldViolation("chains", "must be at least 1, is -3")
        for lines, violations in ((["error: /a b.yaml:4: sampler.emcmc.eta: must be above 0, is -1"], (eta,)),
                                  (["error: 2 fields are wrong", "  a.yaml:4: sampler.emcmc.eta: must be above 0, is -1",
                                    "  chains: must be at least 1, is -3"], (eta, chains))):
            error = self.fails("a log line", *lines)
            self.assertEqual((error.reason, error.violations), ("INVALID_FIELD", violations))
            self.assertIn(violations[-1].description, error.message)

    def test_verify_passes_the_chain_and_the_draws_of_a_replay(self):
        fleet = unittest.mock.Mock()
        cf.Job(fleet, "moons").verify(replay=True, chain=0, draws=(0, 9))
        fleet.run_program.assert_called_once_with("verify", "moons", "--replay", "--chain=0", "--draws=0:9")

    def test_local_passes_its_arguments_and_the_token_and_takes_the_address(self):
        log = os.path.join(self.folder, "log")
        os.environ["CHAINFLEET_BIN"] = self.program(f'echo "$@ $CHAINFLEET_TOKEN" > {log}; echo "already up: server 127.0.0.1:7, 2 workers, data"')
        with unittest.mock.patch.object(local_fleet, "connect") as connect, unittest.mock.patch.object(local_fleet, "_is_free", lambda address: False):
            cf.local(workers=3, threads=1, device="cuda:0", data_dir="/d", token="secret", timeout=90, allow_modules=True)
        connect.assert_called_once_with("127.0.0.1:7", "secret")
        with open(log) as file:
            self.assertEqual(file.read().split(), ("up --workers=3 --threads=1 --device=cuda:0 --data-dir=/d --listen=127.0.0.1:0 "
                                                   "--timeout=90s --allow-modules secret").split())
        cf.down("/d")
        with open(log) as file:
            self.assertEqual(file.read().split(), ["down", "--data-dir=/d"])


if __name__ == "__main__":
    unittest.main()
