"""Specs as messages, and what `sample` makes of its arguments."""
import dataclasses
import inspect
import unittest
import warnings

import python_package  # noqa: F401  first: it says where the next ones are
import chainfleet as cf
import generate
import numpy
from chainfleet import sampling, sources, spec
from chainfleet.spec import fill
from chainfleet.v1 import job_spec_pb2, layers_pb2


def message(**fields):
    made = job_spec_pb2.JobSpec()
    fill(made, cf.JobSpec(**fields))
    return made


def every_part():
    """(maker of its message, class) of each part of a job."""
    parts = [cls for part in spec.Spec.__subclasses__() for cls in (part, *part.__subclasses__())]
    for kind in parts:
        if kind.choice:
            name = kind.__bases__[0].__name__
            family = layers_pb2.Layer if name == "Layer" else getattr(job_spec_pb2.JobSpec, name)
            yield lambda family=family, choice=kind.choice: getattr(family(), choice), kind
        elif not kind.__subclasses__():
            yield getattr(job_spec_pb2, kind.__name__, None) or getattr(job_spec_pb2.JobSpec, kind.__name__), kind


class Messages(unittest.TestCase):
    def test_fields_go_where_the_schema_has_them(self):
        made = message(
            name="a", sampler=cf.EMCMC(eta=4e-4), learning_rate=cf.Cyclical(initial=0.2, cycles=4), step_size=None,
            prior=cf.priors.Gaussian(precision=25, layers={"fc1": numpy.float32(2)}), chains=numpy.int64(3), temperature=0.0,
            model=cf.Model(layers=[cf.layers.Residual(branch=[cf.layers.ReLU()]), cf.layers.Linear()]),
            collect=cf.Collect(every_steps=5, kinds=("theta",)), init=cf.Init(theta=numpy.arange(3.0)))
        self.assertEqual(made.sampler.emcmc.eta, 4e-4)
        self.assertEqual((made.learning_rate.cyclical.initial, made.learning_rate.cyclical.cycles), (0.2, 4))
        self.assertEqual(dict(made.prior.gaussian.layers), {"fc1": 2.0})
        self.assertEqual(made.model.layers[0].residual.branch[0].WhichOneof("kind"), "relu")
        self.assertEqual(made.model.layers[1].WhichOneof("kind"), "linear")
        self.assertEqual(list(made.init.theta), [0, 1, 2])
        self.assertTrue(made.HasField("temperature"), "0 is not the default")
        self.assertFalse(made.HasField("batch_size"), "what is left out is left to the server")

    def test_a_number_is_a_constant_schedule_and_an_empty_sampler_is_one(self):
        made = message(step_size=0.5, sampler=cf.RandomWalk())
        self.assertEqual(made.step_size.constant, 0.5)
        self.assertEqual(made.sampler.WhichOneof("kind"), "random_walk")

    def test_a_wrong_value_is_named_with_its_path(self):
        for path, fields in (("sampler.emcmc.eta", {"sampler": cf.EMCMC(eta="small")}),
                             ("sampler", {"sampler": cf.priors.Laplace()}), ("burn_in", {"burn_in": cf.Collect()}),
                             ("chains", {"chains": 1.5}), ("collect.kinds", {"collect": cf.Collect(kinds="theta")}),
                             ("model.layers[1]", {"model": cf.Model(layers=[cf.layers.ReLU(), "relu"])})):
            with self.assertRaises(cf.errors.InvalidArgument) as caught:
                message(**fields)
            self.assertEqual([violation.path for violation in caught.exception.violations], [path])
            self.assertIsInstance(caught.exception, ValueError)

    def test_a_class_or_its_name_has_a_hint_that_calls_the_class(self):
        for field, value, hint in (("sampler", "emcmc", "pass cf.EMCMC(...)"), ("sampler", cf.SGLD, "pass cf.SGLD(...)"),
                                   ("sampler", cf.samplers.Laplace, "pass cf.samplers.Laplace(...)"), ("sampler", 3, "sampler takes samplers.Sampler"),
                                   ("prior", "gaussian", "pass cf.priors.Gaussian(...)"), ("learning_rate", cf.Cyclical, "pass cf.Cyclical(...)"),
                                   ("learning_rate", "fast", "learning_rate takes schedules.Schedule | float"), ("burn_in", cf.BurnIn, "pass cf.BurnIn(...)"),
                                   ("chains", "3", "chains takes int")):
            with self.assertRaisesRegex(cf.errors.InvalidArgument, f"^{field}.* is not allowed here") as caught:
                message(**{field: value})
            self.assertEqual(caught.exception.hint, hint)
        with self.assertRaises(cf.errors.InvalidArgument) as caught:
            sampling.model_of([cf.layers.ReLU])
        self.assertEqual(caught.exception.hint, "pass cf.layers.ReLU(...)")

    def test_a_wrong_value_of_any_field_has_a_remedy(self):
        values = (object(), "text", -1.5, [object()], {"a": object()}, cf.SGLD(), cf.Model(), [cf.SGLD()], float, b"\xff", 10**30)
        refused = 0
        for made, kind in every_part():
            unset = dict.fromkeys((field.name for field in dataclasses.fields(kind)))
            for field in dataclasses.fields(kind):
                for value in values:
                    try:
                        fill(made(), kind(**{**unset, field.name: value}))
                    except cf.errors.InvalidArgument as error:
                        self.assertTrue(error.hint, f"{kind.__name__}.{field.name} = {value!r}")
                        self.assertEqual(error.violations[0].path.partition(".")[0].partition("[")[0], field.name)
                        refused += 1
        self.assertGreater(refused, 1000)

    def test_an_unknown_field_is_said_with_the_nearest_one(self):
        with self.assertRaisesRegex(TypeError, r"^EMCMC\(\) has no argument 'etaa'; did you mean 'eta'\?$"):
            cf.EMCMC(etaa=1)

    def test_specs_cannot_be_changed_and_compare_by_value(self):
        with self.assertRaises(AttributeError):
            cf.EMCMC().eta = 1
        self.assertEqual(cf.EMCMC(eta=1), cf.EMCMC(eta=1))
        with self.assertRaises(TypeError):
            cf.Cyclical()  # initial is required


