"""Tests the output and the questions on a terminal."""
import fcntl
import os
import re
import signal
import struct
import subprocess
import termios
import threading
import unittest
import urllib.request

import fleet as fleets

JOB = """
name: walk
model: {potential: {gaussian: {dimension: 2}}}
sampler: {sgld: {}}
step_size: {constant: 0.1}
num_steps: 100
collect: {every_steps: 10}
"""


class Watching(unittest.TestCase):
    def setUp(self):
        self.fleet = fleets.Fleet()
        self.addCleanup(self.fleet.close)
        self.fleet.up()

    def screen(self, *arguments, height=40, width=100, code=0, until=None, **environment):
        """All that a command writes to a terminal, or all until it has written `until`, and is interrupted."""
        ours, its = os.openpty()
        fcntl.ioctl(its, termios.TIOCSWINSZ, struct.pack("4H", height, width, 0, 0))
        process = subprocess.Popen([os.path.join(fleets.BIN, "chainfleet"), *arguments], stdout=its, stderr=subprocess.DEVNULL,
                                   env={**os.environ, "CHAINFLEET_ADDRESS": self.fleet.address, "TERM": "xterm", **environment})
        os.close(its)
        limit = threading.Timer(120, process.kill)  # a text that never comes
        limit.start()
        self.addCleanup(limit.cancel)
        written = b""
        try:
            while part := os.read(ours, 65536):
                written += part
                if until and until in written:
                    process.send_signal(signal.SIGINT)
                    until = None
        except OSError:  # the other end is closed
            pass
        os.close(ours)
        self.assertEqual(process.wait(), code)
        return written.decode()

    def test_a_terminal_shows_how_far_the_chains_agree_above_them(self):
        job = self.fleet.submit(JOB + "chains: 30\n")
        self.fleet.run("wait", job, "--timeout", "120s", check=True)
        for height in (24, 60):
            lines = self.screen("watch", job, height=height).splitlines()
            self.assertLess(len(lines), height)
            self.assertIn("SUCCEEDED", lines[0])
            for text in ("R-HAT", "ESS BULK", "ESS TAIL", "MCSE"):
                self.assertIn(text, lines[1])
            self.assertIn("energy", lines[2])
            self.assertEqual(lines[-1].startswith("... and "), height == 24, lines[-1])

    def test_lines_fit_the_terminal_with_the_longest_names(self):
        job = self.fleet.submit(JOB.replace("walk", "x" * 63) + "chains: 6\nsweep: {step_size: [0.123456789012345, 1e30]}\n")
        self.fleet.run("wait", job, "--timeout", "120s")
        for width in (80, 40, 5):
            screen = re.sub(r"\x1b\[\d*[AJm]", "", self.screen("watch", job, height=40, width=width, code=1))
            self.assertNotIn("\x1b", screen)
            self.assertLessEqual(max(map(len, screen.splitlines())), width, screen)
            if width > 5:
                self.assertRegex(screen, rf"^x+\.\.\.x*-?{job[-6:]}  FAILED  ")
            if width == 80:
                self.assertEqual(len(re.findall(r"  (?:SUCCEEDED  #{10} 100 %|DIVERGED   \.{10} +\d %)  ", screen)), 12, screen)

    def test_states_have_colours_on_a_terminal_unless_it_or_the_user_has_none(self):
        job = self.fleet.submit(JOB)
        self.fleet.run("wait", job, "--timeout", "120s", check=True)
        for command in (("get", "jobs"), ("get", "jobs", job), ("get", "chains", job, "-o", "wide"), ("describe", job)):
            self.assertIn("\x1b[32mSUCCEEDED\x1b[0m", self.screen(*command), command)
            for plain in ({"NO_COLOR": "1"}, {"TERM": "dumb"}):
                self.assertNotIn("\x1b", self.screen(*command, **plain), command)
            self.assertNotIn("\x1b", self.fleet.run(*command, check=True).stdout, command)
        self.assertNotIn("\x1b", self.screen("get", "jobs", "-o", "json"), "for programs")

    def test_a_view_that_is_printed_again_fits_the_terminal(self):
        job = self.fleet.submit(JOB + "chains: 30\n")
        self.fleet.run("wait", job, "--timeout", "120s", check=True)
        again = b"\x1b[9A\x1b[J"
        view = self.screen("get", "chains", job, "-w", height=10, code=130, until=again).split(again.decode())[0]
        self.assertEqual(len(view.splitlines()), 9)
        self.assertEqual(view.splitlines()[-1], "... and 23 more")
        lines = self.screen("get", "chains", job, "-w", "-o", "jsonl", height=10, code=130, until=b'"index":29')
        self.assertNotIn("\x1b", lines)
        self.assertIn(lines.count("\n"), (29, 30))  # the interrupt may cut the last line off

    def listings(self):
        """The number of times that somebody listed the workers."""
        with urllib.request.urlopen(f"http://{self.fleet.metrics_address}/metrics", timeout=60) as page:
            counts = re.findall(r'^chainfleet_grpc_handled_total\{.*/ListWorkers".*\} (\d+)$', page.read().decode(), re.M)
        return sum(map(int, counts))

    def test_a_pipe_gets_what_changed_and_no_ages(self):
        for flags in ((), ("-o", "jsonl")):
            begun = self.listings()
            process = subprocess.Popen([os.path.join(fleets.BIN, "chainfleet"), "get", "workers", "-w", *flags], stdout=subprocess.PIPE,
                                       text=True, env={**os.environ, "CHAINFLEET_ADDRESS": self.fleet.address})
            self.addCleanup(process.stdout.close)
            self.addCleanup(process.kill)
            while self.listings() < begun + 3:
                self.assertIsNone(process.poll())
            process.send_signal(signal.SIGINT)
            lines = process.stdout.readlines()
            self.assertEqual(process.wait(), 130)
            self.assertEqual(sum("worker-0" in line for line in lines), 1, lines)


