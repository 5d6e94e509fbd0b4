"""deploy/prometheus, deploy/grafana and the table of docs/reference/metrics.md, as the tests read them."""
import glob
import json
import os
import re
import sys
import typing

ROOT = os.path.abspath(os.path.join(os.path.dirname(__file__), "..", ".."))
DEPS = os.environ.get("CHAINFLEET_DEPS") or os.path.expanduser("~/.cache/chainfleet")
GRAFANA = os.path.join(ROOT, "deploy", "grafana")
PROMETHEUS = os.path.join(ROOT, "deploy", "prometheus")
sys.path[:0] = [GRAFANA, os.path.join(DEPS, "kubernetes-validate-1.35.0")]  # the latter has a YAML reader
import yaml  # noqa: E402

HISTOGRAM_PARTS = {"_bucket": {"le"}, "_sum": set(), "_count": set()}


def read(*parts):
    with open(os.path.join(ROOT, *parts)) as f:
        return f.read()


def dashboards():
    """The committed ones by the name of their file."""
    found = {}
    for path in sorted(glob.glob(os.path.join(GRAFANA, "dashboards", "*.json"))):
        with open(path) as f:
            found[os.path.basename(path)[:-len(".json")]] = json.load(f)
    return found


def drawn(dashboard):
    """Its panels without the headings of sections."""
    return [panel for panel in dashboard["panels"] if panel["type"] != "row"]


def panel_expressions():
    """(where, expression) of every query of a panel."""
    return [(f"{name}: {panel['title']}", target["expr"]) for name, dashboard in dashboards().items()
            for panel in drawn(dashboard) for target in panel["targets"]]


def annotation_expressions():
    return [(f"{name}: {annotation['name']}", annotation["expr"]) for name, dashboard in dashboards().items()
            for annotation in dashboard["annotations"]["list"]]


def filled(expr, window):
    """As Grafana asks it with everything chosen."""
    return expr.replace("$__rate_interval", window).replace("$job", ".*").replace("$worker", ".*")


def rules(file):
    return [rule for group in yaml.safe_load(read("deploy", "prometheus", file))["groups"] for rule in group["rules"]]


def alerts():
    return rules("alert_rules.yml")


def records():
    return rules("recording_rules.yml")


class Metric(typing.NamedTuple):
    """A row of the table of docs/reference/metrics.md."""
    name: str
    of: str  # "server", "worker" or "both"
    kind: str  # "counter", "gauge" or "histogram"
    labels: frozenset
    conditional: bool  # there only with some option or device


def metrics():
    rows = re.findall(r"^\| `(chainfleet_\w+)` \| (\w+) \| (\w+) \|([^|]*)\| (.*) \|$", read("docs", "reference", "metrics.md"), re.M)
    return [Metric(name, of, kind, frozenset(re.findall(r"`(\w+)`", labels)), what.startswith("with "))
            for name, of, kind, labels, what in rows]


def served_by(program):
    """Rows of what the table says the pages of "server" or "worker" have."""
    return [metric for metric in metrics() if metric.of in (program, "both")]


def unconditional(rows):
    """Names without those that are there only with some option or device."""
    return {metric.name for metric in rows if not metric.conditional}


def types():
    """Metric -> "counter", "gauge" or "histogram", as docs/reference/metrics.md says."""
    return {metric.name: metric.kind for metric in metrics()}


def documented():
    """Metric -> its labels, as docs/reference/metrics.md says; the parts of histograms have names of their own."""
    return {metric.name + part: metric.labels | more for metric in metrics()
            for part, more in (HISTOGRAM_PARTS if metric.kind == "histogram" else {"": set()}).items()}
