"""Versions, aliases and retention: a version with an alias stays whole, expired draws go, callers see no error."""
import json
import os
import sqlite3
import threading
import unittest

import inference_test
import numpy
import started_fleet
import tritonclient.grpc as triton

JOB = """
name: kept
model: {builtin: softmax_regression}
dataset: {name: fashion}
sampler: {sgld: {}}
learning_rate: {constant: 0.01}
temperature: 1.0e-4
batch_size: 50
num_steps: %d
chains: 2
collect: {every_steps: 20, segment_draws: 1}
%s
"""
LONGEST_CALL = 3  # seconds
ASKED_AT_MOST = 2000


class Served(unittest.TestCase):
    """A server whose calls are short, so that retention deletes objects soon, and a worker."""

    def setUp(self):
        self.fleet = started_fleet.StartedFleet(lease="5s")
        self.addCleanup(self.fleet.close)
        with open(self.fleet.path("server.conf"), "w") as f:
            f.write(f"longest-call = {LONGEST_CALL}s\n")
        self.start_server()
        self.fleet.start_worker(0)
        self.fleet.put_fashion("fashion", 500)
        self.images = numpy.random.default_rng(1).integers(0, 256, (5, 1, 28, 28), dtype=numpy.uint8)

    def start_server(self):
        self.fleet.start_server(environment={"CHAINFLEET_CONFIG": self.fleet.path("server.conf")})
        self.fleet.wait_until_served()

    def infer(self, client, model, version=""):
        return client.infer(model, [inference_test.tensor(self.images, "UINT8")], model_version=str(version))

    def client(self):
        client = triton.InferenceServerClient(self.fleet.address)
        self.addCleanup(client.close)
        return client

    def until(self, satisfied, what):
        for _ in range(ASKED_AT_MOST):  # each asks the server something
            if satisfied():
                return
        self.fail(f"{what}\n{self.fleet.logs()}")


class Retention(Served):
    def files(self, job):
        return [name for folder, _, names in os.walk(self.fleet.path("data", "blobs")) if f"/{job}/" in folder and
                folder.endswith("segments") for name in names]

    def segments(self, job):
        return self.fleet.json("get", "draws", job)["segments"]

    def test_old_draws_go_and_those_of_an_alias_stay(self):
        # Long enough for the alias to come before the end on any machine: else it names all draws, and none goes.
        slow = (JOB % (12000, "retention: {keep_last: 4}\nsnapshots: {every_draws: 10}")).replace("every_steps: 20", "every_steps: 200")
        job = self.fleet.submit(slow)
        self.fleet.wait_for_draws(job, 4)
        version = int(self.fleet.json("alias", "set", "champion", job)["version"])
        client = self.client()
        first = self.infer(client, "champion")
        # Retention may have been quicker than the alias.
        readable = first.get_response().parameters["draws_used"].int64_param
        self.assertGreater(readable, 0)
        self.assertEqual(first.get_response().model_version, str(version))
        self.fleet.run("wait", job, "--timeout", "200s", check=True)
        draws = int(self.fleet.json("get", "jobs", job)["num_draws"])
        self.assertEqual(draws, 120)

        def live():
            return [s for s in self.segments(job) if not s["deleted"]]

        # Each chain keeps its last 4, and what the alias names of it.
        named = sum(1 for s in self.segments(job) if int(s["segment"]["first_index"]) < self.of_chain(job, version, s))
        self.until(lambda: len(live()) <= named + 8, "expired draws were not deleted")
        self.assertEqual(len(self.segments(job)), draws, "each has its record")
        self.until(lambda: len(self.segments(job)) and len(self.files(job)) == len(live()), "files did not go")
        again = self.infer(client, "champion")
        self.assertEqual(again.get_response().parameters["draws_used"].int64_param, readable)
        numpy.testing.assert_array_equal(again.as_numpy("mean_probability"), first.as_numpy("mean_probability"))
        newest = self.infer(client, job).get_response()
        self.assertEqual(newest.parameters["draws_used"].int64_param, len(live()))
        self.assertEqual(newest.parameters["draws_in_version"].int64_param, draws)

        done = self.fleet.run("export", job, "--format", "npz", "-o", self.fleet.path("draws.npz"), check=True)
        self.assertIn(f"{draws - len(live())} draws were deleted", done.stderr)
        self.assertIn("every checksum right", done.stdout)
        described = self.fleet.run("describe", job, check=True).stdout
        self.assertRegex(described, "(?m)^Aliases +champion$")
        self.assertRegex(described, "(?m)^Retention +keeps the newest 4 draws of each chain")
        gone = next(s for s in self.segments(job) if s["deleted"])
        self.assertEqual(len(gone["segment"]["digest"]), 64)

        # Nothing names them any more.
        self.fleet.run("alias", "delete", "champion", check=True)
        self.until(lambda: len(live()) == 8 and len(self.files(job)) == 8, "the alias's draws did not go")
        self.infer(client, job)

    def of_chain(self, job, version, segment):
        """How many draws of the segment's chain belong to the version."""
        with sqlite3.connect(f"file:{self.fleet.path('data', 'state.db')}?mode=ro", uri=True) as state:
            counts = state.execute("SELECT draws_of_chain FROM snapshots WHERE job = ? AND number = ?", (job, version)).fetchone()[0]
        return json.loads(counts)[int(segment["chain"]["index"])]

    def test_a_restarted_server_waits_again_and_then_lets_them_go(self):
        job = self.fleet.submit(JOB % (400, "retention: {ttl_seconds: 1}"))
        self.fleet.run("wait", job, "--timeout", "200s", check=True)
        self.fleet.kill("server-0")
        self.start_server()
        self.until(lambda: all(s["deleted"] for s in self.segments(job)), "draws did not grow too old")
        self.until(lambda: self.segments(job) and not self.files(job), "files did not go")
        refused = self.fleet.run("export", job, "--format", "npz", "-o", self.fleet.path("draws.npz"))
        self.assertEqual(refused.returncode, 1)
        self.assertIn("none of its 40 committed draws is readable", refused.stderr)


