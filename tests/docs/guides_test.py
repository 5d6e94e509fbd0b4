"""The guides as a reader follows them: their sh and python blocks, run as typed, print what their text blocks show."""

import contextlib
import glob
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
import with_s3
import with_slurm
from real_prometheus import RealPrometheus
from real_server import free_ports, running

BIN = os.environ["CHAINFLEET_BIN"]
DATABASE, PROMETHEUS = "127.0.0.1:5432", "127.0.0.1:9090"
ADDRESSES = [PROMETHEUS, *(f"127.0.0.1:{port}" for port in (7400, 7401, 7402, 7410))]  # the tests take free ones
OTHERS = {"first_job": ["diagnostics", "report", "export"], "running": ["dashboards"]}  # guides that go on with the fleet of another one
SECONDS = 500
ON_PATH = "export PATH=$PWD/build/release/bin:$PATH"
DEPS = os.environ.get("CHAINFLEET_DEPS") or os.path.expanduser("~/.cache/chainfleet")
CLIENT = os.path.join(DEPS, "tritonclient-2.73.0")
SUPPORT = os.path.join(job_file.ROOT, "tests", "support")
STAND_INS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "stand_ins.sh")
PYTHON = (f"CHAINFLEET_DEPS={DEPS} CHAINFLEET_NEWEST_WHEELS=1 PYTHONPATH={SUPPORT} "
          f"{sys.executable} -B -c 'import real_torch, runpy; runpy.run_path(\"typed.py\")'")
FENCE = re.compile(r"^## (?P<heading>[^\n]*)$|^```(?P<language>\w*)\n(?P<text>.*?)^```$", re.M | re.S)


def page(guide):
    return job_file.read(f"docs/guides/{guide}.md")


def kinds(guide):
    """The languages of all blocks of a page."""
    return {part["language"] for part in FENCE.finditer(page(guide)) if part["heading"] is None}


def blocks(guide, *languages, sections=r".*"):
    """The fenced blocks of these languages in a page of docs/guides, in order, below the headings that match."""
    heading, found = "", []
    for part in FENCE.finditer(page(guide)):
        if part["heading"] is not None:
            heading = part["heading"]
        elif part["language"] in languages and re.fullmatch(sections, heading):
            found.append(f"cat > typed.py <<'TYPED'\n{part['text']}TYPED\n{PYTHON}" if part["language"] == "python" else part["text"])
    return found


def commands(guide, sections=r".*"):
    return blocks(guide, "sh", "python", sections=sections)


def plain(line):
    """Without what differs from run to run: ids, digests, numbers and the width of columns."""
    line = re.sub(r"\b([a-z]+)-[a-z0-9]{6}\b", r"\1-ID", line)
    line = re.sub(r"\b[0-9a-f]{12}\b|\b[0-9a-f]{32}\b", "#", line)
    return " ".join(re.sub(r"-?\d[\d.]*(e[+-]\d+)?\*?", "#", line).split())


def shown(guide):
    """The lines that the guide says are printed."""
    return [plain(line) for block in blocks(guide, "text") for line in block.splitlines() if " RUNNING " not in line]


