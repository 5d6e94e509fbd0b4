"""Two coordinators on one PostgreSQL: one leads, the other takes over when it dies or sleeps."""
import signal
import sys
import time
import unittest

from journeys_test import JOB, check_draws
import with_s3
from started_fleet import StartedFleet
from with_postgres import Postgres


class Failover(unittest.TestCase):
    def setUp(self):
        postgres = Postgres()
        self.addCleanup(postgres.close)
        postgres.start()
        self.fleet = StartedFleet(servers=2, environment={"CHAINFLEET_STATE": postgres.uri + "/postgres"})
        self.addCleanup(self.fleet.close)
        self.fleet.start_server(0)
        self.fleet.wait_until_served(by=0)
        for worker in range(2):
            self.fleet.start_worker(worker)
        self.fleet.put_fashion("fashion", 2000)

    def test_a_standby_takes_over_from_a_killed_leader(self):
        self.fleet.start_server(1)
        job = self.fleet.submit(JOB.format(name="failover", epochs=120, keep=10))
        refused = self.fleet.wait_until(1, lambda answer: self.fleet.addresses[0] in answer.stderr)
        self.assertEqual(refused.returncode, 5, refused.stderr)
        self.assertEqual([self.fleet.leads(0), self.fleet.leads(1)], [True, False])
        self.fleet.wait_for_draws(job, 8)
        self.fleet.kill("server-0")
        killed = time.monotonic()
        self.fleet.wait_until_served(by=1)
        self.assertTrue(self.fleet.leads(1))
        print(f"\nthe standby served {time.monotonic() - killed:.1f} s after the leader was killed", file=sys.stderr)
        self.fleet.run("wait", job, "--timeout", "240s", check=True)
        check_draws(self, self.fleet, job, per_chain=30)


class StoppedLeader(unittest.TestCase):
    """Nothing is shared but PostgreSQL and S3; the leader does not die but sleeps, and wakes when another leads."""

    def setUp(self):
        s3, postgres = with_s3.S3Server(), Postgres()
        for store in (s3, postgres):
            self.addCleanup(store.close)
            store.start()
        self.fleet = StartedFleet(servers=2, environment={
            **s3.environment, "CHAINFLEET_BLOBS": f"s3://{with_s3.BUCKET}/fleet", "CHAINFLEET_STATE": postgres.uri + "/postgres"})
        self.addCleanup(self.fleet.close)
        self.fleet.start_server(0)
        self.fleet.wait_until_served(by=0)
        for worker in range(2):
            self.fleet.start_worker(worker)
        self.fleet.put_fashion("fashion", 2000)

    def test_a_woken_leader_can_commit_no_more(self):
        self.fleet.start_server(1)
        self.fleet.wait_until(1, lambda answer: self.fleet.addresses[0] in answer.stderr)
        job = self.fleet.submit(JOB.format(name="stopped", epochs=120, keep=10))
        before = int(self.fleet.wait_for_draws(job, 8)["num_draws"])
        leader = self.fleet.processes["server-0"]
        leader.send_signal(signal.SIGSTOP)
        stopped = time.monotonic()
        self.fleet.wait_until_served(by=1)
        took = time.monotonic() - stopped
        print(f"\nthe standby served {took:.1f} s after the leader was stopped", file=sys.stderr)
        self.assertLess(took, 10)
        self.assertTrue(self.fleet.leads(1))
        self.fleet.address = self.fleet.addresses[1]  # the other one's socket takes calls and answers none
        self.fleet.wait_for_draws(job, before + 4)
        leader.send_signal(signal.SIGCONT)
        self.assertNotEqual(leader.wait(30), 0, "a deposed leader ends")
        self.assertIn("NOT_LEADER", self.fleet.logs())
        self.fleet.run("wait", job, "--timeout", "240s", check=True)
        check_draws(self, self.fleet, job, per_chain=30)


if __name__ == "__main__":
    unittest.main()
