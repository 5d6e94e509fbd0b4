"""Replies as arrays, and what notebooks show."""
import types
import unittest
import warnings

import python_package  # noqa: F401  first: it says where the next ones are
import chainfleet as cf
import numpy
from chainfleet import html, prediction, text
from chainfleet.v1 import jobs_pb2, predict_pb2, types_pb2


class Server:
    """Answers predictions with numbers that say which row and class they are of."""

    def __init__(self, classes=3):
        self.classes, self.requests = classes, []

    def call(self, method, request, reply, timeout):
        self.requests.append(predict_pb2.PredictRequest.FromString(request.SerializeToString()))
        rows = numpy.frombuffer(request.inputs.data, numpy.float32).reshape(tuple(request.inputs.shape))[:, 0]
        made = predict_pb2.PredictResponse(num_rows=len(rows), num_classes=self.classes, job_id="j-1", version=7, draws_used=2)
        if self.classes:
            made.scores.mean_probability.extend(float(row + k / 10) for row in rows for k in range(self.classes))
            made.scores.mutual_information.extend(map(float, rows))
            made.errors.mutual_information.extend(float(row) / 100 for row in rows)
        else:
            made.scores.mean.extend(map(float, rows))
            made.scores.variance_aleatoric.extend([1.0] * len(rows))
            made.scores.variance_epistemic.extend([2.0] * len(rows))
            made.quantiles.extend(float(row + level) for row in rows for level in request.quantiles)
        if request.member_probabilities:
            member = made.members.add(chain=types_pb2.ChainId(index=1), kind=types_pb2.THETA, weights=[1.0, 3.0])
            values = [float(1000 * s + row) for s in range(2) for row in rows]
            (member.probabilities if self.classes else member.mean).extend(numpy.repeat(values, self.classes or 1))
            member.variance.extend([] if self.classes else values)
            member.gradients.extend(numpy.repeat(values, (self.classes or 1) * request.inputs.shape[1]) if request.gradients else [])
        if request.gradients:
            made.mean_gradient.extend(float(row) for row in rows for _ in range((self.classes or 1) * request.inputs.shape[1]))
        return made

    def predict(self, rows, width=1, **more):
        inputs = numpy.zeros((rows, width), numpy.float32)
        inputs[:, 0] = numpy.arange(rows)
        return prediction.predict(self, predict_pb2.PredictRequest(job="j", **more), inputs, 1.0)


class Predictions(unittest.TestCase):
    def test_rows_of_several_requests_are_one_array_of_one_version(self):
        server = Server()
        made = server.predict(1000)
        self.assertGreater(len(server.requests), 1)
        self.assertEqual([(r.job, r.selection.version) for r in server.requests[:2]], [("j", 0), ("j-1", 7)])
        self.assertEqual((len(made), made.mean_probability.shape, made.version), (1000, (1000, 3), 7))
        self.assertAlmostEqual(made.mean_probability[999, 2], 999.2, places=3)
        self.assertEqual(made.predicted_class.tolist(), [2] * 1000)
        numpy.testing.assert_array_equal(made.mutual_information, numpy.arange(1000.0))
        numpy.testing.assert_allclose(made.error("mutual_information"), numpy.arange(1000) / 100)
        self.assertTrue(numpy.isnan(made.error("mean_probability")).all(), "the server said none")

    def test_requests_stay_below_the_bound_of_a_message(self):
        server = Server()
        server.predict(9, width=100_000)
        self.assertEqual([r.inputs.shape[0] for r in server.requests], [2, 2, 2, 2, 1])
        self.assertLess(max(r.ByteSize() for r in server.requests), 1 << 20)

    def test_numbers_have_a_variance_and_quantiles(self):
        made = Server(classes=0).predict(600, quantiles=[0.1, 0.9])
        self.assertEqual((made.quantiles.shape, made.quantile_levels), ((600, 2), (0.1, 0.9)))
        self.assertAlmostEqual(made.quantiles[599, 1], 599.9, places=3)
        self.assertIsNone(made.quantile_errors)
        numpy.testing.assert_array_equal(made.variance, 3.0)
        with self.assertRaisesRegex(AttributeError, "no mean_probability; it has mean, variance_aleatoric"):
            made.mean_probability

    def test_outputs_of_single_draws_are_by_draw_and_row(self):
        made = Server().predict(5, member_probabilities=True).members[0]
        self.assertEqual((made.chain, made.kind, made.weights.tolist(), made.probabilities.shape), (1, "theta", [1, 3], (2, 5, 3)))
        self.assertEqual(made.probabilities[:, :, 0].tolist(), [[0, 1, 2, 3, 4], [1000, 1001, 1002, 1003, 1004]])
        made = Server(classes=0).predict(5, member_probabilities=True).members[0]
        self.assertEqual(made.mean.tolist(), [[0, 1, 2, 3, 4], [1000, 1001, 1002, 1003, 1004]])
        self.assertIsNone(made.probabilities)


    def test_gradients_have_the_shape_of_inputs_behind_that_of_predictions(self):
        server = Server()
        made = server.predict(5, width=4, gradients=True, member_probabilities=True)
        self.assertEqual((made.mean_gradient.shape, made.members[0].gradients.shape), ((5, 3, 4), (2, 5, 3, 4)))
        self.assertEqual(made.mean_gradient[:, 2, 3].tolist(), [0, 1, 2, 3, 4])
        self.assertEqual(made.members[0].gradients[1, :, 0, 0].tolist(), [1000, 1001, 1002, 1003, 1004])
        made = Server(classes=0).predict(5, width=4, gradients=True)
        self.assertEqual(made.mean_gradient.shape, (5, 4))
        made = Server().predict(5, member_probabilities=True)
        self.assertIsNone(made.mean_gradient)
        self.assertIsNone(made.members[0].gradients)


