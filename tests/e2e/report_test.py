"""Reports in a real browser: every chart is drawn, nothing is asked of a network, the console has nothing to say."""
import json
import os
import re
import subprocess
import unittest

import fleet as fleets
from chromium import Chromium, pixels

PAGE = os.path.join(os.path.dirname(fleets.BIN), "tests", "report_page")  # prints a report with everything in it
JOB = """
name: report
model: {builtin: mlp, hidden: [32]}
dataset: {name: fashion}
prior: {gaussian: {precision: 10}}
sampler: {emcmc: {eta: 4.0e-4}}
learning_rate: {cyclical: {initial: 0.1, cycles: 4}}
temperature: 1.0e-4
batch_size: 50
num_epochs: 12
burn_in: {cycles: 1}
chains: 4
collect: {last_epochs_of_cycle: 1, kinds: [theta, theta_a]}
seed: 7
"""
# A figure, what is drawn in it (charts, a table or pictures), and what the charts say to those who do not see them.
FIGURES = """
[...document.querySelectorAll('figure')].map(figure => {
  const box = element => { const r = element.getBoundingClientRect();
                           return {x: r.x + scrollX, y: r.y + scrollY, width: r.width, height: r.height}; };
  const charts = [...figure.querySelectorAll('.canvas canvas')];
  const colors = chart => new Set(new Uint32Array(
    chart.getContext('2d').getImageData(0, 0, chart.width, chart.height).data.buffer)).size;
  const drawn = charts.length ? charts : [figure.querySelector('table, ul.examples, dl')];
  return {id: figure.id, drawn: drawn.map(box), labels: charts.map(chart => chart.getAttribute('aria-label').length),
          colors: charts.map(colors),
          caption: figure.querySelector('figcaption').textContent.length};
})
"""
WHOLE = ["scores", "reliability", "entropy", "curve", "conformal", "weights", "examples", "corruptions", "severity", "fisher", "lines", "diagnostics",
         "trace-energy", "trace-theta-norm", "chains", "job"]
OF_NUMBERS = ["scores", "predicted", "residuals", "coverage", "conformal", "weights", "fisher", "lines", "diagnostics", "trace-energy",
              "trace-theta-norm", "chains", "job"]
# Tiles and callouts that have a nested R-hat.
NESTED = "[...document.querySelectorAll('.tiles li, .callout')].map(e => e.innerText.replace(/\\s+/g, ' ')).filter(text => /nested/i.test(text))"
HOSTILE = "</script><script>alert(1)</script>"


def document(path):
    """The JSON document in a report."""
    with open(path) as f:
        return json.loads(re.search(r'<script type="application/json" id="report">(.*?)</script>', f.read(), re.S).group(1))


def colors(browser, region):
    """How many colors a region of the page has: a blank one has one."""
    return len({pixel for row in pixels(browser.picture(region)) for pixel in row})


class InABrowser(unittest.TestCase):
    def setUp(self):
        self.browser = Chromium()
        self.addCleanup(self.browser.close)

    def check(self, path, figures):
        browser = self.browser
        browser.open(path)
        self.assertEqual(browser.requests(), ["file://" + os.path.abspath(path)])
        self.assertEqual(browser.complaints(), [])
        found = browser.evaluate(FIGURES)
        self.assertEqual([figure["id"] for figure in found], figures)
        for figure in found:
            with self.subTest(figure=figure["id"]):
                self.assertGreater(figure["caption"], 20)
                for label in figure["labels"]:
                    self.assertGreater(label, 15)
                for drawn in figure["drawn"]:
                    self.assertGreater(drawn["width"], 100)
                    self.assertGreater(drawn["height"], 60)
                # Charts are asked themselves: a browser draws what is far below its window when it likes.
                for count in figure["colors"] or [colors(browser, drawn) for drawn in figure["drawn"]]:
                    self.assertGreater(count, 8, "blank, or nearly")
        self.assertNotIn("[object", browser.evaluate("document.body.innerText"))
        self.assertLessEqual(browser.evaluate("document.documentElement.scrollWidth"), 1280, "the page is broader than the window")
        keep = os.environ.get("CHAINFLEET_KEEP_PICTURES")  # a folder to put pictures of the pages into, to look at them
        if keep:
            with open(os.path.join(keep, self._testMethodName + ".png"), "wb") as f:
                f.write(browser.picture())


