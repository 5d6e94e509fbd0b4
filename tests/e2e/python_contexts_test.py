"""The contexts of the command line and of the package: one file, one meaning."""
import os
import shutil
import subprocess
import sys
import tempfile
import unittest
import unittest.mock

import python_package
from chainfleet import contexts
from connected_fleet import ConnectedFleet

sys.path.append(os.path.join(python_package.ROOT, "tests", "client", "python"))
from contexts_test import READ  # noqa: E402

PROGRAM = os.path.join(os.environ["CHAINFLEET_BIN"], "chainfleet")
NAMES = ("lab", "a b", "n#1", "it's", 'q"q', "null", "~", "- x", "{x}", "key: value", "über", "x #y", "'", "1", "a\\b")


class Contexts(ConnectedFleet):
    TOKEN = "0123456789abcdef0123456789abcdef"

    def setUp(self):
        self.folder = tempfile.mkdtemp(prefix="chainfleet-contexts-")
        self.addCleanup(shutil.rmtree, self.folder)
        self.file = os.path.join(self.folder, "config.yaml")
        environment = {name: value for name, value in os.environ.items() if not name.startswith("CHAINFLEET_")}
        patch = unittest.mock.patch.dict(os.environ, {**environment, "CHAINFLEET_CONTEXTS": self.file}, clear=True)
        patch.start()
        self.addCleanup(patch.stop)

    def chainfleet(self, *arguments):
        return subprocess.run([PROGRAM, *arguments], check=True, capture_output=True, text=True).stdout

    def test_the_package_reads_what_the_command_line_writes_and_connects(self):
        import chainfleet as cf

        for number, name in enumerate(NAMES):
            token = ("--token-file", f"~/{name}") if number % 2 else ("--token-command", f"echo '{name}' \"secret\" # {name}: x")
            self.chainfleet("context", "set", f"--address={self.started.address}", f"{token[0]}={token[1]}", "--", name)
        found = contexts.read_contexts(self.file)
        self.assertEqual((found.current, sorted(found.by_name)), ("lab", sorted(NAMES)))
        for number, name in enumerate(NAMES):
            one = found.by_name[name]
            expected = ("", f"echo '{name}' \"secret\" # {name}: x") if number % 2 == 0 else (f"~/{name}", "")
            self.assertEqual((one.address, one.token_file, one.token_command), (self.started.address, *expected))
        self.chainfleet("context", "set", "lab", "--address", self.started.address, "--token-command", f"echo {self.TOKEN}")
        for fleet in (cf.connect(), cf.connect(context="lab")):
            with fleet:
                self.assertEqual(len(fleet.workers()), 1)
        for name in NAMES:
            self.chainfleet("context", "delete", "--", name)
        self.assertEqual(contexts.read_contexts(self.file), contexts.Contexts())

    def test_the_command_line_reads_what_the_package_reads(self):
        for text, expected in READ.items():
            with self.subTest(text=text), open(self.file, "w", encoding="utf-8") as file:
                file.write(text)
                file.flush()
                lines = [line for line in self.chainfleet("context", "list").splitlines()[1:]]
                self.assertEqual(len(lines), len(expected))
                for line, (name, (address, token_file, command)) in zip(lines, sorted(expected.items()), strict=True):
                    token = f"from {command}" if command else token_file or "-"
                    self.assertEqual(" ".join(line.split()[1:]), f"{name} {address} {token}")


if __name__ == "__main__":
    unittest.main()
