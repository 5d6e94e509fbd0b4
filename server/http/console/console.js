// The console: views of the job API of this port. Text that users named is set as text, never as markup.
"use strict";

const REFRESH_MS = 2000, PAGE_ROWS = 100, CHART_POINTS = 400;
const LEVELS = [0.01, ...Array.from({length: 19}, (_, i) => (i + 1) / 20), 0.99];  // of a predicted distribution
const main = document.getElementById("main"), trouble = document.getElementById("trouble");
// At least 3:1 on white and on the dark paper.
const palette = ["#3b82d6", "#d06a2c", "#2f9450", "#9a6be0", "#e0564a", "#1f8f9e", "#9c7c18", "#7d8894"];
let timer = 0, visit = 0, charts = [], waiting = [];
let stream = null;  // the job in view: its name, its newest state, and how to end it

// An element with its attributes and children; a child is an element, text or null.
function make(tag, attributes = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else if (value !== null && value !== undefined && value !== false) element.setAttribute(name, value === true ? "" : value);
  }
  element.append(...children.flat().filter(child => child !== null && child !== undefined));
  return element;
}

class Refused extends Error {
  constructor(code, message) { super(message); this.code = code; }
}

function authorization() {
  const token = sessionStorage.getItem("token");
  return token ? {Authorization: "Bearer " + token} : {};
}

async function call(path, options = {}) {
  const headers = {...authorization(), ...(options.body ? {"Content-Type": "application/json"} : {})};
  const reply = await fetch(path, {...options, headers});
  const text = await reply.text();
  let json = {};
  try { json = text ? JSON.parse(text) : {}; } catch { throw new Refused(reply.status, "the server's reply is no JSON"); }
  if (!reply.ok) throw new Refused(reply.status, json.error || json.message || reply.statusText);
  return json;
}
const at = (...parts) => "/v1/" + parts.map(encodeURIComponent).join("/");

// Follows a job by server-sent events until it is final or another view is shown. Without a stream the timer asks.
async function follow(name) {
  const ending = new AbortController(), mine = stream = {name, job: null, end: () => ending.abort()};
  try {
    const reply = await fetch(at("jobs", name, "watch") + "?min_interval_seconds=1", {headers: authorization(), signal: ending.signal});
    const reader = reply.ok ? reply.body.pipeThrough(new TextDecoderStream()).getReader() : null;
    for (let text = ""; reader && stream === mine;) {
      const {done, value} = await reader.read();
      if (done) break;
      const events = (text + value).split("\n\n");
      text = events.pop();
      const newest = events.filter(event => event.startsWith("data: ")).pop();
      if (newest) {
        mine.job = JSON.parse(newest.slice("data: ".length));
        refresh();
      }
    }
  } catch { /* the timer goes on */ }
  if (stream === mine) {
    stream = null;
    refresh();
  }
}

// ---- values

const number = (value, digits = 4) => {
  const n = Number(value);
  if (value === undefined || value === null || Number.isNaN(n)) return "-";
  return Number.isInteger(n) ? n.toLocaleString("en") : n.toPrecision(digits).replace(/(\.\d*?)0+(e|$)/, "$1$2").replace(/\.(e|$)/, "$1");
};
const percent = job => Number(job.steps_total) > 0 ? 100 * Number(job.steps_done) / Number(job.steps_total) : 0;
const word = state => state === "LEASED" ? "RUNNING" : state;
const kind = {RUNNING: "going", SUCCEEDED: "done", SUCCEEDED_EARLY: "done", FAILED: "bad", DIVERGED: "bad"};
const state = name => make("span", {class: "state " + (kind[word(name)] || "still")}, word(name));
function age(time) {
  const s = Math.max(0, (Date.now() - Date.parse(time)) / 1000);
  if (!(s >= 0)) return "-";
  if (s < 60) return Math.floor(s) + "s";
  if (s < 3600) return Math.floor(s / 60) + "m";
  return s < 86400 ? Math.floor(s / 3600) + "h" : Math.floor(s / 86400) + "d";
}
const bar = (done, total, label) => make("span", {}, make("progress", {max: 100, value: total > 0 ? 100 * done / total : 0, "aria-label": label}),
  " " + (total > 0 ? (100 * done / total).toFixed(1) : "0") + " %");