class Page(InABrowser):
    def setUp(self):
        super().setUp()
        self.path = self.page("whole")

    def page(self, *arguments):
        path = os.path.join(self.browser.profile, arguments[0] + ".html")
        with open(path, "wb") as f:
            f.write(subprocess.run([PAGE, *arguments], check=True, capture_output=True).stdout)
        return path

    def changed(self, name, change):
        """The page of this name, drawn from a changed document."""
        path = self.page(name)
        shown = document(path)
        change(shown)
        text = json.dumps(shown).replace("<", "\\u003c")
        with open(path) as f:
            page = re.sub('(?<=id="report">).*?(?=</script>)', lambda _: text, f.read(), count=1, flags=re.S)
        with open(path, "w") as f:
            f.write(page)
        return path

    def test_every_chart_of_a_whole_report_is_drawn(self):
        self.check(self.path, WHOLE)
        self.assertEqual(self.browser.evaluate("[...document.querySelectorAll('.examples canvas')].map(c => c.width)"), [28] * 24)

    def test_every_chart_of_a_job_that_learns_numbers_is_drawn(self):
        self.check(self.page("numbers"), OF_NUMBERS)

    def test_nested_rhat_is_shown_where_chains_share_their_starts(self):
        self.browser.open(self.path)
        self.assertEqual(self.browser.evaluate(NESTED), [])
        self.browser.open(self.page("numbers"))
        self.assertEqual(self.browser.evaluate(NESTED), ["Worst nested R-hat 1.231 theta.norm; near 1: the starts are forgotten",
                                                         "R-hat 1.004, nested 1.001", "R-hat 1.234, nested 1.231"])

    def test_infinite_rhats_are_called_infinite(self):
        self.browser.open(self.changed("numbers", lambda shown: shown["diagnostics"][1].update(rhat="Infinity", nested_rhat="Infinity")))
        self.assertEqual(self.browser.evaluate(NESTED), ["Worst nested R-hat infinite theta.norm; near 1: the starts are forgotten",
                                                         "R-hat 1.004, nested 1.001", "R-hat infinite, nested infinite"])

    def test_commands_that_add_held_out_rows_are_whole_and_keep_the_other_parts(self):
        def without(shown):
            shown.update(point="eta=0.1", point_index=3)
            shown["evaluation"].update(conformal=[], weights=[], calibration_dataset="", stacking_dataset="", flatness=[])
            for name in ("conformal", "weights"):
                shown["tables"][name]["rows"] = []

        self.browser.call("Emulation.setDeviceMetricsOverride", width=400, height=900, deviceScaleFactor=1, mobile=False)
        self.browser.open(self.changed("whole", without))
        job, scored = "fashion-emcmc-zlxfm5 --point 3", "--dataset fashion-mnist-test --ood mnist-digits"
        names = "gaussian_noise,shot_noise,impulse_noise,defocus_blur,motion_blur,brightness,contrast,pixelate,rotate"
        held_out = (f"chainfleet evaluate {job} {scored} --corruptions {names} --curve 8 --calibrate NAME --stack NAME"
                    f" && chainfleet report {job} -o report.html")
        self.assertEqual(self.browser.evaluate("[...document.querySelectorAll('#absent code')].map(e => e.textContent)"),
                         [f"chainfleet report {job} {scored} --flatness -o report.html", held_out, held_out])
        self.assertIn("report --dataset makes a new evaluation without held-out rows", self.browser.evaluate("document.querySelector('#absent').innerText"))
        self.assertLessEqual(self.browser.evaluate("document.documentElement.scrollWidth"), 400)

    def test_every_chart_is_drawn_at_night(self):
        self.browser.media(prefers_color_scheme="dark")
        self.check(self.path, WHOLE)
        page = pixels(self.browser.picture({"x": 0, "y": 0, "width": 40, "height": 40}))
        self.assertLess(sum(page[20][5]), 200, "a page for the dark is dark")

    def test_a_phone_shows_one_chart_below_the_other(self):
        self.browser.call("Emulation.setDeviceMetricsOverride", width=400, height=900, deviceScaleFactor=1, mobile=False)
        for path in (self.path, self.page("numbers")):
            self.browser.open(path)
            self.assertLessEqual(self.browser.evaluate("document.documentElement.scrollWidth"), 400)

    def test_names_that_are_scripts_are_shown_and_not_run(self):
        self.browser.open(self.page("hostile", HOSTILE))
        self.assertEqual(self.browser.complaints(), [])
        self.assertEqual(self.browser.evaluate("document.scripts.length"), 3)
        self.assertIn(HOSTILE, self.browser.evaluate("document.querySelector('h1').innerText"))

    def test_values_that_are_no_numbers_are_drawn_around(self):
        for number in ("nan", "inf", "-1e300"):
            self.browser.open(self.page("number", number))
            self.assertEqual(self.browser.complaints(), [], number)

    def test_arrow_keys_walk_along_a_chart(self):
        self.browser.open(self.path)
        self.browser.evaluate("document.querySelector('#curve canvas').focus()")
        active = "Chart.getChart(document.querySelector('#curve canvas')).getActiveElements().map(e => e.index).join()"
        for key, index in (("ArrowRight", "0"), ("ArrowRight", "1"), ("ArrowLeft", "0")):
            self.browser.evaluate(f"document.activeElement.dispatchEvent(new KeyboardEvent('keydown', {{key: '{key}'}}))")
            self.assertEqual(self.browser.evaluate(active), index)

    def test_printed_it_is_black_on_white(self):
        self.browser.media(media="print", prefers_color_scheme="dark")
        self.browser.open(self.path)
        page = pixels(self.browser.picture({"x": 0, "y": 0, "width": 40, "height": 40}))
        self.assertEqual(page[20][5], (255, 255, 255))

    def test_a_page_that_asks_for_more_is_noticed(self):
        with open(self.path) as f:
            text = f.read()
        with open(self.path, "w") as f:
            f.write(text.replace("<main>", "<main><img src='http://127.0.0.1:9/x.png'><script>console.log(1)</script>"))
        self.browser.open(self.path)
        self.assertNotEqual(self.browser.complaints(), [])


