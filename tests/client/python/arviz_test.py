"""Which draws ArviZ gets of weighted chains and of chains of unequal length, and log densities of single draws."""
import subprocess
import sys
import types
import unittest
import warnings

import python_package  # first: it says where the next ones are
import chainfleet as cf
import numpy
from chainfleet import arviz
from chainfleet.prediction import Member
from chainfleet.v1 import jobs_pb2, types_pb2
from draws_test import Store


class Picked(unittest.TestCase):
    def test_all_draws_of_equal_chains(self):
        picks = arviz._pick({0: numpy.ones(3), 4: numpy.ones(3)}, seed=None)
        self.assertEqual({chain: taken.tolist() for chain, taken in picks.items()}, {0: [0, 1, 2], 4: [0, 1, 2]})

    def test_unequal_chains_give_the_newest_draws_and_a_warning_with_the_counts(self):
        with self.assertWarnsRegex(UserWarning, r"\{0: 5, 1: 2\}.*newest 2"):
            picks = arviz._pick({0: numpy.ones(5), 1: numpy.ones(2)}, seed=0)
        self.assertEqual({chain: taken.tolist() for chain, taken in picks.items()}, {0: [3, 4], 1: [0, 1]})

    def test_weighted_draws_are_refused_without_a_seed(self):
        with self.assertRaisesRegex(cf.errors.InvalidArgument, "weighted.*\n.*seed=0"):
            arviz._pick({0: numpy.array([1.0, 3.0])}, seed=None)

    def test_weighted_draws_come_as_often_as_their_weight_says_and_in_order(self):
        source = numpy.random.default_rng(5)
        weights = {chain: source.integers(1, 9, 400).astype(float) for chain in (0, 1)}
        weights[1][:100] = 40  # a chain that stood still at first
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            picks = arviz._pick(weights, seed=3)
        for chain, taken in picks.items():
            self.assertEqual((len(taken), taken.tolist()), (400, sorted(taken.tolist())))
            expected = 400 * weights[chain] / weights[chain].sum()
            self.assertLess(numpy.abs(numpy.bincount(taken, minlength=400) - expected).max(), 1)
        again, other = arviz._pick(weights, seed=3), arviz._pick(weights, seed=4)
        self.assertEqual(picks[0].tolist(), again[0].tolist())
        self.assertNotEqual(picks[0].tolist(), other[0].tolist())

    def test_weighted_chains_of_unequal_length_have_as_many_draws_as_the_longest(self):
        picks = arviz._pick({0: numpy.array([4.0, 4.0]), 1: numpy.array([2.0, 2.0, 2.0, 2.0])}, seed=1)
        self.assertEqual({chain: taken.tolist() for chain, taken in picks.items()}, {0: [0, 0, 1, 1], 1: [0, 1, 2, 3]})


class ServedJob(Store):
    """A job of two chains, whose version has the first `served` draws of each. `lost`: segments deleted by a prediction."""

    id = "j"

    def __init__(self, served, lost=0):
        super().__init__()
        self.served, self.lost, self._connection = served, lost, self
        for chain in (0, 1):
            for first in range(3):
                self.add(chain, first, [1.0])

    def describe(self):
        state = jobs_pb2.Job(id="j", inputs=jobs_pb2.Job.Inputs(shape=[1]))
        for chain in (0, 1):
            state.chains.add(id=types_pb2.ChainId(job="j", index=chain))
        return state

    def pages(self, method, request, reply, items):
        return [types_pb2.SegmentRecord.FromString(record.SerializeToString()) for record in self.records]

    def snapshot(self):
        return jobs_pb2.Snapshot(version=7)

    def predict(self, x, members, version, **selection):
        assert members and version == 7
        for record in self.records[:self.lost]:
            record.deleted = True
        rows = numpy.tile(x[:, 0], (self.served, 1))
        made = tuple(Member(chain, "theta", numpy.ones(self.served), mean=rows, variance=numpy.ones_like(rows)) for chain in (0, 1))
        return cf.Prediction("j", 7, 4, 6, {"mean": x[:, 0]}, {}, members=made)

    def traces(self, quantity):
        raise cf.reasons.NotTraced("nothing is traced")

    def _learns_numbers(self):
        return True


class Versions(unittest.TestCase):
    DATA = (numpy.zeros((4, 1), numpy.float32), numpy.zeros(4))

    def test_draws_that_were_committed_after_the_version_are_in_no_group(self):
        made = arviz.to_arviz(ServedJob(served=2), data=self.DATA)
        self.assertEqual(made["posterior"]["fc1.weight"].values[:, :, 0, 0].tolist(), [[0, 6], [100, 106]])
        self.assertEqual(made["log_likelihood"]["y"].shape, (2, 2, 4))
        self.assertNotIn("energy", made["sample_stats"])

    def test_draws_that_retention_deletes_meanwhile_are_never_paired_with_others(self):
        with self.assertRaisesRegex(cf.errors.Aborted, "deleted"):
            arviz.to_arviz(ServedJob(served=2, lost=1), data=self.DATA)

    def test_without_rows_nothing_is_predicted(self):
        made = arviz.to_arviz(ServedJob(served=2), log_likelihood=False)
        self.assertEqual(made["posterior"]["fc1.weight"].shape, (2, 3, 2, 3))

    def test_attributes_tell_standardisation_and_class_names_where_the_job_has_them(self):
        job = ServedJob(served=2)
        plain = arviz.to_arviz(job, log_likelihood=False).attrs
        self.assertEqual({"input_mean", "target_mean", "class_names"} & set(plain), set())
        state = job.describe()
        state.inputs.normalisation.mean.append(3)
        state.inputs.normalisation.stddev.append(2)
        state.inputs.target_units.mean, state.inputs.target_units.stddev = 50, 10
        state.inputs.class_names.extend(["cat", "dog"])
        job.describe = lambda: state
        told = arviz.to_arviz(job, log_likelihood=False).attrs
        self.assertEqual((told["input_mean"], told["input_stddev"]), ([3], [2]))
        self.assertEqual((told["target_mean"], told["target_stddev"], told["class_names"]), (50, 10, ["cat", "dog"]))


