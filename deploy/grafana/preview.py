#!/usr/bin/env python3
"""Draws the dashboards from what a Prometheus answers, without a Grafana: one SVG each.

  deploy/grafana/preview.py URL [--last 3600] [--interval 15] [--output docs/guides/pictures]

--last: seconds to look back; --interval: seconds between scrapes, from which the range of rates follows.
"""
import argparse
import glob
import html
import json
import math
import os
import re
import time

from figures import marks, moments, written
from prometheus_http import Prometheus

HERE = os.path.dirname(os.path.abspath(__file__))
CELL_WIDTH, CELL_HEIGHT, GAP, HEAD = 54, 30, 8, 46
WIDTH = 24 * CELL_WIDTH + 2 * GAP
POINTS = 120  # points of a curve
COLOURS = ("#5794f2", "#ff9830", "#73bf69", "#f2495c", "#b877d9", "#fade2a", "#37872d", "#8ab8ff", "#ffb357", "#96d98d", "#ca95e5", "#c4162a")
NAMED = {"green": "#37872d", "light-green": "#96d98d", "orange": "#e0751c", "red": "#e02f44", "dark-red": "#a30d20", "purple": "#8f3bb8",
         "dark-purple": "#5a1d80", "blue": "#1f60c4", "gray": "#8e8e8e", "dark-gray": "#5c5c5c"}
INK, FAINT, LINE = "#24292e", "#6e7781", "#e1e4e8"


def text(x, y, words, size=11, colour=INK, anchor="start", weight="normal"):
    return (f'<text x="{x:.1f}" y="{y:.1f}" font-size="{size:g}" fill="{colour}" text-anchor="{anchor}" '
            f'font-weight="{weight}">{html.escape(words)}</text>')


def shortened(words, width, size=11):
    fits = max(1, int(width / (0.56 * size)))
    return words if len(words) <= fits else words[:fits - 1] + "…"


def named(panel, target, labels):
    """The legend of a series."""
    name = re.sub(r"{{(\w+)}}", lambda found: labels.get(found.group(1), ""), target["legendFormat"])
    for change in panel.get("transformations", []):
        name = re.sub(change["options"]["regex"][1:-1], change["options"]["renamePattern"], name)
    return name


class Box:
    """A panel's place in the picture."""

    def __init__(self, place):
        self.x, self.y = GAP + place["x"] * CELL_WIDTH, HEAD + place["y"] * CELL_HEIGHT
        self.width, self.height = place["w"] * CELL_WIDTH - GAP, place["h"] * CELL_HEIGHT - GAP

    def frame(self, title):
        return (f'<rect x="{self.x}" y="{self.y}" width="{self.width}" height="{self.height}" rx="3" fill="#fff" stroke="{LINE}"/>'
                + text(self.x + 8, self.y + 16, shortened(title, self.width - 16, 12), 12, weight="bold"))

    def empty(self):
        return text(self.x + self.width / 2, self.y + self.height / 2 + 4, "no data", 12, FAINT, "middle")


def colour_of(value, defaults):
    steps = defaults["thresholds"]["steps"]
    return NAMED[[step["color"] for step in steps if step["value"] is None or value >= step["value"]][-1]]


def draw_figure(box, panel, answers):
    target, = panel["targets"]
    defaults = panel["fieldConfig"]["defaults"]
    newest = [(named(panel, target, labels), next((v for _, v in reversed(values) if not math.isnan(v)), math.nan))
              for labels, values in answers["A"]]
    newest = [(name, value) for name, value in newest if not math.isnan(value)]
    if not newest:
        return [box.empty()]
    lines, room = [], box.height - 30
    shown = newest[:3]
    for i, (name, value) in enumerate(shown):
        y = box.y + 24 + room * (i + 0.5) / len(shown)
        number = written(value, defaults["unit"])
        if len(shown) == 1:
            size = min(26, (box.width - 16) / (0.65 * len(number)))
            lines.append(text(box.x + box.width / 2, y + 10, number, size, colour_of(value, defaults), "middle", "bold"))
            continue
        lines.append(text(box.x + 8, y + 4, shortened(name, 0.9 * (box.width - 28 - 9 * len(number))), 11, FAINT))
        lines.append(text(box.x + box.width - 8, y + 5, number, 14, colour_of(value, defaults), "end", "bold"))
    return lines


def stacked_up(series):
    """The same series, each on top of those before: [(name, values, the values below it)]."""
    base, lifted = {}, []
    for name, values in series:
        below = [(t, base.get(t, 0)) for t, _ in values]
        lifted.append((name, [(t, low + v) for (t, v), (_, low) in zip(values, below)], below))
        base.update(lifted[-1][1])
    return lifted


