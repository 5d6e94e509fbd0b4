"""The words that bash, zsh and fish offer after an unfinished command line, from the scripts that users load."""
import os
import subprocess
import unittest

import fleet as fleets

BIN = os.environ["CHAINFLEET_BIN"]
# Each runs the loaded script as its shell does when a user presses Tab, and prints the words offered. {words} are the
# words of the line before the cursor, each in quotes; zsh and bash offer all, and keep those that fit themselves.
SHELLS = {
    "bash": "source <(chainfleet completion bash); COMP_WORDS=({words} ''); COMP_CWORD=$((${{#COMP_WORDS[@]}} - 1)); "
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

    def offered(self, shell, *line):
        environment = {"PATH": f"{BIN}:{os.environ['PATH']}", "HOME": str(self.fleet.folder), "CHAINFLEET_ADDRESS": self.fleet.address}
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