const averageOf = what => what === "all" ? "all draws" : what.replace(/^single/, "mean single draw");
const samplerOf = spec => Object.keys((spec || {}).sampler || {})[0] || "-";

// ---- parts of a view

// columns: [header, cell of an item, is a number].
function table(items, columns, empty) {
  if (items.length === 0) return make("p", {class: "note"}, empty);
  const side = column => column[2] ? {class: "number"} : {};
  return make("div", {class: "scroll", tabindex: 0, role: "region", "aria-label": "table by " + columns[0][0]}, make("table", {},
    make("thead", {}, make("tr", {}, columns.map(column => make("th", {scope: "col", ...side(column)}, column[0])))),
    make("tbody", {}, items.map(item => make("tr", {}, columns.map(column => {
      const cell = column[1](item);
      return make("td", side(column), cell === "" || cell === undefined || cell === null ? "-" : cell);
    }))))));
}

function facts(pairs) {
  return make("dl", {}, pairs.filter(([, value]) => value !== "" && value !== undefined && value !== null)
    .flatMap(([name, value]) => [make("dt", {}, name), make("dd", {}, value)]));
}

// A figure with a chart. Screen readers get its caption.
function figure(caption, config) {
  const canvas = make("canvas", {role: "img", "aria-label": caption});
  const element = make("figure", {}, make("figcaption", {}, caption), make("div", {class: "chart"}, canvas));
  waiting.push([canvas, {...config, options: {animation: false, maintainAspectRatio: false, ...config.options}}]);
  return element;
}

// Draws the charts of the view, which is in the document now: a chart takes its size from there.
function drawCharts() {
  const color = name => getComputedStyle(document.documentElement).getPropertyValue(name);
  Chart.defaults.color = color("--soft");
  Chart.defaults.borderColor = color("--line");
  charts.forEach(chart => chart.destroy());
  charts = waiting.filter(([canvas]) => canvas.isConnected).map(([canvas, config]) => new Chart(canvas, config));
  waiting = [];
}

function thin(points) {
  const every = Math.ceil(points.length / CHART_POINTS);
  return points.filter((_, i) => i % every === 0);
}

function traceFigure(traces) {
  const datasets = (traces.chains || []).map(chain => ({
    label: "chain " + chain.chain, borderColor: palette[chain.chain % palette.length], borderWidth: 1, pointRadius: 0,
    data: thin((chain.steps || []).map((step, i) => ({x: Number(step), y: Number((chain.values || [])[i])})).filter(p => Number.isFinite(p.y))),
  }));
  return figure(traces.quantity + " of each chain, by step",
    {type: "line", data: {datasets}, options: {parsing: false, scales: {x: {type: "linear", title: {display: true, text: "step"}}}}});
}

// ---- views

