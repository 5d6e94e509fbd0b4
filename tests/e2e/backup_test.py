"""`chainfleet backup` of a fleet at work, and `chainfleet restore` into empty stores of the same or the other engine."""
import json
import os
import resource
import shutil
import signal
import subprocess
import tempfile
import unittest
import zipfile

import fleet as fleets
import with_postgres
import with_s3

# Resume points of this dimension are objects.
JOB = """
name: first
model: {potential: {gaussian: {dimension: 20000}}}
sampler: {sgld: {}}
step_size: {constant: 0.1}
num_steps: 2500
chains: 2
collect: {every_steps: 250, segment_draws: 5}
resume_point_every_steps: 1250
seed: 7
"""
# Runs while the backup is made.
LONG = JOB.replace("name: first", "name: long").replace("num_steps: 2500", "num_steps: 50000")
# Has a data set, and answers predictions.
NETWORK = """
name: network
model: {builtin: mlp, hidden: [32]}
dataset: {name: fashion}
prior: {gaussian: {precision: 1}}
sampler: {sgld: {}}
step_size: {constant: 1.0e-5}
batch_size: 50
num_steps: 100
chains: 2
collect: {every_steps: 10}
seed: 7
"""


class OnEachEngine(unittest.TestCase):
    def setUp(self):
        self.fleet = self.make_fleet(self.state())
        self.fleet.up()
        self.folder = os.path.join(tempfile.mkdtemp(prefix="chainfleet-backup-"), "backup")
        self.addCleanup(shutil.rmtree, os.path.dirname(self.folder))

    def make_fleet(self, state):
        made = fleets.Fleet(workers=1, environment={"CHAINFLEET_STATE": state, **self.blobs()})
        self.addCleanup(made.close)
        return made

    def state(self):
        return "sqlite"

    def blobs(self):
        """The environment that says where the objects of a new fleet are."""
        return {}

    def other_states(self):
        """Engines to restore into."""
        return ["sqlite"]

    def lose(self, name):
        """Removes an object of the fleet."""
        os.remove(self.fleet.path("blobs", name))

    def lose_everything(self):
        shutil.rmtree(self.fleet.folder)

    def backup(self, *flags, **options):
        return self.fleet.run("backup", self.folder, *flags, **options)

    def manifest(self):
        with open(os.path.join(self.folder, "manifest.json")) as f:
            return json.load(f)

    def objects(self):
        """Paths of the objects in the backup."""
        return sorted(os.path.join(folder, name) for folder, _, names in os.walk(os.path.join(self.folder, "objects")) for name in names)

    def draws(self, fleet, job):
        """The bytes of each array of draws."""
        path = fleet.path(job + ".npz")
        fleet.run("export", job, "--format", "npz", "--output", path, check=True)
        with zipfile.ZipFile(path) as arrays:
            return {name: arrays.read(name) for name in arrays.namelist()}

    def restore(self, fleet, **options):
        return fleet.run("restore", self.folder, "--offline", "--data-dir", fleet.folder, **options)

    def test_a_fleet_at_work_is_backed_up_and_restored(self):
        self.fleet.put_fashion("fashion", 100)
        first = self.fleet.submit(NETWORK)
        self.fleet.run("wait", first, check=True)
        long = self.fleet.submit(LONG)
        self.fleet.wait_for_draws(long, 20)
        self.assertIn("of them new", self.backup(check=True).stdout)
        self.assertEqual(os.stat(self.folder).st_mode & 0o777, 0o700)
        known = set(self.objects())
        self.fleet.wait_for_draws(long, 60)
        made = self.fleet.json("backup", self.folder)
        self.assertEqual(self.fleet.json("backup", self.folder, "--verify"), made)
        self.assertEqual((int(made["objects"]), made["state"]["name"]), (len(self.objects()), self.manifest()["state"]["file"]))
        self.assertTrue(known & set(self.objects()), "the second backup keeps what the first one has")
        self.assertIn("is whole", self.backup("--verify", check=True).stdout)
        rows, authority = (os.path.join(os.path.dirname(self.folder), name) for name in ("rows-idx3-ubyte.gz", "ca.crt"))
        shutil.copy(self.fleet.path("fashion-images-idx3-ubyte.gz"), rows)
        shutil.copy(self.fleet.path("authority", "ca.crt"), authority)
        draws, predicted = self.draws(self.fleet, first), self.fleet.json("predict", first, "--input", rows)
        self.assertEqual(predicted["draws_used"], "20")
        self.fleet.run("wait", long, "--timeout", "240s", check=True)  # the server served all the time
        self.fleet.run("down", "--data-dir", self.fleet.folder, check=True)
        self.lose_everything()

        for state in self.other_states():
            restored = self.make_fleet(state)
            self.restore(restored, check=True)
            self.assertEqual(self.restore(restored).returncode, 1, "its stores are not empty now")
            restored.up()
            self.assertTrue(self.draws(restored, first) == draws)
            self.assertEqual(restored.json("predict", first, "--input", rows), predicted)
            restored.run("verify", first, "--authority", authority, check=True)
            restored.run("wait", long, "--timeout", "240s", check=True)
            self.assertEqual(sum(len(r["segment"]["steps"]) for r in restored.json("get", "draws", long)["segments"]), 400)
            made_here = restored.path("authority", "ca.crt")
            self.assertIn("another authority", restored.run("verify", long, "--authority", authority).stderr, "it went on here")
            restored.run("verify", long, "--authority", authority, "--authority", made_here, check=True)
            restored.run("down", "--data-dir", restored.folder, check=True)

    def test_a_running_server_takes_a_backup(self):
        job = self.fleet.submit(JOB)
        self.fleet.run("wait", job, check=True)
        long = self.fleet.submit(LONG)
        self.fleet.wait_for_draws(long, 20)
        self.backup(check=True)
        draws = self.draws(self.fleet, job)
        self.fleet.run("down", "--data-dir", self.fleet.folder, check=True)
        for state in self.other_states()[-1:]:
            running = self.make_fleet(state)
            running.up()
            server, address = running.pid("server"), running.address
            before = running.json("whoami")
            damaged = self.objects()[0]
            os.rename(damaged, damaged + ".away")
            with open(damaged, "wb") as f:
                f.write(b"other bytes")
            self.assertEqual(running.run("restore", self.folder).returncode, 6)
            os.rename(damaged + ".away", damaged)
            self.assertEqual(running.json("whoami"), before, "it serves on")
            self.assertIn("restored: the server has the backup of", running.run("restore", self.folder, check=True).stdout)
            self.assertEqual((running.pid("server"), running.address), (server, address))
            os.kill(server, 0)
            self.assertTrue(self.draws(running, job) == draws)
            running.run("wait", long, "--timeout", "240s", check=True)  # the worker came back by itself
            self.assertEqual(sum(len(r["segment"]["steps"]) for r in running.json("get", "draws", long)["segments"]), 400)
            again = running.run("restore", self.folder)
            self.assertEqual((again.returncode, "the store is not empty" in again.stderr), (1, True), again.stderr)
            self.assertFalse(os.path.exists(running.path("restore")) or os.path.exists(running.path("state.db.restored")))
            running.run("down", "--data-dir", running.folder, check=True)

    def leave_unfilled(self, fleet):
        """Leaves what a restore leaves that is killed before its state is filled."""
        shutil.copy(os.path.join(self.folder, self.manifest()["state"]["file"]), fleet.path("state.db.restored"))
        open(fleet.path("restoring"), "w").close()

    def test_a_start_fills_the_state_of_a_restore_that_was_killed_before(self):
        job = self.fleet.submit(JOB)
        self.fleet.run("wait", job, check=True)
        self.backup(check=True)
        draws, state = self.draws(self.fleet, job), self.state()
        killed = self.make_fleet(state)
        killed.run("restore", self.folder, "--offline", "--data-dir", killed.folder, "--state", "sqlite", check=True)
        for name in os.listdir(killed.folder):  # keep the objects only
            if name.startswith("state.db"):
                os.remove(killed.path(name))
        self.leave_unfilled(killed)
        killed.up()
        self.assertTrue(self.draws(killed, job) == draws)
        self.assertIn("the store is restored", killed.logs())
        if state != "sqlite":  # killed after the state was committed
            killed.run("down", "--data-dir", killed.folder, check=True)
            subprocess.run(["psql", "-q", state, "-c", "UPDATE store SET objects_id = 'backup'"], check=True)  # not opened yet
            self.leave_unfilled(killed)
            killed.up()
            self.assertTrue(self.draws(killed, job) == draws)
        self.assertFalse(os.path.exists(killed.path("restoring")) or os.path.exists(killed.path("state.db.restored")))

    def test_an_object_that_the_server_lost_is_named_and_left_out(self):
        job = self.fleet.submit(JOB)
        self.fleet.run("wait", job, check=True)
        lost = self.fleet.json("get", "draws", job)["segments"][0]["segment"]["object"]["name"]
        self.lose(lost)
        done = self.backup()
        self.assertEqual((done.returncode, lost in done.stderr), (6, True), done.stderr)
        self.backup("--verify", check=True)


