"""A module of the real torch from the user's program to predictions, at the server and on the user's own device."""
import json
import pathlib
import tempfile
import unittest
import urllib.request
import zipfile

import python_package  # noqa: F401  first: it says where the next ones are
from real_torch import torch
import chainfleet as cf
import numpy
from connected_fleet import ConnectedFleet

ROWS = numpy.random.default_rng(7).normal(3, 2, (600, 4)).astype(numpy.float32)
HELD_OUT = numpy.random.default_rng(8).normal(3, 2, (100, 4)).astype(numpy.float32)


class Net(torch.nn.Module):
    def __init__(self, outputs):
        super().__init__()
        self.hidden, self.norm, self.out = torch.nn.Linear(4, 16), torch.nn.BatchNorm1d(16), torch.nn.Linear(16, outputs)

    def forward(self, x):
        return self.out(torch.relu(self.norm(self.hidden(x))))


class Kernels(Net):
    """Distances to learned points, with Python that TorchScript does not take, statistics and a parameter of two names."""

    def __init__(self, **sizes):
        super().__init__(sizes["outputs"])
        self.centres = torch.nn.ParameterDict({"near": torch.nn.Parameter(3 + torch.randn(8, 4)), "far": torch.nn.Parameter(torch.randn(8, 4))})
        self.again = self.out

    def forward(self, x, **more):
        near = {name: torch.exp(-(x[:, None] - centre).square().sum(-1) / 8) for name, centre in self.centres.items()}
        return super().forward(x) + self.again(torch.cat([*near.values()], dim=1))


