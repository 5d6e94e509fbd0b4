"""kill -9 of server and worker at named points, with work under way."""
import signal
import unittest

from struck_fleet import EMCMC, FaultTest, dies

SERVER = {
    "an object written, not yet synced": dies("before", "sync", 2, "/.tmp/"),
    "a segment synced, not yet in place": dies("before", "rename", 2, "/segments/"),
    "a segment in place, its folder not yet synced": dies("after", "rename", 3, "/segments/"),
    "a resume point in place, its segment with it, neither committed": dies("after", "sync", 2, "/resume"),
    "amid a commit, not yet synced": dies("before", "sync", 12, "/state.db-wal"),
    "committed, not yet answered": dies("after", "sync", 12, "/state.db-wal"),
}
COLLECTOR = {
    "garbage about to be removed": dies("before", "remove", 2, "/resume/"),
    "garbage removed, and not yet forgotten": dies("after", "remove", 2, "/resume/"),
}
# Bytes that identify messages of a worker: a segment's name in the head of an upload and in a commit; the device's kind,
# field 11, in a commit; the device's name, field 1, and its memory in a Synchronize.
UPLOAD, COMMIT, SYNCHRONIZE = "/segments/e", "Z\x03cpu", "\n\x03cpu\x10"
WORKER = {
    "a segment not yet sent": dies("before", "send", 1, UPLOAD),
    "the head of a segment sent, the rest not": dies("after", "send", 1, UPLOAD),
    "objects sent, their commit not": dies("before", "send", 1, COMMIT),
    "a commit sent, its answer not read": dies("after", "send", 2, COMMIT),
    "grants asked for, never read": dies("after", "send", 1, SYNCHRONIZE),
}


JOB = EMCMC.format(epochs=32, keep=3, seed=1)


class Deaths(FaultTest):
    def test_a_server_that_dies_at_named_points(self):
        fleet = self.start()
        for point, surroundings in SERVER.items():
            with self.subTest(point):
                fleet.kill("server-0")
                fleet.start_server(environment=surroundings)
                fleet.wait_until_served()
                job = fleet.submit(JOB)
                fleet.wait_until_dead("server-0")
                fleet.start_server()
                fleet.wait_until_served()
                fleet.finish(job)
        for point, surroundings in COLLECTOR.items():  # the judge has it run
            self.assertEqual(fleet.verdict(surroundings), (-signal.SIGKILL, ""), point)
        self.judge()

    def test_a_worker_that_dies_at_named_points(self):
        fleet = self.start(workers=0)
        for point, surroundings in WORKER.items():
            with self.subTest(point):
                fleet.start_worker(0, environment=surroundings)  # alone: the work comes to it
                job = fleet.submit(JOB)
                fleet.wait_until_dead("worker-0")
                fleet.start_worker(1)
                fleet.finish(job)
                fleet.kill("worker-1")
        self.judge()


if __name__ == "__main__":
    unittest.main(verbosity=2)
