"""Draws and traces encrypted at rest, with the real binaries: files of the store, keys that change, and keys that are missing."""
import contextlib
import glob
import os
import sqlite3
import struct
import unittest

import extent_test
import fleet as fleets
import started_fleet

FIRST, SECOND, VISION = (f"{name} {digit * 64}" for name, digit in (("first", "1"), ("second", "2"), ("eyes", "3")))
ADMIN, TENANT = "The-token-of-an-administrator", "The-token-of-tenant-vision"


class Encryption(unittest.TestCase):
    def setUp(self):
        self.fleet = started_fleet.StartedFleet(environment={"CHAINFLEET_TOKEN": ADMIN})
        self.addCleanup(self.fleet.close)
        with open(self.fleet.path("tokens"), "w") as file:
            file.write(f"{ADMIN} admin\n{TENANT} vision\n{'w' * 32} worker\n")

    def serve(self, *keys, flags=()):
        with open(self.fleet.path("keys"), "w") as file:
            file.write("\n".join(keys))
        flags = ("--draw-keys", self.fleet.path("keys"), *flags) if keys else flags
        self.fleet.start_server(0, *flags, environment={"CHAINFLEET_TOKEN_FILE": self.fleet.path("tokens"), "CHAINFLEET_TOKEN": ""})
        self.fleet.wait_until_served()

    def stored(self, job, kind="*", folder="data"):
        """The first bytes of the objects of a job's chains."""
        found = {}
        for path in glob.glob(self.fleet.path(folder, "blobs", "*", job, "*", kind, "e*")):
            with open(path, "rb") as file:
                found[path] = file.read(256)
        return found

    def findings(self, job):
        """The stored bytes of a job's diagnostics and traces, by part."""
        with contextlib.closing(sqlite3.connect(f"file:{self.fleet.path('data', 'state.db')}?mode=ro", uri=True)) as database:
            return dict(database.execute("SELECT part, body FROM findings WHERE job = ? AND length(body) > 0", (job,)))

    def traced(self, job, **options):
        """The traced values of theta[0], and whether a file of the server has two of them in a row in clear."""
        values = [chain["values"] for chain in self.fleet.json("get", "traces", job, "--quantity", "theta[0]", **options)["traces"][0]["chains"]]
        files = []
        for path in glob.glob(self.fleet.path("data", "**"), recursive=True):
            if os.path.isfile(path):
                with open(path, "rb") as file:
                    files.append(file.read())
        return values, any(struct.pack("<2d", *chain[:2]) in file for chain in values for file in files)

    def export(self, job, **options):
        """The bytes of every exported file, by its name."""
        folder = self.fleet.path(f"export-{len(os.listdir(self.fleet.path()))}")
        done = self.fleet.run("export", job, "--output", folder, "--format", "safetensors", **options)
        files = {}
        for path in glob.glob(os.path.join(folder, "**", "*"), recursive=True):
            if os.path.isfile(path):
                with open(path, "rb") as file:
                    files[os.path.relpath(path, folder)] = file.read()
        return done, files

    def test_draws_are_encrypted_under_keys_that_change(self):
        self.serve()
        self.fleet.start_worker(0, environment={"CHAINFLEET_TOKEN": "", "CHAINFLEET_WORKER_TOKEN": "w" * 32})
        clear = self.fleet.submit(fleets.walk() + "seed: 3\n")
        self.fleet.run("wait", clear, "--timeout", "60s", check=True)
        self.serve(FIRST, VISION + " vision")
        job = self.fleet.submit(fleets.walk() + "seed: 3\n")
        self.fleet.run("wait", job, "--timeout", "60s", check=True)
        self.fleet.environment["CHAINFLEET_TOKEN"] = TENANT
        vision = self.fleet.submit(fleets.walk())
        self.fleet.run("wait", vision, "--timeout", "60s", check=True)
        self.fleet.environment["CHAINFLEET_TOKEN"] = ADMIN
        for owner, key in ((job, b"first"), (vision, b"eyes")):
            heads = self.stored(owner)
            self.assertGreater(len(heads), 1)
            for path, head in heads.items():
                self.assertEqual((head[:8], head[8:72].rstrip(b"\0")), (b"CFCRYPT1", key), path)
        self.assertFalse([path for path, head in self.stored(clear).items() if head.startswith(b"CFCRYPT1")])
        values, in_clear = self.traced(clear)
        self.assertTrue(values and in_clear, "there were no keys")
        self.assertEqual(self.traced(job)[0], values, "the same seed")
        self.assertFalse(self.traced(vision, env={"CHAINFLEET_TOKEN": TENANT})[1])
        for owner, key in ((job, b"CFCRYPT1first"), (vision, b"CFCRYPT1eyes")):
            parts = self.findings(owner)
            self.assertLessEqual({"summary", "traces of theta[0]"}, set(parts))
            self.assertEqual({body[:72].rstrip(b"\0") for body in parts.values()}, {key})
        self.assertTrue(self.fleet.json("describe", job)["diagnostics"])
        done, files = self.export(job, check=True)
        self.assertTrue(files)
        done, same = self.export(clear, check=True)
        self.assertEqual(*([file[8 + int.from_bytes(file[:8], "little"):] for name, file in sorted(export.items()) if name.endswith(".safetensors")]
                           for export in (files, same)), "the tensors, after the headers")
        self.assertIn("every segment has the digest", self.fleet.run("verify", job, check=True).stdout)

        self.fleet.kill("server-0")
        self.serve()  # without keys: nothing is taken for damaged
        refused, _ = self.export(job)
        self.assertEqual(refused.returncode, 1, refused)
        self.assertIn("is encrypted under the key first", refused.stderr)
        refused = self.fleet.run("get", "traces", job, "--quantity", "theta[0]")
        self.assertEqual(refused.returncode, 1, refused)
        self.assertIn("is encrypted under the key first", refused.stderr)
        self.assertFalse(self.fleet.json("describe", job).get("diagnostics"), "the job is shown without them")
        self.assertIn("diagnostics and traces of a job cannot be stored or read", self.fleet.logged()["server-0.log"])
        self.fleet.kill("server-0")
        self.serve(SECOND, FIRST, VISION + " vision", flags=["--renew-draws"])
        self.fleet.kill("server-0")
        self.serve(SECOND, VISION + " vision")
        for each in (job, clear):
            self.assertTrue(all(head[:72].rstrip(b"\0") == b"CFCRYPT1second" for head in self.stored(each).values()))
            self.assertEqual(self.export(each, check=True)[1], files if each == job else same)
            self.assertEqual({body[:72].rstrip(b"\0") for body in self.findings(each).values()}, {b"CFCRYPT1second"})
            self.assertEqual(self.traced(each)[0], values)
        self.assertIn(b"eyes", [*self.stored(vision).values()][0])
        self.fleet.run("backup", self.fleet.path("backup"), check=True)
        self.fleet.run("restore", self.fleet.path("backup"), "--offline", "--data-dir", self.fleet.path("restored"), env={"CHAINFLEET_DRAW_KEYS": self.fleet.path("keys")}, check=True)
        heads = self.stored(job, folder="restored")
        self.assertTrue(heads and all(head[:136].replace(b"\0", b"") == b"CFCRYPT1second" for head in heads.values()), "no tenant was known")
        self.assertNotIn("1" * 64, "".join(self.fleet.logged().values()))

    def test_a_chain_goes_on_from_an_encrypted_resume_point(self):
        self.serve(FIRST)
        worker = {"CHAINFLEET_TOKEN": "", "CHAINFLEET_WORKER_TOKEN": "w" * 32}
        self.fleet.start_worker(0, environment=worker)
        job = self.fleet.submit(fleets.walk(20_000).replace("dimension: 3", "dimension: 20000"))  # too large for the commit itself
        self.fleet.wait_for_draws(job, 10)
        self.fleet.kill("worker-0")
        self.fleet.kill("server-0")
        self.assertTrue(self.stored(job, "resume"))
        self.serve(FIRST)
        self.fleet.start_worker(1, environment=worker)
        self.fleet.run("wait", job, "--timeout", "120s", check=True)
        self.assertGreater(min(int(chain["lease_epoch"]) for chain in self.fleet.json("describe", job)["chains"]), 1)

    def test_a_small_resume_point_is_not_in_the_database(self):
        def inline():
            with contextlib.closing(sqlite3.connect(f"file:{self.fleet.path('data', 'state.db')}?mode=ro", uri=True)) as database:
                return [bytes(row[0] or b"") for row in database.execute("SELECT bytes FROM resume_points")]

        worker = {"CHAINFLEET_TOKEN": "", "CHAINFLEET_WORKER_TOKEN": "w" * 32}
        self.serve()
        self.fleet.start_worker(0, environment=worker)
        self.fleet.run("wait", self.fleet.submit(fleets.walk()), "--timeout", "60s", check=True)
        before = len(inline())
        self.assertTrue(before and all(inline()), "without keys they are in the commit")
        self.fleet.kill("server-0")
        self.serve(flags=["--draw-keys-command", f"echo '{FIRST}'"])
        job = self.fleet.submit(fleets.walk(20_000).replace("dimension: 3", "dimension: 7000"))
        self.fleet.wait_for_draws(job, 10)
        self.fleet.kill("worker-0")
        after = inline()
        self.assertGreater(len(after), before)
        self.assertEqual(sum(map(bool, after)), before)
        self.assertTrue(self.stored(job, "resume"))
        self.fleet.start_worker(1, environment=worker)
        self.fleet.run("wait", job, "--timeout", "120s", check=True)
        self.assertGreater(max(int(chain["lease_epoch"]) for chain in self.fleet.json("describe", job)["chains"]), 1)

    def test_a_killed_server_goes_on_with_encrypted_traces(self):
        self.serve(FIRST)
        self.fleet.start_worker(0, environment={"CHAINFLEET_TOKEN": "", "CHAINFLEET_WORKER_TOKEN": "w" * 32})
        job = self.fleet.submit(extent_test.FOUR_CHAINS)
        next(state for state in self.fleet.watch(job) if len(self.findings(job).get("traces while running", b"")) > 40_000)
        self.fleet.kill("worker-0")
        self.fleet.kill("server-0")
        self.assertTrue(self.findings(job)["traces while running"].startswith(b"CFCRYPT1first"))
        self.serve(SECOND, FIRST)
        extent_test.check_diagnostics(self, self.fleet, job, by=0)

    def test_a_new_key_encrypts_without_a_restart(self):
        self.serve(FIRST)
        self.fleet.start_worker(0, environment={"CHAINFLEET_TOKEN": "", "CHAINFLEET_WORKER_TOKEN": "w" * 32})
        old = self.fleet.submit(fleets.walk())
        self.fleet.run("wait", old, "--timeout", "60s", check=True)
        with open(self.fleet.path("keys.new"), "w") as file:
            file.write(f"{SECOND}\n{FIRST}\n")
        os.replace(self.fleet.path("keys.new"), self.fleet.path("keys"))
        for _ in range(20):  # the server takes the file after two readings, one a second
            job = self.fleet.submit(fleets.walk())
            self.fleet.run("wait", job, "--timeout", "60s", check=True)
            keys = {head[8:72].rstrip(b"\0") for head in self.stored(job).values()}
            if keys == {b"second"}:
                break
        self.assertEqual(keys, {b"second"})
        self.assertEqual({head[8:72].rstrip(b"\0") for head in self.stored(old).values()}, {b"first"})
        for each in (old, job):
            self.export(each, check=True)

    def test_wrong_keys_stop_the_start(self):
        for keys, said in (("first 12", "line 1 of the keys of draws"), ("", "gives no key")):
            with open(self.fleet.path("keys"), "w") as file:
                file.write(keys)
            self.fleet.start("wrong", "chainfleet-server", "--data-dir", self.fleet.path("other"), "--draw-keys", self.fleet.path("keys"))
            self.assertEqual(self.fleet.processes["wrong"].wait(30), 1)
            with open(self.fleet.path("run", "wrong.log")) as file:
                self.assertIn(said, file.read())
        self.fleet.start("wrong", "chainfleet-server", "--data-dir", self.fleet.path("other"), "--draw-keys-command", "exit 3")
        self.assertEqual(self.fleet.processes["wrong"].wait(30), 1)


if __name__ == "__main__":
    unittest.main()
