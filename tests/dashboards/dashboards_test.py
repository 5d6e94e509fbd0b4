"""deploy/grafana without a Grafana: made by its script, well formed, valid by Grafana's schemas, about metrics that there are."""
import enum
import itertools
import json
import os
import re
import subprocess
import sys
import tempfile
import types
import typing
import unittest

import deployed
import panels
import promql

sys.path.insert(0, os.path.join(deployed.DEPS, "grafana-foundation-sdk-11.6.0"))
# Labels that Prometheus gives its targets; deploy/prometheus/prometheus.yml says how.
TARGET_LABELS = {"instance", "job", "worker"}
OF_PROMETHEUS = {"up": set(), "ALERTS": {"alertname", "alertstate", "component", "severity"}}
# Keys of Prometheus' own annotations; the schema knows Grafana's.
ANNOTATION_KEYS = {"titleFormat"}
CELL_OPTIONS = "cellOptions"  # a union by its "type", which the schemas' reader leaves out


class Script(unittest.TestCase):
    def test_the_committed_files_are_those_that_the_script_writes(self):
        with tempfile.TemporaryDirectory() as folder:
            subprocess.run([sys.executable, "-B", os.path.join(deployed.GRAFANA, "dashboards.py"), folder], check=True)
            self.assertEqual(sorted(os.listdir(folder)), sorted(os.listdir(os.path.join(deployed.GRAFANA, "dashboards"))))
            for name in os.listdir(folder):
                with open(os.path.join(folder, name)) as f:
                    self.assertTrue(f.read() == deployed.read("deploy", "grafana", "dashboards", name), f"{name}: run deploy/grafana/dashboards.py")