class Deletion(unittest.TestCase):
    """Deletions need a confirmation: on a terminal a question, elsewhere --yes."""

    def setUp(self):
        self.fleet = fleets.Fleet()
        self.addCleanup(self.fleet.close)
        self.fleet.up()
        self.job = self.fleet.submit(JOB)
        self.fleet.run("wait", self.job, "--timeout", "120s", check=True)

    def delete(self, *what, answer):
        """The finished command, to which somebody at a terminal answers."""
        ours, its = os.openpty()
        try:
            os.write(ours, answer.encode())
            return self.fleet.run("delete", *what, stdin=its)
        finally:
            os.close(its)
            os.close(ours)

    def intent(self):
        """Its row is there, to whoever knows the id, until no call can read its draws any more."""
        return self.fleet.json("describe", self.job)["intent"]

    def test_a_terminal_is_asked_and_only_yes_deletes(self):
        for answer in ("n\n", "\n", "\x04", "yesterday\n"):
            refused = self.delete("job", self.job, answer=answer)
            self.assertEqual(refused.returncode, 1, answer)
            self.assertIn(f"Delete job {self.job} and its 10 draws? This cannot be undone. [y/N]", refused.stderr)
            self.assertIn("nothing was deleted", refused.stderr)
            self.assertEqual(refused.stdout, "")
            self.assertEqual(self.intent(), "RUN")
        deleted = self.delete("job", "walk", answer="y\n")
        self.assertEqual(deleted.returncode, 0, deleted.stderr)
        self.assertEqual(deleted.stdout, f"{self.job} deleted\n")
        self.assertEqual(self.intent(), "DELETE")

    def test_elsewhere_only_yes_does(self):
        for what in (("job", self.job), ("dataset", "none"), ("model", "none"), ("snapshot", self.job, "1")):
            refused = self.fleet.run("delete", *what, stdin=subprocess.DEVNULL)
            self.assertEqual(refused.returncode, 2, what)
            self.assertIn("cannot be undone: say --yes", refused.stderr)
        self.assertEqual(self.intent(), "RUN")
        self.fleet.run("delete", "job", self.job, "--yes", stdin=subprocess.DEVNULL, check=True)
        self.assertEqual(self.intent(), "DELETE")


if __name__ == "__main__":
    unittest.main(verbosity=2)
