"""Runs a command beside a real S3 server of its own (SeaweedFS), which ends with it.

    with_s3.py COMMAND...      AWS_ENDPOINT_URL, AWS_ACCESS_KEY_ID, ... and CHAINFLEET_TEST_S3=s3://BUCKET are in its environment

deploy/install_deps.sh puts the server into the cache folder. It lives in memory where the machine has a folder for that.
"""
import datetime
import hashlib
import hmac
import http.client
import json
import os
import ssl
import subprocess
import time

from real_server import RealServer, free_ports, run_beside

PROGRAM = os.path.join(os.environ.get("CHAINFLEET_DEPS") or os.path.expanduser("~/.cache/chainfleet"), "seaweedfs-4.48/bin/weed")
BUCKET = "chainfleet"
ADMIN = {"AWS_ACCESS_KEY_ID": "admin", "AWS_SECRET_ACCESS_KEY": "secret-of-admin"}
READER = {"AWS_ACCESS_KEY_ID": "reader", "AWS_SECRET_ACCESS_KEY": "secret-of-reader"}
ACTIONS = {"admin": ["Admin", "Read", "List", "Tagging", "Write"], "reader": [f"Read:{BUCKET}", f"List:{BUCKET}"]}
READY_WITHIN_SECONDS = 60


class S3Server(RealServer):
    """`pki`: a folder with server.crt, server.key and ca.crt. The server then speaks HTTPS only."""

    def __init__(self, pki=""):
        super().__init__("s3", parent="/dev/shm" if os.path.isdir("/dev/shm") else None)
        roles = ["master.port", "master.port.grpc", "volume.port", "volume.port.grpc", "filer.port", "filer.port.grpc", "s3.port",
                 "s3.port.grpc"]
        self.ports = dict(zip(roles, free_ports(len(roles))))
        self.address = f"127.0.0.1:{self.ports['s3.port']}"
        self.pki = pki
        self.environment = {**ADMIN, "AWS_ENDPOINT_URL": f"{'https' if pki else 'http'}://{self.address}", "AWS_REGION": "us-east-1",
                            "NO_PROXY": "127.0.0.1", **({"AWS_CA_BUNDLE": f"{pki}/ca.crt"} if pki else {})}
        identities = [{"name": who["AWS_ACCESS_KEY_ID"], "actions": ACTIONS[who["AWS_ACCESS_KEY_ID"]], "credentials": [
            {"accessKey": who["AWS_ACCESS_KEY_ID"], "secretKey": who["AWS_SECRET_ACCESS_KEY"]}]} for who in (ADMIN, READER)]
        with open(self.path("identities.json"), "w") as f:
            json.dump({"identities": identities}, f)

    def path(self, *parts):
        return os.path.join(self.folder, *parts)

    def start(self):
        """Returns once objects can be written to the bucket."""
        if not os.path.exists(PROGRAM):
            raise RuntimeError(f"{PROGRAM} is not there: run deploy/install_deps.sh --with-tests")
        os.makedirs(self.path("data"), exist_ok=True)
        # Sockets below our own folder, so that nothing is shared with another run.
        with open(self.path("weed.log"), "ab") as log:
            self.process = subprocess.Popen(
                [PROGRAM, "-logtostderr", "server", "-ip=127.0.0.1", "-ip.bind=127.0.0.1", "-dir=" + self.path("data"), "-filer",
                 "-s3", "-s3.config=" + self.path("identities.json"), "-s3.autoCreateBucket=false", "-s3.port.iceberg=0", "-s3.port.lance=0",
                 "-s3.localSocket=" + self.path("s3.sock"), "-filer.localSocket=" + self.path("filer.sock"), "-master.telemetry=false",
                 "-master.volumeSizeLimitMB=256", "-volume.max=20", "-volume.minFreeSpace=10MiB",
                 *(f"-{role}={port}" for role, port in self.ports.items()),
                 *([f"-s3.cert.file={self.pki}/server.crt", f"-s3.key.file={self.pki}/server.key"] if self.pki else [])],
                stdout=log, stderr=log, preexec_fn=self.die_with_parent, cwd=self.folder)
        give_up = time.monotonic() + READY_WITHIN_SECONDS
        while not (self.status_of("PUT", "") in (200, 409) and self.status_of("PUT", "/.ready", b"x") == 200):
            if self.process.poll() is not None or time.monotonic() > give_up:
                with open(self.path("weed.log"), errors="replace") as log:
                    raise RuntimeError("SeaweedFS did not start:\n" + "".join(log.readlines()[-30:]))
            time.sleep(0.1)

    def connection(self):
        if not self.pki:
            return http.client.HTTPConnection(self.address, timeout=5)
        return http.client.HTTPSConnection(self.address, timeout=5, context=ssl.create_default_context(cafile=f"{self.pki}/ca.crt"))

    def status_of(self, method, key, body=b""):
        """The answer to a signed request for /BUCKET + key; None without one. An object needs a volume of the server, a bucket none."""
        now = datetime.datetime.now(datetime.timezone.utc).strftime("%Y%m%dT%H%M%SZ")
        payload = hashlib.sha256(body).hexdigest()
        scope = f"{now[:8]}/us-east-1/s3/aws4_request"
        signed = "host;x-amz-content-sha256;x-amz-date"
        request = f"{method}\n/{BUCKET}{key}\n\nhost:{self.address}\nx-amz-content-sha256:{payload}\nx-amz-date:{now}\n\n{signed}\n{payload}"
        digest = ("AWS4" + ADMIN["AWS_SECRET_ACCESS_KEY"]).encode()
        for part in (*scope.split("/"), f"AWS4-HMAC-SHA256\n{now}\n{scope}\n{hashlib.sha256(request.encode()).hexdigest()}"):
            digest = hmac.new(digest, part.encode(), hashlib.sha256).digest()
        connection = self.connection()
        try:
            connection.request(method, f"/{BUCKET}{key}", body, {
                "x-amz-content-sha256": payload, "x-amz-date": now, "Authorization":
                f"AWS4-HMAC-SHA256 Credential={ADMIN['AWS_ACCESS_KEY_ID']}/{scope}, SignedHeaders={signed}, Signature={digest.hex()}"})
            return connection.getresponse().status
        except OSError:
            return None
        finally:
            connection.close()


if __name__ == "__main__":
    beside = S3Server()
    run_beside(beside, {**beside.environment, "CHAINFLEET_TEST_S3": f"s3://{BUCKET}"})