class Structure(unittest.TestCase):
    def setUp(self):
        self.dashboards = deployed.dashboards()

    def test_five_with_names_of_their_own(self):
        self.assertEqual(sorted(self.dashboards), ["fleet", "job", "predictions", "store", "workers"])
        for key in ("uid", "title"):
            self.assertEqual(len({d[key] for d in self.dashboards.values()}), 5)
        for dashboard in self.dashboards.values():
            self.assertRegex(dashboard["uid"], "^[a-z-]{8,40}$")
            self.assertNotIn("id", dashboard)  # Grafana's own

    def test_panels_have_ids_and_titles_of_their_own(self):
        for name, dashboard in self.dashboards.items():
            ids = [panel["id"] for panel in dashboard["panels"]]
            self.assertEqual(len(set(ids)), len(ids), name)
            titles = [(panel["type"], panel["title"]) for panel in dashboard["panels"]]
            self.assertEqual(len(set(titles)), len(titles), name)
            for panel in deployed.drawn(dashboard):
                refs = [target["refId"] for target in panel["targets"]]
                self.assertEqual(len(set(refs)), len(refs), panel["title"])

    def test_panels_lie_on_the_grid_and_do_not_overlap(self):
        for name, dashboard in self.dashboards.items():
            places = [panel["gridPos"] for panel in dashboard["panels"]]
            for p in places:
                self.assertTrue(0 <= p["x"] and p["x"] + p["w"] <= 24 and p["w"] > 0 and p["h"] > 0 and p["y"] >= 0, f"{name}: {p}")
            for p, q in itertools.combinations(places, 2):
                apart = p["x"] + p["w"] <= q["x"] or q["x"] + q["w"] <= p["x"] or p["y"] + p["h"] <= q["y"] or q["y"] + q["h"] <= p["y"]
                self.assertTrue(apart, f"{name}: {p} and {q}")

    def test_every_panel_has_a_unit_and_says_what_bad_looks_like(self):
        from grafana_foundation_sdk.models import units
        known = {value for key, value in vars(units).items() if not key.startswith("_") and isinstance(value, str)}
        for name, dashboard in self.dashboards.items():
            for panel in deployed.drawn(dashboard):
                fields = panel["fieldConfig"]
                found = [fields["defaults"]["unit"], *(p["value"] for o in fields["overrides"] for p in o["properties"] if p["id"] == "unit")]
                self.assertLessEqual(set(found), known, f"{name}: {panel['title']}")
                self.assertRegex(panel["description"], r"^\S.*\. Bad: \S.*\.$", f"{name}: {panel['title']}")

    def test_a_state_has_one_colour_on_every_panel(self):
        # Grafana's own palette goes by the order of series: it drew FAILED green.
        colours = {}
        for dashboard in self.dashboards.values():
            for panel in deployed.drawn(dashboard):
                for override in panel["fieldConfig"]["overrides"]:
                    fixed = [p["value"]["fixedColor"] for p in override["properties"] if p["id"] == "color"]
                    colours.setdefault(override["matcher"]["options"], set()).update(fixed)
                if any("{{state}}" in target.get("legendFormat", "") for target in panel["targets"]):
                    self.assertLessEqual({"LEASED", "SUCCEEDED", "FAILED", "DIVERGED", "PENDING"},
                                         {o["matcher"]["options"] for o in panel["fieldConfig"]["overrides"]}, panel["title"])
        self.assertEqual({state: colours[state] for state in ("RUNNING", "LEASED", "running", "SUCCEEDED", "FAILED", "DIVERGED", "PENDING", "waiting")},
                         {"RUNNING": {"blue"}, "LEASED": {"blue"}, "running": {"blue"}, "SUCCEEDED": {"green"}, "FAILED": {"red"},
                          "DIVERGED": {"dark-red"}, "PENDING": {"gray"}, "waiting": {"gray"}})

    def test_figures_with_a_lower_bound_do_not_call_less_good(self):
        checked = set()
        for name, dashboard in self.dashboards.items():
            for panel in deployed.drawn(dashboard):
                bad = panel["description"].partition(" Bad: ")[2]
                bound = re.match(r"(below) ([\d.]+)( %)?|(anything but) (\d+)|(0)[:,]", bad)
                if panel["type"] != "stat" or not bound:
                    continue
                below, number, percent, other, exact, zero = bound.groups()
                number = float(number or exact or 1) / (100 if percent else 1)
                steps = panel["fieldConfig"]["defaults"]["thresholds"]["steps"]
                colour = lambda value: [s["color"] for s in steps if s["value"] is None or value >= s["value"]][-1]
                where = f"{name}: {panel['title']}"
                self.assertNotEqual(colour(0), panels.GOOD, where)
                self.assertNotEqual(colour(0 if zero else number * 0.99), panels.GOOD, where)
                self.assertEqual(colour(number if zero or other else 100 * number), panels.GOOD, where)
                self.assertTrue(not other or colour(number + 1) == panels.BAD, where)
                self.assertEqual(sorted(steps[1:], key=lambda step: step["value"]), steps[1:], where)
                checked.add(panel["title"])
        self.assertLessEqual({"Leaders", "Workers", "Running chains", "Bulk ESS", "Tail ESS", "Serving workers", "Disk free", "Calls"}, checked)

    def test_tables_of_several_queries_ask_for_one_row_each(self):
        # Grafana joins the rows of two queries where all labels that they share agree: also those that are not shown.
        tables = 0
        for name, dashboard in self.dashboards.items():
            for panel in deployed.drawn(dashboard):
                if panel["type"] != "table" or len(panel["targets"]) == 1:
                    continue
                organized, = [t["options"] for t in panel["transformations"] if t["id"] == "organize"]
                rows = {column for column in organized["renameByName"] if not column.startswith("Value #")}
                self.assertEqual(organized["excludeByName"], {"Time": True}, f"{name}: {panel['title']}")
                for target in panel["targets"]:
                    grouped = re.match(r"(?:max|min|sum|count) by \(([\w, ]+)\) \([^()]+\)$", target["expr"])
                    self.assertTrue(grouped, f"{name}: {target['expr']}")
                    self.assertEqual(set(grouped.group(1).split(", ")), rows, f"{name}: {target['expr']}")
                tables += 1
        self.assertEqual(tables, 2)

    def test_limits_of_silence_are_below_the_lease_with_which_a_worker_vanishes(self):
        lease = float(re.search(r'lease = "(\d+)s"', deployed.read("server", "main.cc")).group(1))
        limits = [step["value"] for panel in deployed.drawn(self.dashboards["workers"]) if panel["type"] in ("stat", "timeseries")
                  if any("last_sync_seconds" in target["expr"] for target in panel["targets"])
                  for step in panel["fieldConfig"]["defaults"]["thresholds"]["steps"] if step["value"] is not None]
        self.assertEqual(len(limits), 4)
        self.assertLess(max(limits), lease)

    def test_data_sources_are_the_variable(self):
        def references(value):
            if isinstance(value, dict):
                yield from [value["datasource"]] if "datasource" in value else []
                value = list(value.values())
            for inner in value if isinstance(value, list) else []:
                yield from references(inner)

        for dashboard in self.dashboards.values():
            self.assertEqual(dashboard["templating"]["list"][0]["type"], "datasource")
            found = list(references(dashboard))
            self.assertGreater(len(found), 20)
            for reference in found:
                self.assertEqual(reference, {"type": "prometheus", "uid": "${datasource}"})

    def test_ranges_are_the_rate_interval(self):
        # Also of annotations: an event falls into the range of one of the moments that are asked for, whatever lies between them.
        for where, expr in deployed.panel_expressions() + deployed.annotation_expressions():
            self.assertEqual(set(re.findall(r"\[([^\]]*)\]", expr)) - {"$__rate_interval"}, set(), where)

    def test_variables_are_declared_and_used(self):
        for name, dashboard in self.dashboards.items():
            declared = {variable["name"] for variable in dashboard["templating"]["list"]}
            used = set(re.findall(r"\$\{?(\w+)", json.dumps(dashboard["panels"]))) - {"__rate_interval"}
            self.assertEqual(used, declared, name)
        everywhere = {v["name"] for d in self.dashboards.values() for v in d["templating"]["list"]}
        self.assertEqual(everywhere, {"datasource", "job", "worker"})

    def test_failover_and_preemption_are_marked_on_every_dashboard(self):
        for dashboard in self.dashboards.values():
            marked = {a["name"]: a["expr"] for a in dashboard["annotations"]["list"]}
            self.assertIn("chainfleet_leader", marked["Failover"])
            self.assertIn("chainfleet_preemptions_total", marked["Preemption"])


