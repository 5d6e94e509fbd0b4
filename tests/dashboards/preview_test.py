"""The pictures of the dashboards, drawn from answers that are known."""
import math
import re
import unittest
import xml.etree.ElementTree

import deployed
import figures
import panels
import preview

END, LAST = 1_700_000_000, 120
SVG = "{http://www.w3.org/2000/svg}"


class Scripted:
    """Answers as a Prometheus would that has these series for every expression: [(labels, value of a moment)]."""

    def __init__(self, series):
        self.series, self.asked = series, []

    def over(self, expr, start, end, step):
        self.asked.append(expr)
        return [(labels, [(start + i * step, of(start + i * step)) for i in range(int((end - start) / step) + 1)]) for labels, of in self.series]

    def at(self, expr, time):
        self.asked.append(expr)
        return [(labels, of(time)) for labels, of in self.series]


def drawn(panel, series, annotations=()):
    dashboard = panels.dashboard("chainfleet-test", "Test <&>", "", annotations, [], [panel])
    prometheus = Scripted(series)
    return xml.etree.ElementTree.fromstring(preview.picture(dashboard, preview.Answers(prometheus, END, LAST, 1))), prometheus


def words(picture):
    return [element.text for element in picture.iter(SVG + "text")]


class Preview(unittest.TestCase):
    def test_values_are_written_in_their_units(self):
        for value, unit, expected in ((0.00153, "s", "1.53 ms"), (90, "s", "1.5 min"), (0, "s", "0 s"), (1536, "bytes", "1.5 KiB"),
                                      (0, "bytes", "0 B"), (3 * 2**20, "binBps", "3 MiB/s"), (0.0514, "percentunit", "5.14 %"),
                                      (12345, "short", "12.3k"), (12, "reqps", "12 req/s"), (2.5e6, "ops", "2.5M ops/s"),
                                      (12345, "none", "12345"), (math.nan, "s", "NaN"), (math.inf, "none", "∞")):
            self.assertEqual(figures.written(value, unit), expected)

    def test_axes_have_round_marks_that_cover_the_values(self):
        self.assertEqual(figures.marks(0, 4.3), [0, 1, 2, 3, 4, 5])
        self.assertEqual(figures.marks(0, 0), [0, 0.2, 0.4, 0.6000000000000001, 0.8, 1])
        self.assertEqual(figures.marks(0, 1.9 * 2**20, "bytes"), [0, 2**19, 2**20, 3 * 2**19, 2**21])
        self.assertEqual(figures.marks(0.02, 7, log=True), [0.01, 0.1, 1, 10])
        for low, high in ((-3, 8), (0.99, 1.01), (5, 5), (1e-9, 3e-9), (0, 7e12)):
            found = figures.marks(low, high)
            self.assertTrue(found[0] <= low and found[-1] >= high and 2 <= len(found) <= 8, found)

    def test_a_curve_goes_where_its_values_are(self):
        picture, prometheus = drawn(panels.curves("Rise", [("rate(chainfleet_draws[$__rate_interval])", "{{job}}")], "none", "x.", "y."),
                                    [({"job": "one"}, lambda t: 10 * (t - END + LAST) / LAST)])
        self.assertEqual(set(prometheus.asked), {"rate(chainfleet_draws[4s])"})
        path, = [element.get("d") for element in picture.iter(SVG + "path")]
        points = [tuple(map(float, p.split())) for p in re.split("[ML]", path)[1:]]
        self.assertEqual(len(points), 121)
        levels = sorted({float(line.get("y1")) for line in picture.iter(SVG + "line")})
        self.assertEqual((points[0][1], points[-1][1]), (levels[-1], levels[0]))  # from the mark 0 to the mark 10
        self.assertTrue(all(a[0] < b[0] and a[1] > b[1] for a, b in zip(points, points[1:])))
        for expected in ("Test <&>", "Rise", "one", "10", "-2 min", "now"):
            self.assertIn(expected, words(picture))

    def test_methods_lose_their_service(self):
        picture, _ = drawn(panels.curves("Calls", [("a", "{{method}} {{code}}")], "reqps", "x.", "y."),
                           [({"method": "/chainfleet.v1.JobService/GetJob", "code": "NOT_FOUND"}, lambda t: 1)])
        self.assertIn("GetJob NOT_FOUND", words(picture))

    def test_gaps_stay_gaps(self):
        picture, _ = drawn(panels.curves("Gap", [("a", "")], "none", "x.", "y."), [({}, lambda t: math.nan if 40 < END - t < 80 else 1)])
        path, = [element.get("d") for element in picture.iter(SVG + "path")]
        self.assertEqual(path.count("M"), 2)

    def test_moments_are_round_and_within_the_time_shown(self):
        self.assertEqual(figures.moments(90.6), [0, 30, 60, 90])
        self.assertEqual(figures.moments(3600), [0, 900, 1800, 2700, 3600])
        self.assertEqual(figures.moments(6 * 3600), [0, 2 * 3600, 4 * 3600, 6 * 3600])
        for span in (0.5, 1, 7, 59, 61, 1000, 5e4, 1e6, 3e7):
            found = figures.moments(span)
            self.assertTrue(found[-1] <= span and len(found) <= 5, f"{span}: {found}")

    def test_stacked_curves_lie_on_each_other(self):
        lifted = preview.stacked_up([("a", [(0, 1), (1, 2)]), ("b", [(0, 10), (1, 10)])])
        self.assertEqual(lifted, [("a", [(0, 1), (1, 2)], [(0, 0), (1, 0)]), ("b", [(0, 11), (1, 12)], [(0, 1), (1, 2)])])

    def test_curves_of_0_hide_neither_the_curve_nor_the_legend_of_others(self):
        names = ["NONE", "SOME", *(f"NONE_{i}" for i in range(20))]
        picture, _ = drawn(panels.curves("States", [("a", "{{state}}")], "none", "x.", "y.", stacked=True),
                           [({"state": name}, lambda t, name=name: 3 * (name == "SOME")) for name in names])
        strokes = [e.get("stroke") for e in picture.iter(SVG + "path") if e.get("stroke")]
        self.assertEqual(strokes[-2:], [preview.COLOURS[1], preview.COLOURS[0]])  # SOME over those that are stacked upon it
        found = words(picture)
        self.assertLess(found.index("SOME"), found.index("NONE"))
        self.assertIn("+", found[-1])

    def test_names_of_several_figures_leave_room_for_their_numbers(self):
        picture, _ = drawn(panels.figure("Progress", "a", "percentunit", "x.", "y.", legend="{{job}}"),
                           [({"job": f"watched-emcmc-{i}"}, lambda t: 0.2421) for i in range(2)])
        for name in (e for e in picture.iter(SVG + "text") if (e.text or "").startswith("watch")):
            number = next(e for e in picture.iter(SVG + "text") if e.text == "24.2 %")
            self.assertLess(float(name.get("x")) + 0.56 * 11 * len(name.text), float(number.get("x")) - 8 * len(number.text))

    def test_figures_show_the_newest_number_in_the_colour_of_its_limit(self):
        panel = panels.figure("Silence", "a", "s", "x.", "y.", [(10, panels.WARNING), (15, panels.BAD)])
        for newest, colour in ((3, "green"), (12, "orange"), (20, "red")):
            picture, _ = drawn(panel, [({}, lambda t, newest=newest: newest if t < END - 5 else math.nan)])
            number, = [e for e in picture.iter(SVG + "text") if e.text == f"{newest} s"]
            self.assertEqual(number.get("fill"), preview.NAMED[colour])

    def test_figures_are_bad_below_their_lower_limits(self):
        panel = panels.figure("Disk free", "a", "percentunit", "x.", "y.", [(0.9, panels.WARNING)], below=[(0.1, panels.BAD), (0.2, panels.WARNING)])
        for newest, written, colour in ((0.02, "2 %", "red"), (0.15, "15 %", "orange"), (0.5, "50 %", "green"), (0.95, "95 %", "orange")):
            picture, _ = drawn(panel, [({}, lambda t, newest=newest: newest)])
            number, = [e for e in picture.iter(SVG + "text") if e.text == written]
            self.assertEqual(number.get("fill"), preview.NAMED[colour])

    def test_tables_join_columns_by_label(self):
        picture, _ = drawn(panels.table("Workers", ["worker"], [("a", "chains", "none"), ("b", "silence", "s")], "x.", "y."),
                           [({"worker": "w1"}, lambda t: 2), ({"worker": "w0"}, lambda t: 3)])
        self.assertEqual(words(picture)[-9:], ["worker", "chains", "silence", "w0", "3", "3 s", "w1", "2", "2 s"])

    def test_events_are_marked_where_they_begin(self):
        picture, _ = drawn(panels.curves("Rise", [("a", "")], "none", "x.", "y."), [({}, lambda t: 1 if 60 <= END - t <= 70 else 0)],
                           [("Failover", "purple", "a", "")])
        marked = [line for line in picture.iter(SVG + "line") if line.get("stroke") == preview.NAMED["purple"]]
        self.assertEqual(len(marked), 1)

    def test_panels_without_an_answer_say_so(self):
        for panel in (panels.curves("A", [("a", "")], "none", "x.", "y."), panels.figure("B", "a", "none", "x.", "y."),
                      panels.table("C", ["job"], [("a", "draws", "none")], "x.", "y.")):
            self.assertIn("no data", words(drawn(panel, [])[0]))

    def test_pictures_of_all_dashboards_are_in_the_docs(self):
        for name in deployed.dashboards():
            self.assertIn(f"(pictures/{name}.svg)", deployed.read("docs", "guides", "dashboards.md"))
            picture = xml.etree.ElementTree.fromstring(deployed.read("docs", "guides", "pictures", f"{name}.svg"))
            titles = {panel["title"] for panel in deployed.dashboards()[name]["panels"]}
            self.assertLessEqual(titles, set(words(picture)), "draw it again: docs/guides/dashboards.md says how")
            self.assertNotIn("no data", words(picture), f"{name}: draw it again while all panels have data")


if __name__ == "__main__":
    unittest.main(verbosity=2)
