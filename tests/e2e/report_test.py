"""Reports in a real browser: every chart is drawn, nothing is asked of a network, the console has nothing to say."""
import os
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
# A figure, what is drawn in it (a chart, a table or pictures), and whether its words fit.
FIGURES = """
[...document.querySelectorAll('figure')].map(figure => {
  const box = element => { const r = element.getBoundingClientRect();
                           return {x: r.x + scrollX, y: r.y + scrollY, width: r.width, height: r.height}; };
  const drawn = figure.querySelector('svg:not(.key), table, ul.examples, dl');
  const marks = [...figure.querySelectorAll('svg:not(.key) :is(path, rect, circle)')].filter(mark => {
    const r = mark.getBBox(); return r.width > 1 || r.height > 1; });
  const outside = [...figure.querySelectorAll('svg:not(.key) text')].filter(text => {
    const t = text.getBoundingClientRect(), f = figure.getBoundingClientRect();
    return t.left < f.left || t.right > f.right || t.top < f.top || t.bottom > f.bottom; });
  return {id: figure.id, box: box(figure), drawn: drawn && box(drawn), marks: marks.length, chart: !!figure.querySelector('svg:not(.key)'),
          outside: outside.map(text => text.textContent), caption: figure.querySelector('figcaption').textContent.length};
})
"""
# Words of one drawing that lie on each other.
OVERLAPS = """
[...document.querySelectorAll('svg:not(.key)')].flatMap(svg => {
  const words = [...svg.querySelectorAll('text')].map(text => [text.textContent, text.getBoundingClientRect()]);
  return words.flatMap(([a, r], i) => words.slice(i + 1).filter(([b, s]) =>
    r.left < s.right - 1 && s.left < r.right - 1 && r.top < s.bottom - 3 && s.top < r.bottom - 3).map(([b, s]) => a + ' / ' + b));
})
"""
WHOLE = ["scores", "reliability", "entropy", "curve", "examples", "corruptions", "severity", "fisher", "lines", "diagnostics",
         "trace-energy", "trace-theta-norm", "chains", "job"]


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
                self.assertGreater(figure["drawn"]["width"], 200)
                self.assertGreater(figure["drawn"]["height"], 60)
                self.assertGreater(figure["caption"], 20)
                self.assertEqual(figure["outside"], [])
                if figure["chart"]:
                    self.assertGreater(figure["marks"], 0)
                self.assertGreater(colors(browser, figure["drawn"]), 8, "blank, or nearly")
        self.assertEqual(browser.evaluate(OVERLAPS), [])
        self.assertLessEqual(browser.evaluate("document.documentElement.scrollWidth"), 1280, "the page is broader than the window")
        keep = os.environ.get("CHAINFLEET_KEEP_PICTURES")  # a folder to put pictures of the pages into, to look at them
        if keep:
            with open(os.path.join(keep, self._testMethodName + ".png"), "wb") as f:
                f.write(browser.picture())


class Page(InABrowser):
    def setUp(self):
        super().setUp()
        self.folder = self.browser.profile
        self.path = os.path.join(self.folder, "report.html")
        with open(self.path, "wb") as f:
            f.write(subprocess.run([PAGE], check=True, capture_output=True).stdout)

    def test_every_chart_of_a_whole_report_is_drawn(self):
        self.check(self.path, WHOLE)
        pictures = self.browser.evaluate("[...document.images].map(i => i.complete && i.naturalWidth)")
        self.assertEqual(pictures, [28] * 24)

    def test_every_chart_is_drawn_at_night(self):
        self.browser.media(prefers_color_scheme="dark")
        self.check(self.path, WHOLE)
        page = pixels(self.browser.picture({"x": 0, "y": 0, "width": 40, "height": 40}))
        self.assertLess(sum(page[20][5]), 200, "a page for the dark is dark")

    def test_a_narrow_window_shows_one_chart_beside_the_other_no_more(self):
        self.browser.call("Emulation.setDeviceMetricsOverride", width=420, height=900, deviceScaleFactor=1, mobile=False)
        self.browser.open(self.path)
        self.assertLessEqual(self.browser.evaluate("document.documentElement.scrollWidth"), 420)

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

    def test_of_a_real_job_is_whole(self):
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
        self.assertEqual([figure for figure in figures if figure in WHOLE], WHOLE)
        self.assertEqual([figure for figure in figures if figure not in WHOLE and not figure.startswith("trace-")], [])
        self.check(self.path, figures)
        printed = self.fleet.run("report", job, "-o", "-", check=True)
        self.assertTrue(printed.stdout.startswith("<!DOCTYPE html>") and printed.stdout.endswith("</html>\n"))

    def test_pictures_are_of_what_was_evaluated(self):
        job = self.fleet.submit(JOB.replace("chains: 4", "chains: 1"))
        self.fleet.run("wait", job, "--timeout", "240s", check=True)
        self.fleet.put_fashion("shown", 100)
        self.fleet.run("evaluate", job, "--dataset", "shown", check=True)

        def report(*arguments):
            done = self.fleet.run("report", job, *arguments, "-o", self.path, check=True)
            with open(self.path) as f:
                return f.read().count("<img"), done.stderr

        self.assertEqual(report()[0], 24)
        self.fleet.run("delete", "dataset", "shown", "--yes", check=True)
        self.fleet.put_fashion("shown", 200)
        evaluation = self.fleet.json("get", "evaluations", job)["evaluations"][0]["id"]
        for arguments in ((), ("--evaluation", evaluation)):
            pictures, notes = report(*arguments)
            self.assertEqual(pictures, 0)
            self.assertIn("without pictures: data set shown", notes)
        self.assertEqual(report("--dataset", "shown")[0], 24)

    def test_what_is_typed_wrongly_is_refused(self):
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
        with open(self.path) as f:
            self.assertIn("point eta=0.01", f.read())


if __name__ == "__main__":
    unittest.main(verbosity=2)
