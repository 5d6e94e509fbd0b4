"""The guides as a reader follows them: their ```sh blocks, run as typed, print what their ```text blocks show."""

import contextlib
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import unittest

import job_file
import with_postgres
import with_slurm
from real_server import free_ports, running

BIN = os.environ["CHAINFLEET_BIN"]
ADDRESSES = ("127.0.0.1:7400", "127.0.0.1:7401", "127.0.0.1:7402")  # the guides tell the reader to take other ports if these are in use
DATABASE = "127.0.0.1:5432"
SECONDS = 500
CLIENT = os.path.join(os.environ.get("CHAINFLEET_DEPS") or os.path.expanduser("~/.cache/chainfleet"), "tritonclient-2.73.0")


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
        self.environment["PATH"] = os.path.dirname(sys.executable) + ":" + os.environ["PATH"]
        self.addresses = {address: f"127.0.0.1:{port}" for address, port in zip(ADDRESSES, free_ports(len(ADDRESSES)))}
        self.addCleanup(self.type_in, [os.path.join(BIN, "chainfleet") + " down" + where for where in ("", " --data-dir fleet.2")])

    def type_in(self, scripts):
        script = "\n".join(scripts)
        for address, free in self.addresses.items():
            script = script.replace(address, free)
        with subprocess.Popen(["bash", "-euo", "pipefail", "-c", script], cwd=self.clone, env=self.environment, text=True,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, start_new_session=True) as shell:
            try:
                said, _ = shell.communicate(timeout=SECONDS)
            finally:
                with contextlib.suppress(ProcessLookupError):
                    os.killpg(shell.pid, signal.SIGKILL)  # servers in the background of a script that failed
        self.assertEqual(shell.returncode, 0, said)
        return {plain(line) for line in said.splitlines()}

    def check(self, guide, before=(), others=()):
        """Follows a guide. `others` are guides that go on with its server and its job, before the guide stops them."""
        *begin, end = blocks(guide, "sh")
        printed = self.type_in([*before, *begin, *(block for other in others for block in blocks(other, "sh")), end])
        self.assertGreater(len(shown(guide)), 5)
        expected = [line for page in (guide, *others) for line in shown(page)]
        self.assertEqual([line for line in expected if line not in printed], [], "\n".join(sorted(printed)))

    def test_first_job(self):
        self.check("first_job", others=["diagnostics"])
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

    def test_serving(self):
        """The clients are installed as deploy/install_deps.sh has them, not by pip."""
        self.environment["PYTHONPATH"] = f"{os.path.join(job_file.ROOT, 'client', 'python')}:{CLIENT}"
        self.check("serving")

    def test_access(self):
        printed = self.type_in(["export PATH=$PWD/build/release/bin:$PATH", *blocks("access", "sh")])
        self.assertEqual([line for line in shown("access") if line not in printed], [], printed)

    def test_backup(self):
        with running(with_postgres.Postgres(host="127.0.0.1", network="127.0.0.1/32")) as postgres:
            self.addresses[DATABASE] = postgres.uri.removeprefix("postgresql://chainfleet@")
            self.check("backup")

    @unittest.skipIf(with_slurm.why_not(), with_slurm.why_not())
    def test_slurm(self):
        slurm = with_slurm.Slurm()
        self.addCleanup(slurm.close)
        slurm.start()
        self.environment |= slurm.environment
        self.check("slurm")


if __name__ == "__main__":
    unittest.main()
