"""The wheels that deploy/wheels/build.sh packs of the built programs: what is inside, and that a job runs from them alone."""
import email.parser
import glob
import os
import re
import shutil
import subprocess
import sys
import tempfile
import unittest
import zipfile

ROOT = os.path.abspath(os.path.join(os.path.dirname(__file__), "..", ".."))
sys.path.insert(0, os.path.join(ROOT, "tests", "support"))
from real_server import free_ports  # noqa: E402

DEPS = os.environ.get("CHAINFLEET_DEPS") or os.path.expanduser("~/.cache/chainfleet")
LIBTORCH = os.path.join(DEPS, "libtorch-2.11.0")
PROGRAMS = ("chainfleet", "chainfleet-server", "chainfleet-worker")
# Every Linux that manylinux_2_36 means has these; the name service of glibc loads some of them.
OF_THE_SYSTEM = re.compile(r"(ld-linux-x86-64|libc|libm|libdl|librt|libpthread|libresolv|libnss_\w+|libgcc_s|libstdc\+\+|libutil|libz)\.so\.\d+")
JOB = """
name: small
model: {builtin: mlp, hidden: [4]}
dataset: {name: small}
likelihood: {gaussian: {variance: 1}}
sampler: {sgld: {}}
step_size: {constant: 1.0e-4}
batch_size: 16
num_epochs: 4
chains: 2
seed: 1
"""


def version():
    with open(os.path.join(ROOT, "core", "base", "version.h"), encoding="utf-8") as file:
        return re.search(r'kVersion\[\] = "(.+)"', file.read()).group(1)