class Anytime(unittest.TestCase):
    """Requests of one prediction that average over other draws, as with anytime and min_draws."""

    def reply(self, used, **weights):
        """A row of numbers; `weights` of the draws by chain, as c1=[1, 1]."""
        made = predict_pb2.PredictResponse(num_rows=1, job_id="j", draws_used=used, draws_in_version=9)
        made.scores.mean.append(used)
        for name, values in weights.items():
            index = int(name[1:])
            made.members.add(chain=types_pb2.ChainId(index=index), kind=types_pb2.THETA, weights=values, variance=[1.0] * len(values),
                             mean=[100.0 * used + 10 * index + s for s in range(len(values))])
        return made

    def join(self, *replies):
        return prediction._join(replies, (), (1,))

    def test_draws_used_is_the_least_of_all_replies(self):
        made = self.join(self.reply(5), self.reply(3), self.reply(4))
        self.assertEqual((made.draws_used, made.draws_in_version, made.mean.tolist()), (3, 9, [5, 3, 4]))

    def test_members_are_of_the_chains_whose_draws_all_rows_have(self):
        first = self.reply(5, c0=[1, 1], c1=[1, 1], c2=[1, 3], c3=[1])
        second = self.reply(3, c1=[1], c2=[1, 2], c3=[1], c0=[1, 1])  # another order, fewer draws and another weight
        with self.assertWarnsRegex(UserWarning, r"chains \[1, 2\], whose members are left out"):
            made = self.join(first, second)
        self.assertEqual([(member.chain, member.mean.tolist()) for member in made.members], [(0, [[500, 300], [501, 301]]), (3, [[530, 330]])])
        with self.assertWarnsRegex(UserWarning, r"chains \[0\]"):
            self.assertEqual(self.join(self.reply(1), self.reply(1, c0=[1])).members, ())

    def test_the_same_draws_are_no_warning(self):
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            self.assertEqual(len(self.join(self.reply(2, c0=[1, 2]), self.reply(2, c0=[1, 2])).members), 1)