class Provisioning(unittest.TestCase):
    def test_the_data_source_knows_the_scrape_interval(self):
        source, = deployed.yaml.safe_load(deployed.read("deploy", "grafana", "provisioning", "datasources", "chainfleet.yaml"))["datasources"]
        scraped = deployed.yaml.safe_load(deployed.read("deploy", "prometheus", "prometheus.yml"))["global"]["scrape_interval"]
        self.assertEqual((source["type"], source["jsonData"]["timeInterval"]), ("prometheus", scraped))

    def test_the_dashboards_are_read_from_a_folder(self):
        provider, = deployed.yaml.safe_load(deployed.read("deploy", "grafana", "provisioning", "dashboards", "chainfleet.yaml"))["providers"]
        self.assertEqual(provider["type"], "file")
        self.assertTrue(os.path.isabs(provider["options"]["path"]))
        self.assertIn(provider["options"]["path"], deployed.read("docs", "guides", "dashboards.md"))


def wrongs(value, hint, where):
    """Where `value`, as the schemas' reader made it, is not what its class declares."""
    origin, inner = typing.get_origin(hint), typing.get_args(hint)
    if hint in (object, typing.Any) or hasattr(value, "to_json"):
        return fields_wrong(value, where) if hasattr(value, "to_json") else []
    if origin in (typing.Union, types.UnionType):
        tried = [wrongs(value, choice, where) for choice in inner]
        return [] if [] in tried else tried[0]
    if origin is list:
        return [w for i, item in enumerate(value) for w in wrongs(item, inner[0], f"{where}[{i}]")] if isinstance(value, list) else [where]
    if origin is dict:
        return [w for key, item in value.items() for w in wrongs(item, inner[1], f"{where}.{key}")] if isinstance(value, dict) else [where]
    if origin is typing.Literal:
        return [] if value in inner else [f"{where}: {value!r}"]
    if isinstance(hint, type) and issubclass(hint, enum.Enum):
        return [] if value in [member.value for member in hint] else [f"{where}: {value!r}"]
    if hasattr(hint, "from_json") and isinstance(value, dict):  # the reader takes some as they are
        made = hint.from_json(value)
        return fields_wrong(made, where) + left_out(value, made.to_json(), where)
    fits = isinstance(value, (int, float) if hint is float else hint) and (hint is bool or not isinstance(value, bool))
    return [] if fits else [f"{where}: {value!r} is not {hint}"]


def fields_wrong(made, where):
    hints = typing.get_type_hints(type(made))
    return [w for name, value in vars(made).items() if name in hints for w in wrongs(value, hints[name], f"{where}.{name}")]


def left_out(given, kept, where):
    """The parts of the JSON that the schemas' reader does not know."""
    if isinstance(given, dict) and isinstance(kept, dict):
        return [w for key, value in given.items()
                for w in (left_out(value, kept[key], f"{where}.{key}") if key in kept else [] if value is None else [f"{where}.{key}"])]
    if isinstance(given, list) and isinstance(kept, list) and len(given) == len(kept):
        return [w for i, (g, k) in enumerate(zip(given, kept)) for w in left_out(g, k, f"{where}[{i}]")]
    return [] if given == kept else [f"{where}: {given!r} became {kept!r}"]


def invalid(dashboard):
    """The violations of Grafana's schemas."""
    from grafana_foundation_sdk.cog.encoder import JSONEncoder
    from grafana_foundation_sdk.cog.plugins import register_default_plugins
    from grafana_foundation_sdk.models.dashboard import Dashboard
    register_default_plugins()
    dashboard = json.loads(json.dumps(dashboard))
    for annotation in dashboard["annotations"]["list"]:
        for key in ANNOTATION_KEYS:
            annotation.pop(key, None)
    for panel in dashboard["panels"]:
        cells = panel.get("fieldConfig", {}).get("defaults", {}).get("custom", {}).pop(CELL_OPTIONS, {"type": "auto"})
        if cells != {"type": "auto"}:
            return [f"cellOptions {cells}"]
    made = Dashboard.from_json(dashboard)
    return fields_wrong(made, "dashboard") + left_out(dashboard, json.loads(JSONEncoder().encode(made)), "dashboard")