class Plane:
    """The inside of a panel of curves: times and values to points."""

    def __init__(self, box, window, levels, log):
        self.left, self.right = box.x + 70, box.x + box.width - 10
        self.top, self.bottom = box.y + 28, box.y + box.height - 38
        self.window, self.levels, self.log = window, levels, log

    def x(self, moment):
        start, end = self.window
        return self.left + (self.right - self.left) * (moment - start) / (end - start)

    def y(self, value):
        low, high, value = (math.log10(max(v, 1e-300)) if self.log else v for v in (self.levels[0], self.levels[-1], value))
        return self.bottom - (self.bottom - self.top) * (value - low) / (high - low)

    def grid(self, unit):
        for level in self.levels:
            y = self.y(level)
            yield f'<line x1="{self.left}" x2="{self.right}" y1="{y:.1f}" y2="{y:.1f}" stroke="{LINE}"/>'
            yield text(self.left - 6, y + 4, written(level, unit), 10, FAINT, "end")
        start, end = self.window
        for ago in moments(end - start):
            x = self.x(end - ago)
            anchor = "end" if ago == 0 else "start" if x < self.left + 25 else "middle"
            yield text(x, self.bottom + 13, f"-{written(ago, 's')}" if ago else "now", 10, FAINT, anchor)


def colours_of(panel, names):
    """The colour of each series and the name that its legend shows: by the panel's overrides, else in turn."""
    changes = {o["matcher"]["options"]: {p["id"]: p["value"] for p in o["properties"]} for o in panel["fieldConfig"]["overrides"]}
    for i, name in enumerate(names):
        change = changes.get(name, {})
        fixed = change.get("color", {}).get("fixedColor")
        yield NAMED[fixed] if fixed else COLOURS[i % len(COLOURS)], change.get("displayName", name)


def paths(plane, series, colours, step):
    """`series`: [(name, values, values of its lower edge or none)]. The last come first: where one adds nothing to those below it, theirs
    is the colour that is seen."""
    for i, (_, values, below) in reversed(list(enumerate(series))):
        parts, last = [], None
        for moment, value in values:
            if not math.isfinite(value) or (plane.log and value <= 0):
                continue
            parts.append(("L" if last is not None and moment - last < 2.5 * step else "M") + f"{plane.x(moment):.1f} {plane.y(value):.1f}")
            last = moment
        colour = colours[i]
        if below and parts and not any(p[0] == "M" for p in parts[1:]):
            back = "".join(f"L{plane.x(t):.1f} {plane.y(v):.1f}" for t, v in reversed(below) if math.isfinite(v))
            yield f'<path d="{"".join(parts)}{back}Z" fill="{colour}" opacity="0.15"/>'
        yield f'<path d="{"".join(parts)}" fill="none" stroke="{colour}" stroke-width="1.5" stroke-linecap="round"/>'


def legend(box, series, colours):
    """Those that are not 0 all the time come first: there is not always room for all."""
    x, y = box.x + 10, box.y + box.height - 8
    ordered = sorted(enumerate(series), key=lambda numbered: not any(value for _, value in numbered[1][1]))
    for place, (i, (name, _)) in enumerate(ordered):
        name = shortened(name, 190, 10)
        if x + 6.4 * len(name) + 20 > box.x + box.width - 40:
            yield text(x, y, f"+{len(series) - place}", 10, FAINT)
            return
        yield f'<rect x="{x:.1f}" y="{y - 7:.1f}" width="10" height="3" fill="{colours[i]}"/>' + text(x + 14, y, name, 10)
        x += 6.4 * len(name) + 26


def draw_curves(box, panel, answers, window, step, events):
    defaults = panel["fieldConfig"]["defaults"]
    custom = defaults["custom"]
    series = [(named(panel, target, labels), values) for target in panel["targets"] for labels, values in answers[target["refId"]]]
    colours, shown = zip(*colours_of(panel, [name for name, _ in series])) if series else ((), ())
    series = [(name, values) for name, (_, values) in zip(shown, series)]
    log = custom["scaleDistribution"]["type"] == "log"
    is_stacked = custom["stacking"]["mode"] == "normal"
    drawn = stacked_up(series) if is_stacked else [(name, values, []) for name, values in series]
    seen = [v for _, values, _ in drawn for _, v in values if math.isfinite(v) and (v > 0 or not log)]
    if not seen:
        return [box.empty()]
    low, high = min([*seen, custom.get("axisSoftMin", seen[0])]), max([*seen, custom.get("axisSoftMax", seen[0])])
    plane = Plane(box, window, marks(low, high, defaults["unit"], log), log)
    lines = list(plane.grid(defaults["unit"]))
    for moment, colour in events:
        x = plane.x(moment)
        lines.append(f'<line x1="{x:.1f}" x2="{x:.1f}" y1="{plane.top}" y2="{plane.bottom}" stroke="{NAMED[colour]}" stroke-dasharray="3 3"/>')
    for limit in defaults["thresholds"]["steps"][1:]:
        if plane.levels[0] <= limit["value"] <= plane.levels[-1]:
            y = plane.y(limit["value"])
            lines.append(f'<line x1="{plane.left}" x2="{plane.right}" y1="{y:.1f}" y2="{y:.1f}" stroke="{NAMED[limit["color"]]}" stroke-dasharray="5 4"/>')
    return lines + list(paths(plane, drawn, colours, step)) + list(legend(box, series, colours))


