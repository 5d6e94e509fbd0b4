"""Runs a command beside a real Slurm of its own (munged, slurmctld, slurmd with one node), which ends with it.

    with_slurm.py COMMAND...      SLURM_CONF is in its environment: sbatch, squeue and scancel talk to this Slurm

Needs root, as slurmd does. Jobs are not bound to cores or memory, so that no cgroup is asked for. The node has a process
namespace of its own: whatever a job started ends with it, even when we are killed.
"""
import os
import shutil
import socket
import subprocess
import time

from real_server import RealServer, free_ports, run_beside

READY_WITHIN_SECONDS = 60
# With a /proc that shows them alone, mounted where nobody else sees it; this works in a changed root, too.
OWN_PROCESSES = ["unshare", "--pid", "--mount", "--propagation=unchanged", "--fork", "--kill-child=SIGKILL", "sh", "-c",
                 'mount --make-private /proc && mount -t proc proc /proc && exec "$0" "$@"']
CONFIGURATION = """
ClusterName=chainfleet-test
SlurmctldHost={host}(127.0.0.1)
SlurmUser=root
SlurmctldPort={controller_port}
SlurmdPort={node_port}
AuthType=auth/munge
AuthInfo=socket={folder}/munge.socket
CredType=cred/munge
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/slurmd.pid
SlurmctldLogFile={folder}/slurmctld.log
SlurmdLogFile={folder}/slurmd.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
MpiDefault=none
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
ReturnToService=2
SlurmdParameters=config_overrides
SchedulerParameters=batch_sched_delay=0,sched_min_interval=0
NodeName=node1 NodeHostname={host} NodeAddr=127.0.0.1 CPUs=16 RealMemory=262144 State=UNKNOWN
PartitionName=main Nodes=node1 Default=YES MaxTime=INFINITE State=UP
"""


def why_not():
    """Why no Slurm can run here, or None."""
    if os.geteuid() != 0:
        return "slurmd needs root"
    missing = [program for program in ("munged", "slurmctld", "slurmd", "sbatch") if not shutil.which(program, path="/usr/sbin:/usr/bin")]
    if missing:
        return f"not installed: {', '.join(missing)}"
    tried = subprocess.run([*OWN_PROCESSES, "true"], capture_output=True, text=True)
    return None if tried.returncode == 0 else f"no process namespace for the node: {tried.stderr.strip()}"


class Slurm(RealServer):
    def __init__(self):
        super().__init__("slurm")
        os.chmod(self.folder, 0o755)  # munge refuses a socket that others cannot reach
        os.mkdir(self.path("state"))
        os.mkdir(self.path("spool"))
        with open(os.open(self.path("munge.key"), os.O_WRONLY | os.O_CREAT, 0o400), "wb") as f:
            f.write(os.urandom(128))
        controller_port, node_port = free_ports(2)
        with open(self.path("slurm.conf"), "w") as f:
            f.write(CONFIGURATION.format(folder=self.folder, host=socket.gethostname().split(".")[0], controller_port=controller_port,
                                         node_port=node_port))
        self.environment = {"SLURM_CONF": self.path("slurm.conf")}
        self.processes = {}

    def path(self, *parts):
        return os.path.join(self.folder, *parts)

    def run(self, *command):
        """The finished Slurm command; its output."""
        return subprocess.run(command, env={**os.environ, **self.environment}, check=True, capture_output=True, text=True, timeout=30).stdout

    def _begin(self, name, *arguments, inside=()):
        with open(self.path(name + ".out"), "ab") as log:
            self.processes[name] = subprocess.Popen([*inside, "/usr/sbin/" + name, *arguments], env={**os.environ, **self.environment}, stdout=log,
                                                    stderr=log, preexec_fn=self.die_with_parent, cwd=self.folder)

    def _wait_for(self, what, satisfied):
        give_up = time.monotonic() + READY_WITHIN_SECONDS
        while not satisfied():
            ended = [name for name, process in self.processes.items() if process.poll() is not None]
            if ended or time.monotonic() > give_up:
                raise RuntimeError(f"no {what}; ended: {ended}\n{self.logs()}")
            time.sleep(0.1)

    def _node_is_idle(self):
        said = subprocess.run(["sinfo", "--noheader", "--format=%T"], env={**os.environ, **self.environment}, capture_output=True, text=True)
        return said.stdout.strip() in ("idle", "mixed", "allocated")

    def start(self):
        """Returns once a job can run."""
        self._begin("munged", "--foreground", "--key-file", self.path("munge.key"), "--socket", self.path("munge.socket"), "--pid-file",
                    self.path("munge.pid"), "--log-file", self.path("munged.log"), "--seed-file", self.path("munge.seed"))
        self._wait_for("munge", lambda: os.path.exists(self.path("munge.socket")))
        self.start_controller()
        self._begin("slurmd", "-D", "-N", "node1", "-f", self.path("slurm.conf"), inside=OWN_PROCESSES)
        self._wait_for("node", self._node_is_idle)

    def start_controller(self):
        self._begin("slurmctld", "-D", "-f", self.path("slurm.conf"))

    def stop_controller(self):
        """In order: it saves what it knows of its jobs."""
        process = self.processes.pop("slurmctld")
        process.terminate()
        process.wait(30)

    def jobs(self, states="all"):
        """State by job id of what Slurm knows."""
        lines = self.run("squeue", "--noheader", f"--states={states}", "--format=%A %T").split("\n")
        return dict(line.split() for line in lines if line)

    def logs(self):
        text = ""
        for name in sorted(os.listdir(self.folder)):
            if name.endswith((".out", ".log", ".txt")):
                with open(self.path(name), errors="replace") as f:
                    text += f"--- {name}\n" + "".join(f.readlines()[-15:])
        return text

    def close(self):
        for process in self.processes.values():
            process.kill()
            process.wait(30)
        shutil.rmtree(self.folder)


if __name__ == "__main__":
    beside = Slurm()
    run_beside(beside, beside.environment)