async function jobs(query) {
  const path = "/v1/jobs?page_size=" + PAGE_ROWS + (query.get("state") ? "&state=" + encodeURIComponent(query.get("state")) : "") +
    (query.get("page") ? "&page_token=" + encodeURIComponent(query.get("page")) : "");
  const listed = await call(path);
  const states = ["", "PENDING", "RUNNING", "PAUSED", "SUCCEEDED", "SUCCEEDED_EARLY", "FAILED", "CANCELLED"];
  const chosen = event => {
    history.pushState(null, "", "#/jobs" + (event.target.value ? "?state=" + event.target.value : ""));
    draw();  // without a hashchange, which moves the focus: arrow keys choose the next state
  };
  const choose = make("select", {onchange: chosen},
    states.map(name => make("option", {value: name, selected: name === (query.get("state") || "")}, name || "all")));
  return [make("h1", {}, "Jobs"), make("form", {}, make("label", {}, "State", choose)),
    table(listed.jobs || [], [
      ["Job", job => make("a", {href: "#/jobs/" + encodeURIComponent(job.id)}, job.id)],
      ["State", job => state(job.state)],
      ["Sampler", job => samplerOf(job.spec)],
      ["Data set", job => ((job.spec || {}).dataset || {}).name],
      ["Chains", job => number(job.num_chains), true],
      ["Progress", job => bar(Number(job.steps_done), Number(job.steps_total), "progress of " + job.id)],
      ["Draws", job => number(job.num_draws), true],
      ["Version", job => number(job.newest_version), true],
      ["Age", job => age(job.created_at), true],
    ], "There are no jobs here. chainfleet submit FILE creates one."),
    listed.next_page_token ? make("p", {}, make("a", {href: "#/jobs?" + new URLSearchParams(
      {state: query.get("state") || "", page: listed.next_page_token})}, "Older jobs")) : null];
}

async function order(job, intent) {
  if (["CANCEL", "DELETE"].includes(intent) && !confirm(intent.toLowerCase() + " " + job + "?")) return;
  await act(() => call(at("jobs", job, "intent"), {method: "POST", body: JSON.stringify({intent})}));
}

function orders(job) {
  const button = (text, intent) => make("button", {type: "button", onclick: () => order(job.id, intent)}, text);
  if (job.finished_at) return make("form", {}, button("Delete", "DELETE"));
  return make("form", {}, job.state === "PAUSED" ? button("Resume", "RUN") : button("Pause", "PAUSE"),
    button("End early", "FINISH"), button("Cancel", "CANCEL"));
}

function chainsOf(job) {
  const swept = (job.points || []).length > 0;
  return table(job.chains || [], [
    ["Chain", chain => number((chain.id || {}).index), true],
    ...(swept ? [["Point", chain => (job.points[chain.point] || {}).name]] : []),
    ["State", chain => state(chain.state)],
    ["Progress", chain => bar(Number(chain.step), Number(chain.total_steps), "progress of chain " + (chain.id || {}).index)],
    ["Draws", chain => number(chain.num_draws), true],
    ["Energy", chain => Number((chain.stats || {}).step_size) > 0 ? number(chain.stats.energy, 6) : "-", true],
    ["Steps/s", chain => chain.state === "LEASED" ? number((chain.stats || {}).steps_per_second) : "-", true],
    ["Worker", chain => chain.worker],
    ["Reason", chain => chain.reason],
  ], "The job has no chains.");
}

async function job(query, name) {
  const found = (stream && stream.name === name && stream.job) || await call(at("jobs", name));
  const decisive = (found.diagnostics || []).filter(one => !one.descriptive);
  const quantities = [...new Set([...decisive, ...(found.diagnostics || [])].map(one => one.quantity))];
  const [versions, evaluations, ...traces] = await Promise.all([
    call(at("jobs", found.id, "snapshots")), call("/v1/evaluations?job=" + encodeURIComponent(found.id)),
    ...quantities.slice(0, 4).map(quantity => call(at("jobs", found.id, "traces") + "?quantity=" + encodeURIComponent(quantity)).catch(() => null)),
  ]);
  if (!found.finished_at && !stream) follow(name);
  const report = found.report || {};
  return [make("h1", {}, found.id), orders(found),
    facts([["State", state(found.state)],
      ["Progress", bar(Number(found.steps_done), Number(found.steps_total), "progress")],
      ["Draws", make("a", {href: "#/draws/" + encodeURIComponent(found.id)}, number(found.num_draws) + " committed")], ["Sampler", samplerOf(found.spec)],
      ["Data set", ((found.spec || {}).dataset || {}).name], ["Created", age(found.created_at) + " ago"],
      ["Posterior", "N = " + number(report.num_examples) + ", D = " + number(report.num_parameters) + ", T = " + number(report.temperature)],
      ["Aliases", (found.aliases || []).join(", ")], ["Tenant", found.tenant === "default" ? "" : found.tenant],
      ["Stopped", (found.stopped || []).map(one => one.why).join("; ")]]),
    make("h2", {}, "Chains"), chainsOf(found),
    ...diagnosticsOf(found.diagnostics || []),
    make("div", {class: "charts"}, traces.filter(one => one && (one.chains || []).length > 0).map(traceFigure)),
    make("h2", {}, "Versions"), table(versions.snapshots || [], [
      ["Version", one => number(one.version), true], ["Draws", one => number(one.num_draws), true],
      ["Age", one => age(one.created_at), true], ["Aliases", one => (one.aliases || []).join(", ")],
    ], "There is no version yet."),
    make("h2", {}, "Evaluations"), evaluationTable(evaluations.evaluations || [], false),
    make("h2", {}, "Predict"), predictForm(found)];
}

