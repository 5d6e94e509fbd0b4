"""Modules of the real torch: exported, tried before they are sent, filled with draws, and averaged."""
import io
import pathlib
import tempfile
import types
import unittest
import zipfile
import warnings

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


class Signed(Row):
    def forward(self, x):
        return self.fc1(x) if x.sum() > 0 else self.fc1(-x)


class Eight(Row):
    def forward(self, x):
        return self.fc1(x if x.shape[0] < 8 else -x)


class Pair(Row):
    def forward(self, x, other):
        return self.fc1(x) + other


class Masked(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.embed, self.out = torch.nn.Embedding(9, 4), torch.nn.Linear(6, 3)

    def forward(self, ids, mask, numbers):
        mean = (self.embed(ids) * mask[..., None]).sum(1) / (1 + mask.sum(1, keepdim=True))
        return self.out(torch.cat([mean, numbers], 1))


class Optional(Row):
    def forward(self, x, y=None, z=None):
        return self.fc1(x)


class Tied(torch.nn.Module):
    """A parameter with two names, and statistics."""

    def __init__(self):
        super().__init__()
        self.fc1 = torch.nn.Linear(3, 2, bias=False)
        self.fc2 = torch.nn.Linear(3, 2, bias=False)
        self.fc2.weight = self.fc1.weight
        self.norm = torch.nn.BatchNorm1d(2, affine=False)

    def forward(self, x):
        return self.norm(self.fc1(x) - self.fc2(x) / 3)


class Gated(Row):
    """With Python that TorchScript does not take: keyword arguments of any names."""

    def forward(self, x):
        return self.gated(**{"x": x, "slope": torch.tensor(2.0)})

    def gated(self, **given):
        return self.fc1(given["x"]) * torch.sigmoid(given["slope"] * self.fc1(given["x"]))


class Tried(unittest.TestCase):
    def sent(self, module, data=LABELS, likelihood=None):
        content, function = modules.network_file(module, data.x.shape[1:])
        modules.try_module(function, data, likelihood)
        return content

    def refused(self, module, words, data=LABELS, likelihood=None):
        with self.assertRaisesRegex(cf.errors.InvalidArgument, words) as caught:
            self.sent(module, data, likelihood)
        self.assertEqual(caught.exception.reason, "INVALID_MODEL")
        self.assertTrue(caught.exception.hint, "a remedy")

    def test_modules_that_the_workers_would_refuse(self):
        self.refused(Centred(), "mixes examples")
        self.refused(Random(), "another answer the second time")
        self.refused(torch.nn.Linear(4, 2), r"returns torch.float32 \[3, 2\], float32 \[3, 3\] is needed")
        self.refused(Row().double(), "forward fails|float64")
        self.refused(torch.nn.Flatten(), "has no parameters to sample")
        self.refused(torch.jit.script(torch.nn.Flatten()), "has no parameters to sample")

    def test_modules_that_torch_export_does_not_take(self):
        self.refused(torch.nn.Linear(5, 3), r"torch.export does not take it: .*\[5, 3\]")
        self.refused(Signed(), "does not take it: Could not guard on data-dependent expression")
        self.refused(Eight(), "does not take it: Not all values of batch")
        self.refused(torch.nn.Sequential(Row(), torch.nn.Flatten(0), torch.nn.Unflatten(0, (3, 3))), r"specialized it to be a constant \(3\)")
        self.refused(Pair(), "missing a required argument: 'other'")

    def test_a_module_of_several_inputs(self):
        rng = numpy.random.default_rng(1)
        x = {"numbers": rng.normal(size=(50, 2)), "mask": rng.random((50, 5)) < 0.5, "ids": rng.integers(0, 9, (50, 5))}
        module = Masked()
        names = modules.parts_of(module, x)
        self.assertEqual([part.name for part in names], ["ids", "mask", "numbers"])
        data = arrays.check_data(x, numpy.arange(50) % 3, wanted=names)
        content, function = modules.network_file(module, data.x.shape[1:], data.parts)
        parts = modules.parts_of_file(content)
        self.assertEqual([(part.name, part.type, part.shape) for part in parts], [("ids", "int64", (5,)), ("mask", "bool", (5,)), ("numbers", "float32", (2,))])
        modules.try_module(function, data, None, parts)
        with self.assertRaisesRegex(cf.errors.InvalidArgument, r"its inputs have 12 numbers, rows have shape \[4\]"):
            modules.try_module(function, LABELS, None, parts)
        with self.assertRaisesRegex(cf.errors.InvalidArgument, "index out of range"):
            modules.try_module(function, arrays.check_data(x | {"ids": x["ids"] + 9}, numpy.arange(50) % 3, wanted=parts), None, parts)
        self.assertEqual(modules.parts_of_file(self.sent(Row())), ())
        for given, wanted in (({"x": 1, "y": 2}, ["x", "y"]), ({"x": 1, "z": 2}, []), ((1, 2, 3), ["x", "y", "z"]), ((1, 2), ["x", "y"])):
            self.assertEqual([part.name for part in modules.parts_of(Optional(), given)], wanted)
        self.assertEqual(modules.parts_of_file(b"no archive"), ())
        with tempfile.NamedTemporaryFile(suffix=".pt2") as file:
            file.write(content)
            file.flush()
            self.assertEqual(modules.parts_of(file.name, x), parts)

    def test_good_modules_pass_and_stay_as_they_are(self):
        norm = torch.nn.Sequential(Row(), torch.nn.BatchNorm1d(3), torch.nn.Dropout(0.5))
        self.assertTrue(modules.is_exported(self.sent(norm)))
        self.assertTrue(norm.training)
        self.assertEqual(int(norm[1].num_batches_tracked), 0)
        numbers = arrays.check_data(ROWS, ROWS[:, 0])
        self.sent(torch.nn.Linear(4, 1), numbers)
        self.sent(torch.nn.Linear(4, 2), numbers, cf.likelihoods.HeteroscedasticGaussian())
        same = arrays.check_data(numpy.zeros((5, 4)), numpy.array([0, 1, 2, 0, 1]))
        self.refused(Centred(), "mixes examples", data=same)

    def test_a_file_depends_on_the_module_alone(self):
        module = Gated()
        content = self.sent(module)
        self.assertEqual(content, self.sent(module, arrays.check_data(ROWS + 1, numpy.arange(200) % 3)))
        again = torch.export.load(io.BytesIO(content)).module()
        self.assertEqual([name for name, _ in again.named_parameters()], [name for name, _ in module.named_parameters()])
        self.assertTrue(modules.is_exported(self.sent(again)), "an exported module is taken, too")

    def test_a_script_module_is_sent_as_torchscript_with_a_warning(self):
        module = torch.jit.script(Row())
        with self.assertWarnsRegex(DeprecationWarning, "TorchScript is deprecated: .* torch.export"):
            content = self.sent(module)
        self.assertFalse(modules.is_exported(content))
        self.assertEqual(modules.stored_model(content).torchscript, modules.model_name(content))

    def test_a_file_is_taken_as_it_is(self):
        content = self.sent(Row())
        with tempfile.NamedTemporaryFile(suffix=".pt2") as file:
            file.write(content)
            file.flush()
            sent, function = modules.network_file(file.name, None)
            self.assertEqual(sent, content)
            modules.try_module(function, arrays.check_data(ROWS, numpy.arange(200) % 3), None)
        with tempfile.NamedTemporaryFile(suffix=".pt2") as file, zipfile.ZipFile(file.name, "w") as archive:
            archive.writestr("net/archive_format", "pt2")
            archive.close()
            self.assertIsNone(modules.network_file(file.name, None)[1], "what torch does not read is for the workers")
        self.assertEqual(modules.stored_model(content).exported, modules.model_name(content))
        self.assertFalse(modules.is_exported(b"no archive"))

    def test_a_file_that_mixes_examples_is_found_by_its_rows(self):
        exported = torch.export.export(Centred(), (torch.zeros(3, 4),), dynamic_shapes=({0: torch.export.Dim("batch")},))
        with tempfile.NamedTemporaryFile(suffix=".pt2") as file:
            torch.export.save(exported, file.name)
            function = modules.network_file(file.name, None)[1]
        for tried in (lambda: modules.try_example(function, ROWS[:1]), lambda: modules.try_module(function, arrays.check_data(ROWS, numpy.arange(200) % 3), None)):
            with self.assertRaisesRegex(cf.errors.InvalidArgument, "mixes examples"):
                tried()

    def test_other_things_are_refused(self):
        with self.assertRaises(cf.errors.NotFound):
            modules.network_file("/nowhere/net.pt2", None)
        with self.assertRaisesRegex(cf.errors.InvalidArgument, "not int"):
            modules.network_file(3, None)
        with self.assertRaisesRegex(cf.errors.InvalidArgument, "shape of its inputs is not known") as caught:
            modules.network_file(Row(), None)
        self.assertIn("example=x", caught.exception.hint)


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
        fleet = types.SimpleNamespace(connection=types.SimpleNamespace(call=lambda *arguments: about), _only_predicts=False)
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

    def test_a_saved_average_predicts_the_same(self):
        x = numpy.random.default_rng(0).normal(size=(20, 3))
        module = torch.nn.Sequential()
        module.fc1 = torch.nn.Linear(3, 2, bias=False)
        for made, file in ((Tied(), "module.pt2"), (module, "module.pt2"), (torch.jit.script(module), "module.pt")):
            with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
                warnings.simplefilter("ignore")
                average, path = self.average(made), pathlib.Path(folder)
                average.save(path)
                self.assertTrue((path / file).exists())
                loaded = torch_average.TorchAverage.load(path)
                numpy.testing.assert_allclose(loaded(x).numpy(), average(x).numpy(), atol=1e-6)
                loaded.save(path)

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

    def test_a_tensor_with_gradients_may_leave_the_channel_out_as_an_array_may(self):
        store = Store()
        store.add(0, 0, [1.0, 3.0])
        about = jobs_pb2.Job(id="j")
        about.inputs.type = types_pb2.FLOAT32
        about.inputs.shape.extend([1, 1, 3])
        about.inputs.normalisation.mean.append(0.0)
        about.inputs.normalisation.stddev.append(1.0)
        module = torch.nn.Sequential(torch.nn.Flatten())
        module.fc1 = torch.nn.Linear(3, 2, bias=False)
        average = torch_average.TorchAverage(about, [cf.Draws(store, store.records)["theta"]], module, None)
        x = torch.full((4, 1, 3), 0.1, requires_grad=True)
        numpy.testing.assert_array_equal(average(x).detach(), average(x.detach().numpy()))

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