class Pages(unittest.TestCase):
    """No guide, and no block of one, is left out."""

    GUIDES = sorted(name.removesuffix(".md") for name in os.listdir(os.path.join(job_file.ROOT, "docs", "guides")) if name.endswith(".md"))
    ELSEWHERE = {"kubernetes": "tests/deploy/deploy_test.py", "from_stan": "tests/e2e/python_test.py",
                 "lora": "tests/e2e/python_test.py"}  # the tests that follow them
    # Kinds of blocks in guides that Guides.check does not follow. Prometheus reads the YAML, tests/run_stan.sh the Stan program.
    KINDS = {"README": set(), "alerts": set(), "console": set(), "install": {"sh", "toml", "ini"}, "python": {"sh"}, "kubernetes": {"sh", "yaml"}, "from_stan": {"stan"}}
    SESSIONS = {"python", "from_stan", "lora"}  # Python sessions, indented, as doctest reads them

    def test_a_test_follows_each_guide_that_has_blocks(self):
        here = [name.removeprefix("test_") for name in dir(Guides) if name.startswith("test_")]
        self.assertIn(f"foreach(guide {' '.join(here)})", job_file.read("tests/docs/CMakeLists.txt"))
        for guide, test in self.ELSEWHERE.items():
            self.assertRegex(job_file.read(test), rf'\b{guide}(\.md)?"')
        followed = {*here, *(other for others in OTHERS.values() for other in others), *self.ELSEWHERE}
        self.assertEqual([guide for guide in self.GUIDES if guide not in followed and kinds(guide)], [])

    def test_each_block_is_typed_or_compared(self):
        for guide in self.GUIDES:
            with self.subTest(guide):
                self.assertLessEqual(kinds(guide), self.KINDS.get(guide, {"sh", "python", "text"}))
                text = FENCE.sub("", page(guide))
                self.assertNotRegex(text, r"(?m)^ *(```|~~~)", "a fence that FENCE does not find")
                starts = {line[:3] for line in re.findall(r"\n\n    (.*)", text)}
                self.assertEqual(starts, {">>>"} if guide in self.SESSIONS else set(), "indented blocks")


