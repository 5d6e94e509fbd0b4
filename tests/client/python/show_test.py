"""Tests the output of a terminal and of a notebook while something goes on."""
import contextlib
import copy
import io
import math
import os
import pickle
import sys
import traceback
import types
import unittest
import unittest.mock

import python_package  # noqa: F401  first: it says where the next ones are
import chainfleet as cf
from chainfleet import html, text
from chainfleet.v1 import jobs_pb2, predict_pb2, types_pb2


class Terminal(io.StringIO):
    def isatty(self):
        return True


class Notebook:
    """IPython as a kernel has it: what is displayed, and how often."""

    def __init__(self):
        self.shown, self.updates = [], 0
        self.module = types.ModuleType("IPython")
        self.module.get_ipython = lambda: types.SimpleNamespace(kernel=self)
        self.module.display = types.ModuleType("IPython.display")
        self.module.display.display = lambda page, raw, display_id: self.shown.append(page["text/html"]) or self

    def update(self, page, raw):
        self.updates += 1
        self.shown[-1] = page["text/html"]

    def patch(self):
        return unittest.mock.patch.dict(sys.modules, {"IPython": self.module, "IPython.display": self.module.display})


def running(name="moons-a1b2c3", done=30, rhat=1.5):
    job = jobs_pb2.Job(id=name, state=jobs_pb2.Job.RUNNING, steps_done=done, steps_total=120, num_draws=3)
    job.chains.add(state=types_pb2.LEASED, step=done, total_steps=120, reason="<b>").stats.steps_per_second = 10
    job.diagnostics.add(rhat=rhat)
    return job


class Bars(unittest.TestCase):
    def test_a_bar_of_a_job_fits_80_columns_with_its_rhat(self):
        self.assertEqual(text.progress_bar(running()), "moons-a1b2c3  [#####---------------] 25.0 %  R-hat 1.500  3 draws  9 s left")
        self.assertIn("R-hat unknown", text.progress_bar(running(rhat=math.nan)))
        ended = running(done=120)
        ended.state = jobs_pb2.Job.SUCCEEDED
        self.assertEqual(text.progress_bar(ended), "moons-a1b2c3  [####################] 100.0 %  SUCCEEDED  R-hat 1.500  3 draws")

    def test_a_share_out_of_range_is_a_whole_bar_or_none(self):
        self.assertEqual([text.bar(share).count("#") for share in (-1.0, 0.0, 0.5, 1.0, 7.0)], [0, 0, 10, 20, 20])
        self.assertEqual(text.share_done(jobs_pb2.Job()), 0.0)


