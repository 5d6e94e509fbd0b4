"""Modules of the real torch: as TorchScript, tried before they are sent, filled with draws, and averaged."""
import io
import types
import unittest

import python_package  # noqa: F401  first: it says where the next ones are
from real_torch import torch
import chainfleet as cf
import numpy
from chainfleet import arrays, modules, torch_average
from chainfleet.v1 import jobs_pb2, types_pb2
from draws_test import Store

ROWS = numpy.random.default_rng(3).normal(5, 2, (200, 4)).astype(numpy.float32)
LABELS = arrays.check_data(ROWS, numpy.arange(200) % 3)


class Row(torch.nn.Module):
    """Three logits of each row by itself."""

    def __init__(self):
        super().__init__()
        self.fc1 = torch.nn.Linear(4, 3)

    def forward(self, x):
        return self.fc1(x)


class Centred(Row):
    def forward(self, x):
        return self.fc1(x - x.mean(dim=0))


class Random(Row):
    def forward(self, x):
        return self.fc1(x) + torch.rand(x.shape[0], 3)


class Unscriptable(Row):
    def forward(self, x):
        return self.fc1(x).__getattribute__("T").T


class Tied(torch.nn.Module):
    """A parameter with two names, and statistics."""

    def __init__(self):
        super().__init__()
        self.fc1 = torch.nn.Linear(3, 2, bias=False)
        self.fc2 = torch.nn.Linear(3, 2, bias=False)
        self.fc2.weight = self.fc1.weight
        self.norm = torch.nn.BatchNorm1d(2, affine=False)


class Tried(unittest.TestCase):
    def refused(self, module, words, data=LABELS, likelihood=None):
        with self.assertRaisesRegex(cf.errors.InvalidArgument, words) as caught:
            modules.try_module(modules.torchscript(module), data, likelihood)
        self.assertEqual(caught.exception.reason, "INVALID_MODEL")
        self.assertTrue(caught.exception.hint, "a remedy")

    def test_modules_that_the_workers_would_refuse(self):
        self.refused(Centred(), "mixes examples")
        self.refused(Random(), "another answer the second time")
        self.refused(torch.nn.Linear(4, 2), r"returns torch.float32 \[3, 2\], float32 \[3, 3\] is needed")
        self.refused(torch.nn.Linear(5, 3), r"forward fails on \[3, 4\].*shapes")
        self.refused(Row().double(), "forward fails|float64")
        self.refused(torch.nn.Flatten(), "has no parameters to sample")
        self.refused(torch.jit.script(torch.nn.Flatten()), "has no parameters to sample")

    def test_good_modules_pass_and_stay_as_they_are(self):
        norm = torch.nn.Sequential(Row(), torch.nn.BatchNorm1d(3), torch.nn.Dropout(0.5))
        modules.try_module(modules.torchscript(norm), LABELS, None)
        self.assertTrue(norm.training)
        self.assertEqual(int(norm[1].num_batches_tracked), 0)
        numbers = arrays.check_data(ROWS, ROWS[:, 0])
        modules.try_module(modules.torchscript(torch.nn.Linear(4, 1)), numbers, None)
        modules.try_module(modules.torchscript(torch.nn.Linear(4, 2)), numbers, cf.likelihoods.HeteroscedasticGaussian())
        same = arrays.check_data(numpy.zeros((5, 4)), numpy.array([0, 1, 2, 0, 1]))
        self.refused(Centred(), "mixes examples", data=same)

    def test_a_module_that_cannot_be_scripted_is_refused_with_the_words_of_torch(self):
        with self.assertRaisesRegex(cf.errors.InvalidArgument, "torch.jit.script does not take it") as caught:
            modules.torchscript(Unscriptable())
        self.assertIn("torch.jit.trace", caught.exception.hint)

    def test_a_file_is_taken_as_it_is(self):
        content = modules.torchscript(Row())
        self.assertEqual(modules.torchscript(torch.jit.load(io.BytesIO(content)))[:2], b"PK")
        with self.assertRaises(cf.errors.NotFound):
            modules.torchscript("/nowhere/model.pt")
        with self.assertRaisesRegex(cf.errors.InvalidArgument, "not int"):
            modules.torchscript(3)