class Wheels(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.mkdtemp(prefix="chainfleet-wheels-")
        cls.addClassCleanup(shutil.rmtree, cls.folder)
        subprocess.run([os.path.join(ROOT, "deploy", "wheels", "build.sh"), "--no-build", cls.folder], check=True)
        cls.python, cls.server = (zipfile.ZipFile(path) for path in sorted(glob.glob(cls.folder + "/*.whl")))
        for wheel in (cls.python, cls.server):
            cls.addClassCleanup(wheel.close)
        cls.site = os.path.join(cls.folder, "site")  # as site-packages of an environment: torch is beside the package
        subprocess.run([sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--no-index", "--no-compile", "--target", cls.site,
                        cls.python.filename, cls.server.filename], check=True, stderr=subprocess.DEVNULL)
        for name in ("torch", "nvidia"):
            os.symlink(os.path.join(LIBTORCH, name), os.path.join(cls.site, name))
        cls.package = os.path.join(cls.site, "chainfleet_server")

    def metadata(self, wheel, name="METADATA"):
        path, = (path for path in wheel.namelist() if path.endswith(f".dist-info/{name}"))
        return email.parser.Parser().parsestr(wheel.read(path).decode())

    def test_names_say_version_and_platform(self):
        self.assertEqual([os.path.basename(wheel.filename) for wheel in (self.python, self.server)],
                         [f"chainfleet-{version()}-py3-none-any.whl",
                          f"chainfleet_server-{version()}-py3-none-manylinux_2_36_x86_64.whl"])
        self.assertEqual(self.metadata(self.server, "WHEEL")["Root-Is-Purelib"], "false", "torch is in the folder of platform packages")

    def test_requirements(self):
        self.assertEqual(self.metadata(self.server).get_all("Requires-Dist"), ["torch==2.11.0"])
        wanted = self.metadata(self.python).get_all("Requires-Dist")
        self.assertIn(f'chainfleet_server=={version()}; extra == "server"', [line.replace("-", "_", 1) for line in wanted])
        self.assertEqual([line.split(">")[0] for line in wanted if "extra" not in line], ["numpy", "grpcio", "protobuf"])

    def test_each_wheel_has_its_license_and_those_of_its_libraries(self):
        for wheel in (self.python, self.server):
            path, = (path for path in wheel.namelist() if path.endswith(".dist-info/licenses/LICENSE"))
            self.assertIn("Apache License", wheel.read(path).decode())
        packages = {name[:-4] for name in os.listdir(os.path.join(self.package, "licenses"))}
        stems = [re.match(r"(.+?)-[0-9a-f]{8}", name).group(1) for name in os.listdir(self.site + "/chainfleet_server.libs")]
        self.assertGreater(len(stems), 50)
        said = subprocess.run(["dpkg", "-S", *(f"*/{stem}*.so*" for stem in stems)], capture_output=True, text=True, check=True).stdout
        for stem in stems:
            owners = set(re.findall(rf"^([^:\n]+):.*/{re.escape(stem)}[^/\n]*$", said, re.M))
            self.assertTrue(packages & owners, f"{stem}: no license of {owners}")

    def test_each_program_says_the_version(self):
        for program in PROGRAMS:
            script = os.path.join(self.site, "bin", program)
            done = subprocess.run([script, "--version"], env={"PYTHONPATH": self.site}, capture_output=True, text=True)
            self.assertEqual((done.returncode, done.stdout), (0, version() + "\n"), done.stderr)

    def test_a_closed_pipe_ends_the_command_line_silently(self):
        """Python ignores SIGPIPE, and a program that it becomes would too."""
        reading, writing = os.pipe()
        os.close(reading)
        done = subprocess.run([os.path.join(self.site, "bin", "chainfleet"), "--help"], env={"PYTHONPATH": self.site}, stdout=writing,
                              stderr=subprocess.PIPE, text=True)
        os.close(writing)
        self.assertEqual((done.returncode, done.stderr), (-13, ""))

    def test_the_cuda_module_finds_torch(self):
        module = os.path.join(self.package, "lib", "libchainfleet_cuda.so")
        if not os.path.exists(module):
            self.skipTest("there was no CUDA toolkit")
        said = subprocess.run(["readelf", "-d", module], capture_output=True, text=True, check=True).stdout
        folder = re.search(r"RUNPATH.*\[\$ORIGIN/(.*?)\]", said).group(1)
        self.assertTrue(os.path.exists(os.path.join(self.package, "lib", folder, "libtorch_cuda.so")))
        for library in re.findall(r"NEEDED.*\[(.*)\]", said):
            self.assertRegex(library, OF_THE_SYSTEM.pattern + r"|lib(torch|c10|torch_)_?cuda\.so|libcudart\.so\.13")

    def test_a_job_runs_and_opens_no_other_library(self):
        """LD_DEBUG says which libraries each process opens, also later than its start."""
        port, = free_ports(1)
        here = lambda name: os.path.join(self.folder, name)  # noqa: E731
        environment = {"PATH": os.path.join(self.site, "bin") + ":/usr/bin:/bin", "HOME": self.folder, "PYTHONPATH": self.site,
                       "CHAINFLEET_ADDRESS": f"127.0.0.1:{port}"}
        traced = environment | {"LD_DEBUG": "files", "LD_DEBUG_OUTPUT": here("opened")}

        def chainfleet(*arguments):
            done = subprocess.run([os.path.join(self.package, "bin", "chainfleet"), *arguments], env=traced, text=True,
                                  capture_output=True, timeout=100)
            self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
            return done.stdout

        with open(here("small.csv"), "w") as file:
            file.write("x,y\n" + "".join(f"{i / 50},{i % 7 / 7}\n" for i in range(64)))
        with open(here("new.csv"), "w") as file:
            file.write("x\n0.25\n0.5\n")
        with open(here("small.yaml"), "w") as file:
            file.write(JOB)
        self.addCleanup(subprocess.run, [os.path.join(self.site, "bin", "chainfleet"), "down", "--data-dir", here("data")],
                        env=environment, stdout=subprocess.DEVNULL)
        chainfleet("up", "--data-dir", here("data"), "--listen", f"127.0.0.1:{port}", "--metrics-listen", "off", "--workers", "1")
        chainfleet("dataset", "put", "small", here("small.csv"), "--target", "y", "--target-type", "float32")
        chainfleet("submit", "-f", here("small.yaml"), "--follow")
        chainfleet("predict", "@latest", "--input", here("new.csv"), "--output", here("p.npz"))
        with zipfile.ZipFile(here("p.npz")) as prediction:
            self.assertIn("mean.npy", prediction.namelist())
        opened, programs = set(), set()
        for path in glob.glob(here("opened.*")):
            with open(path, errors="replace") as file:
                text = file.read()
            opened |= set(re.findall(r"calling init: (\S+)", text))
            programs |= {os.path.basename(name) for name in re.findall(r"initialize program: (\S+)", text)}
        self.assertEqual(programs, set(PROGRAMS))
        self.assertTrue(any("/torch/lib/libtorch_cpu.so" in path for path in opened))
        strange = {path for path in opened if not path.startswith(self.site) and not OF_THE_SYSTEM.fullmatch(os.path.basename(path))}
        self.assertEqual(strange, set())


if __name__ == "__main__":
    unittest.main(verbosity=2)