function diagnosticsOf(diagnostics) {
  const none = "The chains have too few traced values yet.", three = value => value === undefined ? "-" : Number(value).toFixed(3);
  if (diagnostics.some(one => one.ranks)) {
    return [make("h2", {}, "Calibration"),
      make("p", {class: "note"}, "Chains by the rank of their true value, from the lowest to the highest: level if the sampler is right. ",
        "U shape: the draws are too narrow; hill: too wide; slope: they are biased."),
      table(diagnostics, [
        ["Quantity", one => one.quantity], ["Chains", one => number(one.chains), true],
        ["Ranks", one => ((one.ranks || {}).counts || []).join(" ")],
        ["p-value of level ranks", one => (one.ranks || {}).p_value === undefined ? "-" : number(one.ranks.p_value, 2), true],
      ], none)];
  }
  const nested = diagnostics.some(one => one.nested_rhat !== undefined);
  return [make("h2", {}, "Convergence"),
    make("p", {class: "note"}, "R-hat below 1.01 says that the chains agree. A network is judged by its predictions: ",
      "quantities that do not decide describe its parameters."),
    ...(nested ? [make("p", {class: "note"}, "Nested R-hat near 1: the chains have forgotten their starts. With M chains of each start ",
      "and n independent draws of each chain, it falls to about sqrt(1 + 1 / (M n)).")] : []),
    table(diagnostics, [
      ["Quantity", one => one.quantity], ["R-hat", one => three(one.rhat), true],
      ...(nested ? [["Nested R-hat", one => three(one.nested_rhat), true]] : []),
      ["ESS bulk", one => number(Math.round(one.ess_bulk)), true], ["ESS tail", one => number(Math.round(one.ess_tail)), true],
      ["Mean", one => number(one.mean, 6), true], ["MCSE", one => number(one.mcse_mean, 2), true],
      ["Decides", one => one.descriptive ? "no" : "yes"],
    ], none)];
}

async function draws(query, name) {
  const page = query.get("page") ? "&page_token=" + encodeURIComponent(query.get("page")) : "";
  const listed = await call(at("jobs", name, "segments") + "?page_size=" + PAGE_ROWS + page);
  return [make("h1", {}, "Draws"), make("p", {}, make("a", {href: "#/jobs/" + encodeURIComponent(name)}, name)),
    table(listed.segments || [], [
      ["Chain", one => number((one.chain || {}).index), true],
      ["Draws", one => number((one.segment.steps || []).length), true],
      ["Steps", one => [...new Set([one.segment.steps[0], one.segment.steps.at(-1)])].map(step => number(step)).join(" to ")],
      ["Kinds", one => (one.segment.kinds || []).join(", ").toLowerCase()],
      ["Bytes", one => number((one.segment.object || {}).size_bytes), true],
      ["Worker", one => one.worker], ["Age", one => age(one.committed_at), true],
      ["Note", one => one.deleted ? "deleted" : one.corrupt ? "corrupt" : ""],
    ], "No draws are committed yet."),
    listed.next_page_token ? make("p", {}, make("a", {href: "#/draws/" + encodeURIComponent(name) + "?page=" +
      encodeURIComponent(listed.next_page_token)}, "More draws")) : null];
}