class Inputs(unittest.TestCase):
    def job(self, *shape, kind=types_pb2.FLOAT32):
        described = jobs_pb2.Job(id="j")
        described.inputs.type = kind
        described.inputs.shape.extend(shape)
        described.inputs.normalisation.mean.extend([1.0, 2.0][:shape[0]])
        described.inputs.normalisation.stddev.extend([2.0, 4.0][:shape[0]])
        fleet = types.SimpleNamespace(connection=types.SimpleNamespace(call=lambda *arguments: described), _only_predicts=False)
        return cf.Job(fleet, "j")

    def test_inputs_that_do_not_fit_are_refused_with_both_shapes_or_types(self):
        for words, shape, x in (("\\[1, 3\\].*\\['n', 2\\]", (2,), numpy.zeros((1, 3))), ("uint8.*float32", (2,), numpy.zeros((1, 2), "u1")),
                                ("x\\[None\\]", (3, 4, 4), numpy.zeros((3, 4, 4)))):
            with self.assertRaisesRegex(cf.errors.InvalidArgument, words):
                self.job(*shape).predict(x)
        with self.assertRaisesRegex(cf.errors.InvalidArgument, "float32.*uint8"):
            self.job(2, kind=types_pb2.UINT8).predict(numpy.zeros((1, 2)))

    def test_a_predictor_passes_several_inputs_in_their_order(self):
        job = self.job(2)
        job._fleet._only_predicts = True
        with self.assertRaisesRegex(cf.errors.InvalidArgument, "(?s)inputs by name.*a tuple of arrays"):
            job.fit({"b": numpy.zeros((1, 1)), "a": numpy.ones((1, 1))})
        numpy.testing.assert_array_equal(job.fit((numpy.zeros((1, 1), "f4"), numpy.ones((1, 1), "f4"))), [[0, 1]])

    def test_wrong_arguments_are_named(self):
        for name, value in (("quantiles", [1.5]), ("quantiles", ["a"]), ("quantiles", 0.5), ("kinds", "thetas"), ("kinds", 5), ("version", "a"),
                            ("newest", 1.5), ("chains", 3), ("point", 5), ("min_draws", "a"), ("priority", 1)):
            with self.assertRaisesRegex(cf.errors.InvalidArgument, f"^{name}: ") as caught:
                self.job(2).predict(numpy.zeros((1, 2)), **{name: value})
            self.assertEqual((caught.exception.reason, caught.exception.violations[0].path), ("INVALID_FIELD", name))
            self.assertTrue(caught.exception.hint, name)
        for call in (lambda job: job.scale("a"), lambda job: job.delete_snapshot("a"), lambda job: next(job.watch(interval="a"))):
            with self.assertRaises(cf.errors.InvalidArgument) as caught:
                call(self.job(2))
            self.assertIn(" takes a ", caught.exception.hint)
        with self.assertRaisesRegex(cf.errors.InvalidArgument, "^timeout: 'a'"):
            cf.connect("127.0.0.1:1", timeout="a")
        for words, call in (("predict.*'version'", lambda job: job.predict(numpy.zeros((1, 2)), versio=3)),
                            ("evaluate.*'ece_bins'", lambda job: job.evaluate("held-out", ece_bin=3))):
            with self.assertRaisesRegex(TypeError, words):
                call(self.job(2))

    def test_standardised_inputs_are_what_the_network_sees(self):
        numpy.testing.assert_allclose(self.job(2).standardise([[3.0, 10.0]]), [[1, 2]])
        pixels = numpy.full((1, 1, 2, 2), 255, numpy.uint8)
        numpy.testing.assert_allclose(self.job(1, 2, 2, kind=types_pb2.UINT8).standardise(pixels), numpy.zeros((1, 1, 2, 2)))
        numpy.testing.assert_allclose(self.job(1, 2, 2).standardise(numpy.ones((5, 2, 2))), numpy.zeros((5, 1, 2, 2)))


class Shown(unittest.TestCase):
    def test_names_and_reasons_are_escaped(self):
        job = jobs_pb2.Job(id="<script>", state=jobs_pb2.Job.FAILED)
        job.chains.add(reason="<b>&</b>")
        shown = html.job(job)
        self.assertNotIn("<script>", shown)
        self.assertIn("&lt;b&gt;&amp;&lt;/b&gt;", shown)

    def test_a_job_of_many_chains_shows_the_first_ones(self):
        job = jobs_pb2.Job(id="j")
        for index in range(100):
            job.chains.add(id=types_pb2.ChainId(index=index))
        shown = html.job(job)
        self.assertIn("(the first 32 of 100 chains)", shown)
        self.assertEqual(shown.count("<tr>"), 33)
        del job.chains[32:]
        self.assertNotIn("the first", html.job(job))

    def test_a_prediction_shows_its_first_rows_with_errors(self):
        made = Server().predict(30)
        self.assertEqual(repr(made), "<30 rows by j-1 version 7: average of 2 of 0 draws>")
        shown = made._repr_html_()
        self.assertIn("the first 10 of 30 rows", shown)
        self.assertIn("5 ± 0.05", shown)

    def test_the_progress_line_has_rate_draws_and_the_worst_rhat(self):
        job = jobs_pb2.Job(id="j", state=jobs_pb2.Job.RUNNING, steps_done=1, steps_total=4, num_draws=3)
        job.chains.add(state=types_pb2.LEASED).stats.steps_per_second = 10
        for rhat, descriptive in ((1.5, False), (1.2, False), (9, True)):
            job.diagnostics.add(rhat=rhat, descriptive=descriptive)
        self.assertEqual(text.progress(job), "j  RUNNING  25.0 %  10 steps/s  3 draws  R-hat 1.500")
        job.diagnostics.add(chains=2)  # its traces hold a NaN
        self.assertEqual(text.progress(job), "j  RUNNING  25.0 %  10 steps/s  3 draws  R-hat unknown")

    def test_ranks_of_a_calibration_are_read_and_have_no_rhat(self):
        job = jobs_pb2.Job(id="j", state=jobs_pb2.Job.RUNNING, steps_done=1, steps_total=4, num_draws=3)
        job.diagnostics.add(quantity="theta.norm", ranks=jobs_pb2.Job.Diagnostic.Ranks(counts=[2, 3], p_value=0.5))
        self.assertEqual(text.progress(job), "j  RUNNING  25.0 %  3 draws")
        self.assertEqual((list(job.diagnostics[0].ranks.counts), job.diagnostics[0].ranks.p_value), ([2, 3], 0.5))


if __name__ == "__main__":
    unittest.main()
