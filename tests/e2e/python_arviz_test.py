"""to_arviz against a real server and a real worker: the groups, and ArviZ's own functions on them."""
import importlib.util
import os
import tempfile
import unittest
import warnings

import python_package  # noqa: F401  first: it says where the next ones are
import chainfleet as cf
import matplotlib
import numpy
from connected_fleet import ConnectedFleet

matplotlib.use("Agg")
import arviz  # noqa: E402

ZARR = importlib.util.find_spec("zarr")


def softmax(logits):
    odds = numpy.exp(logits - logits.max(axis=-1, keepdims=True))
    return odds / odds.sum(axis=-1, keepdims=True)


class Arviz(ConnectedFleet):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        source = numpy.random.default_rng(7)
        cls.x = source.normal(size=(64, 3)).astype(numpy.float32)
        cls.y = (cls.x[:, 0] + source.normal(size=64) > 0).astype(int)
        cls.numbers = 3 * cls.x[:, 0] + 10 + source.normal(size=64)
        cls.job = cls.network()

    @classmethod
    def sample(cls, model, y, **more):
        return cls.fleet.sample(model, data=(cls.x, y), progress=False, **more).wait(timeout=120, progress=False)

    @classmethod
    def network(cls, **more):
        options = {"sampler": cf.SGLD(), "chains": 2, "steps": 400, "learning_rate": cf.Cyclical(initial=0.2, final=0.1, cycles=2),
                   "collect": cf.Collect(every_steps=8), "trace_every": 16, "seed": 3, **more}
        return cls.sample(cf.Model(builtin="mlp", hidden=[4]), cls.y, **options)

    def metropolis(self):
        """Chains of which a proposal of three is accepted."""
        return self.sample(cf.Model(potential=cf.potentials.LinearRegression(noise_variance=1.0)), self.numbers, sampler=cf.RandomWalk(),
                           chains=2, steps=3000, step_size=0.1, burn_in=cf.BurnIn(steps=1000), collect=cf.Collect(every_steps=1))

    def export(self, job, **options):
        """Returns ArviZ' data of the folder that the command line wrote."""
        folder = self.enterContext(tempfile.TemporaryDirectory())
        job.export(os.path.join(folder, "idata.zarr"), "arviz", **options)
        return arviz.from_zarr(os.path.join(folder, "idata.zarr")).load()

    def assert_command_line_writes(self, made, job, **options):
        if not ZARR:  # Debian has none; the newest wheels have
            return
        read = self.export(job, **options)
        self.assertEqual((set(read.children), read.attrs), (set(made.children), made.attrs))
        for name, group in made.children.items():
            self.assertEqual(set(read[name].variables), set(group.variables), name)
            for variable, values in group.variables.items():
                found = read[name].variables[variable]
                self.assertEqual((found.dims, found.dtype), (values.dims, values.dtype), variable)
                # The logarithms of two libraries may differ in the last digit.
                numpy.testing.assert_allclose(found.values, values.values, rtol=1e-14 if name in ("log_likelihood", "sample_stats") else 0,
                                              err_msg=variable)

    def test_arviz_reads_every_group_of_a_network(self):
        job, made = self.job, self.job.to_arviz()
        self.assert_command_line_writes(made, job)
        self.assert_command_line_writes(job.to_arviz(log_likelihood=False), job, log_likelihood=False)
        self.assertEqual(type(made).__name__, "InferenceData" if arviz.__version__.startswith("0.") else "DataTree")
        self.assertEqual(made.attrs["job"], job.id)
        posterior = made["posterior"]
        self.assertEqual((posterior["fc1.weight"].shape, posterior["fc1.weight"].dims[:2]), ((2, 50, 4, 3), ("chain", "draw")))
        for chain, draw in ((0, 0), (1, 17), (1, 49)):
            for name, value in job.draws().get(chain, draw).parameters.items():
                numpy.testing.assert_array_equal(posterior[name].values[chain, draw], value)
        self.assertEqual(set(posterior), {"fc1.weight", "fc1.bias", "fc2.weight", "fc2.bias"})
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # warnings about Pareto's k, and about plots with many panels
            self.assertEqual(len(arviz.summary(made)), 4 * 3 + 4 + 2 * 4 + 2)
            loo = arviz.loo(made)
            arviz.plot_trace(made, var_names=["fc2.bias"], **({} if arviz.__version__.startswith("0.") else {"backend": "matplotlib"}))
        self.assertEqual(loo.n_data_points, 64)
        elpd = loo["elpd_loo"] if arviz.__version__.startswith("0.") else loo.elpd
        self.assertGreater(elpd, 64 * numpy.log(0.5), "better than a guess")
        self.assertLess(elpd, 0)

    def test_log_likelihood_is_that_of_the_draws(self):
        job, made = self.job, self.job.to_arviz()
        network = {name: values.values for name, values in made["posterior"].items()}
        hidden = numpy.einsum("ni,cdhi->cdnh", job.standardise(self.x), network["fc1.weight"]) + network["fc1.bias"][:, :, None]
        logits = numpy.einsum("cdnh,cdkh->cdnk", numpy.maximum(hidden, 0), network["fc2.weight"]) + network["fc2.bias"][:, :, None]
        expected = numpy.log(softmax(logits)[:, :, numpy.arange(64), self.y])
        numpy.testing.assert_allclose(made["log_likelihood"]["y"].values, expected, atol=1e-4)
        numpy.testing.assert_array_equal(made["observed_data"]["y"].values, self.y)
        held_out = job.to_arviz(data=(self.x[:5], 1 - self.y[:5]))
        numpy.testing.assert_array_equal(held_out["observed_data"]["y"].values, 1 - self.y[:5])
        other = numpy.log(softmax(logits)[:, :, numpy.arange(5), 1 - self.y[:5]])
        numpy.testing.assert_allclose(held_out["log_likelihood"]["y"].values, other, atol=1e-4)

    def test_sample_stats_have_what_was_traced_and_the_step_size_of_the_schedule(self):
        job = self.job
        stats = job.to_arviz(log_likelihood=False)["sample_stats"]
        self.assertEqual(stats["step"].values.tolist(), 2 * [list(range(8, 401, 8))])
        traces = {trace.chain: dict(zip(trace.steps, trace.values)) for trace in job.traces("energy")}
        expected = [[traces[chain].get(step, numpy.nan) for step in range(8, 401, 8)] for chain in (0, 1)]
        numpy.testing.assert_array_equal(stats["energy"].values, expected)
        numpy.testing.assert_array_equal(stats["lp"].values, -stats["energy"].values)
        self.assertEqual(numpy.isnan(expected).sum(), 50, "every second draw was traced")
        self.assertAlmostEqual(stats["step_size"].values[0, -1], job.describe().chains[0].stats.step_size, places=12)
        self.assertFalse(stats["diverging"].values.any())
        self.assertNotIn("acceptance_rate", stats)

    def test_each_schedule_says_the_step_size_before_each_draw(self):
        for rate in (0.1, cf.schedules.Linear(initial=0.2, final=0.1), cf.schedules.Exponential(initial=0.2, final=0.1), cf.schedules.Step(initial=0.2, factor=0.5, at=0.25),
                     cf.schedules.SWAG(initial=0.2, final=0.1, start_epoch=4), cf.schedules.Polynomial(initial=0.2, offset=10.0)):
            job = self.network(learning_rate=rate, chains=1, steps=40, collect=cf.Collect(every_steps=1), trace_every=1, batch_size=8)
            made = job.to_arviz(log_likelihood=False)
            sizes = made["sample_stats"]["step_size"].values
            self.assertEqual(sizes.shape, (1, 40))
            numpy.testing.assert_allclose(sizes[0, -1], job.describe().chains[0].stats.step_size, rtol=1e-12)
            self.assertEqual(len(numpy.unique(sizes)) > 1, not isinstance(rate, float), rate)
            self.assert_command_line_writes(made, job, log_likelihood=False)

    def test_weighted_draws_have_the_mean_of_the_chain_or_are_refused(self):
        job = self.metropolis()
        made = job.to_arviz()
        draws, weights = job.draws().stack(), job.draws().stack()["draw/weight"]
        self.assertGreater(weights.max(), 1)
        exact = numpy.nansum(weights[..., None] * draws["weights"], axis=(0, 1)) / weights.sum()
        spread = numpy.nanstd(draws["weights"], axis=(0, 1))
        found = made["posterior"]["weights"].values.mean(axis=(0, 1))
        self.assertLess((numpy.abs(found - exact) / spread).max(), 0.1)
        rates = [chain.stats.metropolis.acceptance for chain in job.describe().chains]
        numpy.testing.assert_array_equal(made["sample_stats"]["acceptance_rate"].values[:, 0], rates)
        with self.assertRaisesRegex(cf.errors.InvalidArgument, "weighted"):
            job.to_arviz(seed=None)
        with self.assertRaisesRegex(cf.errors.FailedPrecondition, "the draws are weighted, and ArviZ counts each draw once"):
            self.export(job)

    def test_log_likelihood_of_numbers_is_in_their_own_units(self):
        made = self.metropolis().to_arviz()
        weights, intercept = (made["posterior"][name].values for name in ("weights", "intercept"))
        standardised = (self.x - self.x.mean(axis=0)) / self.x.std(axis=0)
        mean, deviation = self.numbers.mean(), self.numbers.std()
        predicted = mean + deviation * (numpy.einsum("ni,cdi->cdn", standardised, weights.reshape(*weights.shape[:2], 3)) + intercept)
        expected = -0.5 * (numpy.log(2 * numpy.pi) + (self.numbers - predicted) ** 2)
        numpy.testing.assert_allclose(made["log_likelihood"]["y"].values, expected, atol=1e-2)

    def test_a_sweep_needs_a_point_and_gives_its_chains_alone(self):
        job = self.network(sweep=cf.Sweep(temperature=[0.5, 1.0]), chains=1, collect=cf.Collect(every_steps=100))
        with self.assertRaisesRegex(cf.errors.InvalidArgument, "temperature=0.5, temperature=1"):
            job.to_arviz()
        made = job.to_arviz(point="temperature=1")
        self.assertEqual(made["posterior"]["chain"].values.tolist(), [1])
        self.assert_command_line_writes(made, job, point="temperature=1")
        numpy.testing.assert_array_equal(made["posterior"]["fc1.bias"].values[0, -1], job.draws().get(1, -1).parameters["fc1.bias"])

    def test_a_density_without_data_has_neither_rows_nor_their_likelihood(self):
        job = self.fleet.sample(cf.potentials.Gaussian(dimension=3), sampler=cf.SGLD(), step_size=0.1, steps=200, chains=2,
                                collect=cf.Collect(every_steps=2)).wait(timeout=60, progress=False)
        made = job.to_arviz()
        groups = set(made.groups()) if arviz.__version__.startswith("0.") else set(made.children)
        self.assertEqual(groups, {"posterior", "sample_stats"})
        self.assertEqual(made["posterior"]["theta"].shape, (2, 100, 3))
        self.assert_command_line_writes(made, job)

    def test_draws_before_a_divergence_are_marked_and_left_out_unless_asked_for(self):
        with self.assertRaisesRegex(cf.errors.JobFailed, "DIVERGED"):
            self.network(sampler=cf.EMCMC(), steps=80, learning_rate=0.1)
        job = self.fleet.job("mlp-emcmc")
        with self.assertRaises(cf.reasons.NoDraws):
            job.to_arviz(log_likelihood=False)
        made = job.to_arviz(log_likelihood=False, include_failed=True)
        self.assertGreater(made["sample_stats"].sizes["draw"], 0)
        self.assertTrue(made["sample_stats"]["diverging"].values.all())
        self.assert_command_line_writes(made, job, log_likelihood=False, include_failed=True)

    def test_other_kinds_and_classes_that_nobody_learned(self):
        job = self.network(sampler=cf.EMCMC(), steps=40, learning_rate=0.01)
        anchor = job.to_arviz(kind="theta_a")
        numpy.testing.assert_array_equal(anchor["posterior"]["fc1.bias"].values[1, 2], job.draws()["theta_a"].get(1, 2).parameters["fc1.bias"])
        self.assertIn("energy", job.to_arviz(log_likelihood=False)["sample_stats"])
        self.assertNotIn("energy", anchor["sample_stats"])
        self.assert_command_line_writes(anchor, job, kind="theta_a")
        with self.assertRaisesRegex(cf.errors.InvalidArgument, "class 2, the job learned 2"):
            job.to_arviz(data=(self.x[:3], [0, 1, 2]))
        with self.assertRaisesRegex(cf.errors.InvalidArgument, "theta_b"):
            job.to_arviz(kind="theta_b", log_likelihood=False)


if __name__ == "__main__":
    unittest.main()
