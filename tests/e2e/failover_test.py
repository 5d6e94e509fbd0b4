"""Two coordinators on one PostgreSQL: one leads, the other takes over when it dies; the database itself dies, too."""
import os
import signal
import socket
import subprocess
import sys
import time
import unittest
import urllib.request

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "support"))
import fleet as fleets
import with_s3
from journeys_test import JOB, check_draws, first_job_with
from with_postgres import Postgres


def free_address():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return f"127.0.0.1:{s.getsockname()[1]}"


class Coordinators(fleets.Fleet):
    """Servers and workers started by hand: `up` keeps one server only."""

    def __init__(self, postgres, environment=None, data="data"):
        super().__init__(environment=environment)
        self.data = data  # folder of server {}; objects that are not in S3 must be in one that both have
        self.postgres = postgres
        self.addresses = [free_address(), free_address()]
        self.metrics_addresses = [free_address(), free_address()]
        self.address = ",".join(self.addresses)
        self.processes = {}
        os.mkdir(self.path("run"))

    def start(self, name, *command):
        log = open(self.path("run", name + ".log"), "a")
        self.processes[name] = subprocess.Popen([os.path.join(fleets.BIN, command[0]), *command[1:]], stderr=log, stdout=log,
                                                env={**os.environ, **self.environment, "CHAINFLEET_STATE": self.postgres.uri + "/postgres"})
        log.close()

    def start_server(self, index):
        self.start(f"server-{index}", "chainfleet-server", "--data-dir", self.path(self.data.format(index)), "--listen", self.addresses[index],
                   "--metrics-listen", self.metrics_addresses[index], "--lease", "2s")

    def start_worker(self, index):
        self.start(f"worker-{index}", "chainfleet-worker", "--server", self.address, "--threads", "1", "--id", f"worker-{index}")

    def only(self, index, *arguments, **options):
        return self.run(*arguments, env={"CHAINFLEET_ADDRESS": self.addresses[index]}, **options)

    def leads(self, index):
        with urllib.request.urlopen(f"http://{self.metrics_addresses[index]}/metrics", timeout=10) as reply:
            return "\nchainfleet_leader 1\n" in reply.read().decode()

    def wait_until(self, by, satisfied):
        """Asks one server until its answer is the awaited one; returns that."""
        end = time.monotonic() + 60
        while not satisfied(answer := self.only(by, "get", "jobs")):  # each call has a patience of its own
            if time.monotonic() > end:
                raise AssertionError(f"{answer}\n{self.logs()}")
        return answer

    def wait_until_served(self, by):
        self.wait_until(by, lambda answer: answer.returncode == 0)

    def kill(self, name):
        self.processes[name].kill()
        self.processes[name].wait(10)

    def close(self):
        for process in self.processes.values():
            process.kill()
            process.wait(10)
        super().close()


class Failover(unittest.TestCase):
    def setUp(self):
        postgres = Postgres()
        self.addCleanup(postgres.close)
        postgres.start()
        self.fleet = Coordinators(postgres)
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
        first_job_with(self.fleet, job, 8)
        self.fleet.kill("server-0")
        killed = time.monotonic()
        self.fleet.wait_until_served(by=1)
        self.assertTrue(self.fleet.leads(1))
        print(f"\nthe standby served {time.monotonic() - killed:.1f} s after the leader was killed", file=sys.stderr)
        self.fleet.run("wait", job, "--timeout", "240s", check=True)
        check_draws(self, self.fleet, job, per_chain=30)

    def test_a_killed_database_loses_nothing(self):
        job = self.fleet.submit(JOB.format(name="database", epochs=120, keep=10))
        before = first_job_with(self.fleet, job, 8)
        self.fleet.postgres.kill()
        self.assertNotEqual(self.fleet.processes["server-0"].wait(30), 0, "a server without its store ends")
        self.fleet.start_server(0)
        self.assertNotEqual(self.fleet.processes["server-0"].wait(30), 0)
        self.assertIn("PostgreSQL", self.fleet.logs())
        self.fleet.postgres.start()
        self.fleet.start_server(0)
        self.fleet.wait_until_served(by=0)
        after = self.fleet.json("get", "jobs", job)
        self.assertGreaterEqual(int(after["num_draws"]), int(before["num_draws"]))
        self.fleet.run("wait", job, "--timeout", "240s", check=True)
        check_draws(self, self.fleet, job, per_chain=30)


class StoppedLeader(unittest.TestCase):
    """Nothing is shared but PostgreSQL and S3; the leader does not die but sleeps, and wakes when another leads."""

    def setUp(self):
        s3 = with_s3.S3Server()
        self.addCleanup(s3.close)
        s3.start()
        postgres = Postgres()
        self.addCleanup(postgres.close)
        postgres.start()
        self.fleet = Coordinators(postgres, {**s3.environment, "CHAINFLEET_BLOBS": f"s3://{with_s3.BUCKET}/fleet"}, data="data-{}")
        self.addCleanup(self.fleet.close)
        self.fleet.start_server(0)
        self.fleet.wait_until_served(by=0)
        for worker in range(2):
            self.fleet.start_worker(worker)
        self.fleet.put_fashion("fashion", 2000)

    def test_a_woken_leader_can_commit_no_more(self):
        self.fleet.start_server(1)
        job = self.fleet.submit(JOB.format(name="stopped", epochs=120, keep=10))
        self.fleet.wait_until(1, lambda answer: self.fleet.addresses[0] in answer.stderr)
        first_job_with(self.fleet, job, 8)
        leader = self.fleet.processes["server-0"]
        leader.send_signal(signal.SIGSTOP)
        stopped = time.monotonic()
        self.fleet.wait_until_served(by=1)
        took = time.monotonic() - stopped
        print(f"\nthe standby served {took:.1f} s after the leader was stopped", file=sys.stderr)
        self.assertLess(took, 10)
        self.assertTrue(self.fleet.leads(1))
        before = int(self.fleet.json("get", "jobs", job, env={"CHAINFLEET_ADDRESS": self.fleet.addresses[1]})["num_draws"])
        self.fleet.address = self.fleet.addresses[1]  # where the stopped one listens, calls would hang
        first_job_with(self.fleet, job, before + 4)
        leader.send_signal(signal.SIGCONT)
        self.assertNotEqual(leader.wait(30), 0, "a deposed leader ends")
        self.assertIn("NOT_LEADER", self.fleet.logs())
        self.fleet.run("wait", job, "--timeout", "240s", check=True)
        check_draws(self, self.fleet, job, per_chain=30)


if __name__ == "__main__":
    unittest.main()