class Backup(OnEachEngine):
    def test_a_start_goes_on_with_a_restore_that_was_interrupted(self):
        job = self.fleet.submit(JOB)
        self.fleet.run("wait", job, check=True)
        self.backup(check=True)
        killed = self.make_fleet("sqlite")  # after its state was filled, before it was opened
        shutil.copy(os.path.join(self.folder, self.manifest()["state"]["file"]), killed.path("state.db"))
        shutil.copytree(os.path.join(self.folder, "objects"), killed.path("blobs"))
        self.assertIn("the folder of a backup", killed.run("up", "--data-dir", killed.folder).stderr + killed.logs())
        open(killed.path("restoring"), "w").close()
        killed.up()
        self.assertTrue(self.draws(killed, job) == self.draws(self.fleet, job))
        self.assertIn("the store is restored", killed.logs())
        self.assertFalse(os.path.exists(killed.path("restoring")))

    def test_a_killed_backup_goes_on(self):
        self.fleet.put_noise("a", 100)
        self.backup(check=True)
        self.fleet.put_noise("b", 4000)  # beyond the limit

        def limited():
            resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 20, 1 << 20))
            resource.setrlimit(resource.RLIMIT_CORE, (0, 0))

        killed = subprocess.run([os.path.join(fleets.BIN, "chainfleet"), "backup", self.folder], preexec_fn=limited, capture_output=True,
                                env={**os.environ, "CHAINFLEET_ADDRESS": self.fleet.address})
        self.assertEqual(killed.returncode, -signal.SIGXFSZ, killed.stderr)
        self.backup("--verify", check=True)  # the backup before is still there
        complete = [path for path in self.objects() if not path.endswith(".partial")]
        said = self.backup(check=True).stdout
        total = self.manifest()["objects"]
        self.assertIn(f"backup of {total} objects", said)
        self.assertIn(f", {total - len(complete)} of them new", said)
        self.assertEqual(len(self.objects()), total, "nothing unfinished is left")
        self.backup("--verify", check=True)

    def test_a_folder_without_a_finished_backup_is_none(self):
        os.makedirs(self.folder)
        for done in (self.backup("--verify"), self.restore(self.make_fleet(self.state()))):
            self.assertEqual((done.returncode, "no finished backup" in done.stderr), (1, True), done.stderr)

    def test_a_damaged_backup_is_refused(self):
        job = self.fleet.submit(JOB)
        self.fleet.run("wait", job, check=True)
        self.backup(check=True)
        target = self.make_fleet(self.other_states()[-1])
        state = os.path.join(self.folder, self.manifest()["state"]["file"])
        for path, damage in ((self.objects()[0], "truncated"), (self.objects()[-1], "changed"), (state, "changed")):
            with open(path, "rb") as f:
                content = f.read()
            with open(path, "wb") as f:
                f.write(content[:-1] if damage == "truncated" else content[:-1] + bytes([content[-1] ^ 1]))
            for done, status in ((self.backup("--verify"), 6), (self.restore(target), 1)):  # the server restores
                self.assertEqual(done.returncode, status, done.stdout)
                self.assertIn(path, done.stderr)
                self.assertIn("it had" if damage == "truncated" else "was changed", done.stderr)
            with open(path, "wb") as f:
                f.write(content)
        self.restore(target, check=True)

    def test_only_admins_may(self):
        self.fleet.run("down", "--data-dir", self.fleet.folder, check=True)
        tokens = {"admin": "a" * 40, "operator": "b" * 40}
        self.fleet.environment["CHAINFLEET_TOKEN"] = f"{tokens['admin']} default admin\n{tokens['operator']} default operator"
        server = subprocess.Popen([os.path.join(fleets.BIN, "chainfleet-server"), "--data-dir", self.fleet.folder, "--listen", self.fleet.address,
                                   "--metrics-listen", "off", "--http-listen", "off"], stderr=subprocess.DEVNULL,
                                  env={**os.environ, **self.fleet.environment})
        self.addCleanup(server.wait)
        self.addCleanup(server.terminate)
        refused = self.backup(env={"CHAINFLEET_TOKEN": tokens["operator"]})
        self.assertEqual((refused.returncode, "it needs a token of an admin of the fleet" in refused.stderr), (4, True), refused.stderr)
        self.backup(env={"CHAINFLEET_TOKEN": tokens["admin"]}, check=True)
        audit = self.fleet.run("audit", "--raw", env={"CHAINFLEET_TOKEN": tokens["admin"]}, check=True).stdout
        self.assertEqual(sum("AccessService/Backup" in line for line in audit.splitlines()), 2)
        for folder, _, names in os.walk(self.folder):
            for name in names:
                with open(os.path.join(folder, name), "rb") as f:
                    self.assertNotIn(tokens["admin"].encode(), f.read())