class Sampling(unittest.TestCase):
    x, y = numpy.zeros((4, 2)), numpy.arange(4) % 2

    def spec(self, y=None, likelihood=None, **given):
        _, data = sources.source_of((self.x, self.y if y is None else y), sampling.means_numbers(likelihood))
        return sampling.job_spec({"sampler": cf.EMCMC(), **given}, sampling.model_of("mlp"), "d", data)

    def test_omitted_keys_have_the_documented_values(self):
        spec = self.spec(num_epochs=12)
        self.assertEqual((spec.name, spec.learning_rate, spec.collect), ("mlp-emcmc", 0.01, cf.Collect(last_epochs_of_cycle=6)))
        self.assertEqual((spec.prior, spec.likelihood), (cf.priors.Gaussian(precision=1.0), None))
        self.assertEqual(self.spec(num_epochs=12, learning_rate=cf.Cyclical(initial=1, cycles=4)).collect.last_epochs_of_cycle, 1)
        self.assertEqual((spec.batch_size, self.spec(batch_size=2).batch_size), (4, 2), "all rows where there are fewer than 128")
        self.assertIsNone(self.spec(num_epochs=12, sampler=cf.SWAG()).collect, "it draws when its training ends")
        self.assertIsNone(self.spec(preset="csgmcmc").learning_rate, "a preset says it")

    def test_the_sampler_may_be_left_to_a_preset(self):
        self.assertIsNone(inspect.signature(cf.Fleet.sample).parameters["sampler"].default)
        spec = self.spec(preset="csgmcmc", sampler=None)
        self.assertEqual((spec.preset, spec.sampler, spec.name), ("csgmcmc", None, "mlp-job"))

    def test_the_default_batch_size_is_that_of_the_schema(self):
        self.assertIn(f"optional int64 batch_size = 9;    // default {sampling.SERVER_BATCH_SIZE}; ", generate.job_file.read("proto/chainfleet/v1/job_spec.proto"))

    def test_classes_that_do_not_count_from_0_are_a_warning(self):
        with self.assertWarnsRegex(UserWarning, "no class 0.*gets 3 outputs.*np.unique"):
            self.spec(y=self.y + 1)
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            self.spec()
            self.spec(y=self.y + 1.5)

    def test_only_potentials_are_sampled_without_data(self):
        with self.assertRaisesRegex(cf.errors.InvalidArgument, "data is missing") as caught:
            sampling.job_spec({"sampler": cf.SGLD()}, sampling.model_of("mlp"), "", None)
        self.assertIn("data=(x, y)", caught.exception.hint)
        self.assertIsNone(sampling.job_spec({"sampler": cf.MALA()}, sampling.model_of(cf.potentials.Gaussian()), "", None).dataset)

    def test_targets_are_what_the_likelihood_takes(self):
        self.assertEqual(self.spec(y=self.y + 0.5).likelihood, cf.likelihoods.Gaussian(learned=True))
        self.assertTrue(sampling.means_numbers(cf.likelihoods.Gaussian(learned=True)))
        with self.assertRaisesRegex(cf.errors.InvalidArgument, "needs classes"):
            self.spec(y=self.y + 0.5, likelihood=cf.likelihoods.Categorical())

    def test_models_are_names_layers_or_potentials(self):
        self.assertEqual(sampling.model_of([cf.layers.Linear()]).layers, (cf.layers.Linear(),))
        self.assertEqual(sampling.model_of(cf.potentials.Gaussian()).potential, cf.potentials.Gaussian())
        self.assertIsNone(sampling.model_of(object()))
        for wrong in ([], ["linear"]):
            with self.assertRaisesRegex(cf.errors.InvalidArgument, "chainfleet.layers"):
                sampling.model_of(wrong)

    def test_wrong_types_are_errors_of_ours_before_the_defaults_need_them(self):
        for path, given in (("sampler", {"sampler": "emcmc"}), ("sampler", {"sampler": cf.SGLD}), ("num_epochs", {"num_epochs": "3"}),
                            ("learning_rate.cyclical.cycles", {"learning_rate": cf.Cyclical(initial=1, cycles="4")})):
            with self.assertRaises(cf.errors.InvalidArgument) as caught:
                self.spec(**{"num_epochs": 12, **given})
            self.assertEqual(caught.exception.violations[0].path, path)
            self.assertTrue(caught.exception.hint, "a remedy")

    def test_a_length_by_the_name_of_its_field_is_refused(self):
        with self.assertRaisesRegex(TypeError, "'num_epochs'; did you mean 'epochs'"):
            cf.Fleet.sample(None, "mlp", "d", preset="csgld-official", num_epochs=5)

    def test_an_unknown_argument_is_said_with_the_nearest_one(self):
        with self.assertRaisesRegex(TypeError, "'epoch'; did you mean 'epochs'"):
            self.spec(epoch=3)


if __name__ == "__main__":
    unittest.main()
