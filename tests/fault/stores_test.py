"""Faults of the stores: databases and object stores that die under load, full disks, flipped bits, two servers."""
import contextlib
import os
import sqlite3
import subprocess
import unittest

import with_s3
from fleet import BIN
from struck_fleet import EMCMC, SGLD, FaultTest, fill, mounted_disk
from with_postgres import Postgres

UNAVAILABLE = 5


def flip_a_bit(path):
    """Returns the bytes that were there."""
    with open(path, "r+b") as f:
        right = f.read()
        f.seek(-1, os.SEEK_END)
        f.write(bytes([right[-1] ^ 1]))
    return right


class KilledStores(FaultTest):
    def test_a_killed_database_loses_nothing(self):
        postgres = Postgres()
        self.addCleanup(postgres.close)
        postgres.start()
        fleet = self.start(environment={"CHAINFLEET_STATE": postgres.uri + "/postgres"})
        job = fleet.submit(EMCMC.format(epochs=240, keep=6, seed=4))
        fleet.wait_for_draws(job, 8)
        fleet.remember(job)
        postgres.kill()
        self.assertNotEqual(fleet.processes["server-0"].wait(30), 0, "a server without its store ends")
        fleet.start_server()
        self.assertNotEqual(fleet.processes["server-0"].wait(30), 0)
        self.assertIn("PostgreSQL", fleet.log_of("server-0"))
        postgres.start()
        fleet.start_server()
        fleet.wait_until_served()
        fleet.finish(job)
        self.judge()

    def test_a_killed_object_store_loses_nothing(self):
        s3 = with_s3.S3Server()
        self.addCleanup(s3.close)
        s3.start()
        fleet = self.start(environment={**s3.environment, "CHAINFLEET_BLOBS": f"s3://{with_s3.BUCKET}/fleet"})
        job = fleet.submit(EMCMC.format(epochs=240, keep=6, seed=5))
        fleet.wait_for_draws(job, 8)
        fleet.remember(job)
        s3.kill()
        gone = fleet.run("export", job, "--format", "npz", "--output", fleet.path("gone.npz"), "--timeout", "10s")
        self.assertEqual(gone.returncode, UNAVAILABLE, gone.stderr)
        self.assertIn(f"S3 at http://{s3.address} did not answer", gone.stderr)
        self.assertNotIn(with_s3.ADMIN["AWS_SECRET_ACCESS_KEY"], gone.stderr + fleet.logs())
        self.assertEqual(fleet.json("get", "jobs", job)["state"], "RUNNING")
        s3.start()
        fleet.finish(job)
        self.judge()


class DamagedDraw(FaultTest):
    def test_a_flipped_bit_is_reported_and_its_draw_left_out(self):
        fleet = self.start(workers=1)
        job = fleet.submit(SGLD.format(epochs=20, seed=6))
        fleet.finish(job)
        segment = fleet.json("get", "draws", job)["segments"][0]["segment"]
        path = os.path.join(fleet.data(0), "blobs", segment["object"]["name"])
        right = flip_a_bit(path)
        whole = fleet.json("evaluate", job, "--dataset", "fashion")  # finds it, and answers from the others
        self.assertEqual(int(whole["draws_in_version"]) - int(whole["draws_used"]), len(segment["steps"]), whole)
        fleet.wait_for("the damage is counted", lambda: "\nchainfleet_corrupt_segments 1\n" in fleet.metrics())
        self.assertIn(segment["object"]["name"], fleet.log_of("server-0"))
        code, found = fleet.verdict()
        self.assertEqual((code, found.count("\n")), (1, 1), found)
        self.assertIn(f"{segment['object']['name']} has other bytes than its record says", found)
        with open(path, "wb") as f:
            f.write(right)
        self.judge()


class Judge(FaultTest):
    """It finds what is made wrong behind the back of a fleet that nothing happened to."""

    def setUp(self):
        fleet = self.start(workers=1)
        self.job = fleet.submit(SGLD.format(epochs=20, seed=6))
        fleet.finish(self.job)
        self.judge()

    def change_state(self, statement):
        with contextlib.closing(sqlite3.connect(os.path.join(self.fleet.data(0), "state.db"))) as database, database:
            self.assertGreater(database.execute(statement).rowcount, 0, statement)

    def test_draws_of_another_seed(self):
        self.change_state("""UPDATE jobs SET plan = replace(plan, '"seed":6', '"seed":7')""")
        code, found = self.fleet.verdict()
        self.assertEqual((code, found.count("is not the one of a calm run")), (1, 3), found)

    def test_a_draw_that_clients_saw_is_lost(self):
        self.change_state("DELETE FROM segments WHERE chain = 1 AND first_index = 0")
        code, found = self.fleet.verdict()
        self.assertEqual(code, 1)
        self.assertIn(f"chain {self.job}/1: draw 0 was acknowledged under lease epoch 1 and is lost", found)
        self.assertIn("nothing refers to", found)


class TwoServers(FaultTest):
    def test_a_second_server_on_one_data_directory_is_refused(self):
        fleet = self.start(workers=1)
        job = fleet.submit(EMCMC.format(epochs=80, keep=4, seed=7))
        fleet.wait_for_draws(job, 4)
        for _ in range(3):
            second = subprocess.run([os.path.join(BIN, "chainfleet-server"), "--data-dir", fleet.data(0), "--listen", "127.0.0.1:0",
                                     "--metrics-listen", "off", "--http-listen", "off"], capture_output=True, text=True, timeout=60)
            self.assertEqual(second.returncode, 1, second.stderr)
            self.assertIn("in use by another server", second.stderr)
        fleet.finish(job)
        self.judge()


class FullDisk(FaultTest):
    def setUp(self):
        folder = mounted_disk(self.addCleanup, "96m")
        if folder is None:
            self.skipTest("mounting a small tmpfs is not allowed here")
        self.start(workers=1, data_dir=folder)

    def test_a_disk_that_fills_up_amid_a_job_costs_no_draw(self):
        job = self.fleet.submit(EMCMC.format(epochs=240, keep=6, seed=8))
        self.fleet.wait_for_draws(job, 4)
        filler = fill(self.fleet.folder)
        before = self.fleet.json("get", "draws", job)["segments"]
        self.assertGreaterEqual(len(before), 1)
        refused = self.fleet.submit_status(SGLD.format(epochs=20, seed=8))
        self.assertEqual(refused.returncode, 1, refused.stdout + refused.stderr)
        self.assertRegex(refused.stderr.lower(), "disk|space")
        self.assertEqual(self.fleet.json("get", "draws", job)["segments"][:1], before[:1], "the server must answer, with all it had")
        os.remove(filler)
        self.fleet.finish(job)
        self.judge()

    def test_a_server_killed_on_a_full_disk_starts_on_it_and_answers(self):
        job = self.fleet.submit(EMCMC.format(epochs=240, keep=6, seed=8))
        self.fleet.wait_for_draws(job, 4)
        filler = fill(self.fleet.folder)
        before = self.fleet.json("get", "draws", job)["segments"]
        for _ in range(3):
            self.fleet.kill("server-0")
            self.fleet.start_server()
            self.fleet.wait_until_served()
            now = self.fleet.json("get", "draws", job)["segments"]
            self.assertEqual([segment for segment in before if segment not in now], [])
            fill(self.fleet.folder)  # also what the start has left
        os.remove(filler)
        self.fleet.finish(job)
        self.judge()


if __name__ == "__main__":
    unittest.main(verbosity=2)
