"""The vocabulary of the dashboards: what a figure, a curve and a table look like, and how panels flow over the grid.

Each panel says in its description what it shows and, after "Bad:", what trouble looks like. Queries name their data source
by the variable `datasource`; rates are over $__rate_interval, so that they hold for any range and scrape interval.
"""
COLUMNS = 24  # columns of Grafana's grid
SCHEMA_VERSION = 41  # Grafana 11.6
DATASOURCE = {"type": "prometheus", "uid": "${datasource}"}
GOOD, WARNING, BAD = "green", "orange", "red"
# One colour for each state of jobs and chains, on every panel; `chainfleet watch` has the same.
STATES = {"RUNNING": "blue", "LEASED": "blue", "running": "blue", "SUCCEEDED": "green", "SUCCEEDED_EARLY": "light-green",
          "PENDING": "gray", "PAUSED": "dark-gray", "waiting": "gray", "CANCELLED": "purple", "DELETING": "dark-purple",
          "FAILED": "red", "DIVERGED": "dark-red", "lost": "red"}
METHOD_PATH = r"/\/[^ ]*\//"  # finds "/chainfleet.v1.JobService/GetJob"; the syntax is Grafana's


def _thresholds(steps, below=()):
    """`steps`: [(value from which on, colour)]; `below`: [(value under which, colour)], the lowest first. Between them all is good."""
    colours = [*(colour for _, colour in below), GOOD, *(colour for _, colour in steps)]
    values = [None, *(value for value, _ in below), *(value for value, _ in steps)]
    return {"mode": "absolute", "steps": [{"value": v, "color": c} for v, c in zip(values, colours)]}


def _panel(kind, title, targets, unit, shows, bad, width, height, options, **defaults):
    defaults = {"unit": unit, **defaults}
    return {
        "type": kind, "title": title, "description": f"{shows} Bad: {bad}", "datasource": DATASOURCE,
        "gridPos": {"w": width, "h": height}, "targets": targets,
        "fieldConfig": {"defaults": defaults, "overrides": []}, "options": options}


def _target(ref, expr, **more):
    return {"refId": ref, "datasource": DATASOURCE, "editorMode": "code", "expr": expr, **more}


def figure(title, expr, unit, shows, bad, limits=(), below=(), legend="", width=3, decimals=None):
    """A number, its newest value, over its recent course. `limits`: [(value from which on, colour)]; `below`: [(value under which, colour)],
    the lowest first."""
    options = {"graphMode": "area", "colorMode": "value", "textMode": "auto", "justifyMode": "auto", "orientation": "auto",
               "reduceOptions": {"calcs": ["lastNotNull"], "fields": "", "values": False}}
    more = {"thresholds": _thresholds(limits, below), "color": {"mode": "thresholds"}}
    if decimals is not None:
        more["decimals"] = decimals
    return _panel("stat", title, [_target("A", expr, legendFormat=legend or title)], unit, shows, bad, width, 4, options, **more)


def _state_colours(legends):
    """Overrides that fix the colours of series named by states; LEASED is shown as what users call it."""
    named = STATES if "{{state}}" in legends else [legend for legend in legends if legend in STATES]
    renamed = {"LEASED": [{"id": "displayName", "value": "RUNNING"}]}
    return [{"matcher": {"id": "byName", "options": name},
             "properties": [{"id": "color", "value": {"mode": "fixed", "fixedColor": STATES[name]}}, *renamed.get(name, [])]} for name in named]


def curves(title, queries, unit, shows, bad, width=8, stacked=False, log=False, limits=(), lowest=0, highest=None):
    """Courses over time. `queries`: [(expression, legend)]; `lowest`, `highest`: what the axis shows at least, None for free. Methods in
    legends lose their service."""
    targets = [_target(chr(ord("A") + i), expr, legendFormat=legend) for i, (expr, legend) in enumerate(queries)]
    custom = {"drawStyle": "line", "lineInterpolation": "linear", "lineWidth": 1, "fillOpacity": 25 if stacked else 0,
              "showPoints": "auto", "spanNulls": False, "stacking": {"mode": "normal" if stacked else "none", "group": "A"},
              "scaleDistribution": {"type": "log", "log": 10} if log else {"type": "linear"},
              "thresholdsStyle": {"mode": "dashed" if limits else "off"}}
    if lowest is not None and not log:
        custom["axisSoftMin"] = lowest
    if highest is not None:
        custom["axisSoftMax"] = highest
    options = {"legend": {"displayMode": "list", "placement": "bottom", "showLegend": True, "calcs": []},
               "tooltip": {"mode": "multi", "sort": "desc"}}
    panel = _panel("timeseries", title, targets, unit, shows, bad, width, 8, options, custom=custom,
                   color={"mode": "palette-classic"}, thresholds=_thresholds(limits))
    panel["fieldConfig"]["overrides"] = _state_colours([legend for _, legend in queries])
    if any("{{method}}" in legend for _, legend in queries):
        panel["transformations"] = [{"id": "renameByRegex", "options": {"regex": METHOD_PATH, "renamePattern": ""}}]
    return panel