class VersionsUnderLoad(Served):
    CALLERS = 8

    def test_a_moving_alias_drops_and_mixes_nothing(self):
        job = self.fleet.submit(JOB % (60000, "retention: {keep_last: 200}\nsnapshots: {every_draws: 25}"))
        self.fleet.wait_for_draws(job, 10)
        versions = [int(self.fleet.json("snapshot", job)["version"])]
        self.fleet.wait_for_draws(job, 40)
        versions.append(int(self.fleet.json("snapshot", job)["version"]))
        self.assertLess(*versions)
        for name, version in zip(("first", "second"), versions):  # so that retention leaves them whole
            self.fleet.run("alias", "set", name, job, "--version", str(version), check=True)
        self.fleet.run("alias", "set", "champion", job, "--version", str(versions[0]), check=True)
        with triton.InferenceServerClient(self.fleet.address) as client:
            expected = {str(v): self.infer(client, job, v).as_numpy("mean_probability") for v in versions}
        self.assertGreater(numpy.abs(expected[str(versions[0])] - expected[str(versions[1])]).max(), 1e-6)

        stop, seen, wrong = threading.Event(), {str(v): 0 for v in versions}, []

        def ask():
            with triton.InferenceServerClient(self.fleet.address) as client:
                while not stop.is_set():
                    try:
                        answer = self.infer(client, "champion")
                    except Exception as error:  # every failed request fails the test
                        wrong.append(str(error))
                        return
                    version = answer.get_response().model_version
                    if not numpy.array_equal(answer.as_numpy("mean_probability"), expected[version]):
                        wrong.append(f"an answer of version {version} is not that version's: "
                                     f"{numpy.abs(answer.as_numpy('mean_probability') - expected[version]).max()}")
                        return
                    seen[version] += 1

        newest = {}  # newest reply for each number of draws, by any caller

        def ask_for_the_newest():
            last = 0
            with triton.InferenceServerClient(self.fleet.address) as client:
                while not stop.is_set():
                    try:
                        answer = self.infer(client, job)
                    except Exception as error:
                        wrong.append(str(error))
                        return
                    said = answer.get_response()
                    draws = [said.parameters[name].int64_param for name in ("draws_in_version", "draws_used")]
                    if draws[0] < last:
                        wrong.append(f"the newest had {last} draws and now has {draws[0]}")
                        return
                    last = draws[0]
                    mean = answer.as_numpy("mean_probability")
                    if not numpy.array_equal(mean, newest.setdefault((said.model_version, *draws), mean)):
                        wrong.append(f"two answers of {draws} draws of version {said.model_version} differ")
                        return

        callers = [threading.Thread(target=ask) for _ in range(self.CALLERS)]
        callers += [threading.Thread(target=ask_for_the_newest) for _ in range(2)]
        for caller in callers:
            caller.start()
        before = int(self.fleet.json("get", "jobs", job)["num_draws"])
        for turn in range(60):
            self.fleet.run("alias", "set", "champion", job, "--version", str(versions[(turn + 1) % 2]), check=True)
        after = int(self.fleet.json("get", "jobs", job)["num_draws"])
        stop.set()
        for caller in callers:
            caller.join()
        self.assertEqual(wrong, [])
        self.assertGreater(min(seen.values()), 20, seen)
        self.assertGreater(after, before, "no chain committed meanwhile")
        self.assertGreater(len(newest), 5, "the newest draws did not change meanwhile")
        self.assertGreater(len(self.fleet.json("get", "snapshots", job)["snapshots"]), 2, "no version was made meanwhile")
        print(f"{seen} answers, {after - before} draws committed meanwhile")

        # A version with an alias cannot be deleted or requested under another number, and its job cannot be deleted.
        for refused, code, words in ((("delete", "snapshot", job, str(versions[0]), "--yes"), 1, "by alias champion, first"),
                                     (("delete", "job", job, "--yes"), 1, "named by alias"),
                                     (("alias", "set", "kept", job), 1, "a job has the name kept"),
                                     (("alias", "set", "Champion", job), 1, "not allowed"),
                                     (("alias", "delete", "nobody"), 3, "no alias nobody")):
            done = self.fleet.run(*refused)
            self.assertEqual(done.returncode, code, f"{refused}: {done.stderr}")
            self.assertIn(words, done.stderr)
        client = self.client()
        with self.assertRaises(inference_test.InferenceServerException) as caught:
            self.infer(client, "champion", versions[0] + 1000)
        self.assertEqual(caught.exception.status(), "StatusCode.INVALID_ARGUMENT")
        self.assertTrue(client.is_model_ready("champion"))
        self.assertFalse(client.is_model_ready(job, str(versions[1] + 100000)))
        self.fleet.run("alias", "set", "first", job, "--version", str(versions[1]), check=True)
        self.fleet.run("alias", "set", "champion", job, "--version", str(versions[1]), check=True)
        self.fleet.run("delete", "snapshot", job, str(versions[0]), "--yes", check=True)
        listed = client.get_model_metadata(job).versions
        self.assertNotIn(str(versions[0]), listed)
        self.assertIn(str(versions[1]), listed)
        self.assertEqual(client.get_inference_statistics(job, str(versions[0])).model_stats[:], [])
        self.assertFalse(client.is_model_ready(job, str(versions[0])))
        self.assertEqual([a["name"] for a in self.fleet.json("alias", "list")["aliases"]], ["champion", "first", "second"])


if __name__ == "__main__":
    unittest.main()
