"""Calls that a token has open while it is revoked."""
import hashlib
import os
import subprocess
import threading
import unittest

from coordinator import message
import fleet as fleets
from joined_worker import outcome, reason_of
import stranger_test
from stranger_test import ADMIN

PATIENCE = 60


class Revoked(stranger_test.Served):
    """A job that nobody samples, so its watches are silent. `thief` holds the token that is revoked."""

    def setUp(self):
        self.job = self.fleet.submit(fleets.walk(chains=1))
        self.token = self.fleet.run("token", "create", "--role", "admin", "--ttl", "1h", check=True).stdout.strip()
        self.token_id = hashlib.sha256(self.token.encode()).hexdigest()[:12]
        self.thief = self.caller(self.token)

    def revoke(self):
        self.fleet.run("token", "revoke", self.token_id, check=True)

    @staticmethod
    def stream(caller, method, request=b"", service="chainfleet.v1.JobService"):
        return caller.channel.unary_stream(f"/{service}/{method}")(request, metadata=caller.metadata, timeout=PATIENCE)

    def requests(self, ended, *messages):
        """These messages, and no end before `ended` or the test's. The event is set when the last message was sent."""
        self.addCleanup(ended.set)
        sent = threading.Event()

        def generate():
            yield from messages
            sent.set()
            ended.wait(PATIENCE)

        return generate(), sent

    def test_its_silent_streams_end_and_those_of_others_go_on(self):
        watches = [self.stream(caller, "WatchJob", message(f1=self.job)) for caller in (self.thief, self.caller(ADMIN))]
        backup = self.stream(self.thief, "Backup", service="chainfleet.v1.AccessService")
        for stream in (*watches, backup):
            next(stream)
        models = self.thief.channel.stream_stream("/inference.GRPCInferenceService/ModelStreamInfer")
        requests, _ = self.requests(threading.Event(), message(f1="nowhere"))
        inference = models(requests, metadata=self.thief.metadata, timeout=PATIENCE)
        self.assertIn(b"unknown model", next(inference))
        self.revoke()
        for stream in (watches[0], backup, inference):
            self.assertEqual(outcome(lambda stream=stream: list(stream)), ("UNAUTHENTICATED", "UNAUTHENTICATED"))
        self.fleet.run("cancel", self.job, check=True)
        self.assertEqual(outcome(lambda: list(watches[1])), ("OK", ""))
        lines = self.fleet.run("audit", "--raw", check=True).stdout.splitlines()
        cut = [line for line in lines if self.token_id in line and "UNAUTHENTICATED" in line]
        for method in ("WatchJob", "Backup", "ModelStreamInfer"):
            self.assertEqual(len([line for line in cut if method in line]), 1, method)

    def test_its_command_line_stops_to_watch(self):
        watch = subprocess.Popen([os.path.join(fleets.BIN, "chainfleet"), "watch", self.job, "-o", "jsonl"], stdout=subprocess.PIPE,
                                 env={**os.environ, **self.fleet.environment, "CHAINFLEET_ADDRESS": self.fleet.address, "CHAINFLEET_TOKEN": self.token})
        try:
            self.assertTrue(watch.stdout.readline(), "it watches")
            self.revoke()
            self.assertEqual(watch.wait(PATIENCE), 4)
        finally:
            watch.kill()
            watch.communicate()

    def test_its_upload_is_not_stored(self):
        rows = b"0.5,0.25,1\n0.25,0.5,0\n" * 50_000  # so many bytes are sent only to a server that reads the upload
        ended, uploads = threading.Event(), []
        for name, caller in (("late", self.thief), ("kept", self.caller(ADMIN))):
            parts = message(f1=message(f1=name, f2=1)), message(f2=message(f1="rows.csv", f2=len(rows))), message(f3=rows)
            requests, sent = self.requests(ended, *parts)
            put = caller.channel.stream_unary("/chainfleet.v1.JobService/PutDataset")
            uploads.append(put.future(requests, metadata=caller.metadata, timeout=PATIENCE))
            self.assertTrue(sent.wait(PATIENCE))
        self.revoke()
        ended.set()
        error = uploads[0].exception(PATIENCE)
        self.assertEqual((error.code().name, reason_of(error)), ("UNAUTHENTICATED", "UNAUTHENTICATED"))
        self.assertIsNone(uploads[1].exception(PATIENCE))
        self.assertEqual([dataset["name"] for dataset in self.fleet.json("dataset", "list")["datasets"]], ["kept"])


if __name__ == "__main__":
    unittest.main()