class Tensors(unittest.TestCase):
    def test_tensors_of_any_kind_become_arrays(self):
        x = torch.from_numpy(ROWS)
        for given in (x, x.bfloat16(), x.half(), x.double().requires_grad_(), x.to_sparse(), x.t().contiguous().t()):
            made = arrays.check_data(given, torch.arange(200) % 3)
            self.assertEqual((made.x.dtype, made.y.dtype), (numpy.float32, numpy.int32))
            numpy.testing.assert_allclose(made.x, ROWS, atol=0.05)
        self.assertEqual(arrays.check_data((x * 9).to(torch.uint8), torch.arange(200) % 3).x.dtype, numpy.uint8)
        self.assertTrue(arrays.check_data(x, x[:, 0]).numbers)

    def test_other_tensors_are_refused(self):
        with self.assertRaisesRegex(cf.errors.InvalidArgument, "complex"):
            arrays.check_data(torch.from_numpy(ROWS) * 1j, torch.arange(200))
        with self.assertRaisesRegex(cf.errors.InvalidArgument, "no tensor of numbers"):
            arrays.check_data(torch.from_numpy(ROWS).to("meta"), torch.arange(200))


class Filled(unittest.TestCase):
    def setUp(self):
        self.store = Store()
        self.store.add(0, 0, [1.0, 3.0])
        self.store.add(1, 0, [2.0])

    def test_a_draw_loads_strictly_into_the_module_that_was_given(self):
        module = Tied()
        module.norm.running_mean.fill_(7)
        found = cf.Draws(self.store, self.store.records, module=module)
        state = found["theta"].state_dict(chain=0, draw=1)
        other = Tied()
        other.load_state_dict(state)
        self.assertEqual(other.norm.running_mean.tolist(), [7, 7])
        numpy.testing.assert_array_equal(other.fc2.weight.detach().numpy(), numpy.arange(6, 12).reshape(2, 3))

    def job(self, **spec):
        about = jobs_pb2.Job(id="j")
        about.inputs.type = types_pb2.FLOAT32
        about.inputs.shape.extend([3])
        about.inputs.normalisation.mean.extend([1.0, 2.0, 3.0])
        about.inputs.normalisation.stddev.extend([2.0, 2.0, 4.0])
        fleet = types.SimpleNamespace(connection=types.SimpleNamespace(call=lambda *arguments: about))
        return cf.Job(fleet, "j"), about

    def average(self, module, kinds=("theta",), about=None):
        job, known = self.job()
        found = cf.Draws(self.store, self.store.records)
        return torch_average.TorchAverage(about or known, [found[kind] for kind in kinds], module, None)

    def expected(self, x, kinds=("theta",)):
        seen, total, weights = (x - [1, 2, 3]) / [2, 2, 4], 0, 0
        for kind in kinds:
            for draw in cf.Draws(self.store, self.store.records)[kind]:
                odds = numpy.exp(seen @ draw.parameters["fc1.weight"].T.astype(float))
                total, weights = total + draw.weight * odds / odds.sum(axis=1, keepdims=True), weights + draw.weight
        return total / weights

    def test_draws_are_averaged_by_weight(self):
        module = torch.nn.Sequential()
        module.fc1 = torch.nn.Linear(3, 2, bias=False)
        before = module.fc1.weight.detach().clone()
        x = numpy.random.default_rng(0).normal(size=(20, 3)) * 0.01
        for kinds in (("theta",), ("theta", "theta_a")):
            for made in (module, torch.jit.script(module)):
                average = self.average(made, kinds)
                numpy.testing.assert_allclose(average(x).numpy(), self.expected(x, kinds), atol=1e-6)
                self.assertEqual(average.draws_used, 3)
        self.assertTrue(torch.equal(module.fc1.weight, before), "the user's module stays as it is")

    def test_gradients_reach_the_inputs(self):
        module = torch.nn.Sequential()
        module.fc1 = torch.nn.Linear(3, 2, bias=False)
        x = torch.full((2, 3), 0.1, requires_grad=True)
        self.average(module)(x)[:, 0].sum().backward()
        step = torch.zeros(2, 3)
        step[:, 1] = 1e-3
        with torch.no_grad():
            slope = (self.expected(x.numpy() + step.numpy()) - self.expected(x.numpy() - step.numpy()))[:, 0] / 2e-3
        numpy.testing.assert_allclose(x.grad[:, 1].numpy(), slope, rtol=1e-2, atol=1e-5)

    def test_a_module_of_other_parameters_is_refused(self):
        with self.assertRaisesRegex(cf.errors.InvalidArgument, "module has parameters"):
            self.average(torch.nn.Linear(3, 2))

    def test_inputs_of_another_shape_are_refused(self):
        module = torch.nn.Sequential()
        module.fc1 = torch.nn.Linear(3, 2, bias=False)
        for x in (torch.zeros(2, 4), torch.zeros(2, 4, requires_grad=True)):
            with self.assertRaisesRegex(cf.errors.InvalidArgument, "takes"):
                self.average(module)(x)

    def test_without_the_module_there_is_a_remedy(self):
        with self.assertRaisesRegex(cf.errors.InvalidArgument, "to_torch\\(module\\)"):
            self.job()[0].to_torch()


if __name__ == "__main__":
    unittest.main()
