"""Runs rounds of real faults from a seed: a working fleet on stores chosen by the seed gets many faults, then is judged.

    chaos.py [--rounds N] [--seed S]       round i has the seed S + i; without --seed one is drawn and printed

A seed fixes stores, jobs, faults and their order; the machine decides at which moment of the work they happen. Exit status 1: a
promise was broken; the folder of that round is kept, and its path is printed.
"""
import argparse
import contextlib
import os
import random
import secrets
import signal
import sys
import time

from deaths_test import SERVER, WORKER
from struck_fleet import EMCMC, METROPOLIS, ROWS, SGLD, StruckFleet, fill, mounted_disk
from with_postgres import Postgres
from with_s3 import BUCKET, S3Server

HOUR = 3600
FINAL = ("SUCCEEDED", "SUCCEEDED_EARLY", "FAILED", "CANCELLED")


class Round:
    def __init__(self, seed, stack):
        self.random = random.Random(seed)
        self.stack = stack
        self.postgres = self.s3 = None
        environment = {}
        if self.random.random() < 0.5:
            self.postgres = self.own(Postgres())
            self.postgres.start()
            environment["CHAINFLEET_STATE"] = self.postgres.uri + "/postgres"
        if self.random.random() < 0.5:
            self.s3 = self.own(S3Server())
            self.s3.start()
            environment |= {**self.s3.environment, "CHAINFLEET_BLOBS": f"s3://{BUCKET}/fleet"}
        servers = self.random.choice([1, 2]) if self.postgres else 1
        disk = mounted_disk(stack.callback, "512m")
        self.fleet = self.own(StruckFleet(servers=servers, environment=environment, data_dir=disk))
        self.can_fill = disk is not None
        self.servers = [f"server-{i}" for i in range(servers)]
        self.workers = [f"worker-{i}" for i in range(3)]
        self.jobs, self.done = [], []

    def own(self, thing):
        self.stack.callback(thing.close)
        return thing

    def __str__(self):
        return f"{'PostgreSQL' if self.postgres else 'SQLite'}, {'S3' if self.s3 else 'files'}, {len(self.servers)} server(s)"

    def start(self, name, armed=False):
        points = SERVER if name in self.servers else WORKER
        environment = dict(self.fleet.clock(name))
        if armed:
            fate, when, call, number, text = self.random.choice(list(points.values()))["CHAINFLEET_FAULT_POINT"].split(" ", 4)
            number = int(number) + self.random.randrange(40)
            environment["CHAINFLEET_FAULT_POINT"] = f"{fate} {when} {call} {number} {text}"
        launch = self.fleet.start_server if name in self.servers else self.fleet.start_worker
        launch(int(name.rpartition("-")[2]), environment=environment)

    def keep_up(self):
        """Restarts processes that died at their point or for lack of a store."""
        for name, process in self.fleet.processes.items():
            if process.poll() is not None:
                self.start(name)

    def await_(self, what, happened, **options):
        return self.fleet.wait_for(what, lambda: self.keep_up() or happened(), **options)

    def hold(self, seconds):
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            self.keep_up()
            time.sleep(0.05)

    def submit(self):
        text = self.random.choice([EMCMC, EMCMC, SGLD, METROPOLIS]).format(epochs=self.random.choice([80, 160]), keep=4,
                                                                         seed=self.random.randrange(1000))
        request = f"request-{len(self.jobs)}"
        self.jobs.append(self.await_("a job is taken", lambda: self.fleet.take(text, request)))

    def strike(self):
        faults = [self.kill_worker] * 3 + [self.kill_server] * 3 + [self.stop_worker] * 2 + [self.stop_server, self.step_clock]
        faults += [self.kill_database] if self.postgres else []
        faults += [self.kill_object_store] if self.s3 else []
        faults += [self.fill_disk] if self.can_fill else []
        fault = self.random.choice(faults)
        fault()
        self.done.append(fault.__name__)

    def kill_worker(self):
        name = self.random.choice(self.workers)
        self.fleet.kill(name)
        self.start(name, armed=self.random.random() < 0.5)

    def kill_server(self):
        name = self.random.choice(self.servers)
        self.fleet.kill(name)
        self.start(name, armed=self.random.random() < 0.5)

    def stop(self, name):
        self.fleet.signal(name, signal.SIGSTOP)
        self.hold(self.random.uniform(0.5, 8))
        self.fleet.signal(name, signal.SIGCONT)

    def stop_worker(self):
        self.stop(self.random.choice(self.workers))

    def stop_server(self):
        self.stop(self.random.choice(self.servers))

    def step_clock(self):
        self.fleet.step_clock(self.random.choice(self.servers + self.workers), self.random.randrange(-9 * HOUR, 9 * HOUR))

    def kill_database(self):
        self.postgres.kill()
        self.hold(self.random.uniform(0, 4))
        self.postgres.start()

    def kill_object_store(self):
        self.s3.kill()
        self.hold(self.random.uniform(0, 4))
        self.s3.start()

    def fill_disk(self):
        filler = fill(self.fleet.folder)
        self.hold(self.random.uniform(0, 4))
        os.remove(filler)

    def run(self):
        """Returns what the judge found wrong."""
        for name in self.servers:
            self.start(name)
        self.await_("a server serves", lambda: self.fleet.run("get", "jobs").returncode == 0)
        self.fleet.put_fashion("fashion", ROWS)
        for name in self.workers:
            self.start(name)
        for _ in range(self.random.randrange(4, 10)):
            self.submit()
            self.hold(self.random.uniform(0, 3))
            self.strike()
        self.heal()
        for job in self.jobs:
            state = self.await_(f"{job} ends", lambda: (said := self.fleet.state_of(job)) in FINAL and said, patience=300)
            if state != "SUCCEEDED":
                return f"{job} is {state}"
            self.fleet.remember(job)
        return self.fleet.verdict()[1]

    def heal(self):
        """Ends all faults: no process dies at a point, no calendar is wrong."""
        for name in self.servers + self.workers:
            self.fleet.kill(name)
            self.start(name)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=10)
    parser.add_argument("--seed", type=int, default=secrets.randbelow(1_000_000))
    options = parser.parse_args()
    for seed in range(options.seed, options.seed + options.rounds):
        began = time.monotonic()
        with contextlib.ExitStack() as stack:
            struck = Round(seed, stack)
            print(f"seed {seed}: {struck}", flush=True)
            try:
                wrong = struck.run()
            except AssertionError as error:
                wrong = str(error)
            print(f"  {', '.join(struck.done)}; {len(struck.jobs)} jobs, {time.monotonic() - began:.0f} s:", wrong or "kept", flush=True)
            if wrong:
                print(struck.fleet.logs())
                struck.fleet.kill_all()
                stack.pop_all()  # left as it is
                sys.exit(f"seed {seed} broke a promise; its folder is {struck.fleet.folder}")


if __name__ == "__main__":
    main()
