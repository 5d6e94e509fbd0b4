"""A tenant asks a server for the jobs and the data sets of another one, by their names and ids."""
import unittest

from coordinator import message
import fleet as fleets
import stranger_test
from stranger_test import ADMIN, VISION

SPEECH = "The-token-of-tenant-speech"
JOBS, INFERENCE = "chainfleet.v1.JobService", "inference.GRPCInferenceService"
OF_JOBS = [(JOBS, method) for method in ("GetJob", "WatchJob", "SetIntent", "ScaleJob", "ListEvents", "ListSegments", "GetTraces",
                                         "ReadSegment", "CreateSnapshot", "ListSnapshots", "DeleteSnapshot")] + [
    (INFERENCE, "ModelMetadata"), (INFERENCE, "ModelInfer")]
OF_DATASETS = [(JOBS, method) for method in ("ReadRows", "DeleteDataset", "ShareDataset")]


class Tenants(stranger_test.Served):
    """Some calls of tests/server/rpc/gateway/tenants_test.cc, which makes all of them in one process."""

    TOKENS = f"{ADMIN} admin\n{VISION} vision\n{SPEECH} speech\n"

    def test_names_and_ids_of_another_tenant_are_answered_as_those_of_nothing(self):
        with open(self.fleet.path("rows.csv"), "w") as f:
            f.write("a,b\n" + "1,0\n2,1\n" * 4)
        self.fleet.environment = {**self.fleet.environment, "CHAINFLEET_TOKEN": VISION}
        self.fleet.run("dataset", "put", "rows", self.fleet.path("rows.csv"), "--target", "b", check=True)
        job = self.fleet.submit(fleets.walk())
        vision, speech = self.caller(VISION), self.caller(SPEECH)
        speech.metadata.append(("x-request-id", "the-same"))
        self.assertEqual(vision.code("GetJob", message(f1=job))[0], "OK")
        for names, methods in (((job, "walk"), OF_JOBS), (("rows", "vision/rows"), OF_DATASETS)):
            for name in names:
                missing = name[:-4] + "none"
                for service, method in methods:
                    with self.subTest(f"{method} {name}"):
                        code, text = speech.code(method, message(f1=name), service=service)
                        self.assertEqual(code, "NOT_FOUND", text)
                        nothing = speech.code(method, message(f1=missing), service=service)
                        self.assertEqual((code, text.replace(name, "NAME")), (nothing[0], nothing[1].replace(missing, "NAME")))
        self.assertEqual(self.fleet.json("get", "jobs")["jobs"][0]["id"], job)
        self.assertIn("rows", self.fleet.run("get", "datasets", "-o", "name", check=True).stdout)


if __name__ == "__main__":
    unittest.main()
