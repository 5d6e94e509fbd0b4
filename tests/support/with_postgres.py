"""Runs a command beside a real PostgreSQL server of its own, which ends with it.

    with_postgres.py [--durable] COMMAND...        CHAINFLEET_TEST_POSTGRES=postgresql://... is in its environment

Nothing cuts the power of this machine: the server does not wait for the disk, so that hundreds of small databases are quick;
--durable: it does, for measurements.
"""
import contextlib
import glob
import os
import pwd
import shutil
import select
import signal
import subprocess
import sys

from real_server import RealServer, free_ports, run_beside


class Postgres(RealServer):
    """On a socket in its folder, or with `host`, of the network `network`, at a port of that.

    `pki`: a folder with server.crt and server.key. The network gets in by TLS only.
    """

    kill_signal = signal.SIGQUIT  # it ends its processes itself where we die first

    @classmethod
    def _as_server_user(cls):
        """The server refuses root; it gets the account its package made."""
        if os.geteuid() == 0:
            user = pwd.getpwnam("postgres")
            os.setgid(user.pw_gid)
            os.setuid(user.pw_uid)
        cls.die_with_parent()  # forgotten when the user changes: last

    def __init__(self, durable=False, host="", network="", pki=""):
        super().__init__("postgres")
        self.binaries = sorted(glob.glob("/usr/lib/postgresql/*/bin"))[-1]
        if os.geteuid() == 0:
            shutil.chown(self.folder, "postgres")
        subprocess.run([f"{self.binaries}/initdb", "-D", f"{self.folder}/data", "-A", "trust", "-U", "chainfleet", "--no-sync"],
                       check=True, stdout=subprocess.DEVNULL, preexec_fn=self._as_server_user, cwd="/")
        port, = free_ports(1)
        # Shared memory is in files of the folder: a server that is killed leaves nothing in /dev/shm.
        self.settings = [f"fsync={'on' if durable else 'off'}", f"listen_addresses={host}", f"port={port}",
                         "dynamic_shared_memory_type=mmap"]
        if host:
            with open(f"{self.folder}/data/pg_hba.conf", "w" if pki else "a") as f:
                f.write(f"{'hostssl' if pki else 'host'} all all {network} trust\n")
        if pki:
            self.settings += ["ssl=on", *(f"ssl_{kind}_file={self.own(f'{pki}/server.{end}')}" for kind, end in (("cert", "crt"), ("key", "key")))]
        self.uri = f"postgresql://chainfleet@{host or '%2F' + self.folder.strip('/').replace('/', '%2F')}:{port}"

    def own(self, path):
        """A copy that only the server may read: it refuses a key that others own."""
        copy = shutil.copy(path, self.folder)
        os.chmod(copy, 0o600)
        if os.geteuid() == 0:
            shutil.chown(copy, "postgres")
        return copy

    def start(self):
        """Returns once connections are taken."""
        self.process = subprocess.Popen([f"{self.binaries}/postgres", "-D", f"{self.folder}/data", "-k", self.folder,
                                         *(word for setting in self.settings for word in ("-c", setting))],
                                        stderr=subprocess.PIPE, text=True, preexec_fn=self._as_server_user, cwd="/")
        log = []
        for line in self.process.stderr:
            log.append(line)
            if "ready to accept connections" in line:
                self.process.stderr.close()
                return
        raise RuntimeError("PostgreSQL did not start:\n" + "".join(log))

    def answer(self, query):
        return subprocess.run([f"{self.binaries}/psql", "-XAt", f"{self.uri}/postgres", "-c", query],
                              capture_output=True, text=True, timeout=30, check=True).stdout.strip()

    def kill(self):
        """SIGKILL to all its processes, none of which sees another one die first."""
        pid = self.process.pid
        self.process.send_signal(signal.SIGSTOP)  # it starts no more of them
        with open(f"/proc/{pid}/task/{pid}/children") as f:
            children = [int(child) for child in f.read().split()]
        ends = [os.pidfd_open(child) for child in children]
        self.process.kill()
        for child in children:
            with contextlib.suppress(ProcessLookupError):  # it had ended, and waited for its parent to see it
                os.kill(child, signal.SIGKILL)
        self.process.wait(30)
        for end in ends:
            select.select([end], [], [], 30)
            os.close(end)


if __name__ == "__main__":
    durable = sys.argv[1:2] == ["--durable"]
    if durable:
        del sys.argv[1]
    beside = Postgres(durable)
    run_beside(beside, {"CHAINFLEET_TEST_POSTGRES": beside.uri})
