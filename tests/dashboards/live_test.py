"""Every query of every panel and rule, sent to Debian's Prometheus while it scrapes a real fleet at work."""
import contextlib
import math
import os
import re
import tempfile
import time
import unittest
import urllib.request
import xml.etree.ElementTree

import deployed
import fleet as fleets
import preview
from prometheus_http import Prometheus
from public_client import triton  # before numpy: it says where that is
from real_prometheus import RealPrometheus
from real_server import free_ports
from started_fleet import StartedFleet
import numpy
from tritonclient.utils import InferenceServerException

NVML_STUB = os.path.join(fleets.BIN, "..", "tests", "nvml_stub.so")  # this host's GPUs, if any, are not for tests
PATIENCE = 150  # seconds with all at work until everything has been seen once
KEPT_PREVIEWS = os.environ.get("CHAINFLEET_KEEP_PREVIEWS")  # docs/guides/pictures, to draw those of the docs again
AT_LEAST = 90 if KEPT_PREVIEWS else 0  # seconds that pictures show
SLOTS = 4  # slots of each of two workers
NOTHING_WRONG_HERE = {"fleet: Targets down", "fleet: Alerts firing"}  # rightly without data
# Two that run on, as long as anybody looks: they fill all slots but two.
EMCMC = """
name: watched-emcmc
model: {potential: {gaussian: {dimension: 1000, precision: 1}}}
sampler: {emcmc: {eta: 0.5}}
step_size: {constant: 0.05}
num_steps: 12000000
burn_in: {steps: 300}
chains: 2
collect: {every_steps: 3000, kinds: [theta, theta_a]}
seed: 5
"""
METROPOLIS = """
name: watched-metropolis
model: {potential: {gaussian: {dimension: 100, precision: 1}}}
sampler: {random_walk: {}}
step_size: {constant: 0.2}
num_steps: 12000000
burn_in: {steps: 300}
chains: 4
collect: {every_steps: 5000}
seed: 6
"""
METROPOLIS += f"init: {{theta: {[0] * 100 + [0.1] * 100}}}\n"  # chains that share their starts have a nested R-hat
# Takes the rest of the slots and one more: somebody gives way.
URGENT = """
name: urgent
model: {potential: {gaussian: {dimension: 10, precision: 1}}}
sampler: {sgld: {}}
step_size: {constant: 0.1}
num_steps: 20000
chains: 3
collect: {every_steps: 5000}
scheduling: {priority: high}
seed: 7
"""
NETWORK = """
name: digits
model: {builtin: softmax_regression}
dataset: {name: fashion}
sampler: {sgld: {}}
learning_rate: {constant: 0.01}
temperature: 1.0e-4
batch_size: 50
num_epochs: 4
chains: 2
collect: {last_epochs_of_cycle: 2}
"""


def bare(where, expr):
    """Without the 0 that stands for no data: it would hide that there never is any."""
    return expr if where in NOTHING_WRONG_HERE else re.sub(r"\s+or vector\(0\)", "", expr)


def page_of(address):
    with urllib.request.urlopen(f"http://{address}/metrics", timeout=10) as reply:
        return reply.read().decode()


def types_on(page):
    """(metric, type) of each that a scrape has."""
    return re.findall(r"^# TYPE (\S+) (\S+)$", page, re.M)


