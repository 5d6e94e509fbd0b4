"""The main job with every object in a real S3 server (SeaweedFS)."""
import os
import unittest
import urllib.request

import fleet as fleets
import journeys_test
import real_server
import with_s3


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

    def handled(self, method):
        """How many such calls the server has answered with OK."""
        with urllib.request.urlopen(f"http://{self.fleet.metrics_address}/metrics", timeout=10) as reply:
            lines = reply.read().decode().splitlines()
        wanted = f'method="/chainfleet.v1.WorkerService/{method}"'
        return sum(int(float(line.split()[-1])) for line in lines if "_handled_total{" in line and wanted in line and '"OK"' in line)

    def test_draws_do_not_pass_through_the_server(self):
        job = self.fleet.submit(journeys_test.JOB.format(name="direct", epochs=24, keep=2))
        self.fleet.run("wait", job, "--timeout", "240s", check=True)
        journeys_test.check_draws(self, self.fleet, job, per_chain=6)
        commits = self.handled("CommitProgress")
        self.assertGreaterEqual(commits, 4)
        self.assertGreaterEqual(self.handled("SignUpload"), commits, "each commit has a resume point, and most have draws")
        self.assertEqual(self.handled("PutBlob"), 0)
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


if __name__ == "__main__":
    unittest.main(verbosity=2)
