"""The bundle of pack.sh and the stages of run.sh on the fake GPU, in a clean environment. rehearse.sh hides the packages
of this host as well, and builds everything from the bundle.

Environment: CHAINFLEET_BUILD, the build with the binaries; CHAINFLEET_TORCH_ROOT.
"""
import json
import os
import re
import select
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import unittest

import parts

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.realpath(os.path.join(HERE, "../.."))
BUILD = os.path.realpath(os.environ["CHAINFLEET_BUILD"])
TORCH = os.environ["CHAINFLEET_TORCH_ROOT"]
RUN_TIMES = r"/lib(c|m|dl|rt|pthread|resolv|util|stdc\+\+|gcc_s|mvec)\.so|ld-linux"


def clean_environment(**more):
    return {"PATH": os.environ["PATH"], "HOME": "/nonexistent", "CHAINFLEET_TORCH_ROOT": TORCH, "OMP_NUM_THREADS": "1", **more}


def ccache_settings(folder):
    """Variables by which builds in `folder` share this host's ccache with builds in other folders, without its HOME."""
    if not shutil.which("ccache"):
        return {}
    known = {name: subprocess.run(["ccache", "--get-config", name], capture_output=True, text=True, check=True).stdout.strip()
             for name in ("cache_dir", "max_size")}
    return {"CCACHE_DIR": known["cache_dir"], "CCACHE_MAXSIZE": known["max_size"], "CCACHE_BASEDIR": folder, "CCACHE_NOHASHDIR": "1"}


def sources_of(unit):
    if "/Unity/" not in unit:
        return [unit]
    with open(unit) as f:
        return re.findall(r'^#include "(.*)"$', f.read(), re.M)


def files_read(build):
    """The files of this tree, from its root, that each object of `build` was made from."""
    listed = subprocess.run(["ninja", "-C", build, "-t", "deps"], capture_output=True, text=True, check=True).stdout
    for block in re.sub(r"^ninja: .*\n", "", listed).split("\n\n"):
        paths = (os.path.realpath(os.path.join(build, line.strip())) for line in block.splitlines()[1:])
        yield {os.path.relpath(path, ROOT) for path in paths if path.startswith(ROOT + "/") and not path.startswith(BUILD + "/")}


