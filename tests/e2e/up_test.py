"""A second `up`: what runs stays, and options or a token that the running server does not have are refused."""
import os
import shutil
import subprocess
import unittest

import fleet as fleets

TOKEN, OTHER = "A-token-of-this-machines-user", "A-token-of-another-machine"


class Up(unittest.TestCase):
    def setUp(self):
        self.fleet = fleets.Fleet(workers=1)
        self.addCleanup(self.fleet.close)

    def up_again(self, *flags, **environment):
        return self.fleet.run("up", "--data-dir", self.fleet.folder, "--workers", "1", *flags, env=environment, timeout=40)

    def refused(self, words, *flags, **environment):
        done = self.up_again(*flags, **environment)
        self.assertEqual((done.returncode, words in done.stderr), (1, True), done.stderr)
        self.assertIn(f"chainfleet down --data-dir {self.fleet.folder}", done.stderr)

    def test_it_succeeds_with_the_same_options_and_without_them(self):
        self.fleet.up("--allow-modules")
        before = self.fleet.address, self.fleet.pid("server"), self.fleet.pid("worker-0")
        self.fleet.up("--allow-modules")
        self.assertEqual((self.fleet.address, self.fleet.pid("server"), self.fleet.pid("worker-0")), before)
        for flags in ([], ["--listen", self.fleet.address], ["--lease", "2s"], ["--http-listen", "127.0.0.1:0"]):
            done = self.up_again(*flags)
            self.assertEqual((done.returncode, done.stdout[:10]), (0, "already up"), done.stderr)

    def test_it_succeeds_after_the_server_was_lost(self):
        self.fleet.up()
        self.fleet.kill("server")
        self.fleet.up()  # on the old port
        self.fleet.up()

    def test_a_worker_that_ended_is_named_and_starts_again(self):
        self.fleet.up()
        self.fleet.kill("worker-0")
        sick = self.fleet.run("doctor", "--data-dir", self.fleet.folder)
        self.assertRegex(sick.stdout, r"worker-0 +ended +its log is \S+/worker-0\.log; `chainfleet up --data-dir \S+` starts it again")
        again = self.up_again()
        self.assertEqual((again.returncode, "worker-0 had ended and starts again" in again.stderr), (0, True), again.stderr)
        self.assertNotIn("worker-0.log", self.fleet.run("doctor", "--data-dir", self.fleet.folder).stdout)

    def test_only_workers_that_run_are_counted(self):
        self.fleet.workers = 2
        self.fleet.up()
        self.fleet.kill("worker-1")
        self.assertRegex(self.up_again().stdout, "^already up: server [^ ]+, 1 worker, ")

    def test_a_host_that_only_calls_servers_needs_no_other_programs(self):
        self.fleet.up()
        program = shutil.copy(os.path.join(fleets.BIN, "chainfleet"), self.fleet.path("chainfleet"))
        checks = [program, "doctor", "--address", self.fleet.address, "--data-dir"]
        healthy = subprocess.run([*checks, self.fleet.path("empty")], capture_output=True, text=True, timeout=60)
        self.assertRegex(healthy.stdout, r"programs +ok +chainfleet-server and chainfleet-worker are not installed here")
        self.assertEqual(healthy.returncode, 0, healthy.stdout)
        sick = subprocess.run([*checks, self.fleet.folder], capture_output=True, text=True, timeout=60)
        self.assertRegex(sick.stdout, "programs +FAILED +.*chainfleet-server is missing")

    def test_options_that_the_running_server_lacks_are_refused(self):
        self.fleet.up()
        self.refused("was started without --allow-modules: ", "--allow-modules")
        self.refused("was started with --lease 2s and without --insecure: ", "--lease", "30s", "--insecure")
        self.refused("was started with --http-listen 127.0.0.1:0: ", "--http-listen", "off")
        self.refused("was started with --listen 127.0.0.1:0: ", "--listen", "0.0.0.0:0")

    def test_a_token_is_refused_by_a_server_that_wants_none(self):
        self.fleet.up()
        self.refused("the running server takes calls without a token", CHAINFLEET_TOKEN=TOKEN)
        self.assertEqual(self.up_again(CHAINFLEET_TOKEN="").returncode, 0)

    def test_a_wrong_token_ends_it_at_once(self):
        self.fleet.environment = {"CHAINFLEET_TOKEN": TOKEN}
        self.fleet.up()
        self.assertEqual(self.up_again().returncode, 0)
        refused = self.up_again(CHAINFLEET_TOKEN=OTHER)
        self.assertEqual((refused.returncode, "does not know the token" in refused.stderr), (4, True), refused.stderr)


if __name__ == "__main__":
    unittest.main(verbosity=2)