class Report(InABrowser):
    def setUp(self):
        super().setUp()
        self.fleet = fleets.Fleet()
        self.addCleanup(self.fleet.close)
        self.fleet.up()
        self.fleet.put_fashion("fashion", 1000)
        self.path = self.fleet.path("report.html")

    def test_the_report_of_a_real_job_is_whole(self):
        job = self.fleet.submit(JOB)
        self.fleet.run("wait", job, "--timeout", "240s", check=True)
        self.fleet.put_noise("noise", 500)
        done = self.fleet.run("report", job, "--dataset", "fashion", "--ood", "noise", "--corruptions", "all", "--flatness",
                              "-o", self.path, check=True)
        self.assertEqual(done.stdout, "")
        self.assertIn("wrote " + self.path, done.stderr)
        with open(self.path) as f:
            page = f.read()
        for words in (job, "N = 1000", "SUCCEEDED", "mean single draw theta"):
            self.assertIn(words, page)
        self.browser.open(self.path)
        figures = [figure["id"] for figure in self.browser.evaluate(FIGURES)]
        self.assertEqual([figure for figure in figures if figure in WHOLE], [figure for figure in WHOLE if figure not in ("conformal", "weights")])
        self.assertEqual([figure for figure in figures if figure not in WHOLE and not figure.startswith("trace-")], [])
        self.check(self.path, figures)
        self.fleet.run("evaluate", job, "--dataset", "fashion", "--calibrate", "noise", "--stack", "noise", check=True)
        printed = self.fleet.run("report", job, "-o", "-", check=True)
        with open(self.path, "w") as f:
            f.write(printed.stdout)
        self.browser.open(self.path)
        self.assertEqual(self.browser.evaluate("['conformal', 'weights'].map(id => document.querySelectorAll(`#${id} tbody tr`).length)"), [5, 4])
        self.assertTrue(printed.stdout.startswith("<!DOCTYPE html>") and printed.stdout.endswith("</html>\n"))

    def test_pictures_are_of_what_was_evaluated(self):
        job = self.fleet.submit(JOB.replace("chains: 4", "chains: 1"))
        self.fleet.run("wait", job, "--timeout", "240s", check=True)
        self.fleet.put_fashion("shown", 100)
        self.fleet.run("evaluate", job, "--dataset", "shown", check=True)

        def report(*arguments):
            done = self.fleet.run("report", job, *arguments, "-o", self.path, check=True)
            shown = document(self.path)
            return len(shown["evaluation"]["examples"]) if shown["pictures"] else 0, done.stderr

        self.assertEqual(report()[0], 24)
        self.fleet.run("delete", "dataset", "shown", "--yes", check=True)
        self.fleet.put_fashion("shown", 200)
        evaluation = self.fleet.json("get", "evaluations", job)["evaluations"][0]["id"]
        for arguments in ((), ("--evaluation", evaluation)):
            pictures, notes = report(*arguments)
            self.assertEqual(pictures, 0)
            self.assertRegex(notes, "(?m)^warning: the page is without its rows: data set shown")
        self.assertEqual(report("--dataset", "shown")[0], 24)

    def test_wrong_arguments_are_refused(self):
        job = self.fleet.submit(JOB.replace("chains: 4", "chains: 1\nsweep: {eta: [4.0e-4, 0.01]}"))
        self.fleet.run("wait", job, "--timeout", "240s", check=True)
        for arguments, code, words in (
                ((job,), 2, "--output"),
                ((job, "-o", "json", "--point", "0"), 2, "report.html"),
                ((job, "-o", self.path), 1, "1: eta=0.01"),
                ((job, "-o", self.path, "--point", "7"), 1, "1: eta=0.01"),
                ((job, "-o", self.path, "--point", "0", "--dataset", "letters"), 3, "letters"),
                ((job, "-o", self.path, "--point", "0", "--ood", "fashion"), 2, "--dataset"),
                ((job, "-o", self.fleet.path("no", "such", "folder.html"), "--point", "0"), 1, "cannot write"),
                (("nobody", "-o", self.path), 3, "nobody")):
            refused = self.fleet.run("report", *arguments)
            self.assertEqual(refused.returncode, code, f"{arguments}: {refused.stderr}")
            self.assertIn(words, refused.stderr)
        self.fleet.run("report", job, "--point", "eta=0.01", "-o", self.path, check=True)
        self.assertEqual(document(self.path)["point"], "eta=0.01")


if __name__ == "__main__":
    unittest.main(verbosity=2)
