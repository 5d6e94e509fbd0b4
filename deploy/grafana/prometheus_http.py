"""Prometheus' HTTP API, as much of it as panels and rules need. Standard library only."""
import json
import urllib.error
import urllib.parse
import urllib.request

LIMIT = 30  # seconds for an answer


class Prometheus:
    def __init__(self, url):
        self.url = url.rstrip("/")

    def _ask(self, path, **parameters):
        """The `data` of the answer; RuntimeError with Prometheus' own words when it refuses."""
        form = urllib.parse.urlencode(parameters).encode() if parameters else None
        try:
            with urllib.request.urlopen(f"{self.url}/api/v1/{path}", form, LIMIT) as reply:
                return json.load(reply)["data"]
        except urllib.error.HTTPError as refused:
            raise RuntimeError(f"{path} {parameters.get('query', '')}: {refused.read().decode(errors='replace')}") from refused

    def at(self, expr, time=None):
        """[(labels, value)] at a time, now by default. One series without labels if the answer is a number."""
        answer = self._ask("query", query=expr, **({"time": time} if time else {}))
        if answer["resultType"] == "scalar":
            return [({}, float(answer["result"][1]))]
        return [(series["metric"], float(series["value"][1])) for series in answer["result"]]

    def over(self, expr, start, end, step):
        """[(labels, [(time, value)])] from `start` to `end`, each `step` seconds."""
        answer = self._ask("query_range", query=expr, start=start, end=end, step=step)
        return [(series["metric"], [(t, float(v)) for t, v in series["values"]]) for series in answer["result"]]

    def names(self):
        """Returns the names of all metrics that it ever scraped or recorded."""
        return self._ask("label/__name__/values")

    def series(self, name, start, end):
        """The labels of every series of a metric."""
        return self._ask("series", **{"match[]": name, "start": start, "end": end})

    def rules(self):
        """Every rule as Prometheus has it, with `health` and `lastError`."""
        return [rule for group in self._ask("rules")["groups"] for rule in group["rules"]]

    def targets(self):
        return self._ask("targets")["activeTargets"]
