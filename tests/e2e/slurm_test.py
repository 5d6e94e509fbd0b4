"""Workers as jobs of a real Slurm: submitted when chains wait, ended when idle, found again after a restart."""
import json
import os
import subprocess
import tempfile
import time
import unittest
import urllib.request

import fleet as fleets
import with_slurm
from journeys_test import JOB

SCRIPT = os.path.abspath(os.path.join(os.path.dirname(__file__), "..", "..", "deploy", "slurm", "chainfleet-worker.sbatch"))
USAGE = 2
WITHOUT_SLURM = with_slurm.why_not()
GONE = ("COMPLETED", "CANCELLED", "FAILED", "TIMEOUT")


class SlurmFleet(fleets.Fleet):
    """A server started by hand, in the environment of this Slurm; no workers but those that Slurm runs."""

    def __init__(self, slurm):
        super().__init__(workers=0)
        self.slurm = slurm
        self.server = None
        os.mkdir(self.path("run"))
        # Settings of a cluster's login node: the folder of the programs, and of the output of jobs.
        self.environment = {**slurm.environment, "CHAINFLEET_BIN": fleets.BIN, "SBATCH_OUTPUT": self.path("run", "slurm-%j.log")}

    def start_server(self, *scale):
        log = open(self.path("run", "server.log"), "a")
        ports = self.path("run", "ports.json")
        if os.path.exists(ports):
            os.remove(ports)
        # A port of its own choice would be another one after a restart.
        listen = self.address or "127.0.0.1:0"
        self.server = subprocess.Popen(
            [os.path.join(fleets.BIN, "chainfleet-server"), "--data-dir", self.path("data"), "--listen", listen, "--metrics-listen",
             "127.0.0.1:0", "--http-listen", "off", "--lease", "3s", "--port-file", ports, *scale], stderr=log, stdout=log, env={**os.environ, **self.environment})
        log.close()
        self.wait_for("the server", lambda: os.path.exists(ports) or self.server.poll() is not None)
        with open(ports) as f:
            told = json.load(f)
        self.address, self.metrics_address = f"127.0.0.1:{told['grpc']}", f"127.0.0.1:{told['metrics']}"

    def wait_for(self, what, satisfied, seconds=120):
        end = time.monotonic() + seconds
        while not (answer := satisfied()):
            if time.monotonic() > end:
                raise AssertionError(f"no {what}\n{self.slurm.jobs()}\n{self.logs()}\n{self.slurm.logs()}")
            time.sleep(0.2)
        return answer

    def targets(self):
        """Where Prometheus is told that workers are."""
        with urllib.request.urlopen(f"http://{self.metrics_address}/sd", timeout=10) as reply:
            return [target for group in json.load(reply) for target in group["targets"]]

    def metrics(self):
        with urllib.request.urlopen(f"http://{self.metrics_address}/metrics", timeout=10) as reply:
            lines = [line.rsplit(" ", 1) for line in reply.read().decode().split("\n") if line and not line.startswith("#")]
        return {name: float(value) for name, value in lines}

    def kill_server(self):
        if self.server:
            self.server.kill()
            self.server.wait(10)

    def close(self):
        self.kill_server()
        super().close()


@unittest.skipIf(WITHOUT_SLURM, WITHOUT_SLURM)
class SlurmTest(unittest.TestCase):
    def setUp(self):
        self.slurm = with_slurm.Slurm()
        self.addCleanup(self.slurm.close)
        self.slurm.start()
        self.fleet = SlurmFleet(self.slurm)
        self.addCleanup(self.fleet.close)