class BackupOnPostgres(OnEachEngine):
    def setUp(self):
        self.databases = 0
        self.start_engines()
        super().setUp()

    def start_engines(self):
        """New, empty ones."""
        self.postgres = self.started(with_postgres.Postgres())

    def started(self, engine):
        self.addCleanup(lambda: os.path.exists(engine.folder) and engine.close())
        engine.start()
        return engine

    def state(self):
        """An empty database."""
        self.databases += 1
        subprocess.run(["psql", "-q", self.postgres.uri + "/postgres", "-c", f"CREATE DATABASE db{self.databases}"], check=True)
        return f"{self.postgres.uri}/db{self.databases}"

    def other_states(self):
        return ["sqlite", self.state()]

    def lose_everything(self):
        super().lose_everything()
        self.postgres.close()
        self.start_engines()


class BackupInS3(BackupOnPostgres):
    """State in PostgreSQL, objects in S3: nothing is in the data directory."""

    def start_engines(self):
        super().start_engines()
        self.s3 = self.started(with_s3.S3Server())

    def blobs(self):
        self.prefix = f"fleet{self.databases}"
        return {**self.s3.environment, "CHAINFLEET_BLOBS": f"s3://{with_s3.BUCKET}/{self.prefix}"}

    def other_states(self):
        return [self.state()]

    def lose(self, name):
        self.assertEqual(self.s3.status_of("DELETE", f"/{self.prefix}/{name}"), 204)

    def lose_everything(self):
        self.assertFalse(os.path.exists(self.fleet.path("blobs")), "objects went into the data directory")
        self.s3.close()
        super().lose_everything()
