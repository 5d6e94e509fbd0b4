"""A worker that has joined, with a key and a certificate of its own, against the chains of another."""
import json
import os
import queue
import threading
import unittest

from coordinator import grpc, message
import fleet as fleets
from joined_worker import JoinedWorker, fields, outcome, reason_of
import stranger_test
from stranger_test import WORKER

FENCED, NOT_ITS_OWN, NOT_HELD = (("FAILED_PRECONDITION", "LEASE_FENCED"), ("PERMISSION_DENIED", "NOT_YOUR_SESSION"),
                                 ("UNAVAILABLE", "NOT_HELD"))


class Workers(stranger_test.Served):
    """A job with a data set, and workers that tests invent."""

    LEASE = "60s"  # renewed by nobody

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        with open(cls.fleet.path("tiny.csv"), "w") as f:
            f.write("a,b\n" + "1,0\n2,1\n" * 4)
        cls.fleet.run("dataset", "put", "tiny", cls.fleet.path("tiny.csv"), "--target", "b", check=True)
        cls.job = cls.fleet.submit("name: held\nmodel: {builtin: softmax_regression}\ndataset: {name: tiny}\nsampler: {sgld: {}}\n"
                                   "learning_rate: {constant: 0.01}\nbatch_size: 2\nnum_epochs: 4\nchains: 1\n"
                                   "collect: {last_epochs_of_cycle: 2}\n")

    @classmethod
    def joined(cls, name, token, folder=None):
        worker = JoinedWorker(cls.port, token, name, folder or cls.fleet.folder)
        cls.addClassCleanup(worker.channel.close)
        return worker

    def token_of(self, tenant):
        """A new token for workers of the tenant."""
        return self.fleet.run("token", "create", "--role", "worker", "--tenant", tenant, "--ttl", "1h", check=True).stdout.strip()


class Joined(Workers):
    """A worker that joined as every worker does, and then attacks. `holder` has the chain of the job."""

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.holder = cls.joined("holder", WORKER)
        cls.lease = cls.holder.granted()
        # Before any other worker is there, whose free place this chain would take.
        cls.fleet.submit(fleets.walk(chains=1))
        cls.hoarder = cls.joined("hoarder", WORKER)
        cls.hoarders_lease = cls.hoarder.granted()

    def chains(self):
        return self.fleet.json("describe", self.job)["chains"]

    def refusals(self, worker):
        """The method and the reason of each call of the worker that has a line in the audit log because it failed."""
        lines = map(json.loads, self.fleet.run("audit", "--raw", check=True).stdout.splitlines())
        return {(line["method"].split("/")[-1], line["reason"]) for line in lines if line.get("worker") == worker and "reason" in line}

    def test_a_joined_worker_has_no_part_in_a_chain_of_another(self):
        lease, holder, state = self.lease, self.holder, b"the state of the chain"
        stored, rows = lease.object(state), lease.shards()[0]
        self.assertEqual(holder.put(lease, stored, state), ("OK", ""))
        self.assertEqual(holder.commit(lease, 1, f3=stored), ("OK", ""))
        self.assertEqual(holder.read(stored), ("OK", ""))
        self.assertEqual(holder.read(rows), ("OK", ""))
        before = self.chains()
        self.assertEqual([(chain["worker"], chain["state"]) for chain in before], [("holder", "LEASED")])
        for name, token in (("thief", WORKER), ("stranger", self.token_of("speech"))):
            thief = self.joined(name, token)
            with self.subTest(name):
                self.check_refused(thief, lease, {"LEASE_FENCED": stored, "NOT_HELD": rows})
                self.assertEqual(self.chains(), before)
                self.assertEqual(self.refusals(name), {
                    ("CommitProgress", "LEASE_FENCED"), ("CommitProgress", "NOT_YOUR_SESSION"), ("PutBlob", "LEASE_FENCED"),
                    ("GetBlob", "NOT_HELD"), ("ServeShards", "NOT_HELD"), ("ServeShards", "NOT_YOUR_SESSION")})
        self.assertEqual(holder.commit(lease, 2, f2=b"the next state"), ("OK", ""), "the holder still has its lease")

    def check_refused(self, thief, lease, objects):
        stored, rows = objects["LEASE_FENCED"], objects["NOT_HELD"]
        self.assertEqual(outcome(lambda: list(thief.serve())), NOT_HELD, "it has never called Synchronize")
        # The worker lists the chain as its own and gives it back as failed.
        reply = thief.synchronize(message(f8=lease.named()) + message(f9=lease.named() + message(f3=1)))
        self.assertEqual(set(reply) & {3, 4, 5}, set(), "no plan, no grant, and no lease renewed")
        self.assertEqual([fields(stop) for stop in reply[6]], [fields(lease.named())])  # FENCED is 0
        forged = lease.object(b"forged")
        self.assertEqual(thief.commit(lease, 2, f2=b"forged"), FENCED)
        self.assertEqual(thief.commit(lease, 2, message(f8=4), f2=b"forged"), FENCED, "nor does it end as FAILED")
        self.assertEqual(thief.commit(lease, 2, thief.segment(forged), f2=b"forged"), FENCED, "nor does its signature help")
        self.assertEqual(thief.commit(lease, 2, speaker=self.holder.session, f2=b"forged"), NOT_ITS_OWN)
        self.assertEqual(outcome(lambda: list(thief.serve(self.holder.session))), NOT_ITS_OWN)
        self.assertEqual(thief.put(lease, forged, b"forged"), FENCED)
        self.assertEqual(thief.put(lease, forged, b"forged", speaker=self.holder.session), FENCED)
        for blob in (stored, rows):
            self.assertEqual(thief.read(blob), NOT_HELD)

    def test_a_second_worker_of_the_same_id_gets_nothing_of_the_first(self):
        folder = self.fleet.path("second")  # for its key: the first has one of this name
        os.mkdir(folder)
        second = self.joined("holder", self.token_of("speech"), folder)
        state = b"a state that only the first reads"
        stored = self.lease.object(state)
        self.assertEqual(self.holder.put(self.lease, stored, state), ("OK", ""))
        before = self.chains()
        self.assertEqual(outcome(second.synchronize), ("UNAVAILABLE", "WORKER_PRESENT"))
        self.assertEqual(outcome(lambda: list(second.serve())), NOT_HELD)
        self.assertEqual(second.commit(self.lease, 3, f2=b"forged"), FENCED)
        self.assertEqual(second.put(self.lease, self.lease.object(b"forged"), b"forged"), FENCED)
        for blob in (stored, self.lease.shards()[0]):
            self.assertEqual(second.read(blob), NOT_HELD)
        self.assertEqual(self.chains(), before)
        self.assertLessEqual({("Synchronize", "WORKER_PRESENT"), ("GetBlob", "NOT_HELD")}, self.refusals("holder"))
        self.assertEqual(self.holder.commit(self.lease, 3, f2=b"a state after all that"), ("OK", ""))

    def test_draws_without_the_signature_of_their_worker_are_refused(self):
        draws = self.lease.object(b"draws that nobody made")
        for segment in (self.holder.segment(draws, signature=""), self.hoarder.segment(draws)):
            self.assertEqual(self.holder.commit(self.lease, 4, segment, f2=b"forged"), ("PERMISSION_DENIED", "BAD_SIGNATURE"))

    def test_a_joined_worker_holds_no_more_room_for_uploads_than_it_leaves_free(self):
        release, ended = threading.Event(), queue.Queue()
        self.addCleanup(release.set)
        calls = []
        for name in (b"first", b"second"):  # 3 GiB of 8 each, without a byte: there is room for one of them
            calls.append(self.hoarder.begin(self.hoarders_lease, self.hoarders_lease.object(name, 3 << 30), release))
            calls[-1].add_done_callback(ended.put)
        refused = ended.get(timeout=60)
        self.assertEqual((refused.code().name, reason_of(refused)), ("RESOURCE_EXHAUSTED", "UPLOADS_FULL"))
        self.assertEqual([call.done() for call in calls if call is not refused], [False])
        state = b"an object of a worker that waits for nobody"
        self.assertEqual(self.holder.put(self.lease, self.lease.object(state), state), ("OK", ""))
        for call in calls:
            call.cancel()


