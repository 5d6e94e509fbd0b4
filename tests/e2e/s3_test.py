"""The main job with every object in a real S3 server (SeaweedFS)."""
import os
import unittest
import urllib.request

import fleet as fleets
from joined_worker import JoinedWorker, outcome
import journeys_test
import real_server
import with_s3


def handled(fleet, method):
    """How many such calls the server has answered with OK."""
    with urllib.request.urlopen(f"http://{fleet.metrics_address}/metrics", timeout=10) as reply:
        lines = reply.read().decode().splitlines()
    wanted = f'method="/chainfleet.v1.WorkerService/{method}"'
    return sum(int(float(line.split()[-1])) for line in lines if "_handled_total{" in line and wanted in line and '"OK"' in line)


class ObjectsInS3(journeys_test.Journeys):
    def setUp(self):
        self.s3 = with_s3.S3Server()
        self.addCleanup(self.s3.close)
        self.s3.start()
        self.fleet = fleets.Fleet(environment={**self.s3.environment, "CHAINFLEET_BLOBS": f"s3://{with_s3.BUCKET}/fleet"})
        self.addCleanup(self.fleet.close)
        self.fleet.log_everything()
        self.fleet.up()
        self.fleet.put_fashion("fashion", 2000)

    def test_predictions_average_over_the_draws(self):
        super().test_predictions_average_over_the_draws()
        self.assertFalse(os.path.exists(self.fleet.path("blobs")), "objects went into the data directory")

    def assert_no_log_has_a_secret(self):
        logged = self.fleet.logged()
        self.assertEqual(sorted(logged), ["server.log", "worker-0.log", "worker-1.log"])
        for name, text in logged.items():
            self.assertIn('"lease granted"' if "worker" in name else '"level":"debug"', text, name)
            for secret in (with_s3.ADMIN["AWS_SECRET_ACCESS_KEY"], "X-Amz-Signature", "X-Amz-Credential"):
                self.assertNotIn(secret, text, name)

    def test_draws_do_not_pass_through_the_server(self):
        job = self.fleet.submit(journeys_test.JOB.format(name="direct", epochs=24, keep=2))
        self.fleet.run("wait", job, "--timeout", "240s", check=True)
        journeys_test.check_draws(self, self.fleet, job, per_chain=6)
        commits = handled(self.fleet, "CommitProgress")
        self.assertGreaterEqual(commits, 4)
        self.assertGreaterEqual(handled(self.fleet, "SignUpload"), commits, "each commit has a resume point, and most have draws")
        self.assertEqual(handled(self.fleet, "PutBlob"), 0)
        self.assert_no_log_has_a_secret()


class Refusals(unittest.TestCase):
    def setUp(self):
        self.fleet = fleets.Fleet(workers=0)
        self.addCleanup(self.fleet.close)

    def refused(self, blobs, environment):
        self.fleet.environment = {"CHAINFLEET_BLOBS": blobs, **environment}
        done = self.fleet.run("up", "--data-dir", self.fleet.folder, "--listen", "127.0.0.1:0", "--workers", "0", "--timeout", "60s")
        self.assertNotEqual(done.returncode, 0)
        return done.stderr

    def test_a_server_starts_on_its_own_store_or_not_at_all(self):
        with real_server.running(with_s3.S3Server()) as s3:
            self.assertIn("s3://BUCKET", self.refused("file:///tmp", s3.environment))
            self.assertIn("https://HOST", self.refused(f"s3://{with_s3.BUCKET}", {**s3.environment, "CHAINFLEET_S3_PUBLIC_ENDPOINT": "s3.lan"}))
            self.assertIn("NoSuchBucket", self.refused("s3://no-such-bucket", s3.environment))
            said = self.refused(f"s3://{with_s3.BUCKET}", {**s3.environment, "AWS_SECRET_ACCESS_KEY": "not-the-secret"})
            self.assertIn("SignatureDoesNotMatch", said)
            self.assertNotIn("not-the-secret", said)
            self.fleet.environment = {**s3.environment, "CHAINFLEET_BLOBS": f"s3://{with_s3.BUCKET}/one"}
            self.fleet.up()
            self.fleet.run("down", "--data-dir", self.fleet.folder, check=True)
            for other in ("", f"s3://{with_s3.BUCKET}/two"):
                self.assertIn(f"with --blobs s3://{with_s3.BUCKET}/one/", self.refused(other, s3.environment))
        self.assertIn("did not answer", self.refused(f"s3://{with_s3.BUCKET}/one", s3.environment))


    def test_no_url_is_signed_for_the_chain_of_another_worker(self):
        with real_server.running(with_s3.S3Server()) as s3:
            self.fleet.environment = {**s3.environment, "CHAINFLEET_BLOBS": f"s3://{with_s3.BUCKET}/fleet"}
            self.fleet.lease_seconds = 60  # renewed by nobody
            self.fleet.up()
            self.fleet.submit(fleets.walk(chains=1))
            holder, thief = (JoinedWorker(int(self.fleet.address.rpartition(":")[2]), "", name, self.fleet.folder) for name in ("holder", "thief"))
            for worker in (holder, thief):
                self.addCleanup(worker.channel.close)
            lease = holder.granted()
            blob = lease.object(b"the state of the chain")
            self.assertIn(f"{s3.address}/{with_s3.BUCKET}/fleet/", holder.sign_upload(lease, blob))
            self.assertEqual(outcome(lambda: thief.sign_upload(lease, blob)), ("FAILED_PRECONDITION", "LEASE_FENCED"))


class ObjectsOverHttps(unittest.TestCase):
    def test_server_and_worker_trust_only_the_bundle_that_they_are_given(self):
        fleet = fleets.Fleet(workers=1)
        s3 = with_s3.S3Server(pki=fleet.path("pki"))
        self.addCleanup(s3.close)
        self.addCleanup(fleet.close)
        fleet.pki("init")
        fleet.pki("issue", "server", "--host", "127.0.0.1")
        s3.start()
        fleet.pki("init", folder="other")
        fleet.environment = {**s3.environment, "CHAINFLEET_BLOBS": f"s3://{with_s3.BUCKET}/fleet", "AWS_CA_BUNDLE": fleet.path("other", "ca.crt")}
        refused = fleet.run("up", "--data-dir", fleet.folder, "--listen", "127.0.0.1:0", "--workers", "0", "--timeout", "60s")
        self.assertNotEqual(refused.returncode, 0)
        self.assertIn("SSL certificate problem", refused.stderr)
        fleet.environment["AWS_CA_BUNDLE"] = s3.environment["AWS_CA_BUNDLE"]
        fleet.up()
        fleet.run("wait", fleet.submit(fleets.walk()), "--timeout", "60s", check=True)
        self.assertGreater(handled(fleet, "SignUpload"), 0)
        self.assertEqual(handled(fleet, "PutBlob"), 0, "the worker puts draws into the bucket itself")


if __name__ == "__main__":
    unittest.main(verbosity=2)