// ---- predictions

const kept = {text: "", result: null, job: ""};

function predictForm(found) {
  if (kept.job !== found.id) Object.assign(kept, {text: "", result: null, job: found.id});
  const inputs = found.inputs || {}, shape = inputs.shape || [];
  if (shape.length === 0) return make("p", {class: "note"}, "This job takes no inputs.");
  const wanted = shape.reduce((product, size) => product * Number(size), 1);
  const box = make("textarea", {spellcheck: "false", placeholder: wanted + " numbers, such as 0.1, 0.2, ...",
    oninput: event => { kept.text = event.target.value; }});
  box.value = kept.text;
  const file = make("input", {type: "file", accept: "image/*", onchange: event => act(async () => {
    kept.text = (await pixelsOf(event.target.files[0], shape)).join(", ");
  })});
  const image = shape.length === 3 && [1, 3].includes(Number(shape[0]));
  return make("div", {}, make("form", {onsubmit: event => { event.preventDefault(); act(() => predict(found, wanted)); }},
    make("label", {}, "One row of shape [" + shape.join(", ") + "]", box),
    image ? make("label", {}, "or an image", file) : null, make("button", {}, "Predict")), make("div", {}, kept.result ? shown(kept.result) : ""));
}

// The image at the size of the inputs, channels first, values 0 to 255.
async function pixelsOf(file, shape) {
  const [channels, height, width] = shape.map(Number);
  const canvas = make("canvas", {width, height}), context = canvas.getContext("2d");
  context.drawImage(await createImageBitmap(file), 0, 0, width, height);
  const {data} = context.getImageData(0, 0, width, height);
  const pixel = i => channels === 3 ? [data[4 * i], data[4 * i + 1], data[4 * i + 2]]
    : [Math.round(0.299 * data[4 * i] + 0.587 * data[4 * i + 1] + 0.114 * data[4 * i + 2])];
  const planes = Array.from({length: channels}, () => []);
  for (let i = 0; i < width * height; ++i) pixel(i).forEach((value, channel) => planes[channel].push(value));
  return planes.flat();
}

// Little-endian bytes in base64, as the field `data` of a tensor takes them.
function encode(values, type) {
  const bytes = new Uint8Array((type === "UINT8" ? Uint8Array : Float32Array).from(values).buffer);
  let text = "";
  for (const byte of bytes) text += String.fromCharCode(byte);
  return btoa(text);
}

async function predict(found, wanted) {
  const values = kept.text.split(/[\s,;]+/).filter(Boolean).map(Number);
  if (values.length !== wanted || values.some(Number.isNaN)) {
    throw new Refused(400, "the row has " + values.length + " numbers; the job takes " + wanted);
  }
  const {type, shape, target_units: numbers} = found.inputs;
  kept.result = await call(at("jobs", found.id, "predict"), {method: "POST", body: JSON.stringify(
    {inputs: {type, shape: ["1", ...shape.map(String)], data: encode(values, type)}, quantiles: numbers ? LEVELS : []})});
}

