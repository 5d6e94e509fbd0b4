"""Chains that start at trained weights, from the user's arrays to draws."""
import unittest

import python_package  # noqa: F401  first: it says where the next ones are
import chainfleet as cf
import numpy
from connected_fleet import ConnectedFleet

SOURCE = numpy.random.default_rng(7)
X = SOURCE.normal(size=(400, 3)).astype(numpy.float32)
Y = (X[:, 0] > 0).astype(int)
LAYERS = [cf.layers.Linear(outputs=4), cf.layers.ReLU(), cf.layers.Linear()]
SHAPES = {"fc1.weight": (4, 3), "fc1.bias": (4,), "fc2.weight": (2, 4), "fc2.bias": (2,)}
STILL = {"data": (X, Y), "sampler": cf.SGLD(), "steps": 1, "learning_rate": 1e-9, "temperature": 0, "progress": False}


def weights():
    return {name: SOURCE.normal(size=shape) for name, shape in SHAPES.items()}


class Start(ConnectedFleet):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.files = {"map-a": weights(), "map-b": weights()}
        for name, file in cls.files.items():
            cls.fleet.put_model(name, file, progress=False)

    def assert_draw(self, job, chain, name):
        found = job.draws().get(chain, 0).parameters
        for tensor, values in self.files[name].items():
            numpy.testing.assert_allclose(found[tensor], values, atol=1e-6, err_msg=f"chain {chain}, {tensor}")

    def test_chain_i_starts_at_file_i_mod_k(self):
        job = self.fleet.sample(LAYERS, chains=3, init=cf.Init(weights=["map-a", "map-b"]), **STILL)
        for chain, name in enumerate(["map-a", "map-b", "map-a"]):
            self.assert_draw(job, chain, name)

    def test_perturbed_chains_start_apart(self):
        job = self.fleet.sample(LAYERS, chains=2, init=cf.Init(weights=["map-a"], perturb=0.5), **STILL)
        apart = [job.draws().get(chain, 0).parameters["fc1.weight"] for chain in range(2)]
        self.assertGreater(abs(apart[0] - apart[1]).min(), 0)
        self.assertLess(abs(apart[0] - self.files["map-a"]["fc1.weight"]).max(), 3)

    def test_laplace_draws_around_the_weights_without_training(self):
        job = self.fleet.sample(LAYERS, data=(X, Y), sampler=cf.samplers.Laplace(structure="diagonal", draws=400), epochs=0,
                                prior=cf.priors.Gaussian(precision=100), init=cf.Init(weights=["map-a"]), learning_rate=0.1, progress=False)
        values = numpy.array([draw.parameters["fc1.weight"] for draw in job.draws()])
        self.assertEqual(len(values), 400)
        self.assertLess(values.std(axis=0).max(), 0.11, "the prior bounds the deviation by 0.1")
        numpy.testing.assert_allclose(values.mean(axis=0), self.files["map-a"]["fc1.weight"], atol=5 * 0.1 / 400**0.5)

    def test_dropout_is_sampled_around_the_weights_without_training(self):
        job = self.fleet.sample(LAYERS, data=(X, Y), sampler=cf.samplers.MCDropout(rate=0.5, draws=64), epochs=0, init=cf.Init(weights=["map-a"]),
                                learning_rate=0.1, progress=False)
        whole, kinds = self.files["map-a"]["fc2.weight"], set()
        for draw in job.draws():
            numpy.testing.assert_allclose(draw.parameters["fc1.weight"], self.files["map-a"]["fc1.weight"], atol=1e-6)
            for column, values in zip(draw.parameters["fc2.weight"].T, whole.T, strict=True):
                kinds.add("dropped" if not column.any() else "kept")
                if column.any():
                    numpy.testing.assert_allclose(column, 2 * values, rtol=1e-5)
        self.assertEqual(kinds, {"dropped", "kept"})

    def test_averages_and_chains_go_on_from_the_weights(self):
        for sampler in (cf.samplers.SWAG(start_epoch=0, draws=4), cf.EMCMC(eta=1e-4)):
            with self.subTest(type(sampler).__name__):
                job = self.fleet.sample(LAYERS, data=(X, Y), sampler=sampler, epochs=2, init=cf.Init(weights=["map-a"]), learning_rate=1e-6,
                                        temperature=1e-9, batch_size=100, progress=False)
                for draw in job.draws():
                    numpy.testing.assert_allclose(draw.parameters["fc1.weight"], self.files["map-a"]["fc1.weight"], atol=1e-2)

    def test_networks_of_a_training_run_are_averaged_without_training(self):
        snapshots = [weights() for _ in range(5)]
        self.fleet.put_model("run", {f"theta/{name}": numpy.stack([one[name] for one in snapshots]) for name in SHAPES}, progress=False)
        given = {"data": (X, Y), "epochs": 0, "learning_rate": 0.1, "progress": False, "init": cf.Init(weights=["run"], format="safetensors")}
        (mean,) = self.fleet.sample(LAYERS, sampler=cf.samplers.SWA(), **given).draws()
        draws = [draw.parameters["fc1.weight"] for draw in self.fleet.sample(LAYERS, sampler=cf.samplers.SWAG(scale=1, draws=2000), **given).draws()]
        path = numpy.array([one["fc1.weight"] for one in snapshots])
        numpy.testing.assert_allclose(mean.parameters["fc1.weight"], path.mean(axis=0), atol=1e-5)
        numpy.testing.assert_allclose(numpy.mean(draws, axis=0), path.mean(axis=0), atol=0.2)
        self.assertGreater(numpy.std(draws, axis=0).min(), 0.5 * path.std(axis=0).min())

    def test_starts_that_do_not_fit_are_refused_at_submit(self):
        self.fleet.put_model("part", {"fc1.weight": numpy.zeros((4, 3), numpy.float32)}, progress=False)
        for init, words in ((cf.Init(weights=["part"]), r"init.weights\[0\]: part lacks fc1.bias, fc2.weight, fc2.bias of the network"),
                            (cf.Init(weights=["nowhere"]), "no model nowhere"),
                            (cf.Init(model=True), "only a stored network has weights in its file"),
                            (cf.Init(weights=["map-a"], theta=[0]), "has several starts")):
            with self.subTest(words), self.assertRaisesRegex(cf.ChainfleetError, words):
                self.fleet.sample(LAYERS, init=init, **STILL)
        with self.assertRaisesRegex(cf.errors.InvalidArgument, "map-a is a safetensors file: name it in `init.weights`"):
            self.fleet.sample(cf.Model(exported="map-a"), **STILL)
        for init, words in ((cf.Init(weights=["map-a"]), "map-a has one network, a job of 0 steps averages several"),
                            (None, "num_steps: 0 needs files of draws in init.weights")):
            with self.subTest(words), self.assertRaisesRegex(cf.errors.InvalidArgument, words):
                self.fleet.sample(LAYERS, init=init, **{**STILL, "sampler": cf.samplers.SWAG(), "steps": 0})
        with self.assertRaisesRegex(cf.errors.InvalidArgument, "0 needs a trained start"):
            self.fleet.sample(LAYERS, **{**STILL, "sampler": cf.samplers.Laplace(), "steps": 0, "prior": cf.priors.Gaussian(precision=1)})

    def test_a_file_stays_while_a_job_starts_there(self):
        self.fleet.put_model("kept", weights(), progress=False)
        job = self.fleet.sample(LAYERS, init=cf.Init(weights=["map-b", "kept"]), **STILL)
        with self.assertRaisesRegex(cf.errors.FailedPrecondition, job.id):
            self.fleet.delete_model("kept")
        job.delete()
        self.fleet.delete_model("kept")

    def test_values_that_are_no_weights_are_refused_before_they_are_sent(self):
        for value in (numpy.array(["a"]), numpy.zeros(2, complex)):
            with self.assertRaisesRegex(cf.errors.InvalidArgument, "fc1.bias is .*: weights are float16, float32 or float64"):
                self.fleet.put_model("none", {"fc1.bias": value})


if __name__ == "__main__":
    unittest.main()