def draw_table(box, panel, answers):
    order = next(t for t in panel["transformations"] if t["id"] == "organize")["options"]
    labels = [name for name in order["indexByName"] if not name.startswith("Value #")]
    units = {o["matcher"]["options"]: o["properties"][0]["value"] for o in panel["fieldConfig"]["overrides"]}
    rows = {}
    for target in panel["targets"]:
        for found, value in answers[target["refId"]]:
            rows.setdefault(tuple(found.get(label, "") for label in labels), {})[target["refId"]] = value
    if not rows:
        return [box.empty()]
    headings = [*labels, *(order["renameByName"][f"Value #{t['refId']}"] for t in panel["targets"])]
    width = (box.width - 20) / (len(headings) + len(labels))  # labels get twice as much
    left = [box.x + 10 + width * (2 * min(i, len(labels)) + max(0, i - len(labels))) for i in range(len(headings))]
    lines = [text(x, box.y + 38, shortened(name, width), 11, FAINT) for x, name in zip(left, headings)]
    for line, (key, values) in enumerate(sorted(rows.items())[:7]):
        cells = [*key, *(written(values.get(t["refId"], math.nan), units[heading]) if t["refId"] in values else ""
                         for t, heading in zip(panel["targets"], headings[len(labels):]))]
        y = box.y + 62 + 24 * line
        lines.append(f'<line x1="{box.x + 8}" x2="{box.x + box.width - 8}" y1="{y - 16}" y2="{y - 16}" stroke="{LINE}"/>')
        lines += [text(x, y, shortened(cell, width * (2 if i < len(labels) else 1) - 6)) for i, (x, cell) in enumerate(zip(left, cells))]
    return lines


class Answers:
    """Answers of a Prometheus to the queries of a dashboard, all variables chosen, for the `last` seconds before `end`."""

    def __init__(self, prometheus, end, last, interval):
        self.prometheus = prometheus
        self.window, self.step = (end - last, end), max(last / POINTS, interval)
        # As Grafana: four scrapes at least, and no gap between two points.
        self._rate_interval = f"{max(4 * interval, round(self.step) + interval)}s"

    def _filled(self, expr):
        return re.sub(r"\$(job|worker)\b", ".*", expr.replace("$__rate_interval", self._rate_interval))

    def curve(self, expr):
        return self.prometheus.over(self._filled(expr), *self.window, self.step)

    def of(self, panel):
        """By the query's letter."""
        return {target["refId"]: self.prometheus.at(self._filled(target["expr"]), self.window[1]) if target.get("instant") else
                self.curve(target["expr"]) for target in panel["targets"]}

    def events(self, dashboard):
        """[(moment, colour)] of its annotations: where one begins."""
        for annotation in dashboard["annotations"]["list"]:
            for _, values in self.curve(annotation["expr"]):
                times = [t for t, v in values if v > 0]
                yield from ((t, annotation["iconColor"]) for i, t in enumerate(times) if i == 0 or t - times[i - 1] > 1.5 * self.step)


def picture(dashboard, answers):
    """The dashboard as SVG."""
    events = list(answers.events(dashboard))
    bottom = max(p["gridPos"]["y"] + p["gridPos"]["h"] for p in dashboard["panels"])
    height = HEAD + bottom * CELL_HEIGHT + GAP
    lines = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" font-family="Inter, Helvetica, Arial, sans-serif">',
             f'<rect width="{WIDTH}" height="{height}" fill="#f4f5f5"/>', text(GAP + 2, 29, dashboard["title"], 18, weight="bold"),
             text(WIDTH - GAP, 29, f"last {written(answers.window[1] - answers.window[0], 's')}", 12, FAINT, "end")]
    for panel in dashboard["panels"]:
        box = Box(panel["gridPos"])
        if panel["type"] == "row":
            lines.append(text(box.x + 2, box.y + 17, panel["title"], 14, weight="bold"))
            continue
        lines.append(box.frame(panel["title"]))
        given = answers.of(panel)
        if panel["type"] == "stat":
            lines += draw_figure(box, panel, given)
        elif panel["type"] == "table":
            lines += draw_table(box, panel, given)
        else:
            lines += draw_curves(box, panel, given, answers.window, answers.step, events)
    return "\n".join([*lines, "</svg>"]) + "\n"


def draw_all(prometheus, folder, end, last, interval):
    os.makedirs(folder, exist_ok=True)
    for path in sorted(glob.glob(os.path.join(HERE, "dashboards", "*.json"))):
        with open(path) as f:
            dashboard = json.load(f)
        with open(os.path.join(folder, os.path.basename(path)[:-len("json")] + "svg"), "w") as f:
            f.write(picture(dashboard, Answers(prometheus, end, last, interval)))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("url")
    parser.add_argument("--last", type=int, default=3600)
    parser.add_argument("--interval", type=int, default=15)
    parser.add_argument("--output", default=os.path.join(HERE, "..", "..", "docs", "guides", "pictures"))
    given = parser.parse_args()
    draw_all(Prometheus(given.url), given.output, time.time(), given.last, given.interval)


if __name__ == "__main__":
    main()