function shown(reply) {
  const scores = reply.scores || {}, names = reply.class_names || [], errors = reply.errors || {};
  const drawn = number(reply.draws_used) + " of " + number(reply.draws_in_version) + " draws of version " + number(reply.version);
  const error = name => (errors[name] || []).length ? " ± " + number(errors[name][0], 2) : "";
  const one = name => (scores[name] || []).length ? number(scores[name][0]) + error(name) : "";
  const p = scores.mean_probability || [], nameOf = k => names[k] ?? String(k), quantiles = (reply.quantiles || []).map(Number);
  const inner = quantiles.length ? number(quantiles[LEVELS.indexOf(0.05)]) + " to " + number(quantiles[LEVELS.indexOf(0.95)]) : "";
  const values = facts([["Averaged", drawn], ["Class", p.length ? nameOf(p.indexOf(Math.max(...p))) : ""],
    ["Probability", one("max_probability")], ["Predictive entropy", one("predictive_entropy") && one("predictive_entropy") + " nats"],
    ["Mutual information", one("mutual_information") && one("mutual_information") + " nats"],
    ["Mean", one("mean")], ["Central 90 %", inner], ["Variance of the noise", one("variance_aleatoric")], ["Variance between draws", one("variance_epistemic")]]);
  const points = quantiles.map((x, i) => ({x, y: LEVELS[i]})).filter(point => Number.isFinite(point.x));
  if (points.length) {
    return make("div", {class: "charts"}, values, figure("Probability that the number is below x", {type: "line",
      data: {datasets: [{data: points, borderColor: palette[0], pointRadius: 0}]},
      options: {parsing: false, plugins: {legend: {display: false}},
        scales: {x: {type: "linear", title: {display: true, text: "x"}}, y: {min: 0, max: 1}}}}));
  }
  if (p.length === 0) return values;
  return make("div", {class: "charts"}, values, figure("Mean probability of each class",
    {type: "bar", data: {labels: p.map((_, k) => nameOf(k)), datasets: [{data: p, backgroundColor: palette[0]}]},
      options: {plugins: {legend: {display: false}}, scales: {y: {min: 0, max: 1}}}}));
}

// ---- the other views

function evaluationTable(items, withJob = true) {
  return table(items, [
    ["Evaluation", one => make("a", {href: "#/evaluations/" + encodeURIComponent(one.id)}, one.id)],
    ...(withJob ? [["Job", one => make("a", {href: "#/jobs/" + encodeURIComponent(one.job_id)}, one.job_id)]] : []),
    ["Data set", one => (one.request || {}).dataset], ["State", one => state(one.state)],
    ["Age", one => age(one.created_at), true], ["Error", one => one.error],
  ], "There are no evaluations. chainfleet evaluate JOB --dataset NAME starts one.");
}

async function evaluations() {
  return [make("h1", {}, "Evaluations"), evaluationTable((await call("/v1/evaluations")).evaluations || [])];
}

async function evaluation(query, id) {
  const found = await call(at("evaluations", id)), result = found.evaluation;
  const parts = [make("h1", {}, found.id), facts([["State", state(found.state)],
    ["Job", make("a", {href: "#/jobs/" + encodeURIComponent(found.job_id)}, found.job_id)],
    ["Data set", (found.request || {}).dataset], ["Error", found.error]])];
  if (!result) return parts;
  const scores = result.scores || [], numbers = scores.some(one => one.rmse !== undefined);
  parts.push(make("h2", {}, "Scores on " + number(result.num_rows) + " rows"), table(scores, [
    ["Average", one => averageOf(one.what)], ["Draws", one => number(one.num_draws), true],
    ...(numbers ? [["RMSE", one => number(one.rmse), true], ["Coverage 90 %", one => number(one.coverage_90), true]]
      : [["Accuracy %", one => (100 * one.accuracy).toFixed(2), true]]),
    ["NLL", one => number(one.nll), true],
    ...(numbers ? [] : [["ECE", one => number(one.ece), true], ["Brier", one => number(one.brier), true],
      ["OOD AUROC", one => number(one.ood_auroc), true]]),
  ], "There are no scores."));
  const all = scores.find(one => one.what === "all") || {}, charts = [];
  if ((all.reliability || []).length) {
    charts.push(figure("Reliability: accuracy by confidence", {type: "bar",
      data: {labels: all.reliability.map(bin => bin.upper.toFixed(2)), datasets: [
        {label: "accuracy", data: all.reliability.map(bin => Number(bin.count) ? bin.accuracy : null), backgroundColor: palette[0]},
        {label: "confidence", data: all.reliability.map(bin => Number(bin.count) ? bin.mean_confidence : null), backgroundColor: palette[1]}]},
      options: {scales: {y: {min: 0, max: 1}}}}));
  }
  if ((result.curve || []).length) {
    charts.push(figure("NLL by the number of draws averaged", {type: "line", data: {labels: result.curve.map(point => point.num_draws),
      datasets: [{label: "NLL", data: result.curve.map(point => point.nll), borderColor: palette[0]}]}}));
  }
  if (numbers) {
    charts.push(figure("RMSE of single draws and of averages", {type: "bar", data: {labels: scores.map(one => averageOf(one.what)),
      datasets: [{data: scores.map(one => one.rmse), backgroundColor: palette[0]}]},
      options: {indexAxis: "y", plugins: {legend: {display: false}}, scales: {x: {min: 0}}}}));
  }
  parts.push(make("div", {class: "charts"}, charts), ...heldOut(result, numbers));
  return parts;
}