class WatchedFleet(StartedFleet):
    """A server with a certificate, two workers whose metrics it lists, and jobs of all kinds."""

    def start_secured_server(self):
        self.pki("init")
        self.pki("issue", "server", "--host", "127.0.0.1")
        self.environment["CHAINFLEET_CA_FILE"] = self.path("pki", "ca.crt")
        self.start_server(0, "--tls-cert", self.path("pki", "server.crt"), "--tls-key", self.path("pki", "server.key"))

    def start_workers(self):
        for i, port in enumerate(free_ports(2)):
            self.start(f"worker-{i}", "chainfleet-worker", "--server", self.address, "--threads", "1", "--id", f"worker-{i}",
                       "--chain-slots", str(SLOTS), "--metrics-port", str(port), "--nvml", NVML_STUB)
        self.wait_until(0, lambda _: sum(w.get("serving", False) for w in self.json("get", "workers").get("workers", [])) == 2)

    def start_jobs(self):
        self.put_fashion("fashion", 500)
        self.network = self.submit(NETWORK)
        self.run("wait", self.network, "--timeout", "120s", check=True)
        self.images = numpy.random.default_rng(1).integers(0, 256, (5, 1, 28, 28), dtype=numpy.uint8)
        fleets.write_npy(self.path("x.npy"), "|u1", self.images.shape, self.images.tobytes())
        self.running = [self.submit(EMCMC), self.submit(METROPOLIS)]
        for job in self.running:
            self.wait_for_draws(job, 1)
        self.run("wait", self.submit(URGENT), "--timeout", "120s", check=True)

    def ask(self):
        """One call of each kind that panels count: predictions by both protocols, an evaluation, one that is refused, and, until
        one is counted, some that come too late."""
        self.run("predict", self.network, "--input", self.path("x.npy"), check=True)
        with triton.InferenceServerClient(self.address, ssl=True, root_certificates=self.path("pki", "ca.crt")) as client:
            given = triton.InferInput("x", list(self.images.shape), "UINT8")
            given.set_data_from_numpy(self.images)
            client.infer(self.network, [given])
            if not re.search(r'handled_total{code="DEADLINE_EXCEEDED",method="[^"]*/ModelInfer"}', self.metrics()):
                for seconds in (0.002, 0.004, 0.008):  # the shortest may end before it is sent, the longest may be answered
                    with contextlib.suppress(InferenceServerException):
                        client.infer(self.network, [given], client_timeout=seconds)
        self.run("evaluate", self.network, "--dataset", "fashion", check=True)
        self.run("describe", "nowhere")


