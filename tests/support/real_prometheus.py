"""Debian's Prometheus over a real fleet, with the configuration and the rules of deploy/prometheus."""
import json
import os
import shutil
import subprocess
import time
import urllib.error
import urllib.request

from real_server import RealServer, free_ports

DEPLOYED = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "deploy", "prometheus")
READY_WITHIN_SECONDS = 60


class RealPrometheus(RealServer):
    """Scrapes the servers whose metrics are at these addresses, and the workers that the first lists, each second."""

    def __init__(self, *metrics_addresses):
        super().__init__("prometheus")
        self.url = f"http://127.0.0.1:{free_ports(1)[0]}"
        for rules in ("recording_rules.yml", "alert_rules.yml"):
            shutil.copy(os.path.join(DEPLOYED, rules), self.folder)
        with open(os.path.join(DEPLOYED, "prometheus.yml")) as f:
            text = f.read()
        with open(self.path("prometheus.yml"), "w") as f:
            text = text.replace('["127.0.0.1:7401"]', json.dumps(metrics_addresses))
            f.write(text.replace("127.0.0.1:7401", metrics_addresses[0]).replace("interval: 15s", "interval: 1s"))

    def path(self, name):
        return os.path.join(self.folder, name)

    def start(self):
        """Returns once it answers queries."""
        with open(self.path("log"), "ab") as log:
            self.process = subprocess.Popen(
                ["prometheus", "--config.file=" + self.path("prometheus.yml"), "--storage.tsdb.path=" + self.path("data"),
                 "--web.listen-address=" + self.url.partition("//")[2]],
                stdout=log, stderr=log, preexec_fn=self.die_with_parent, cwd=self.folder)
        give_up = time.monotonic() + READY_WITHIN_SECONDS
        while not self._is_ready():
            if self.process.poll() is not None or time.monotonic() > give_up:
                raise RuntimeError("Prometheus did not start:\n" + self.log())
            time.sleep(0.1)

    def _is_ready(self):
        try:
            with urllib.request.urlopen(self.url + "/-/ready", timeout=5) as reply:
                return reply.status == 200
        except (urllib.error.URLError, OSError):
            return False

    def log(self):
        with open(self.path("log"), errors="replace") as f:
            return "".join(f.readlines()[-30:])