// The results that rest on held-out rows: conformal sets or intervals, and weights of chains.
function heldOut(result, numbers) {
  const conformal = result.conformal || [], weights = result.weights || [];
  const note = (...text) => make("p", {class: "note"}, ...text), rows = (count, name) => number(count) + " rows of " + name;
  return [...(conformal.length ? [make("h2", {}, numbers ? "Conformal intervals" : "Conformal sets"),
    note("Thresholds from " + rows(result.num_calibration_rows, result.calibration_dataset) + "; coverage and size on the ",
      number(result.num_rows) + " rows scored. ", numbers ? "An interval is the mean ± threshold standard deviations."
        : "A set has the classes with probability at least 1 - threshold."), table(conformal, [
      ["Level %", one => number(100 * one.level), true], ["Threshold", one => number(one.threshold), true],
      ["Coverage %", one => (100 * one.coverage).toFixed(2), true],
      [numbers ? "Mean width" : "Mean classes", one => number(one.mean_size), true],
    ])] : []), ...(weights.length ? [make("h2", {}, "Weights of chains"),
    note("Fitted to " + rows(result.num_stacking_rows, result.stacking_dataset) + "."), table(weights, [
      ["Chain", one => number((one.chain || {}).index), true], ["Stacking", one => Number(one.stacking).toFixed(4), true],
      ["Pseudo-BMA", one => Number(one.pseudo_bma).toFixed(4), true],
    ])] : [])];
}

async function workers() {
  const found = await call("/v1/workers");
  return [make("h1", {}, "Workers"), table(found.workers || [], [
    ["Worker", one => one.id], ["Host", one => one.host], ["Device", one => one.device],
    ["Chains", one => number(one.chains), true], ["Slots", one => number(one.chain_slots), true],
    ["Last sync", one => number(one.seconds_since_sync, 2) + " s", true],
    ["Serving", one => one.serving ? "yes" : "no"], ["Draining", one => one.draining ? "yes" : "no"],
  ], "No worker is connected. chainfleet-worker --server HOST:7400 starts one.")];
}

async function data() {
  const [sets, models, aliases] = await Promise.all(["/v1/datasets", "/v1/models", "/v1/aliases"].map(path => call(path)));
  return [make("h1", {}, "Data"), make("h2", {}, "Data sets"), table(sets.datasets || [], [
    ["Data set", one => one.name], ["Rows", one => number(one.num_rows), true],
    ["Shape", one => "[" + (one.input_shape || []).join(", ") + "]"],
    ["Targets", one => Number(one.num_classes) > 0 ? one.num_classes + " classes" : "numbers"],
  ], "There are no data sets. chainfleet dataset put NAME FILES stores one."),
    make("h2", {}, "Models"), table(models.models || [], [
      ["Model", one => one.name], ["Bytes", one => number((one.object || {}).size_bytes), true]], "There are no stored models."),
    make("h2", {}, "Aliases"), table(aliases.aliases || [], [
      ["Alias", one => one.name],
      ["Job", one => make("a", {href: "#/jobs/" + encodeURIComponent(one.job_id)}, one.job_id)],
      ["Version", one => number(one.version), true]], "There are no aliases.")];
}

