"""Processes that stop and come back, a line that is cut, a calendar that jumps."""
import os
import re
import shutil
import signal
import subprocess
import sys
import time
import unittest

from deaths_test import COMMIT
from started_fleet import PATIENCE
from struck_fleet import EMCMC, ROWS, FaultTest, stops
from with_postgres import Postgres
from with_s3 import BUCKET, S3Server

LEASE_SECONDS = 2
HOURS = 3600
FENCED = "LEASE_FENCED|CHAIN_FINAL|chain fenced"


class Stopped(FaultTest):
    def test_a_worker_stopped_for_three_lease_terms(self):
        """Right before it sends a commit: what it says when it goes on is of a lease that others have had since."""
        fleet = self.start(workers=1)
        job = fleet.submit(EMCMC.format(epochs=400, keep=6, seed=1))
        fleet.start_worker(1, environment=stops("before", "send", 3, COMMIT))
        fleet.wait_until_stopped("worker-1")
        stopped, leased = time.monotonic(), fleet.epochs(job)
        fleet.remember(job)
        fleet.wait_for("three lease terms, and its chains go to another worker", lambda: time.monotonic() - stopped > 3 * LEASE_SECONDS
                       and any(now > then for now, then in zip(fleet.epochs(job), leased)))
        self.assertNotRegex(fleet.log_of("worker-1"), FENCED)
        fleet.signal("worker-1", signal.SIGCONT)
        fleet.wait_for("the worker hears that it is fenced", lambda: re.search(FENCED, fleet.log_of("worker-1")))
        fleet.finish(job)
        self.judge()


class Deposed(FaultTest):
    def test_a_leader_that_sleeps_through_its_term(self):
        postgres, s3 = Postgres(), S3Server()
        for server in (postgres, s3):
            self.addCleanup(server.close)
            server.start()
        fleet = self.start(servers=2, environment={"CHAINFLEET_STATE": postgres.uri + "/postgres", **s3.environment,
                                                   "CHAINFLEET_BLOBS": f"s3://{BUCKET}/fleet"})
        fleet.start_server(1)
        job = fleet.submit(EMCMC.format(epochs=400, keep=6, seed=9))
        fleet.wait_for_draws(job, 8)
        fleet.remember(job)
        fleet.signal("server-0", signal.SIGSTOP)
        stopped = time.monotonic()
        fleet.wait_until_served(by=1)
        took = time.monotonic() - stopped
        print(f"\nthe standby served {took:.1f} s after the leader was stopped", file=sys.stderr)
        self.assertLess(took, 10)
        fleet.signal("server-0", signal.SIGCONT)
        self.assertNotEqual(fleet.processes["server-0"].wait(PATIENCE), 0, "a former leader ends")
        self.assertIn("lost: this process must end", fleet.log_of("server-0"))
        fleet.start_server(0)
        fleet.finish(job)
        self.assertTrue(fleet.leads(1))
        self.judge()


class Network:
    """A network of its own for one process, and the cable to it."""

    here, there, both = "198.51.100.1", "198.51.100.2", "198.51.100.0/30"

    def __init__(self):
        self.process = subprocess.Popen(["unshare", "--net", "sh", "-c", "echo; exec sleep 600"], stdout=subprocess.PIPE)
        self.process.stdout.readline()
        self.name = f"cf{os.getpid() % 100000}"
        there = ["nsenter", f"--net=/proc/{self.process.pid}/ns/net", "ip"]
        for command in (["ip", "link", "add", self.name, "type", "veth", "peer", "name", "cable", "netns", str(self.process.pid)],
                        ["ip", "addr", "add", f"{self.here}/30", "dev", self.name], ["ip", "link", "set", self.name, "up"],
                        [*there, "addr", "add", f"{self.there}/30", "dev", "cable"], [*there, "link", "set", "cable", "up"], [*there, "link", "set", "lo", "up"]):
            subprocess.run(command, check=True)

    def inside(self):
        return ["nsenter", f"--net=/proc/{self.process.pid}/ns/net"]

    def cut(self):
        subprocess.run(["ip", "link", "set", self.name, "down"], check=True)

    def mend(self):
        subprocess.run(["ip", "link", "set", self.name, "up"], check=True)

    def close(self):
        self.process.kill()  # the cable goes with its end
        self.process.wait()
        self.process.stdout.close()