class Schemas(unittest.TestCase):
    def test_dashboards_are_valid(self):
        for name, dashboard in deployed.dashboards().items():
            self.assertEqual(invalid(dashboard), [], name)

    def test_wrong_keys_are_found(self):
        def broken(change):
            dashboard = deployed.dashboards()["fleet"]
            change(dashboard)
            return invalid(dashboard)

        figure, curves = 0, 9
        for change in (lambda d: d.update(titel="x"), lambda d: d.update(refresh=30),
                       lambda d: d["panels"][curves]["options"]["legend"].update(displayMode="lists"),
                       lambda d: d["panels"][curves]["fieldConfig"]["defaults"]["custom"].update(lineWidht=2),
                       lambda d: d["panels"][figure]["targets"][0].update(instant="no"),
                       lambda d: d["panels"][figure]["fieldConfig"]["defaults"]["thresholds"]["steps"][0].update(value="1")):
            self.assertNotEqual(broken(change), [])


class Metrics(unittest.TestCase):
    """Every metric and label that is asked for is in docs/reference/metrics.md (which another test compares with real scrapes), or a rule's."""

    @classmethod
    def setUpClass(cls):
        cls.known = {**deployed.documented(), **OF_PROMETHEUS}
        for rule in deployed.records():
            cls.known[rule["record"]] = set(promql.parse(rule["expr"]).grouped)

    def unknown(self, expr):
        asked, found = promql.parse(expr), []
        there = set(TARGET_LABELS)
        for metric, labels in asked.selected:
            found += [] if metric in self.known else [metric]
            found += [f"{metric}{{{label}}}" for label in labels if label not in self.known.get(metric, set()) | TARGET_LABELS]
            there |= self.known.get(metric, set())
        return found + sorted(asked.grouped - there)

    def test_panels_annotations_and_rules_ask_for_what_there_is(self):
        rules = [(rule.get("alert") or rule["record"], rule["expr"]) for rule in deployed.alerts() + deployed.records()]
        asked = deployed.panel_expressions() + deployed.annotation_expressions() + rules
        self.assertGreater(len(asked), 100)
        for where, expr in asked:
            self.assertEqual(self.unknown(expr), [], where)
            self.assertNotEqual(promql.parse(expr).selected, (), where)

    def test_one_table_has_every_metric_once(self):
        lines = deployed.read("docs", "reference", "metrics.md").splitlines()
        rows = [i for i, line in enumerate(lines) if line.startswith("| `chainfleet_")]
        self.assertEqual(rows, list(range(rows[0], rows[0] + len(rows))), "Markdown shows a row after another line as text")
        self.assertEqual(lines[rows[0] - 2:rows[0]], ["| name | of | type | labels | meaning |", "| --- | --- | --- | --- | --- |"])
        self.assertEqual([line for line in lines if line.count("|") != 6 and line.startswith("| `chainfleet_")], [])
        self.assertEqual(len(deployed.metrics()), len(rows), "a row is not of the form that the tests read")
        self.assertEqual(len(deployed.types()), len(rows), "a metric has two rows")
        self.assertEqual({metric.of for metric in deployed.metrics()}, {"server", "worker", "both"})
        self.assertLessEqual(set(deployed.types().values()), {"counter", "gauge", "histogram"})

    def test_legends_and_variables_name_labels_that_there_are(self):
        for name, dashboard in deployed.dashboards().items():
            for panel in deployed.drawn(dashboard):
                for target in panel["targets"]:
                    asked = promql.parse(target["expr"])
                    left = set(re.findall(r"{{(\w+)}}", target.get("legendFormat", "")))
                    there = TARGET_LABELS.union(*(self.known[metric] for metric, _ in asked.selected))
                    self.assertLessEqual(left, there, f"{name}: {panel['title']}")
            for variable in dashboard["templating"]["list"][1:]:
                metric, label = re.fullmatch(r"label_values\((\w+), (\w+)\)", variable["query"]["query"]).groups()
                self.assertIn(label, self.known[metric])

    def test_unknown_metrics_and_labels_are_found(self):
        self.assertEqual(self.unknown('sum by (state) (rate(chainfleet_job[5m])) or on (job) chainfleet_leader{color="red"}'),
                         ["chainfleet_job", "chainfleet_leader{color}", "state"])


if __name__ == "__main__":
    unittest.main(verbosity=2)
