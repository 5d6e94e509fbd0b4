"""The guides as a reader follows them: their ```sh blocks, run as typed, print what their ```text blocks show."""

import os
import re
import shutil
import subprocess
import tempfile
import unittest

import job_file
from real_server import free_ports

BIN = os.environ["CHAINFLEET_BIN"]
ADDRESS = "127.0.0.1:7400"  # the guides tell the reader to take another port if this one is in use
SECONDS = 500


def blocks(guide, language, sections=r".*"):
    """The fenced blocks of a language of a page of docs/guides, in order, below the headings that match."""
    page = job_file.read(f"docs/guides/{guide}.md")
    return [block for heading, text in re.findall(r"^## ([^\n]*)\n(.*?)(?=^## |\Z)", page, re.M | re.S) if re.fullmatch(sections, heading)
            for block in re.findall(rf"^```{language}\n(.*?)^```$", text, re.M | re.S)]


def plain(line):
    """Without what differs from run to run: ids, digests, numbers and the width of columns."""
    line = re.sub(r"\b([a-z]+)-[a-z0-9]{6}\b", r"\1-ID", line)
    line = re.sub(r"\b[0-9a-f]{12}\b", "#", line)
    return " ".join(re.sub(r"-?\d[\d.]*(e[+-]\d+)?\*?", "#", line).split())


def shown(guide):
    """The lines that the guide says are printed. Lines of errors come from wrong input that nobody types here."""
    lines = [line for block in blocks(guide, "text") if not block.startswith("error:") for line in block.splitlines()]
    return [plain(line) for line in lines if " RUNNING " not in line]


class Guides(unittest.TestCase):
    def setUp(self):
        self.clone = tempfile.mkdtemp(prefix="chainfleet-guide-")
        self.addCleanup(shutil.rmtree, self.clone, ignore_errors=True)
        os.makedirs(os.path.join(self.clone, "build", "release"))
        os.symlink(BIN, os.path.join(self.clone, "build", "release", "bin"))
        os.symlink(os.path.join(job_file.ROOT, "deploy"), os.path.join(self.clone, "deploy"))
        self.environment = {name: value for name, value in os.environ.items() if not name.startswith(("CHAINFLEET_", "XDG_"))}
        self.environment["HOME"] = self.clone
        self.addCleanup(self.type_in, [os.path.join(BIN, "chainfleet") + " down"])

    def type_in(self, scripts):
        port, = free_ports(1)
        script = "\n".join(scripts).replace(ADDRESS, f"127.0.0.1:{port}")
        done = subprocess.run(["bash", "-euo", "pipefail", "-c", script], cwd=self.clone, env=self.environment, text=True,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=SECONDS)
        self.assertEqual(done.returncode, 0, done.stdout)
        return {plain(line) for line in done.stdout.splitlines()}

    def check(self, guide, before=()):
        printed = self.type_in([*before, *blocks(guide, "sh")])
        self.assertGreater(len(shown(guide)), 10)
        self.assertEqual([line for line in shown(guide) if line not in printed], [], "\n".join(sorted(printed)))

    def test_first_job(self):
        self.check("first_job")
        for written in ("predictions.npz", "report.html"):
            self.assertGreater(os.path.getsize(os.path.join(self.clone, written)), 10_000)

    def test_own_data(self):
        self.check("own_data", before=blocks("first_job", "sh", "Start .*"))

    def test_own_model(self):
        """LibTorch writes the module, so that no torch for Python is needed."""
        python, = blocks("own_model", "python")
        self.assertIn('.save("convnet.pt")', python)
        subprocess.run([os.environ["CHAINFLEET_SCRIPT_FILE"], os.path.join(self.clone, "convnet.pt"), "784", "32", "10"], check=True)
        self.check("own_model", before=blocks("first_job", "sh", "Start .*|Store .*"))


if __name__ == "__main__":
    unittest.main()
