"""A worker that has joined, with a key and a certificate of its own, against the chains of another."""
import queue
import threading
import unittest

from coordinator import message
import fleet as fleets
from joined_worker import JoinedWorker, fields, reason_of
import stranger_test
from stranger_test import WORKER


class Joined(stranger_test.Served):
    """A worker that joined as every worker does, and then attacks. `holder` has a chain of a job with a data set."""

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
        cls.holder = cls.joined("holder", WORKER)
        cls.lease = cls.holder.granted()
        # Before any other worker is there, whose free place this chain would take.
        cls.fleet.submit(fleets.walk(chains=1))
        cls.hoarder = cls.joined("hoarder", WORKER)
        cls.hoarders_lease = cls.hoarder.granted()

    @classmethod
    def joined(cls, name, token):
        worker = JoinedWorker(cls.port, token, name, cls.fleet.folder)
        cls.addClassCleanup(worker.channel.close)
        return worker

    def chains(self):
        return self.fleet.json("describe", self.job)["chains"]

    def test_a_joined_worker_has_no_part_in_a_chain_of_another(self):
        lease, holder, state = self.lease, self.holder, b"the state of the chain"
        stored, rows = lease.object(state), lease.shards()[0]
        self.assertEqual(holder.put(lease, stored, state), ("OK", ""))
        self.assertEqual(holder.commit(lease, 1, f3=stored), ("OK", ""))
        self.assertEqual(holder.read(stored), ("OK", ""))
        self.assertEqual(holder.read(rows), ("OK", ""))
        before = self.chains()
        self.assertEqual([(chain["worker"], chain["state"]) for chain in before], [("holder", "LEASED")])
        other_tenants = self.fleet.run("token", "create", "--role", "worker", "--tenant", "speech", "--ttl", "1h", check=True).stdout.strip()
        for name, token in (("thief", WORKER), ("stranger", other_tenants)):
            thief = self.joined(name, token)
            with self.subTest(name):
                self.check_refused(thief, lease, {"LEASE_FENCED": stored, "NOT_HELD": rows})
                self.assertEqual(self.chains(), before)
        self.assertEqual(holder.commit(lease, 2, f2=b"the next state"), ("OK", ""), "the holder still has its lease")

    def check_refused(self, thief, lease, objects):
        stored, rows = objects["LEASE_FENCED"], objects["NOT_HELD"]
        fenced, denied, unread = ("FAILED_PRECONDITION", "LEASE_FENCED"), ("PERMISSION_DENIED", "NOT_YOUR_SESSION"), ("UNAVAILABLE", "NOT_HELD")
        # The worker lists the chain as its own and gives it back as failed.
        reply = thief.synchronize(message(f8=lease.named()) + message(f9=lease.named() + message(f3=1)))
        self.assertEqual(set(reply) & {3, 4, 5}, set(), "no plan, no grant, and no lease renewed")
        self.assertEqual([fields(stop) for stop in reply[6]], [fields(lease.named())])  # FENCED is 0
        self.assertEqual(thief.commit(lease, 2, f2=b"forged"), fenced)
        self.assertEqual(thief.commit(lease, 2, message(f8=4), f2=b"forged"), fenced, "nor does it end as FAILED")
        self.assertEqual(thief.commit(lease, 2, speaker=self.holder.session, f2=b"forged"), denied)
        forged = lease.object(b"forged")
        self.assertEqual(thief.put(lease, forged, b"forged"), fenced)
        self.assertEqual(thief.put(lease, forged, b"forged", speaker=self.holder.session), fenced)
        for blob in (stored, rows):
            self.assertEqual(thief.read(blob), unread)

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


if __name__ == "__main__":
    unittest.main()