class Words(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.embed, self.out = torch.nn.Embedding(30, 8), torch.nn.Linear(8, 2)

    def forward(self, tokens):
        return self.out(torch.tanh(self.embed(tokens)).mean(1))


class Masked(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.embed, self.out = torch.nn.Embedding(30, 8), torch.nn.Linear(10, 2)

    def forward(self, ids, mask, age):
        words = (self.embed(ids) * mask[..., None]).sum(1)
        return self.out(torch.cat([words, age[:, None], age[:, None] ** 2], 1))


class Torch(ConnectedFleet):
    def test_a_module_of_several_inputs(self):
        torch.manual_seed(5)
        rng = numpy.random.default_rng(7)
        x = {"age": rng.normal(40, 10, 600), "ids": rng.integers(0, 30, (600, 5)), "mask": rng.random((600, 5)) < 0.6}
        y = ((x["ids"] < 10) & x["mask"]).sum(1) + (x["age"] > 45) > 1
        job = self.fleet.sample(Masked(), data=(x, y), sampler=cf.SGLD(), chains=2, epochs=30, learning_rate=0.3, temperature=1e-3,
                                progress=False)
        p = job.predict(x)
        self.assertGreater((p.predicted_class == y).mean(), 0.85)
        self.assertEqual([column.name for column in job.describe().inputs.columns], ["ids", "mask", "age"])
        numpy.testing.assert_array_equal(job.predict((x["ids"], x["mask"], x["age"])).mean_probability, p.mean_probability)
        self.assertAlmostEqual(job.evaluate((x, y), progress=False).score().accuracy, (p.predicted_class == y).mean())
        average = job.to_torch()
        numpy.testing.assert_allclose(average(x).numpy(), p.mean_probability, atol=2e-6)
        with tempfile.TemporaryDirectory() as folder:
            average.save(pathlib.Path(folder))
            again = type(average).load(pathlib.Path(folder))
            numpy.testing.assert_allclose(again(x).numpy(), p.mean_probability, atol=2e-6)
        slopes = job.predict({name: values[:2] for name, values in x.items()}, gradients=True).mean_gradient
        self.assertEqual(slopes.shape, (2, 2, 11))
        self.assertFalse(slopes[..., :10].any(), "indices and masks have no gradient")
        self.assertTrue(slopes[..., 10].all())
        by_name = self.fleet.sample(cf.Model(exported=job.describe().spec.model.exported), data=(x, y), sampler=cf.SGLD(), epochs=1, progress=False)
        numpy.testing.assert_array_equal(by_name.describe().dataset_digest, job.describe().dataset_digest)
        with self.assertRaisesRegex(cf.errors.InvalidArgument, "x has the inputs age, ids, the network takes ids, mask, age"):
            job.predict({"age": x["age"], "ids": x["ids"]})
        with self.assertRaisesRegex(cf.errors.InvalidArgument, "x has several inputs, but the network takes one"):
            self.fleet.sample("mlp", data=(x, y), sampler=cf.SGLD(), epochs=1, progress=False)
        with self.assertRaisesRegex(cf.errors.InvalidArgument, "x has several inputs, but the network takes one"):
            self.fleet.sample(Net(2), data=(x, y), sampler=cf.SGLD(), epochs=1, progress=False)

    def test_a_module_of_tokens(self):
        torch.manual_seed(5)
        tokens = numpy.random.default_rng(7).integers(0, 30, (600, 5))
        y = (tokens < 10).sum(1) > 1
        job = self.fleet.sample(Words(), data=(tokens, y), sampler=cf.SGLD(), chains=2, epochs=20, learning_rate=0.3, temperature=1e-3,
                                progress=False)
        p = job.predict(tokens)
        self.assertEqual(p.mean_probability.shape, (600, 2))
        numpy.testing.assert_allclose(job.to_torch()(tokens).numpy(), p.mean_probability, atol=2e-6)
        with self.assertRaisesRegex(cf.errors.InvalidArgument, "index out of range"):
            job.predict(tokens + 30)
        with self.assertRaisesRegex(cf.errors.InvalidArgument, "its predictions have no gradients"):
            job.predict(tokens[:2], gradients=True)
        with self.assertRaisesRegex(cf.errors.InvalidArgument, "it takes whole numbers, and the rows of x have others"):
            self.fleet.sample(Words(), data=(tokens + 0.5, y), sampler=cf.SGLD(), epochs=1, progress=False)

    def test_a_module_that_torchscript_cannot_take(self):
        torch.manual_seed(5)
        net = Kernels(outputs=2)
        with self.assertRaises(Exception):
            torch.jit.script(net)
        y = (numpy.abs(ROWS[:, 0] - 3) > 1.3).astype(int)
        job = self.fleet.sample(net, data=(ROWS, y), sampler=cf.SGLD(), chains=2, epochs=4, learning_rate=0.1, progress=False)
        members = job.predict(HELD_OUT, members=True).members
        for chain in range(2):
            net.load_state_dict(job.draws().state_dict(chain=chain, draw=1))
            with torch.no_grad():
                odds = torch.softmax(net.eval()(torch.from_numpy(job.standardise(HELD_OUT))), dim=1)
            served = next(member for member in members if member.chain == chain).probabilities[1]
            numpy.testing.assert_allclose(odds.numpy(), served, atol=2e-6)
        numpy.testing.assert_allclose(job.to_torch()(HELD_OUT).numpy(), job.predict(HELD_OUT).mean_probability, atol=2e-6)

    def test_a_module_trains_with_its_batch_norm_and_dropout_if_asked_to(self):
        torch.manual_seed(5)
        net = torch.nn.Sequential(torch.nn.Linear(4, 16), torch.nn.BatchNorm1d(16), torch.nn.ReLU(), torch.nn.Dropout(0.2), torch.nn.Linear(16, 2))
        y = (numpy.abs(ROWS[:, 0] - 3) > 1.3).astype(int)
        for training in (True, False):
            job = self.fleet.sample(net, data=(ROWS, y), sampler=cf.SGLD(), epochs=4, learning_rate=0.1, training=training, progress=False)
            self.assertEqual(self.fleet.model(job.describe().spec.model.exported).signature.has_dropout, training)
            means = job.draws().state_dict(chain=0, draw=1)["1.running_mean"]
            self.assertEqual(bool(means.any()), training, "each draw has statistics of its own")
            average = job.to_torch()
            with tempfile.TemporaryDirectory() as folder:
                average.save(pathlib.Path(folder))
                for here in (average, type(average).load(pathlib.Path(folder))):
                    numpy.testing.assert_allclose(here(HELD_OUT).numpy(), job.predict(HELD_OUT).mean_probability, atol=2e-6)

    def test_a_module_is_put_with_example_rows_and_sampled_by_its_name(self):
        stored = self.fleet.put_model("own", Net(2), example=ROWS[:1], progress=False)
        self.assertEqual([list(entry.shape) for entry in (*stored.signature.inputs, stored.signature.output)], [[4], [2]])
        job = self.fleet.sample(cf.Model(exported="own"), data=(ROWS, numpy.arange(600) % 2), sampler=cf.SGLD(), epochs=1, progress=False)
        by_name = self.fleet.sample(Net(2), data=job.describe().spec.dataset.name, sampler=cf.SGLD(), epochs=1, progress=False)
        self.assertEqual(by_name.describe().num_draws, job.describe().num_draws)
        with tempfile.NamedTemporaryFile(suffix=".pt2") as file:
            batch = {0: torch.export.Dim("batch")}
            torch.export.save(torch.export.export(Net(2).eval(), (torch.zeros(2, 4),), dynamic_shapes=(batch,)), file.name)
            from_file = self.fleet.sample(pathlib.Path(file.name), data=(ROWS, numpy.arange(600) % 2), sampler=cf.SGLD(), epochs=1, progress=False)
        self.assertTrue(from_file.describe().spec.model.exported)
        with self.assertRaisesRegex(cf.errors.InvalidArgument, "shape of its inputs is not known"):
            self.fleet.put_model("other", Net(2))

    def test_a_module_samples_the_rows_of_files(self):
        with tempfile.TemporaryDirectory() as folder:
            rows = pathlib.Path(folder, "rows.npz")
            numpy.savez(rows, x=ROWS[:200], y=numpy.arange(200) % 2)
            job = self.fleet.sample(Net(2), data=cf.Files(rows), sampler=cf.SGLD(), epochs=1, progress=False)
        self.assertEqual(job.describe().num_draws, self.fleet.job(job.id).describe().num_draws)
        self.assertEqual(self.fleet.dataset(job.describe().spec.dataset.name).num_rows, 200)

    def test_chains_start_at_the_weights_of_the_module(self):
        still = {"data": (ROWS, numpy.arange(600) % 2), "sampler": cf.SGLD(), "steps": 1, "learning_rate": 1e-9, "temperature": 0, "progress": False}
        net, trained = Net(2), Net(2)
        self.fleet.put_model("trained", {name: value.bfloat16() for name, value in trained.state_dict().items()}, progress=False)
        for init, wanted, rounding in ((cf.Init(model=True), net, 1e-6), (cf.Init(weights=["trained"]), trained, 2e-2)):
            found = self.fleet.sample(net, init=init, **still).draws().state_dict(chain=0, draw=0)
            for name, value in wanted.named_parameters():
                numpy.testing.assert_allclose(found[name].numpy(), value.detach().numpy(), atol=rounding)

    def test_tied_weights_are_stored_once(self):
        net = Kernels(outputs=2)
        self.fleet.put_model("tied", net.state_dict(), progress=False)
        job = self.fleet.sample(net, data=(ROWS, numpy.arange(600) % 2), sampler=cf.SGD(), steps=1, learning_rate=0.0, batch_size=9,
                                init=cf.Init(weights=["tied"]), progress=False)
        self.assertTrue(torch.equal(job.draws().state_dict(chain=0, draw=0)["again.weight"], net.out.weight))

    def test_networks_trained_elsewhere_are_a_job(self):
        nets, y = [Net(2) for _ in range(3)], numpy.arange(600) % 2
        job = self.fleet.import_networks(nets[0], [net.state_dict() for net in nets], (ROWS, y), name="imported", progress=False)
        members = job.predict(HELD_OUT, members=True).members
        self.assertEqual([len(member.probabilities) for member in members], [1, 1, 1])
        buffers = {name: value for name, value in nets[0].state_dict().items() if name not in dict(nets[0].named_parameters())}
        for net, member in zip(nets, members):
            with torch.no_grad():
                net.load_state_dict({**net.state_dict(), **buffers})
                odds = torch.softmax(net.eval()(torch.from_numpy(job.standardise(HELD_OUT))), dim=1)
            numpy.testing.assert_allclose(member.probabilities[0], odds.numpy(), atol=2e-6)
        self.assertEqual([version.version for version in job.snapshots()], [1])
        body = {"inputs": [{"name": "x", "datatype": "FP32", "shape": list(HELD_OUT.shape), "data": HELD_OUT.ravel().tolist()}]}
        asked = urllib.request.Request(f"http://{self.started.http_address}/v2/models/imported/infer", json.dumps(body).encode())
        with urllib.request.urlopen(asked, timeout=30) as reply:
            outputs = {output["name"]: output["data"] for output in json.load(reply)["outputs"]}
        served = job.predict(HELD_OUT)
        numpy.testing.assert_allclose(numpy.reshape(outputs["mean_probability"], (100, 2)), served.mean_probability, atol=1e-12)
        numpy.testing.assert_allclose(outputs["mutual_information"], served.mutual_information, atol=1e-12)
        other = {**nets[1].state_dict(), "norm.running_mean": torch.ones(16)}
        with self.assertRaisesRegex(cf.errors.InvalidArgument, "another norm.running_mean than the module"):
            self.fleet.import_networks(nets[0], [other], (ROWS, y), name="other", progress=False)
        for chain, net in enumerate(nets):  # the draws are the files, to the bit
            for name, value in net.named_parameters():
                numpy.testing.assert_array_equal(job.draws().get(chain, 0).parameters[name], value.detach().numpy())
        again = self.fleet.import_networks(nets[0], [job.draws().get(chain, 0).parameters for chain in range(3)], (ROWS, y),
                                           name="again", progress=False)
        numpy.testing.assert_array_equal(again.predict(HELD_OUT).mean_probability, job.predict(HELD_OUT).mean_probability)

        self.assertNotIn("other-0", [model.name for model in self.fleet.models()], "a failed import leaves nothing")

    def test_exported_chains_are_imported_to_the_bit(self):
        net, y = Net(2), numpy.arange(600) % 2
        given = {"data": (ROWS, y), "training": True, "progress": False}
        job = self.fleet.sample(net, sampler=cf.EMCMC(eta=4e-4), chains=2, epochs=20, learning_rate=0.1,
                                collect=cf.Collect(last_epochs_of_cycle=10), **given)
        with tempfile.TemporaryDirectory() as folder:
            job.export(folder, "safetensors")
            again = self.fleet.import_networks(net, pathlib.Path(folder), given.pop("data"), name="exported", **given)
        for kind in ("theta", "theta_a"):
            for chain in range(2):
                for index in range(10):
                    draws = [one.draws()[kind].get(chain, index).parameters for one in (job, again)]
                    self.assertEqual(list(draws[0]), list(draws[1]))
                    self.assertIn("norm.running_mean", draws[0])
                    for name in draws[0]:
                        numpy.testing.assert_array_equal(draws[0][name], draws[1][name])
            numpy.testing.assert_array_equal(*[one.predict(HELD_OUT, kinds=[kind]).mean_probability for one in (job, again)])

    def test_batch_norm_in_training_mode_is_imported_with_each_network(self):
        nets = [Net(2) for _ in range(3)]
        for i, net in enumerate(nets):
            net.norm.running_mean.fill_(i)
        job = self.fleet.import_networks(nets[0], [net.state_dict() for net in nets], (ROWS, numpy.arange(600) % 2), name="norms",
                                         training=True, progress=False)
        for chain, net in enumerate(nets):
            numpy.testing.assert_array_equal(job.draws().get(chain, 0).parameters["norm.running_mean"], net.norm.running_mean.numpy())

    def test_networks_of_a_file_are_imported(self):
        folder = pathlib.Path(__file__).parents[1] / "data" / "exported"
        data = numpy.random.default_rng(1).normal(size=(60, 1, 8, 8)).astype(numpy.float32), numpy.arange(60) % 10

        def state_of(path):
            with zipfile.ZipFile(path) as archive:
                weights = f"{path.stem}/data/weights/"
                entries = json.loads(archive.read(weights + "model_weights_config.json"))["config"]
                return {name: numpy.frombuffer(archive.read(weights + entry["path_name"]), "<f4").reshape([size["as_int"] for size in entry["tensor_meta"]["sizes"]])
                        for name, entry in entries.items() if not name.endswith("num_batches_tracked")}

        state = state_of(folder / "train_norm.pt2")
        other = {**state, "1.running_mean": numpy.arange(4, dtype=numpy.float32)}
        job = self.fleet.import_networks(folder / "train_norm.pt2", [state, other], data, name="of-file", progress=False)
        kept = [job.draws().get(chain, 0).parameters["1.running_mean"] for chain in range(2)]
        numpy.testing.assert_array_equal(kept, [state["1.running_mean"], numpy.arange(4)])
        before = [model.name for model in self.fleet.models()]
        evaluating = folder / "conv.pt2"
        state = state_of(evaluating)
        other = {**state, "1.running_mean": state["1.running_mean"] + 1}
        with self.assertRaisesRegex(cf.errors.InvalidArgument, "another 1.running_mean than the module"):
            self.fleet.import_networks(evaluating, [state, other], data, name="evaluating", progress=False)
        self.assertEqual([model.name for model in self.fleet.models()], before)

    def test_many_networks_are_chains_of_several_draws(self):
        states = [Net(2).state_dict() for _ in range(2)]
        states = [{name: value + i if value.is_floating_point() and "running" not in name else value for name, value in states[0].items()} for i in range(300)]
        net = Net(2)
        net.load_state_dict(states[0])
        job = self.fleet.import_networks(net, states, (ROWS, numpy.arange(600) % 2), name="many", progress=False)
        self.assertEqual(len(job.draws()), 300)
        numpy.testing.assert_array_equal(job.draws().get(149, 1).parameters["out.bias"], states[299]["out.bias"].numpy())

    def test_a_part_of_a_module_is_sampled_and_averaged_here_and_from_files(self):
        net = Net(2)
        job = self.fleet.sample(net, data=(ROWS, numpy.arange(600) % 2), sampler=cf.SGLD(), epochs=4, learning_rate=0.1,
                                sample=["out.*"], init=cf.Init(model=True), progress=False)
        self.assertEqual(sorted(job.draws().get(0, 0).parameters), ["out.bias", "out.weight"])
        state = job.draws().state_dict(chain=0, draw=0)
        self.assertTrue(torch.equal(state["hidden.weight"], net.hidden.weight))
        self.assertFalse(torch.equal(state["out.weight"], net.out.weight))
        served, average = job.predict(HELD_OUT).mean_probability, job.to_torch()
        numpy.testing.assert_allclose(average(HELD_OUT).numpy(), served, atol=2e-6)
        with tempfile.TemporaryDirectory() as folder:
            average.save(pathlib.Path(folder))
            loaded = type(average).load(pathlib.Path(folder))
        numpy.testing.assert_allclose(loaded(HELD_OUT).numpy(), served, atol=2e-6)

    def test_classes_are_those_of_the_server_to_rounding(self):
        net, x = Net(2), torch.from_numpy(ROWS)
        net.norm.running_mean.fill_(0.25)
        job = self.fleet.sample(net, data=(x, (x[:, 0] > 3).long()), sampler=cf.EMCMC(eta=4e-4), chains=2, epochs=40, learning_rate=0.1,
                                progress=False)
        made = job.predict(HELD_OUT)
        self.assertGreater((made.predicted_class == (HELD_OUT[:, 0] > 3)).mean(), 0.8)
        for kinds in ((), "theta", "theta_a"):
            average, served = job.to_torch(kinds=kinds), job.predict(HELD_OUT, kinds=kinds)
            numpy.testing.assert_allclose(average(HELD_OUT).numpy(), served.mean_probability, atol=2e-6)
            self.assertEqual(average.draws_used, served.draws_used)
        rows = torch.from_numpy(HELD_OUT[:5]).requires_grad_()
        slopes = torch.stack([torch.autograd.grad(average(rows)[:, k].sum(), rows)[0] for k in range(2)], dim=1)
        served = job.predict(HELD_OUT[:5], kinds="theta_a", gradients=True, members=True)
        numpy.testing.assert_allclose(served.mean_gradient, slopes.numpy(), atol=2e-6)
        each = numpy.concatenate([member.gradients for member in served.members])
        numpy.testing.assert_allclose(each.mean(0), slopes.numpy(), atol=2e-6)
        found_again = self.fleet.job(job.id).to_torch(net)
        numpy.testing.assert_allclose(found_again(torch.from_numpy(HELD_OUT)).numpy(), made.mean_probability, atol=2e-6)

        net.norm.running_mean.fill_(99)  # the user goes on with the module
        net.load_state_dict(job.draws()["theta"].state_dict(chain=0, draw=3))
        with torch.no_grad():
            odds = torch.softmax(net.eval()(torch.from_numpy(job.standardise(HELD_OUT))), dim=1)
        member = next(found for found in job.predict(HELD_OUT, members=True).members if (found.chain, found.kind) == (0, "theta"))
        numpy.testing.assert_allclose(odds.numpy(), member.probabilities[3], atol=2e-6)

    def test_numbers_are_those_of_the_server_to_rounding(self):
        y = 2 * ROWS[:, 0] + 50
        job = self.fleet.sample(torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.Tanh(), torch.nn.Linear(8, 1)), data=(ROWS, y),
                                sampler=cf.SGLD(), chains=2, epochs=20, progress=False)
        made = job.predict(HELD_OUT)
        average = job.to_torch()
        numpy.testing.assert_allclose(average(HELD_OUT).numpy(), made.mean, rtol=2e-6)
        rows = torch.from_numpy(HELD_OUT[:5]).requires_grad_()
        slopes, = torch.autograd.grad(average(rows).sum(), rows)
        numpy.testing.assert_allclose(job.predict(HELD_OUT[:5], gradients=True).mean_gradient, slopes.numpy(), rtol=1e-4, atol=1e-5)

    def test_a_module_that_the_server_refuses_leaves_no_data_behind(self):
        class Noisy(Net):  # the answers are the same
            def forward(self, x):
                return self.out(self.hidden(x)) + 0 * torch.rand_like(x[:, :1])

        before = [dataset.name for dataset in self.fleet.datasets()]
        with self.assertRaisesRegex(cf.errors.InvalidArgument, "rand_like"):
            self.fleet.sample(Noisy(2), data=(ROWS[2:], numpy.arange(598) % 2), sampler=cf.SGLD(), epochs=1, progress=False)
        self.assertEqual([dataset.name for dataset in self.fleet.datasets()], before)

    def test_a_module_that_mixes_examples_uploads_nothing(self):
        class Mixing(Net):
            def forward(self, x):
                return self.out(self.hidden(x - x.mean(dim=0)))

        self.fleet.put_dataset("stored", ROWS[:50], numpy.arange(50) % 2, progress=False)
        before = [model.name for model in self.fleet.models()], [dataset.name for dataset in self.fleet.datasets()]
        for data in ((ROWS[1:], numpy.arange(599) % 2), "stored"):
            with self.assertRaisesRegex(cf.errors.InvalidArgument, "mixes examples") as caught:
                self.fleet.sample(Mixing(2), data=data, sampler=cf.SGLD(), epochs=1)
            self.assertEqual(caught.exception.reason, "INVALID_MODEL")
        with self.assertRaisesRegex(cf.errors.InvalidArgument, r"float32 \[3, 2\] is needed"):
            self.fleet.sample(Net(3), data="stored", sampler=cf.SGLD(), epochs=1)
        with self.assertRaises(cf.reasons.DatasetNotFound):
            self.fleet.sample(Net(2), data="unknown", sampler=cf.SGLD(), epochs=1)
        with tempfile.TemporaryDirectory() as folder:
            rows, network = pathlib.Path(folder, "rows.npz"), pathlib.Path(folder, "net.pt2")
            numpy.savez(rows, x=ROWS[:40], y=numpy.arange(40) % 2)
            torch.export.save(torch.export.export(Mixing(2).eval(), (torch.zeros(2, 4),), dynamic_shapes=({0: torch.export.Dim("batch")},)), network)
            for wrong in (lambda: self.fleet.sample(Mixing(2), data=cf.Files(rows), sampler=cf.SGLD(), epochs=1),
                          lambda: self.fleet.sample(network, data="stored", sampler=cf.SGLD(), epochs=1),
                          lambda: self.fleet.put_model("mixing", network, example=ROWS[:2]),
                          lambda: self.fleet.put_model("mixing", Mixing(2), example=ROWS[:2])):
                with self.assertRaisesRegex(cf.errors.InvalidArgument, "mixes examples"):
                    wrong()
        self.assertEqual(([model.name for model in self.fleet.models()], [dataset.name for dataset in self.fleet.datasets()]), before)

    def test_a_server_that_takes_no_torchscript_gets_no_data_either(self):
        before = self.fleet.models(), self.fleet.datasets()
        with self.assertRaises(cf.errors.FailedPrecondition) as caught, self.assertWarns(DeprecationWarning):
            self.fleet.sample(torch.jit.script(Net(2)), data=(ROWS[3:], numpy.arange(597) % 2), sampler=cf.SGLD(), epochs=1, progress=False)
        self.assertEqual(caught.exception.reason, "MODULES_OFF")
        self.assertEqual((self.fleet.models(), self.fleet.datasets()), before)


class Script(ConnectedFleet):
    UP = ("--allow-modules",)

    def test_a_script_module_is_still_sampled(self):
        net = torch.jit.script(Net(2))
        job = self.fleet.sample(net, data=(ROWS, numpy.arange(600) % 2), sampler=cf.SGLD(), epochs=1, progress=False)
        self.assertTrue(job.describe().spec.model.torchscript)
        numpy.testing.assert_allclose(job.to_torch()(HELD_OUT).numpy(), job.predict(HELD_OUT).mean_probability, atol=2e-6)


if __name__ == "__main__":
    unittest.main()