class Elastic(SlurmTest):
    SCALE = ["--scale", "slurm", "--scale-script", SCRIPT, "--scale-chains", "2", "--scale-max", "3", "--scale-idle", "3s"]

    def count(self, state):
        return self.fleet.metrics().get(f'chainfleet_scale_workers{{state="{state}"}}')

    def states(self):
        return sorted(self.slurm.jobs().values())

    def test_workers_come_with_chains_and_go_without(self):
        self.fleet.start_server(*self.SCALE)
        self.fleet.put_fashion("fashion", 2000)
        self.assertEqual(self.slurm.jobs(), {})
        job = self.fleet.submit(JOB.format(name="elastic", epochs=40, keep=4))
        self.fleet.run("wait", job, "--timeout", "240s", check=True)
        self.assertEqual(len(self.slurm.jobs()), 2, "4 chains, 2 of them on each worker")
        self.fleet.wait_for("end of all workers", lambda: self.states() == ["COMPLETED", "COMPLETED"])
        self.fleet.wait_for("metrics of it", lambda: self.count("running") == 0 and self.count("ending") == 0)
        metrics = self.fleet.metrics()
        self.assertEqual(self.count("desired"), 0)
        self.assertEqual(metrics["chainfleet_scale_errors_total"], 0)
        self.assertEqual(metrics["chainfleet_scale_lost_jobs_total"], 0)
        self.assertEqual(metrics["chainfleet_waiting_chains"], 0)
        self.assertIn("handing chains back", self.fleet.logs(), "the workers were drained")

    def test_a_restarted_server_finds_its_workers_again(self):
        self.fleet.start_server(*self.SCALE)
        self.fleet.put_fashion("fashion", 2000)
        job = self.fleet.submit(JOB.format(name="restarted", epochs=120, keep=10))
        # Running, to Slurm, is also a job whose srun has yet to ask the controller that is stopped next.
        self.fleet.wait_for("workers", lambda: self.fleet.metrics()["chainfleet_workers"] == 2)
        self.assertEqual(self.states(), ["RUNNING", "RUNNING"])
        self.assertEqual(len(set(self.fleet.targets())), 2, "two workers of one host have a metrics port each")
        self.fleet.kill_server()
        self.slurm.stop_controller()
        self.fleet.start_server(*self.SCALE)
        self.fleet.wait_for("an error", lambda: self.fleet.metrics().get("chainfleet_scale_errors_total", 0) > 0)
        self.slurm.start_controller()
        self.fleet.run("wait", job, "--timeout", "240s", check=True)
        self.fleet.wait_for("end of all workers", lambda: self.states() == ["COMPLETED", "COMPLETED"])


    def test_a_worker_that_cannot_reach_the_server_is_given_up(self):
        nobody = "127.0.0.1:1"
        self.fleet.start_server(*self.SCALE, "--advertise", nobody, "--scale-join", "3s")
        self.fleet.put_fashion("fashion", 2000)
        self.fleet.submit(JOB.format(name="alone", epochs=40, keep=4))
        lost = "chainfleet_scale_lost_jobs_total"
        self.fleet.wait_for("loss", lambda: self.fleet.metrics().get(lost, 0) >= 2)
        self.fleet.wait_for("end of the jobs", lambda: "CANCELLED" in self.states())
        self.assertIn("workers never joined", self.fleet.logs())


class BatchScript(SlurmTest):
    def test_several_tasks_of_one_job_are_several_workers(self):
        self.fleet.start_server()
        self.fleet.put_fashion("fashion", 2000)
        told = {**os.environ, **self.fleet.environment, "CHAINFLEET_ADDRESS": f"127.0.0.1:1,{self.fleet.address}"}
        batch = subprocess.run(["sbatch", "--parsable", "--ntasks=2", SCRIPT], env=told, capture_output=True, text=True, check=True)
        number = batch.stdout.strip()
        job = self.fleet.submit(JOB.format(name="by-hand", epochs=40, keep=4))
        self.fleet.run("wait", job, "--timeout", "240s", check=True)
        workers = set(self.fleet.run("get", "workers", "-o", "name", check=True).stdout.split())
        self.assertEqual(workers, {f"slurm-{number}-0", f"slurm-{number}-1"})
        self.slurm.run("scancel", "--signal=TERM", number)
        self.fleet.wait_for("end of the job", lambda: self.slurm.jobs()[number] in GONE)
        self.assertEqual(self.slurm.jobs()[number], "COMPLETED")

    def test_it_says_what_it_needs(self):
        environment = {key: value for key, value in {**os.environ, **self.fleet.environment}.items() if key != "CHAINFLEET_ADDRESS"}
        subprocess.run(["sbatch", "--wait", SCRIPT], env=environment, capture_output=True, text=True)
        self.assertIn("say where the coordinators are", self.fleet.logs())


class Refusals(unittest.TestCase):
    def refused(self, *flags, path=os.environ["PATH"]):
        with tempfile.TemporaryDirectory() as folder:
            done = subprocess.run([os.path.join(fleets.BIN, "chainfleet-server"), "--data-dir", folder, "--scale", "slurm", *flags],
                                  capture_output=True, text=True, timeout=60, env={**os.environ, "PATH": path})
        self.assertEqual(done.returncode, USAGE, done.stderr)
        return done.stderr

    def test_a_wrong_flag_is_told_before_anything_starts(self):
        self.assertIn("needs --scale-script", self.refused())
        self.assertIn("/no/such.sbatch", self.refused("--scale-script", "/no/such.sbatch"))
        self.assertIn("does not begin with #!", self.refused("--scale-script", __file__))
        self.assertIn("--scale-min 5 is above --scale-max 2",
                      self.refused("--scale-script", SCRIPT, "--scale-min", "5", "--scale-max", "2"))
        self.assertIn("--scale-idle soon", self.refused("--scale-script", SCRIPT, "--scale-idle", "soon"))
        self.assertIn("--scale-join 0s", self.refused("--scale-script", SCRIPT, "--scale-join", "0s"))
        self.assertIn("sbatch is not in PATH", self.refused("--scale-script", SCRIPT, path="/no-such-folder"))


if __name__ == "__main__":
    unittest.main(verbosity=2)