class Shards(Workers):
    """Workers that serve predictions of a job whose own worker is gone."""

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.fleet.start_worker(0, environment={"CHAINFLEET_TOKEN": "", "CHAINFLEET_WORKER_TOKEN": WORKER})
        cls.fleet.run("wait", cls.job, "--timeout", "60s", check=True)
        cls.fleet.kill("worker-0")
        fleets.write_npy(cls.fleet.path("x.npy"), "<f4", (1, 1), bytes(4))

    def orders(self, name, token):
        """The orders that a new worker, which answers none, gets until one has come or the server refuses the prediction."""
        worker = self.joined(name, token)
        worker.synchronize()
        known = self.log().count("worker serves predictions")
        release, orders = threading.Event(), []
        self.addCleanup(release.set)
        call = worker.serve(release=release)

        def hear():
            try:
                for order in call:
                    orders.append(order)
            except grpc.RpcError:
                pass  # cancelled below

        thread, predict = threading.Thread(target=hear), f"predict-{name}"
        thread.start()
        try:
            self.fleet.wait_until(0, lambda answer: self.log().count("worker serves predictions") > known)
            self.fleet.start(predict, "chainfleet", "predict", self.job, "--input", self.fleet.path("x.npy"), "--timeout", "10m",
                             "--address", self.fleet.address)
            self.fleet.wait_until(0, lambda answer: orders or "no worker serves predictions" in self.fleet.logged()[f"{predict}.log"])
            self.fleet.kill(predict)
        finally:
            call.cancel()
            thread.join()
        return orders

    def test_a_worker_of_another_tenant_gets_no_inputs(self):
        self.assertEqual(self.orders("stranger", self.token_of("speech")), [])
        orders = self.orders("worker", WORKER)
        self.assertTrue(orders, "a worker of all tenants gets them")
        self.assertIn(5, fields(fields(orders[0])[1][0]), "with the inputs of the prediction")


if __name__ == "__main__":
    unittest.main()