class Guides(unittest.TestCase):
    def setUp(self):
        self.clone = tempfile.mkdtemp(prefix="chainfleet-guide-")
        self.addCleanup(shutil.rmtree, self.clone, ignore_errors=True)
        os.makedirs(os.path.join(self.clone, "build", "release"))
        os.symlink(BIN, os.path.join(self.clone, "build", "release", "bin"))
        for part in ("client", "deploy"):
            os.symlink(os.path.join(job_file.ROOT, part), os.path.join(self.clone, part))
        self.environment = {name: value for name, value in os.environ.items() if not name.startswith(("CHAINFLEET_", "XDG_"))}
        self.environment["HOME"] = self.clone
        self.environment["PATH"] = os.path.dirname(sys.executable) + ":" + os.environ["PATH"]
        self.places = {address: f"127.0.0.1:{port}" for address, port in zip(ADDRESSES, free_ports(len(ADDRESSES)))}
        self.addCleanup(self.type_in, [os.path.join(BIN, "chainfleet") + " down" + where for where in ("", " --data-dir fleet.2")])

    def type_in(self, scripts):
        script = "\n".join(scripts)
        for place, other in self.places.items():
            script = script.replace(place, other)
        with subprocess.Popen(["bash", "-euo", "pipefail", "-c", f". {STAND_INS}\n{script}"], cwd=self.clone, env=self.environment, text=True,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, start_new_session=True) as shell:
            try:
                said, _ = shell.communicate(timeout=SECONDS)
            finally:
                with contextlib.suppress(ProcessLookupError):
                    os.killpg(shell.pid, signal.SIGKILL)  # servers in the background of a script that failed
        self.assertEqual(shell.returncode, 0, said)
        return {plain(line) for line in said.replace(self.clone, "/home/you").splitlines()}

    def check(self, guide, before=()):
        """Follows a guide, and those that go on with its fleet before its last block stops that."""
        others = OTHERS.get(guide, [])
        *begin, end = commands(guide)
        printed = self.type_in([*before, *begin, *(block for other in others for block in commands(other)), end])
        expected = [line for page in (guide, *others) for line in shown(page)]
        self.assertGreater(len(expected), 0)
        self.assertEqual([line for line in expected if line not in printed], [], "\n".join(sorted(printed)))

    def test_first_job(self):
        self.check("first_job")
        for written in ("predictions.npz", "report.html"):
            self.assertGreater(os.path.getsize(os.path.join(self.clone, written)), 10_000)

    def test_own_data(self):
        self.check("own_data", before=commands("first_job", "Start .*"))

    def test_own_model(self):
        self.check("own_model", before=commands("first_job", "Start .*|Store .*"))

    def test_serving(self):
        """The clients are installed as deploy/install_deps.sh has them, not by pip."""
        self.environment["PYTHONPATH"] = f"{os.path.join(job_file.ROOT, 'client', 'python')}:{CLIENT}"
        self.check("serving")

    def test_python(self):
        """tests/e2e/python_test.py runs the Python of the guide, tests/run_wheels.sh with a package that pip installed."""
        self.environment["PYTHONPATH"] = os.path.join(job_file.ROOT, "client", "python") + ":" + CLIENT
        self.type_in([*commands("python"), "python3 -c 'import chainfleet'", "$CHAINFLEET_BIN/chainfleet --version"])

    def test_access(self):
        self.check("access", before=[ON_PATH])

    def postgres(self):
        """A PostgreSQL at the address that guides name."""
        server = self.enterContext(running(with_postgres.Postgres(host="127.0.0.1", network="127.0.0.1/32")))
        self.places[DATABASE] = server.uri.removeprefix("postgresql://chainfleet@")

    def test_backup(self):
        self.postgres()
        self.check("backup")

    def test_coordinators(self):
        self.postgres()
        self.check("coordinators")
    def test_running(self):
        """All hosts are this one, and folders of root are in the clone. Prometheus looks each second."""
        folders = {f" {folder}": f" {self.clone}{folder}" for folder in ("/etc", "/srv", "/usr/bin", "/var/lib")}
        folders |= {f"={folder}": f"={self.clone}{folder}" for folder in ("/etc", "/opt")}
        for folder in ("etc/grafana/provisioning", "usr/bin"):
            os.makedirs(os.path.join(self.clone, folder))
        scraped = RealPrometheus(self.places["127.0.0.1:7401"])
        self.addCleanup(scraped.close)
        self.places = {"0.0.0.0": "127.0.0.1", "--host coordinator": "--host 127.0.0.1", "coordinator:": "127.0.0.1:",
                       "--metrics-port 7410": "--metrics-port " + self.places["127.0.0.1:7410"].partition(":")[2],
                       "deploy/prometheus/prometheus.yml": scraped.path("prometheus.yml"), **folders, **self.places}
        self.check("running", before=[ON_PATH])

    def test_s3(self):
        s3 = self.enterContext(running(with_s3.S3Server()))
        self.environment |= s3.environment
        self.places |= {"AKIAEXAMPLE": with_s3.ADMIN["AWS_ACCESS_KEY_ID"], "_KEY=example": f"_KEY={with_s3.ADMIN['AWS_SECRET_ACCESS_KEY']}",
                        "my-bucket": with_s3.BUCKET}
        self.check("s3")

    def test_upgrade(self):
        self.check("upgrade", before=[*commands("first_job", "Start .*"), "chainfleet submit deploy/jobs/gaussian-sgld.yaml --follow"])

    def test_install(self):
        """tests/run_wheels.sh and tests/run_deb.sh type the blocks that need a build, root and a network."""
        self.type_in(commands("install", "From source"))
        scripts = [job_file.read(path) for path in glob.glob("tests/**/*.sh", root_dir=job_file.ROOT, recursive=True)]
        typed = re.findall(r'^type_block \S+ "(.+)" (\d)$', "\n".join(scripts), re.M)
        self.assertEqual(sorted(typed), [(way, str(1 + i)) for way in ("As Debian packages", "With pip") for i in range(len(commands("install", way)))])

    @unittest.skipIf(with_slurm.why_not(), with_slurm.why_not())
    def test_slurm(self):
        slurm = with_slurm.Slurm()
        self.addCleanup(slurm.close)
        slurm.start()
        self.environment |= slurm.environment
        self.check("slurm")


if __name__ == "__main__":
    unittest.main()