class Energies(unittest.TestCase):
    STEPS = {0: numpy.array([10, 20, 30]), 1: numpy.array([10, 20, 30])}

    def energy(self, *steps_and_values, asked=True):
        traces = [cf.Trace(chain, 0, numpy.array(steps), numpy.array(values)) for chain, (steps, values) in enumerate(steps_and_values)]
        return arviz._energy(types.SimpleNamespace(traces=lambda quantity: traces), self.STEPS, asked)

    def test_steps_without_a_traced_value_are_nan_and_a_warning_says_how_many(self):
        with self.assertWarnsRegex(UserWarning, "NaN for 3 of 6 draws.*trace_every.*newest 1,000"):
            found = self.energy(([20, 30], [2.0, 3.0]), ([30], [4.0]))
        numpy.testing.assert_array_equal(found, [[numpy.nan, 2, 3], [numpy.nan, numpy.nan, 4]])

    def test_a_traced_nan_and_the_default_of_trace_every_are_no_warning(self):
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            self.assertEqual(numpy.isnan(self.energy(([20, 30], [2.0, 3.0]), ([30], [4.0]), asked=False)).sum(), 3)
            self.assertEqual(numpy.isnan(self.energy(([10, 20, 30], [1.0, numpy.nan, numpy.nan]), ([10, 20, 30], [1.0] * 3))).sum(), 2)
            self.assertIsNone(self.energy(([15], [1.0]), ([15], [1.0])), "none was traced")


class Imports(unittest.TestCase):
    def test_the_package_imports_none_of_its_extras(self):
        """So they cost nobody time who does not use them."""
        code = "import sys; sys.path.insert(0, sys.argv[1]); import chainfleet.fleet; print(*sys.modules)"
        loaded = subprocess.run([sys.executable, "-B", "-c", code, python_package.PACKAGE], capture_output=True, text=True, check=True).stdout
        self.assertIn("chainfleet.job", loaded.split())
        self.assertEqual({"arviz", "sklearn", "mlflow", "pandas", "xarray", "scipy"} & set(loaded.split()), set())


class Densities(unittest.TestCase):
    def test_classes_give_the_logarithm_of_the_label_s_probability_and_never_infinity(self):
        probabilities = numpy.array([[[0.25, 0.75], [1, 0]], [[0.5, 0.5], [0.5, 0.5]]], numpy.float32)
        found = arviz._log_density(Member(0, "theta", numpy.ones(2), probabilities), numpy.array([1, 1], numpy.int32))
        numpy.testing.assert_allclose(found, [[numpy.log(0.75), numpy.log(1.4e-45)], [numpy.log(0.5)] * 2], rtol=1e-3)

    def test_numbers_give_the_normal_density(self):
        member = Member(0, "theta", numpy.ones(1), mean=numpy.array([[1.0, 2.0]]), variance=numpy.array([[4.0, 1.0]]))
        found = arviz._log_density(member, numpy.array([3.0, 2.0]))
        numpy.testing.assert_allclose(found, [[-0.5 - numpy.log(2) - numpy.log(2 * numpy.pi) / 2, -numpy.log(2 * numpy.pi) / 2]])

    def test_a_class_that_the_job_does_not_know_is_named(self):
        member = Member(0, "theta", numpy.ones(1), numpy.full((1, 1, 2), 0.5, numpy.float32))
        with self.assertRaisesRegex(cf.errors.InvalidArgument, "class 2.*2 classes"):
            arviz._log_density(member, numpy.array([2]))


class StepSizes(unittest.TestCase):
    def sizes(self, report, steps, **schedule):
        spec = jobs_pb2.Job().spec
        for name, value in schedule.items():
            getattr(spec.learning_rate, name).CopyFrom(value) if name == "cyclical" else setattr(spec.learning_rate, name, value)
        return arviz._step_sizes(spec, report, 40, numpy.array([steps]))

    def test_constant_and_cyclical_schedules_give_step_sizes(self):
        report = jobs_pb2.Job.Report(step_size=0.01, num_examples=10)
        self.assertEqual(self.sizes(report, [1, 7], constant=0.1).tolist(), [[0.01, 0.01]])
        cyclical = type(jobs_pb2.Job().spec.learning_rate.cyclical)(initial=0.1, final=0.02, cycles=2)
        numpy.testing.assert_allclose(self.sizes(report, [1, 11, 21], cyclical=cyclical), [[0.01, 0.006, 0.01]])

    def test_draws_after_training_and_samplers_that_tune_their_step_give_no_step_sizes(self):
        report = jobs_pb2.Job.Report(step_size=0.01, num_examples=10)
        for sampler in ("swa", "swag", "mc_dropout", "laplace", "mile", "smile"):
            spec = jobs_pb2.Job().spec
            spec.learning_rate.constant = 0.1
            getattr(spec.sampler, sampler).SetInParent()
            self.assertIsNone(arviz._step_sizes(spec, report, 40, numpy.array([[40]])), sampler)

    def test_other_schedules_give_no_step_sizes(self):
        self.assertIsNone(self.sizes(jobs_pb2.Job.Report(step_size=0.01), [1]))


if __name__ == "__main__":
    unittest.main()
