"""deploy/prometheus by Prometheus' own tool, and a runbook for each alert."""
import os
import re
import shutil
import subprocess
import tempfile
import unittest

import deployed

ALERTS_TEST = os.path.join(deployed.ROOT, "tests", "dashboards", "alerts_test.yml")


def promtool(*arguments, folder=None):
    return subprocess.run(["promtool", *arguments], capture_output=True, text=True, cwd=folder, timeout=60)


def sections_of_alerts():
    """Heading -> text of each section in docs/guides/alerts.md."""
    text = deployed.read("docs", "guides", "alerts.md")
    return dict(re.findall(r"^## (\w+)\n(.*?)(?=^## |\Z)", text, re.M | re.S))


class Rules(unittest.TestCase):
    def accepted(self, *arguments):
        done = promtool(*arguments)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)

    def test_promtool_accepts_configuration_and_rules(self):
        self.accepted("check", "config", os.path.join(deployed.PROMETHEUS, "prometheus.yml"))
        for file in ("recording_rules.yml", "alert_rules.yml"):
            self.accepted("check", "rules", os.path.join(deployed.PROMETHEUS, file))

    def test_alerts_fire_where_they_must_and_nowhere_else(self):
        self.accepted("test", "rules", ALERTS_TEST)

    def test_every_alert_is_shown_firing_and_not(self):
        shown = {}
        for test in deployed.yaml.safe_load(deployed.read("tests", "dashboards", "alerts_test.yml"))["tests"]:
            for alert in test.get("alert_rule_test", []):
                shown.setdefault(alert["alertname"], set()).add(bool(alert["exp_alerts"]))
        self.assertEqual(shown, {rule["alert"]: {True, False} for rule in deployed.alerts()})

    def told_wrong(self, expr):
        """The alerts that the tests miss, or find too much, where each has this expression and waits for nothing."""
        with tempfile.TemporaryDirectory() as folder:
            for part in ("deploy/prometheus", "tests/dashboards"):
                shutil.copytree(os.path.join(deployed.ROOT, part), os.path.join(folder, part))
            path = os.path.join(folder, "deploy", "prometheus", "alert_rules.yml")
            groups = deployed.yaml.safe_load(deployed.read("deploy", "prometheus", "alert_rules.yml"))
            for rule in (rule for group in groups["groups"] for rule in group["rules"]):
                rule.update(expr=expr)
                rule.pop("for", None)
            with open(path, "w") as f:
                deployed.yaml.safe_dump(groups, f)
            done = promtool("test", "rules", os.path.join(folder, "tests", "dashboards", "alerts_test.yml"))
        self.assertNotEqual(done.returncode, 0)
        return set(re.findall(r"alertname: ?(\w+)", done.stdout + done.stderr))

    def test_an_alert_that_always_or_never_fires_is_noticed(self):
        names = {rule["alert"] for rule in deployed.alerts()}
        self.assertEqual(self.told_wrong("vector(1)"), names)
        self.assertEqual(self.told_wrong("vector(1) > 1"), names)

    def test_marks_of_dashboards_are_tested(self):
        tested = {case["expr"] for test in deployed.yaml.safe_load(deployed.read("tests", "dashboards", "alerts_test.yml"))["tests"]
                  for case in test.get("promql_expr_test", [])}
        for where, expr in deployed.annotation_expressions():
            self.assertIn(deployed.filled(expr, "1m"), tested, where)

    def test_every_alert_has_a_runbook(self):
        sections = sections_of_alerts()
        self.assertEqual(set(sections), {rule["alert"] for rule in deployed.alerts()})
        for rule in deployed.alerts():
            self.assertIn(rule["labels"]["severity"], ("warning", "critical"))
            self.assertEqual(rule["labels"]["component"], "chainfleet")
            self.assertEqual(rule["annotations"]["runbook_url"], f"docs/guides/alerts.md#{rule['alert'].lower()}")
            for annotation in ("summary", "description"):
                self.assertGreater(len(rule["annotations"][annotation]), 10)
            for part in ("**Means**", "**Look at**", "**Do**"):
                self.assertIn(part, sections[rule["alert"]], rule["alert"])


class ScrapeConfig(unittest.TestCase):
    def test_servers_and_the_workers_that_they_list(self):
        jobs = {job["job_name"]: job for job in deployed.yaml.safe_load(deployed.read("deploy", "prometheus", "prometheus.yml"))["scrape_configs"]}
        self.assertEqual(set(jobs), {"chainfleet-server", "chainfleet-workers"})
        # Without it Prometheus would call a chain's job `exported_job`.
        self.assertTrue(jobs["chainfleet-server"]["honor_labels"])
        for job in jobs:
            self.assertRegex(job, "^chainfleet-.*$")  # TargetDown selects by it
        self.assertTrue(jobs["chainfleet-workers"]["http_sd_configs"][0]["url"].endswith(":7401/sd"))

    def test_the_lines_for_a_token_send_it_to_servers_workers_and_the_list(self):
        text = deployed.read("deploy", "prometheus", "prometheus.yml").replace("# authorization: ", "authorization: ")
        server, workers = deployed.yaml.safe_load(text)["scrape_configs"]
        [sent, *others] = [place["authorization"] for place in (server, workers, *workers["http_sd_configs"])]
        self.assertEqual((list(sent), others), (["type", "credentials_file"], [sent, sent]))
        self.assertEqual(sent["type"], "Bearer", "without it Prometheus 2.42 asks for the list with the bare token")

    def test_the_command_for_tls_has_servers_workers_and_the_list_checked_by_one_authority(self):
        command, = re.findall(r"`(sed -i '[^`]*tls_config[^`]*)`", deployed.read("docs", "guides", "dashboards.md"))
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "deploy", "prometheus")
            shutil.copytree(deployed.PROMETHEUS, path)
            subprocess.run(["bash", "-c", command], cwd=folder, check=True)
            done = promtool("check", "config", os.path.join(path, "prometheus.yml"))
            self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
            with open(os.path.join(path, "prometheus.yml")) as f:
                server, workers = deployed.yaml.safe_load(f)["scrape_configs"]
        listed, = workers["http_sd_configs"]
        self.assertEqual((server["scheme"], workers["scheme"], listed["url"].partition(":")[0]), ("https",) * 3)
        self.assertEqual({place["tls_config"]["ca_file"] for place in (server, workers, listed)}, {"/etc/chainfleet/ca.crt"})


if __name__ == "__main__":
    unittest.main(verbosity=2)