class Lines(unittest.TestCase):
    def shown(self, terminal, columns=80, enabled=True):
        with contextlib.redirect_stderr(terminal), unittest.mock.patch.dict(os.environ, {"COLUMNS": str(columns)}):
            with text.line(enabled) as line:
                line.show("a\x1b]0;title\x07b" + "x" * 200)
        return terminal.getvalue()

    def test_a_terminal_gets_one_line_that_fits_and_obeys_no_name(self):
        said = self.shown(Terminal(), columns=40)
        self.assertEqual(said, "\ra?]0;title?b" + "x" * 27 + "\x1b[K" + "\r\x1b[K")

    def test_a_file_and_a_disabled_line_get_nothing(self):
        self.assertEqual(self.shown(io.StringIO()), "")
        self.assertEqual(self.shown(Terminal(), enabled=False), "")

    def test_uploads_show_the_last_byte_and_few_lines_before_it(self):
        terminal = Terminal()
        with contextlib.redirect_stderr(terminal), unittest.mock.patch("time.monotonic", lambda: 5.0), text.line() as line:
            for sent in range(0, 1001):
                line.show_bytes(sent << 20, 1000 << 20)
        self.assertEqual(terminal.getvalue().count("uploading"), 2)
        self.assertIn("[####################] 1,000 of 1,000 MiB", terminal.getvalue())

    def test_a_notebook_gets_one_output_that_changes(self):
        notebook = Notebook()
        with notebook.patch(), contextlib.redirect_stderr(Terminal()) as terminal, text.line() as line:
            for done in (30, 60, 90):
                line.show("words", html.job(running(done=done)))
        self.assertEqual((len(notebook.shown), notebook.updates, terminal.getvalue()), (1, 2, ""))
        self.assertIn('<progress value="0.7500"', notebook.shown[0])
        self.assertIn("R-hat 1.500", notebook.shown[0])
        self.assertNotIn("<b>", notebook.shown[0])
        self.assertIn("<td>RUNNING</td>", notebook.shown[0])
        with notebook.patch(), text.line() as line:
            line.show("<script>")
            self.assertEqual(notebook.shown[1], "<pre>&lt;script&gt;</pre>")
        self.assertEqual(notebook.shown[1], "", "a page stays, words do not")

    def test_a_page_of_a_failed_job_begins_with_the_reason(self):
        failed = running()
        failed.state, failed.chains[0].state, failed.chains[0].reason = jobs_pb2.Job.FAILED, types_pb2.DIVERGED, "energy is not finite"
        self.assertIn("job moons-a1b2c3 ended FAILED: chain 0 DIVERGED: energy is not finite</caption>", html.job(failed))

    def test_ctrl_c_names_the_call_and_shows_a_notebook_no_frames_of_grpc(self):
        def grpc():
            raise KeyboardInterrupt

        for notebook, shown in ((contextlib.nullcontext(), True), (Notebook().patch(), False)):
            with notebook, contextlib.redirect_stderr(io.StringIO()) as said:
                try:
                    with text.goes_on("fleet.job('a')"):
                        grpc()
                except KeyboardInterrupt as stopped:
                    self.assertEqual("grpc()" in "".join(traceback.format_exception(stopped)), shown)
            self.assertIn("To re-attach: fleet.job('a')", said.getvalue())

    def test_ipython_in_a_terminal_is_a_terminal(self):
        module = types.SimpleNamespace(get_ipython=lambda: types.SimpleNamespace())
        with unittest.mock.patch.dict(sys.modules, {"IPython": module}):
            self.assertIn("title", self.shown(Terminal()))


class Evaluations(unittest.TestCase):
    def made(self, **scores):
        operation = predict_pb2.EvaluationOperation(id="eval-1")
        operation.evaluation.job_id, operation.evaluation.dataset = "j-1", "<script>"
        operation.evaluation.scores.add(what="theta", num_draws=2, **scores)
        operation.evaluation.scores.add(what="all", num_draws=4, **scores)
        operation.evaluation.scores.add(what="single theta", num_draws=2, **scores)
        return cf.Evaluation(operation)

    def test_fields_are_attributes_and_scores_have_names(self):
        made = self.made(accuracy=0.5)
        self.assertEqual((made.id, made.job_id, made.scores[1].accuracy, made.score().num_draws), ("eval-1", "j-1", 0.5, 4))
        with self.assertRaisesRegex(KeyError, "there are theta, all, single theta"):
            made.score("beta")
        with self.assertRaises(AttributeError):
            made.nothing  # noqa: B018
        for same in (copy.deepcopy(made), copy.copy(made), pickle.loads(pickle.dumps(made))):
            self.assertEqual((type(same), same.id, same.score().num_draws), (cf.Evaluation, "eval-1", 4))

    def test_its_table_has_the_scores_that_there_are_and_escapes_names(self):
        shown = self.made(accuracy=0.5, nll=math.nan)._repr_html_()
        self.assertIn("&lt;script&gt;", shown)
        self.assertNotIn("<script>", shown)
        for part in (">0.5</td>", "<td>-</td>", "<td>all draws</td>", "<td>mean single draw theta</td>"):
            self.assertIn(part, shown)
        self.assertNotIn("ood auroc", shown)
        self.assertIn("<th>ood auroc</th>", self.made(ood_auroc=math.nan)._repr_html_())
        numbers = self.made(rmse=2.5, coverage_90=0.875)._repr_html_()
        self.assertIn("<th>rmse</th>", numbers)
        self.assertIn(">0.875</td>", numbers)
        self.assertNotIn("accuracy", numbers)


if __name__ == "__main__":
    unittest.main()