class Live(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.fleet = WatchedFleet(lease="5s")
        cls.addClassCleanup(cls.fleet.close)
        cls.fleet.start_secured_server()
        cls.fleet.wait_until_served()
        server = RealPrometheus(cls.fleet.metrics_addresses[0])
        cls.addClassCleanup(server.close)
        server.start()
        cls.prometheus = Prometheus(server.url)
        cls.began = time.time()
        cls.fleet.wait_until(0, lambda _: cls.answered("rate(chainfleet_leases_granted_total[$__rate_interval])"))
        cls.silent_when_empty = cls.figures_without_a_number()
        cls.fleet.start_workers()
        cls.fleet.wait_until(0, lambda _: len(cls.targets()) == 3)  # before there are jobs: counters are seen at 0
        cls.fleet.start_jobs()
        cls.missing = cls.until_all_is_answered()

    @classmethod
    def targets(cls):
        return [target for target in cls.prometheus.targets() if target["health"] == "up"]

    @classmethod
    def worker_addresses(cls):
        return [target["labels"]["instance"] for target in cls.targets() if "worker" in target["labels"]]

    @classmethod
    def answered(cls, expr):
        """True if the expression had a value, a number, at some moment."""
        window = f"{5 if 'histogram' not in expr else 30}s"
        return any(math.isfinite(value) for _, values in cls.prometheus.over(deployed.filled(expr, window), cls.began, time.time(), 1)
                   for _, value in values)

    @classmethod
    def figures_without_a_number(cls):
        """Now, of all dashboards but the one about a job."""
        figures = [(f"{name}: {panel['title']}", target["expr"]) for name, dashboard in deployed.dashboards().items() if name != "job"
                   for panel in deployed.drawn(dashboard) if panel["type"] == "stat" for target in panel["targets"]]
        return {where for where, expr in figures
                if not any(math.isfinite(value) for _, value in cls.prometheus.at(deployed.filled(expr, "5s")))}

    @classmethod
    def until_all_is_answered(cls):
        """Calls the service and looks, with each draw that the job commits; what never had a value is returned."""
        rules = [(rule["record"], expr) for rule in deployed.records() for expr in (rule["record"], rule["expr"])]
        missing = [(where, bare(where, expr)) for where, expr in deployed.panel_expressions() + rules]
        end = time.monotonic() + PATIENCE
        for _ in cls.fleet.watch(cls.fleet.running[0]):
            cls.fleet.ask()
            missing = [(where, expr) for where, expr in missing if not cls.answered(expr)]
            if (not missing and time.time() > cls.began + AT_LEAST) or time.monotonic() > end:
                break
        return missing

    def test_every_query_of_panels_and_recording_rules_has_data(self):
        self.assertFalse(self.missing, "\n".join(f"{where}: {expr}" for where, expr in self.missing) + "\n" + self.fleet.logs())

    def test_figures_of_an_empty_fleet_show_0_but_for_shares_times_and_sizes_of_what_is_not_there(self):
        self.assertEqual(self.silent_when_empty, {
            "fleet: Slots in use", "predictions: Errors", "predictions: Median latency", "predictions: p99 latency", "store: p99 of a commit",
            "workers: Longest silence", "workers: Memory", "workers: Not yet committed"})

    def test_every_rule_is_evaluated_without_error(self):
        rules = self.prometheus.rules()
        self.assertEqual({rule["name"] for rule in rules}, {rule.get("alert") or rule["record"] for rule in deployed.alerts() + deployed.records()})
        for rule in rules:
            self.assertEqual((rule["health"], rule.get("lastError", "")), ("ok", ""), rule["name"])
        # Nothing is wrong with this fleet but for the predictions that come too late, and nobody is called.
        self.assertEqual([rule["name"] for rule in rules if rule.get("alerts") and rule["name"] != "PredictErrors"], [])
        self.assertEqual([alert for rule in rules for alert in rule.get("alerts", []) if alert["state"] != "pending"], [])

    def test_series_of_alerts_have_data(self):
        for rule in deployed.alerts():
            series = re.findall(r"(?:chainfleet[\w:]+|\bup)(?:{[^}]*})?", rule["expr"])
            self.assertTrue(series, rule["alert"])
            for one in series:
                self.assertTrue(self.answered(one), f"{rule['alert']}: {one}")

    def test_the_table_of_metrics_and_what_is_scraped_are_the_same(self):
        scraped = {name for name in self.prometheus.names() if name.startswith("chainfleet_")}
        self.assertEqual(sorted(scraped - set(deployed.documented())), [], "not in docs/reference/metrics.md")
        promised = deployed.unconditional(deployed.metrics())
        there = {name for name in promised if name in scraped or name + "_bucket" in scraped}
        self.assertEqual(sorted(promised - there), [], "in docs/reference/metrics.md, but never scraped")

    def test_server_and_workers_serve_what_the_table_says_is_theirs(self):
        for program, pages in (("server", [self.fleet.metrics()]), ("worker", list(map(page_of, self.worker_addresses())))):
            there = {name for page in pages for name, _ in types_on(page)}
            rows = deployed.served_by(program)
            self.assertEqual(sorted(there - {metric.name for metric in rows}), [], f"the table does not say that a {program} serves it")
            self.assertEqual(sorted(deployed.unconditional(rows) - there), [], f"no {program} serves it")

    def test_types_are_those_of_the_table(self):
        said = {}
        for page in [self.fleet.metrics(), *map(page_of, self.worker_addresses())]:
            for name, kind in types_on(page):
                self.assertEqual(said.setdefault(name, kind), kind, name)
        self.assertGreater(len(said), 60)
        types = deployed.types()
        self.assertEqual({name: types.get(name) for name in said}, said)
        self.assertEqual(sorted(deployed.unconditional(deployed.metrics()) - set(said)), [], "of no type, since no page has it")

    def test_labels_are_those_of_the_table(self):
        def own(series):  # those of the target are Prometheus'
            of_target = {"__name__", "instance"}
            if series["job"].startswith("chainfleet-"):
                of_target |= {"job", "worker"} if series["job"] == "chainfleet-workers" else {"job"}
            return set(series) - of_target

        for name, labels in deployed.documented().items():
            for series in self.prometheus.series(name, self.began, time.time()):
                self.assertEqual(own(series), labels, name)

    def test_the_preemption_is_marked(self):
        marked = {where.partition(": ")[2]: expr for where, expr in deployed.annotation_expressions()}
        self.assertTrue(self.answered(marked["Preemption"]))
        self.assertEqual(self.prometheus.over(deployed.filled(marked["Failover"], "1m"), self.began, time.time(), 1), [])  # nobody took over here

    def test_workers_are_found_by_the_server_s_list(self):
        found = {target["labels"].get("worker") for target in self.targets() if target["labels"]["job"] == "chainfleet-workers"}
        self.assertEqual(found, {"worker-0", "worker-1"})

    def test_previews_show_every_panel(self):
        with tempfile.TemporaryDirectory() as temporary:
            folder = KEPT_PREVIEWS or temporary
            now = time.time()
            preview.draw_all(self.prometheus, folder, now, now - self.began, 1)
            drawn = {name: deployed.read(os.path.abspath(folder), name + ".svg") for name in deployed.dashboards()
                     if os.path.exists(os.path.join(folder, name + ".svg"))}
        self.assertEqual(set(drawn), set(deployed.dashboards()))
        for name, text in drawn.items():
            xml.etree.ElementTree.fromstring(text)
            self.assertEqual(re.findall(r">([^<>]*)</text>\n<text [^>]*>no data<", text), [], name)


if __name__ == "__main__":
    unittest.main(verbosity=2)