class Bundle(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.mkdtemp(prefix="chainfleet-rehearsal-")
        cls.addClassCleanup(shutil.rmtree, cls.folder)
        cls.bundle = os.path.join(cls.folder, "bundle")
        subprocess.run([os.path.join(HERE, "pack.sh"), "--fake", cls.bundle], check=True)

    def run_stage(self, stage):
        done = subprocess.run(["bash", os.path.join(self.bundle, "src/tests/gpu/run.sh"), stage, "--rehearse", "--out", self.folder],
                              env=clean_environment(), capture_output=True, text=True)
        with open(os.path.join(self.folder, f"gpu_{stage}.json")) as f:
            return done, json.load(f)

    def test_binaries_load_the_bundle_libtorch_and_the_compilers_run_times_alone(self):
        own = (self.bundle + "/lib/", os.path.dirname(TORCH) + "/")
        for name in sorted(os.listdir(os.path.join(self.bundle, "bin"))):
            loaded = subprocess.run(["ldd", os.path.join(self.bundle, "bin", name)], capture_output=True, text=True, check=True,
                                    env={"PATH": os.environ["PATH"], "LD_LIBRARY_PATH": f"{self.bundle}/lib:{TORCH}/lib"}).stdout
            self.assertIn(self.bundle, loaded, name)
            strange = [line for line in loaded.splitlines()
                       if "=>" in line and not line.split("=>")[1].strip().startswith(own) and not re.search(RUN_TIMES, line)]
            self.assertEqual(strange, [], name)

    def test_sources_compile_with_the_libraries_of_the_bundle(self):
        built = os.path.join(self.folder, "built")
        subprocess.run(["bash", os.path.join(self.bundle, "src/tests/gpu/build.sh"), self.bundle, TORCH, built, "core_draw_codec"],
                       check=True, env=clean_environment(**ccache_settings(self.folder)), capture_output=True, text=True)
        with open(os.path.join(built, "numerics/CMakeCache.txt")) as f:
            found = dict(re.findall(r"^(\w+):\w+=(.*)$", f.read(), re.M))
        for package in ("absl_DIR", "GTest_DIR", "hwy_DIR", "spdlog_DIR", "OPENSSL_CRYPTO_LIBRARY", "OPENSSL_INCLUDE_DIR"):
            self.assertTrue(found[package].startswith(self.bundle + "/deps/usr/"), f"{package} is {found[package]}")
        read = subprocess.run(["ninja", "-C", os.path.join(built, "numerics"), "-t", "deps"], capture_output=True, text=True, check=True).stdout
        self.assertIn("/bundle/deps/usr/include/openssl/", read)
        outside = set(re.findall(r"^\s+(/usr/(?:local/)?include/(?!c\+\+|x86_64-linux-gnu/)\S+)", read, re.M))
        owners = subprocess.run(["dpkg", "-S", *outside], capture_output=True, text=True).stdout
        self.assertEqual(outside - set(re.findall(r"^(?:libc6-dev|linux-libc-dev):.* (/\S+)$", owners, re.M)), set())
        self.assert_complete(os.path.join(built, "numerics"))

    def assert_complete(self, configured):
        """Each source that the bundle would compile finds the headers there that it includes in the build of this tree."""
        bundled = os.path.realpath(os.path.join(self.bundle, "src"))
        with open(os.path.join(configured, "compile_commands.json")) as f:
            units = [entry["file"] for entry in json.load(f)]
        sources = {os.path.relpath(os.path.realpath(path), bundled) for unit in units for path in sources_of(unit)}
        sources = {path for path in sources if path.endswith(".cc") and not path.startswith("..")}  # others are generated
        self.assertGreater(len(sources), 200)
        seen, missing = set(), set()
        for read in files_read(BUILD):
            if not sources.isdisjoint(read):
                seen |= sources.intersection(read)
                missing |= {path for path in read if not os.path.exists(os.path.join(bundled, path))}
        self.assertEqual(sources - seen, set(), "not compiled in this tree")
        self.assertEqual(missing, set())

    def test_networks_step_on_the_device(self):
        done, result = self.run_stage("b")
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        rows = [row for part in result["parts"] for row in part["rows"] if row["what"] == "chainfleet"]
        self.assertEqual([row["model"] for row in rows], ["lenet5", "mlp", "resnet18", "resnet20-frn"])
        self.assertTrue(all(row["rate"] > 0 for row in rows), rows)
        self.assertIn("Chain-steps per second", done.stdout)

    def test_the_service_goes_on_after_a_worker_was_killed(self):
        done, result = self.run_stage("c")
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        [row] = result["parts"][0]["rows"]
        self.assertEqual((row["draws"], row["chains"]), (12, 3))
        self.assertGreater(row["chains_resumed"], 0)

    def test_parts_that_fail_are_recorded_and_the_others_run(self):
        module, hidden = (os.path.join(self.bundle, name) for name in ("lib/libchainfleet_cuda.so", "hidden.so"))
        os.rename(module, hidden)
        try:
            done, result = self.run_stage("b")
        finally:
            os.rename(hidden, module)
        self.assertEqual(done.returncode, 1, done.stdout + done.stderr)
        failed = [part for part in result["parts"] if not part["ok"]]
        self.assertEqual(len(failed), 4)
        self.assertTrue(all("libchainfleet_cuda.so is not there" in " ".join(part["log"]) for part in failed), failed)


class Parts(unittest.TestCase):
    def test_a_part_that_hangs_ends_with_all_its_processes_and_keeps_its_rows(self):
        script = "import subprocess, sys, time; print('7\\n{\"rows\": 1}\\n{\"more\": 2}\\nwords', flush=True); " \
                 "child = subprocess.Popen(['sleep', '600']); print(child.pid, file=sys.stderr, flush=True); time.sleep(600)"
        began = time.monotonic()
        record = parts.run(parts.Part("hangs", "t", 5, [sys.executable, "-c", script]), 100)
        self.assertLess(time.monotonic() - began, 30)
        self.assertEqual((record["ok"], record["error"], record["rows"]), (False, "not done after 5 s", [{"rows": 1, "more": 2}]))
        child = int(record["log"][0])
        if not self.ends(child, within=10):
            os.kill(child, signal.SIGKILL)
            self.fail("a process of the part still runs")

    @staticmethod
    def ends(pid, within):
        try:
            process = os.pidfd_open(pid)
        except ProcessLookupError:
            return True
        try:
            return bool(select.select([process], [], [], within)[0])
        finally:
            os.close(process)

    def test_a_part_that_cannot_start_is_recorded(self):
        record = parts.run(parts.Part("absent", "t", 60, ["/nonexistent"]), 100)
        self.assertFalse(record["ok"])
        self.assertIn("/nonexistent", record["error"])

    def test_a_part_without_time_does_not_run(self):
        record = parts.run(parts.Part("late", "t", 60, ["/nonexistent"]), 0.5)
        self.assertEqual((record["ok"], record["error"]), (False, "no time was left"))


if __name__ == "__main__":
    unittest.main(verbosity=2)
