"""Credible intervals of the classifier, from the predictions of single draws. The server's part is in tests/e2e."""
import types
import unittest
from unittest import mock

import python_package  # noqa: F401  first: it says where the next ones are
import chainfleet as cf
import numpy
from chainfleet import sklearn

MASSES = [0.5, 0.9]


class Job:
    """Predicts with draws that are given: probabilities [S, n, 2] and weights [S], the second half of them by chain 1."""

    def __init__(self, drawn, weights):
        self.drawn, self.weights, self.calls = drawn.astype(numpy.float32), numpy.array(weights, float), []

    def predict(self, rows, members=False, version=0):
        self.calls.append((len(rows), version))
        drawn, half = self.drawn[:, rows[:, 0].astype(int)], len(self.weights) // 2
        parts = [cf.prediction.Member(chain, "theta", self.weights[part], probabilities=drawn[part])
                 for chain, part in ((0, slice(None, half)), (1, slice(half, None)))]
        mean = numpy.average(drawn, axis=0, weights=self.weights).astype(float)
        return cf.Prediction("j", 7, len(self.weights), len(self.weights), {"mean_probability": mean}, {}, members=tuple(parts) if members else ())


def classifier_of(job):
    """A fitted classifier whose job is `job`, on rows of one feature."""
    made = sklearn.ChainfleetClassifier()
    made.classes_, made.n_features_in_, made.job_id_ = numpy.array(["no", "yes"]), 1, "j"
    return mock.patch.multiple(sklearn, _fleet_of=lambda address: types.SimpleNamespace(), _job=lambda fleet, job_id: job), made


def draws(count, rows):
    """Probabilities [count, rows, 2]: of row r, the draws' probabilities of the second class are spread below (r + 1) / rows."""
    order = numpy.random.default_rng(5).permutation(count)
    second = (order[:, None] + 1) / count * (numpy.arange(rows) + 1) / rows
    return numpy.stack([1 - second, second], axis=2)


class ClassNames(unittest.TestCase):
    def test_labels_name_the_classes_of_the_data_set_unless_they_are_numbers_from_0_on(self):
        self.assertEqual(sklearn._names_of(numpy.array(["left", "right"])), ("left", "right"))
        self.assertEqual(sklearn._names_of(numpy.array([3, 8])), ("3", "8"))
        self.assertEqual(sklearn._names_of(numpy.array([0, 1, 2])), ())

    def test_names_that_the_server_would_refuse_are_left_out(self):
        for refused in (["", "a"], ["a\n", "b"], ["a" * (64 << 10), "b"]):
            self.assertEqual(sklearn._names_of(numpy.array(refused)), ())


class Intervals(unittest.TestCase):
    def predicted(self, job, rows, masses=MASSES, block_bytes=1 << 20):
        patch, made = classifier_of(job)
        with patch, mock.patch.object(sklearn, "_BLOCK_BYTES", block_bytes):
            return made.predict_proba(numpy.arange(float(rows))[:, None], credible_intervals=masses)

    def test_they_are_quantiles_over_the_draws_of_all_chains(self):
        probability, intervals = self.predicted(Job(draws(100, 4), [1] * 100), 4)
        self.assertEqual((probability.shape, intervals.shape, intervals.dtype), ((4, 2), (4, 2, 2, 2), numpy.float64))
        numpy.testing.assert_allclose(intervals[3, 1], [[0.25, 0.75], [0.05, 0.95]], atol=1e-6)
        numpy.testing.assert_allclose(intervals[1, 1], numpy.array([[0.25, 0.75], [0.05, 0.95]]) / 2, atol=1e-6)
        numpy.testing.assert_allclose(intervals[3, 0], [[0.24, 0.74], [0.04, 0.94]], atol=1e-6, err_msg="1 - 0.76 is the 25th of 100")
        self.assertTrue((intervals[..., 0] <= intervals[..., 1]).all())

    def test_a_draw_of_weight_w_counts_as_w_draws(self):
        some, weights = draws(10, 3), numpy.arange(1, 11)
        repeated = numpy.repeat(some, weights, axis=0)
        for got, wanted in zip(self.predicted(Job(some, weights), 3), self.predicted(Job(repeated, [1] * 55), 3)):
            numpy.testing.assert_allclose(got, wanted, rtol=1e-6)

    def test_rows_are_read_in_blocks_of_one_version_with_the_same_result(self):
        whole = self.predicted(Job(draws(20, 11), [1] * 20), 11)
        job = Job(draws(20, 11), [1] * 20)
        blocks = self.predicted(job, 11, block_bytes=4 * 20 * 2 * 4)  # 4 rows
        self.assertEqual(job.calls, [(1, 0), (4, 7), (4, 7), (2, 7)])
        for got, wanted in zip(blocks, whole):
            numpy.testing.assert_array_equal(got, wanted)

    def test_without_them_the_probabilities_come_alone(self):
        job = Job(draws(20, 2), [1] * 20)
        patch, made = classifier_of(job)
        with patch:
            probability = made.predict_proba([[0.0], [1.0]])
            self.assertEqual(made.predict([[0.0], [1.0]]).tolist(), ["no", "yes"])
        self.assertEqual(probability.shape, (2, 2))
        self.assertEqual(job.calls, [(2, 0), (2, 0)], "no draws were asked for")

    def test_a_wrong_mass_is_refused_before_anything_is_asked(self):
        for masses, words in (([0.5, 1.5], "1.5"), (["a"], "'a'"), (0.5, "0.5 is not a list"), ([0], "0")):
            job = Job(draws(4, 1), [1] * 4)
            with self.assertRaisesRegex(cf.errors.InvalidArgument, f"^credible_intervals: {words}") as caught:
                self.predicted(job, 1, masses)
            self.assertEqual((caught.exception.reason, job.calls), ("INVALID_FIELD", []))
            self.assertTrue(caught.exception.hint)


if __name__ == "__main__":
    unittest.main()