def table(title, labels, columns, shows, bad, width=24):
    """Newest values side by side, a row for each value of `labels`. `columns`: [(expression, heading, unit)]."""
    targets, names, overrides = [], {label: label for label in labels}, []
    for i, (expr, heading, unit) in enumerate(columns):
        ref = chr(ord("A") + i)
        targets.append(_target(ref, expr, format="table", instant=True, range=False))
        names[f"Value #{ref}"] = heading
        overrides.append({"matcher": {"id": "byName", "options": heading}, "properties": [{"id": "unit", "value": unit}]})
    options = {"showHeader": True, "cellHeight": "sm", "frameIndex": 0, "footer": {"show": False, "reducer": ["sum"], "countRows": False}}
    panel = _panel("table", title, targets, "short", shows, bad, width, 8, options,
                   custom={"align": "auto", "inspect": False, "cellOptions": {"type": "auto"}})
    panel["fieldConfig"]["overrides"] = overrides
    panel["transformations"] = [
        {"id": "merge", "options": {}},
        {"id": "organize", "options": {"excludeByName": {"Time": True}, "includeByName": {}, "renameByName": names,
                                       "indexByName": {name: i for i, name in enumerate(names)}}}]
    return panel


def quantiles(metric, selector="", by=(), shares=(0.5, 0.99), legend=""):
    """Queries for `curves`: quantiles of a histogram over the selected series."""
    inside = ", ".join(("le", *by))
    return [(f"histogram_quantile({share}, sum by ({inside}) (rate({metric}_bucket{selector}[$__rate_interval])))",
             f"{legend} p{share * 100:g}".strip()) for share in shares]


def mean_and_p99(metric):
    """Queries for `curves` about a histogram of small whole numbers: a median would be between two of them, half a request for one."""
    return [(f"sum(rate({metric}_sum[$__rate_interval])) / sum(rate({metric}_count[$__rate_interval]))", "mean"), *quantiles(metric, shares=(0.99,))]


def section(title):
    return {"type": "row", "title": title, "collapsed": False, "gridPos": {"w": COLUMNS, "h": 1}, "panels": []}


def choice(name, label, metric):
    """A variable of the values that a metric's label of this name has; everything unless chosen."""
    query = f"label_values({metric}, {name})"
    return {"name": name, "label": label, "type": "query", "datasource": DATASOURCE, "query": {"query": query, "refId": "values"},
            "refresh": 2, "sort": 1, "multi": True, "includeAll": True, "allValue": ".*", "hide": 0, "skipUrlSync": False,
            "current": {"text": ["All"], "value": ["$__all"]}, "options": [], "regex": ""}


def _data_source():
    return {"name": "datasource", "label": "Data source", "type": "datasource", "query": "prometheus", "refresh": 1, "multi": False,
            "includeAll": False, "hide": 0, "skipUrlSync": False, "options": [], "regex": ""}


def _placed(panels):
    """The panels with ids and places: from left to right, a new line where one does not fit."""
    x, y, line = 0, 0, 0
    for i, panel in enumerate(panels):
        place = panel["gridPos"]
        if x + place["w"] > COLUMNS:
            x, y, line = 0, y + line, 0
        yield {"id": i + 1, **panel, "gridPos": {**place, "x": x, "y": y}}
        x, line = x + place["w"], max(line, place["h"])


def dashboard(uid, title, shows, annotations, choices, panels):
    """`annotations`: [(name, colour, expression, text)], drawn where the expression is above 0."""
    return {
        "uid": uid, "title": title, "description": shows, "tags": ["chainfleet"], "schemaVersion": SCHEMA_VERSION, "editable": True,
        "graphTooltip": 1, "timezone": "browser", "refresh": "30s", "time": {"from": "now-1h", "to": "now"},
        "links": [{"title": "chainfleet", "type": "dashboards", "tags": ["chainfleet"], "asDropdown": True, "icon": "external link",
                   "includeVars": True, "keepTime": True, "targetBlank": False, "tooltip": "", "url": ""}],
        "templating": {"list": [_data_source(), *choices]},
        "annotations": {"list": [
            {"name": name, "datasource": DATASOURCE, "enable": True, "hide": False, "iconColor": colour, "expr": expr, "titleFormat": text}
            for name, colour, expr, text in annotations]},
        "panels": list(_placed(panels))}
