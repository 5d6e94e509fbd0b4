"""Two coordinators on one PostgreSQL: one leads, the other takes over when it dies."""
import sys
import time
import unittest

from journeys_test import JOB, check_draws
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


if __name__ == "__main__":
    unittest.main()
