"""A worker that tests invent: it joins with a key of its own, as each worker does, and then makes the calls of a worker.

No stubs: requests are bytes. The openssl command makes its key and its signatures.
"""
import base64
import dataclasses
import hashlib
import os
import struct
import subprocess

from coordinator import Caller, grpc, message

SERVICE = "chainfleet.v1.WorkerService"


def _varint(data, at):
    value = shift = 0
    while True:
        value |= (data[at] & 127) << shift
        shift, at = shift + 7, at + 1
        if data[at - 1] < 128:
            return value, at


def fields(data):
    """The values of each field of a message by its number: integers, and bytes for all others."""
    found, at = {}, 0
    while at < len(data):
        key, at = _varint(data, at)
        if key & 7 == 0:
            value, at = _varint(data, at)
        else:
            size, at = {1: (8, at), 5: (4, at)}.get(key & 7) or _varint(data, at)
            value, at = data[at:at + size], at + size
        found.setdefault(key >> 3, []).append(value)
    return found


def reason_of(error):
    """The reason in the details of an error; empty without one."""
    status = dict(error.trailing_metadata() or ()).get("grpc-status-details-bin", b"")
    details = [fields(detail) for detail in fields(status).get(3, [])]
    return "".join(fields(detail[2][0])[1][0].decode() for detail in details if detail[1][0].endswith(b"ErrorInfo"))


def outcome(call):
    """Makes the call. Returns the name of its code and the reason of its error."""
    try:
        call()
        return "OK", ""
    except grpc.RpcError as error:
        return error.code().name, reason_of(error)


@dataclasses.dataclass
class Lease:
    """A chain that a server granted. Messages are bytes."""

    store: str
    chain: bytes
    epoch: int
    plan: dict

    def named(self):
        """The first two fields of messages that name a lease."""
        return message(f1=self.chain, f2=self.epoch)

    def object(self, data, size=None):
        """The BlobRef of a resume point of the chain with these bytes."""
        chain, digest = fields(self.chain), hashlib.sha256(data).hexdigest()
        name = f"{self.store}/{chain[1][0].decode()}/{chain.get(2, [0])[0]}/resume/e{self.epoch}-{digest}"
        return message(f1=name, f2=size or len(data), f3=digest)

    def shards(self):
        """The objects of the job's data set."""
        return [fields(shard)[3][0] for shard in fields(self.plan[3][0])[8]]


class JoinedWorker(Caller):
    def __init__(self, port, token, name, folder):
        super().__init__(port, token)
        self.name, self.seq, self._files = name, 0, os.path.join(folder, name)
        self._openssl("genpkey", "-algorithm", "ed25519", "-out", self._files + ".key")
        public_key = self._openssl("pkey", "-in", self._files + ".key", "-pubout", "-outform", "DER")[-32:]
        self.incarnation = hashlib.sha256(public_key).hexdigest()[:32]
        self.session = message(f1=name, f2=self.incarnation)
        signature = self._sign(f"chainfleet join\n{name}\n{self.incarnation}")
        joined = fields(self.work("Join", self.session + message(f3=public_key, f4=signature)))
        expires = fields(joined[2][0])[1][0] + 600  # by the server's clock
        proof = message(f1=joined[1][0], f2=expires, f3=self._sign(f"chainfleet proof\n{expires}"))
        self.metadata = [("chainfleet-worker-bin", proof)]

    def _openssl(self, *arguments):
        return subprocess.run(["openssl", *arguments], check=True, capture_output=True).stdout

    def _sign(self, text):
        with open(self._files + ".text", "w") as f:  # Ed25519 needs all of it at once, so openssl takes no pipe
            f.write(text)
        return self._openssl("pkeyutl", "-sign", "-rawin", "-inkey", self._files + ".key", "-in", self._files + ".text")

    def work(self, method, request):
        return self.call(method, request, service=SERVICE, timeout=30)

    def synchronize(self, chains=b""):
        """The fields of the reply. `chains`: the fields 8 and 9 of the request."""
        self.seq += 1
        request = message(f1=2) + message(f2=self.name, f3=self.incarnation, f4=self.seq, f5="host", f7=message(f1="cpu", f2=1 << 30, f3=1))
        return fields(self.work("Synchronize", request + chains))

    def granted(self):
        """The only lease that the server grants now."""
        reply = self.synchronize()
        [grant], [plan] = reply[4], reply[3]
        grant = fields(grant)
        return Lease(reply[2][0].decode(), grant[1][0], grant[2][0], fields(plan))

    def commit(self, lease, step, more=b"", speaker=None, **point):
        """The outcome of a commit of a resume point: f2 has its bytes, or f3 its object."""
        sha256 = hashlib.sha256(point["f2"]).hexdigest() if "f2" in point else fields(point["f3"])[3][0]
        request = (speaker or self.session) + message(f3=lease.chain, f4=lease.epoch, f5=message(f1=step, **point, f4=sha256))
        return outcome(lambda: self.work("CommitProgress", request + more))

    def _put(self, lease, blob, speaker=None):
        """The method, and the message that begins an upload of an object."""
        header = lease.named() + message(f3=blob, f4=speaker or self.session)
        return self.channel.stream_unary(f"/{SERVICE}/PutBlob"), message(f1=header)

    def put(self, lease, blob, data, speaker=None):
        made, header = self._put(lease, blob, speaker)
        return outcome(lambda: made(iter([header, message(f2=data)]), timeout=30, metadata=self.metadata))

    def begin(self, lease, blob, release):
        """An upload in flight that sends no byte until `release` is set."""
        made, header = self._put(lease, blob)

        def parts():
            yield header
            release.wait(60)

        return made.future(parts(), timeout=120, metadata=self.metadata)

    def read(self, blob):
        made = self.channel.unary_stream(f"/{SERVICE}/GetBlob")
        request = message(f1=blob, f2=self.session)
        return outcome(lambda: list(made(request, timeout=30, metadata=self.metadata)))

    def segment(self, blob, signature=None):
        """Fields of a commit: a segment of one draw in the object, signed by this worker unless there is a signature."""
        signed = self._sign("chainfleet segment\n" + fields(blob)[1][0].decode())
        one_draw = message(f2=b"\x01", f3=struct.pack("<d", 1), f4=b"\x01")
        return message(f6=one_draw + message(f5=blob, f6="0" * 64, f7="0" * 64),
                       f15=base64.b64encode(signed).decode() if signature is None else signature)

    def serve(self, session=None, release=None):
        """A stream of shards, over whose orders to iterate: open until `release` is set, or as short as it can be."""
        def updates():
            yield message(f1=(session or self.session) + message(f3=2))
            if release:
                release.wait(60)

        return self.channel.stream_stream(f"/{SERVICE}/ServeShards")(updates(), timeout=120, metadata=self.metadata)

    def sign_upload(self, lease, blob):
        """The URL to which the worker may put the object. Raises the error of the call."""
        reply = fields(self.work("SignUpload", lease.named() + message(f3=blob, f4=self.session)))
        return reply[1][0].decode()
