"""The words that bash, zsh and fish offer after an unfinished command line, from the scripts that users load."""
import os
import subprocess
import unittest

import fleet as fleets

BIN = os.environ["CHAINFLEET_BIN"]
# Each runs the loaded script as its shell does when a user presses Tab, and prints the words offered. {words} are the
# words of the line before the cursor, each in quotes; zsh and bash offer all, and keep those that fit themselves.
SHELLS = {
    "bash": "source <(chainfleet completion bash); COMP_LINE=\"$(printf '%s ' {words})\"; COMP_POINT=${{#COMP_LINE}}; "
            "_chainfleet; printf '%s\\n' \"${{COMPREPLY[@]}}\"",
    "zsh": "compdef() {{ }}; compadd() {{ print -l -- ${{(P)2}} }}; _files() {{ }}; source <(chainfleet completion zsh); "
           "words=({words} ''); CURRENT=${{#words}}; _chainfleet",
    "fish": "chainfleet completion fish | source; complete -C (string join ' ' -- {words} '') | string split -f 1 \\t",
}
FLAGS = {"bash": ["--norc"], "zsh": ["-f"], "fish": ["--no-config"]}

JOB = """
name: walk
model: {potential: {gaussian: {dimension: 2}}}
sampler: {sgld: {}}
step_size: {constant: 0.1}
batch_size: 1
num_steps: 10
"""


class Completion(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.fleet = fleets.Fleet(workers=1)
        cls.addClassCleanup(cls.fleet.close)
        cls.fleet.up()
        cls.fleet.put_noise("noise", 64)
        cls.job = cls.fleet.submit(JOB)

    def offered(self, shell, *line, address=None):
        environment = {"PATH": f"{BIN}:{os.environ['PATH']}", "HOME": str(self.fleet.folder), "CHAINFLEET_ADDRESS": address or self.fleet.address}
        script = SHELLS[shell].format(words=" ".join(f"'{word}'" for word in ("chainfleet", *line)))
        run = subprocess.run([shell, *FLAGS[shell], "-c", script], env=environment, capture_output=True, text=True, timeout=60)
        self.assertEqual(run.stderr, "", f"{shell}: {script}")
        return run.stdout.split()

    def test_verbs_flags_and_names_are_offered(self):
        for shell in SHELLS:
            with self.subTest(shell=shell):
                self.assertLessEqual({"submit", "get", "watch", "completion"}, set(self.offered(shell)))
                self.assertIn("noise", self.offered(shell, "describe", "dataset"))
                self.assertIn("noise", self.offered(shell, "evaluate", "@latest", "--dataset"))
                self.assertLessEqual({"@latest", self.job}, set(self.offered(shell, "watch")))
                self.assertNotIn("__complete", self.offered(shell))
                if shell != "fish":  # fish asks for flags only after a dash
                    self.assertIn("--state", self.offered(shell, "get", "jobs"))

    def test_names_are_those_of_the_server_of_the_line(self):
        for shell in SHELLS:
            for flag in (("--address", self.fleet.address), (f"--address={self.fleet.address}",)):
                with self.subTest(shell=shell, flag=flag):
                    self.assertIn(self.job, self.offered(shell, "watch", *flag, address="127.0.0.1:1"))


class BashWords(unittest.TestCase):
    """Bash ends words at the characters of COMP_WORDBREAKS and replaces only the last of these parts, with an @ before it."""

    def offered(self, line, breaks="@><=;|&(:"):
        script = ("source <(command chainfleet completion bash); chainfleet() { printf '%s\\n' @latest worker-cuda:0 worker-cuda:1; }; "
                  'COMP_LINE=$1 COMP_POINT=${#1} COMP_WORDBREAKS=$2; _chainfleet; echo "${COMPREPLY[@]}"')
        run = subprocess.run(["bash", "--norc", "-c", script, "bash", line, breaks], env={"PATH": f"{BIN}:{os.environ['PATH']}"},
                             capture_output=True, text=True, timeout=60)
        self.assertEqual(run.stderr, "")
        return run.stdout.split()

    def test_words_lack_the_part_that_bash_keeps(self):
        self.assertEqual(self.offered("chainfleet watch @l"), ["@latest"])
        self.assertEqual(self.offered("chainfleet watch @"), ["@latest"])
        self.assertEqual(self.offered("chainfleet drain worker-cuda:"), ["0", "1"])
        self.assertEqual(self.offered("chainfleet drain w"), ["worker-cuda:0", "worker-cuda:1"])
        self.assertEqual(self.offered("chainfleet watch "), ["@latest", "worker-cuda:0", "worker-cuda:1"])
        self.assertEqual(self.offered("chainfleet watch x:"), [])

    def test_words_are_whole_where_bash_does_not_end_them(self):
        self.assertEqual(self.offered("chainfleet watch @l", breaks=":="), ["@latest"])
        self.assertEqual(self.offered("chainfleet drain worker-cuda:", breaks="@="), ["worker-cuda:0", "worker-cuda:1"])
