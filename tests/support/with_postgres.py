"""Runs a command beside a real PostgreSQL server of its own, which ends with it.

    with_postgres.py COMMAND...        CHAINFLEET_TEST_POSTGRES=postgresql://... is in its environment

Nothing cuts the power of this machine: the server does not wait for the disk, so that hundreds of small databases are quick.
"""
import glob
import os
import pwd
import shutil
import signal
import subprocess

from real_server import RealServer, run_beside


class Postgres(RealServer):
    kill_signal = signal.SIGQUIT

    @classmethod
    def _as_server_user(cls):
        """The server refuses root; it gets the account its package made."""
        if os.geteuid() == 0:
            user = pwd.getpwnam("postgres")
            os.setgid(user.pw_gid)
            os.setuid(user.pw_uid)
        cls.die_with_parent()  # forgotten when the user changes: last

    def __init__(self):
        super().__init__("postgres")
        self.binaries = sorted(glob.glob("/usr/lib/postgresql/*/bin"))[-1]
        if os.geteuid() == 0:
            shutil.chown(self.folder, "postgres")
        subprocess.run([f"{self.binaries}/initdb", "-D", f"{self.folder}/data", "-A", "trust", "-U", "chainfleet", "--no-sync"],
                       check=True, stdout=subprocess.DEVNULL, preexec_fn=self._as_server_user, cwd="/")
        self.uri = f"postgresql://chainfleet@%2F{self.folder.strip('/').replace('/', '%2F')}"

    def start(self):
        """Returns once connections are taken."""
        self.process = subprocess.Popen([f"{self.binaries}/postgres", "-D", f"{self.folder}/data", "-k", self.folder, "-c",
                                         "listen_addresses=", "-c", "fsync=off"], stderr=subprocess.PIPE, text=True, preexec_fn=self._as_server_user, cwd="/")
        log = []
        for line in self.process.stderr:
            log.append(line)
            if "ready to accept connections" in line:
                self.process.stderr.close()
                return
        raise RuntimeError("PostgreSQL did not start:\n" + "".join(log))


if __name__ == "__main__":
    beside = Postgres()
    run_beside(beside, {"CHAINFLEET_TEST_POSTGRES": beside.uri})
