"""A fleet whose state and objects were put back from a backup that is older than what its workers have done since."""
import json
import os
import shutil
import signal
import sqlite3
import subprocess
import unittest

import fleet as fleets
import with_postgres
import with_s3

# Resume points of this dimension are objects.
JOB = """
name: restored
model: {potential: {gaussian: {dimension: 20000}}}
sampler: {sgld: {}}
step_size: {constant: 0.1}
num_steps: 50000
chains: 2
collect: {every_steps: 250, segment_draws: 5}
resume_point_every_steps: 1250
seed: 7
"""
# Submitted after the backup.
LATER = JOB.replace("name: restored", "name: later").replace("num_steps: 50000", "num_steps: 2500").replace("chains: 2", "chains: 3")
ASKED_AT_MOST = 50


class Restored(unittest.TestCase):
    def setUp(self):
        self.fleet = fleets.Fleet(workers=1)
        self.addCleanup(self.fleet.close)
        self.fleet.up()

    def back_up(self):
        """State first, objects second, while everything runs."""
        source, copy = sqlite3.connect(self.fleet.path("state.db")), sqlite3.connect(self.fleet.path("state.copy"))
        source.backup(copy)
        source.close()
        copy.close()
        shutil.copytree(self.fleet.path("blobs"), self.fleet.path("blobs.copy"), ignore=shutil.ignore_patterns(".tmp"))

    def put_back(self):
        shutil.rmtree(self.fleet.path("blobs"))
        shutil.copytree(self.fleet.path("blobs.copy"), self.fleet.path("blobs"))
        for suffix in ("-wal", "-shm"):
            if os.path.exists(self.fleet.path("state.db" + suffix)):
                os.remove(self.fleet.path("state.db" + suffix))
        shutil.copy(self.fleet.path("state.copy"), self.fleet.path("state.db"))

    def write_after_the_backup(self):
        """Nothing that is still there when the backup was put back."""

    def check_garbage(self, stock):
        self.assertEqual(stock["garbage"], 0)

    def lose(self, name):
        os.remove(self.fleet.path("blobs", name))

    def start(self, *flags):
        log = open(self.fleet.path("run", "restored.log"), "w")
        self.addCleanup(log.close)
        server = None
        for _ in range(ASKED_AT_MOST):
            if server is None or server.poll() is not None:  # a database knows the leader that was killed for some seconds more
                server = subprocess.Popen([os.path.join(fleets.BIN, "chainfleet-server"), "--data-dir", self.fleet.folder, "--listen",
                                           self.fleet.address, "--metrics-listen", "off", "--http-listen", "off", "--lease", "2s", *flags], stderr=log,
                                          stdout=log, env={**os.environ, **self.fleet.environment})
                self.addCleanup(server.wait)
                self.addCleanup(server.send_signal, signal.SIGTERM)
            if self.fleet.run("get", "jobs", "--timeout", "3s").returncode == 0:
                return server
        self.fail(self.fleet.logs())

    def live_and_lose_it(self, job, draws):
        """The backup put back, from which `draws` and more are made by coordinators that began twice, all in vain."""
        self.put_back()
        for flags in (["--restored"], []):
            server = self.start(*flags)
            self.fleet.wait_for_draws(job, draws)
            server.kill()
            server.wait()

    def test_a_restored_fleet_goes_on_from_its_backup(self):
        job = self.fleet.submit(JOB)
        self.fleet.wait_for_draws(job, 20)
        self.back_up()
        in_backup = [record["segment"] for record in self.fleet.json("get", "draws", job)["segments"]]
        more = 10 + sum(len(segment["steps"]) for segment in in_backup)
        self.fleet.wait_for_draws(job, more)
        self.write_after_the_backup()
        self.fleet.kill("server")
        self.live_and_lose_it(job, more)  # the worker stays
        self.put_back()
        self.lose(in_backup[0]["object"]["name"])

        self.start("--restored")
        self.fleet.run("wait", job, "--timeout", "240s", check=True)
        chains = {}
        for record in self.fleet.json("get", "draws", job)["segments"]:
            chains.setdefault(int(record["chain"].get("index", 0)), []).append(record)
        for records in chains.values():
            index, parent = 0, "0" * 64
            for record in records:
                self.assertEqual((int(record["segment"].get("first_index", 0)), record["segment"]["parent_digest"]), (index, parent))
                index, parent = index + len(record["segment"]["steps"]), record["segment"]["digest"]
            self.assertEqual(index, 200)
            self.assertGreater(int(records[-1]["lease_epoch"]), 1 << 20)
        records = sum(chains.values(), [])
        self.assertEqual([r["segment"]["object"]["name"] for r in records if r.get("corrupt")], [in_backup[0]["object"]["name"]])
        names = {r["segment"]["object"]["name"].split("/")[0] for r in records}
        self.assertEqual(len(names), 2, "objects of before keep their names, later ones have those of the new incarnation")
        said = [json.loads(line) for line in self.fleet.logged()["restored.log"].splitlines() if line.startswith("{")]
        missing = [line for line in said if line["message"] == "object of a chain missing"]
        self.assertIn(in_backup[0]["object"]["name"], [line["object"] for line in missing])
        for line in missing:
            self.assertEqual((line["job"], line["chain"] in (0, 1), line["lease_epoch"] > 0), (job, True, True))
        self.check_garbage(next(line for line in said if line["message"].startswith("the store is restored")))
        exported = self.fleet.run("export", job, "--format", "npz", "--output", self.fleet.path("draws.npz"), check=True)
        self.assertIn("left out", exported.stderr)


class RestoredOnEngines(Restored):
    """The database alone is put back: the bucket has what was written since, too."""

    def setUp(self):
        self.postgres, self.s3 = with_postgres.Postgres(), with_s3.S3Server()
        for engine in (self.postgres, self.s3):
            self.addCleanup(engine.close)
            engine.start()
        self.state = self.postgres.uri + "/postgres"
        self.fleet = fleets.Fleet(workers=1, environment={**self.s3.environment, "CHAINFLEET_STATE": self.state,
                                                          "CHAINFLEET_BLOBS": f"s3://{with_s3.BUCKET}/fleet"})
        self.addCleanup(self.fleet.close)
        self.fleet.up()

    def back_up(self):
        subprocess.run(["pg_dump", "--clean", "--if-exists", "--file", self.fleet.path("state.sql"), self.state], check=True)

    def put_back(self):
        subprocess.run(["psql", "--quiet", "--set", "ON_ERROR_STOP=1", "--file", self.fleet.path("state.sql"), self.state], check=True,
                       stdout=subprocess.DEVNULL)

    def write_after_the_backup(self):
        self.fleet.run("wait", self.fleet.submit(LATER), "--timeout", "240s", check=True)
        self.fleet.put_noise("later", 8)

    def check_garbage(self, stock):
        self.assertGreaterEqual(stock["swept_chains"], 3, "of the job that the backup does not know, besides those that went on")
        self.assertGreaterEqual(stock["garbage"], 1)

    def lose(self, name):
        self.assertEqual(self.s3.status_of("DELETE", f"/fleet/{name}"), 204)


if __name__ == "__main__":
    unittest.main(verbosity=2)