function login() {
  const field = make("input", {type: "password", autocomplete: "off", required: true});
  return [make("h1", {}, "Log in"), make("form", {onsubmit: event => {
    event.preventDefault();
    sessionStorage.setItem("token", field.value.trim());
    draw();
  }}, make("label", {}, "Token", field), make("button", {}, "Log in")),
    make("p", {class: "note"}, "The token stays in this tab until the tab is closed.")];
}

// ---- the page

const views = {jobs: (query, name) => name ? job(query, name) : jobs(query), draws, workers, data,
  evaluations: (query, id) => id ? evaluation(query, id) : evaluations()};

function tell(error) {
  trouble.hidden = error === null;
  trouble.textContent = error === null ? "" : error instanceof Refused ? error.message : "server unreachable, retrying";
}

// Does what a user asked for, then shows the outcome.
async function act(work) {
  try {
    await work();
    await draw();
  } catch (error) { tell(error); }
}

// Whether a user fills in a field. A choice is in use only while its list is open.
function busy() {
  const focus = document.activeElement;
  if (focus.tagName === "SELECT" && CSS.supports("selector(:open)")) return focus.matches(":open");
  return main.contains(focus) && ["INPUT", "TEXTAREA", "SELECT"].includes(focus.tagName);
}

// Replaces the view, and keeps the focus and the sideways scrolling of tables where the same view is drawn again.
function replace(path, parts) {
  const key = one => [one.tagName, one.getAttribute("href") || one.getAttribute("aria-label") || one.textContent].join(" ");
  const tables = () => [...main.querySelectorAll(".scroll")];
  const again = main.dataset.path === path, scrolled = tables().map(one => one.scrollLeft);
  const focus = again && main.contains(document.activeElement) ? key(document.activeElement) : null;
  main.dataset.path = path;
  main.replaceChildren(...parts);
  document.getElementById("leave").hidden = !sessionStorage.getItem("token");
  if (!again) return;
  tables().forEach((one, i) => { one.scrollLeft = scrolled[i] || 0; });
  [...main.querySelectorAll("a, button, input, textarea, select, [tabindex]")].find(one => key(one) === focus)?.focus({preventScroll: true});
}

// A part of the address; one that nothing has encoded stays as it is.
function decoded(part) {
  try { return decodeURIComponent(part); } catch { return part; }
}

async function draw() {
  clearTimeout(timer);
  const mine = ++visit;
  const [path, search] = location.hash.replace(/^#\/?/, "").split("?");
  const [name, argument] = path.split("/").map(decoded);
  const known = Object.hasOwn(views, name), view = known ? views[name] : views.jobs;
  if (stream && !(name === "jobs" && argument === stream.name)) {
    stream.end();
    stream = null;
  }
  document.querySelectorAll("nav a").forEach(link => {
    if (link.hash === "#/" + (known ? name : "jobs")) link.setAttribute("aria-current", "page");
    else link.removeAttribute("aria-current");
  });
  try {
    const parts = await view(new URLSearchParams(search || ""), argument);
    if (mine !== visit) return;
    replace(path, parts.filter(part => part !== null));
    drawCharts();
    document.title = (main.querySelector("h1") || {}).textContent + " - chainfleet";
    tell(null);
  } catch (error) {
    if (mine !== visit) return;
    if (error.code === 401) { sessionStorage.removeItem("token"); replace("login", login()); tell(null); return; }
    tell(error);
  }
  timer = setTimeout(refresh, stream ? 5 * REFRESH_MS : REFRESH_MS);
}

// Draws the view again, unless a user fills in a field or the tab is hidden.
function refresh() {
  clearTimeout(timer);
  if (busy() || document.hidden) timer = setTimeout(refresh, REFRESH_MS);
  else draw();
}

addEventListener("hashchange", () => { draw(); main.focus(); });
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", draw);
document.getElementById("leave").addEventListener("click", () => { sessionStorage.removeItem("token"); draw(); });
call("/v1/server").then(found => { document.getElementById("server").textContent = "version " + found.version; }).catch(() => {});
draw();