def may_make_networks():
    return bool(shutil.which("ip")) and subprocess.run(["unshare", "--net", "true"], capture_output=True).returncode == 0


@unittest.skipUnless(may_make_networks(), "making a network namespace is not allowed here")
class CutOff(FaultTest):
    def test_a_worker_cut_off_for_three_lease_terms(self):
        fleet = self.make()
        port = fleet.address.rpartition(":")[2]
        network = Network()
        self.addCleanup(network.close)
        fleet.addresses[0] = f"0.0.0.0:{port}"  # where it listens; clients and the other worker stay on 127.0.0.1
        fleet.start_server(0, "--insecure")
        fleet.addresses[0] = fleet.address
        fleet.wait_until_served()
        fleet.put_fashion("fashion", ROWS)
        fleet.start_worker(0)
        fleet.start_worker(1, server=f"{network.here}:{port}", inside=network.inside())
        job = fleet.submit(EMCMC.format(epochs=400, keep=6, seed=2))
        fleet.wait_for_draws(job, 8)
        fleet.remember(job)
        network.cut()
        cut, leased = time.monotonic(), fleet.epochs(job)
        fleet.wait_for("three lease terms, and its chains go to another worker", lambda: time.monotonic() - cut > 3 * LEASE_SECONDS
                       and any(now > then for now, then in zip(fleet.epochs(job), leased)))
        network.mend()
        fleet.wait_for("the worker hears that it is fenced", lambda: re.search(FENCED, fleet.log_of("worker-1")))
        fleet.finish(job)
        self.judge()


@unittest.skipUnless(may_make_networks(), "making a network namespace is not allowed here")
class LeaderCutOff(FaultTest):
    def test_a_standby_leads_within_ten_seconds_of_a_partition(self):
        """The leader loses database, workers and clients at once; nobody tells any of them."""
        network = Network()
        self.addCleanup(network.close)
        postgres = Postgres(host=network.here, network=network.both)
        self.addCleanup(postgres.close)
        postgres.start()
        fleet = self.make(servers=2, environment={"CHAINFLEET_STATE": postgres.uri + "/postgres"})
        fleet.addresses[0] = f"{network.there}:{fleet.addresses[0].rpartition(':')[2]}"
        fleet.address = ",".join(fleet.addresses)
        fleet.start_server(0, "--insecure", inside=network.inside())
        fleet.wait_until_served(by=0)
        fleet.start_server(1)
        fleet.put_fashion("fashion", ROWS)
        for worker in range(2):
            fleet.start_worker(worker)
        job = fleet.submit(EMCMC.format(epochs=400, keep=6, seed=10))
        fleet.wait_for_draws(job, 8)
        fleet.remember(job)
        self.assertFalse(fleet.leads(1))
        network.cut()
        cut = time.monotonic()
        fleet.wait_until_served(by=1)
        took = time.monotonic() - cut
        print(f"\nthe standby served {took:.1f} s after the leader was cut off", file=sys.stderr)
        self.assertLess(took, 10)
        fleet.finish(job)
        network.mend()
        self.assertNotEqual(fleet.processes["server-0"].wait(PATIENCE), 0, "a former leader ends")
        self.assertTrue(fleet.leads(1))
        self.judge()


class WallClock(FaultTest):
    def test_a_calendar_that_jumps_by_hours(self):
        fleet = self.make()
        names = ["server-0", "worker-0", "worker-1"]
        fleet.start_server(environment=fleet.clock(names[0]))
        fleet.wait_until_served()
        fleet.put_fashion("fashion", ROWS)
        for worker in range(2):
            fleet.start_worker(worker, environment=fleet.clock(names[1 + worker]))
        job = fleet.submit(EMCMC.format(epochs=400, keep=6, seed=3))
        draws = 8
        for name, hours in ((names[0], 5), (names[1], -3), (names[2], 7), (names[0], -5), (names[1], 0)):
            fleet.wait_for_draws(job, draws)
            fleet.step_clock(name, hours * HOURS)
            draws += 16
        fleet.finish(job)
        self.assertEqual(max(fleet.epochs(job)), 1, "a lease ended: leases go by the monotonic clock")
        self.judge()


if __name__ == "__main__":
    unittest.main(verbosity=2)
