"""The package passes mypy --strict and ruff, of the releases in deploy/lint-requirements.txt."""
import os
import subprocess
import unittest

from python_package import DEPS, PACKAGE

TOOLS, NEWEST = os.path.join(DEPS, "mypy-2.4.1"), os.path.join(DEPS, "tritonclient-2.73.0")  # numpy has its own types


class Lint(unittest.TestCase):
    def passes(self, *command):
        environment = {**os.environ, "PYTHONPATH": f"{TOOLS}:{NEWEST}"}
        done = subprocess.run(command, cwd=PACKAGE, env=environment, capture_output=True, text=True, timeout=100)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)

    def test_types(self):
        self.passes("/usr/bin/python3", "-B", "-m", "mypy", "--strict", "--cache-dir=/dev/null", "chainfleet")

    def test_style(self):
        for mode in (["check"], ["format", "--check"]):
            self.passes(os.path.join(TOOLS, "bin", "ruff"), *mode, "--no-cache", ".")


if __name__ == "__main__":
    unittest.main()
