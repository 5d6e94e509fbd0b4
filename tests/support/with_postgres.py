"""Runs a command beside a real PostgreSQL server of its own, which ends with it.

    with_postgres.py COMMAND...        CHAINFLEET_TEST_POSTGRES=postgresql://... is in its environment

Nothing cuts the power of this machine: the server does not wait for the disk, so that hundreds of small databases are quick.
"""
import contextlib
import ctypes
import glob
import os
import pwd
import shutil
import signal
import subprocess
import sys
import tempfile

PR_SET_PDEATHSIG = 1


def _as_server_user():
    """The server refuses root; it gets the account its package made. It dies with us, whatever kills us."""
    if os.geteuid() == 0:
        user = pwd.getpwnam("postgres")
        os.setgid(user.pw_gid)
        os.setuid(user.pw_uid)
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGQUIT)


class Postgres:
    def __init__(self):
        self.folder = tempfile.mkdtemp(prefix="chainfleet-postgres-")
        self.process = None
        self.binaries = sorted(glob.glob("/usr/lib/postgresql/*/bin"))[-1]
        if os.geteuid() == 0:
            shutil.chown(self.folder, "postgres")
        subprocess.run([f"{self.binaries}/initdb", "-D", f"{self.folder}/data", "-A", "trust", "-U", "chainfleet", "--no-sync"],
                       check=True, stdout=subprocess.DEVNULL, preexec_fn=_as_server_user, cwd="/")
        self.uri = f"postgresql://chainfleet@%2F{self.folder.strip('/').replace('/', '%2F')}"

    def start(self):
        """Returns once connections are taken."""
        self.process = subprocess.Popen([f"{self.binaries}/postgres", "-D", f"{self.folder}/data", "-k", self.folder, "-c",
                                         "listen_addresses=", "-c", "fsync=off"], stderr=subprocess.PIPE, text=True, preexec_fn=_as_server_user, cwd="/")
        log = []
        for line in self.process.stderr:
            log.append(line)
            if "ready to accept connections" in line:
                self.process.stderr.close()
                return
        raise RuntimeError("PostgreSQL did not start:\n" + "".join(log))

    def kill(self):
        """As a power cut: the server and all its processes at once."""
        self.process.send_signal(signal.SIGQUIT)
        self.process.wait(30)

    def close(self):
        if self.process and self.process.poll() is None:
            self.kill()
        shutil.rmtree(self.folder)


@contextlib.contextmanager
def running_postgres():
    server = Postgres()
    try:
        server.start()
        yield server
    finally:
        server.close()


if __name__ == "__main__":
    with running_postgres() as server:
        sys.exit(subprocess.run(sys.argv[1:], env={**os.environ, "CHAINFLEET_TEST_POSTGRES": server.uri}).returncode)
