"""A module of the real torch from the user's program to predictions, at the server and on the user's own device."""
import unittest

import fleet as fleets
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


class Torch(ConnectedFleet):
    UP = ("--allow-modules",)

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
        numpy.testing.assert_allclose(job.to_torch()(HELD_OUT).numpy(), made.mean, rtol=2e-6)

    def test_a_module_that_the_server_refuses_leaves_no_data_behind(self):
        class Saving(Net):
            def forward(self, x):
                if x.shape[0] > 1_000_000:
                    torch.save(x, "x.pt")
                return self.out(self.hidden(x))

        before = [dataset.name for dataset in self.fleet.datasets()]
        with self.assertRaises(cf.errors.InvalidArgument):
            self.fleet.sample(Saving(2), data=(ROWS[2:], numpy.arange(598) % 2), sampler=cf.SGLD(), epochs=1, progress=False)
        self.assertEqual([dataset.name for dataset in self.fleet.datasets()], before)

    def test_a_module_that_mixes_examples_uploads_nothing(self):
        class Mixing(Net):
            def forward(self, x):
                return self.out(self.hidden(x - x.mean(dim=0)))

        before = [model.name for model in self.fleet.models()], [dataset.name for dataset in self.fleet.datasets()]
        with self.assertRaisesRegex(cf.errors.InvalidArgument, "mixes examples") as caught:
            self.fleet.sample(Mixing(2), data=(ROWS[1:], numpy.arange(599) % 2), sampler=cf.SGLD(), epochs=1)
        self.assertEqual(caught.exception.reason, "INVALID_MODEL")
        self.assertEqual(([model.name for model in self.fleet.models()], [dataset.name for dataset in self.fleet.datasets()]), before)


class Off(unittest.TestCase):
    def test_a_server_that_takes_no_modules_gets_no_data_either(self):
        started = fleets.Fleet(workers=1)
        self.addCleanup(started.close)
        started.up()
        with cf.connect(started.address) as fleet:
            with self.assertRaises(cf.errors.FailedPrecondition) as caught:
                fleet.sample(Net(2), data=(ROWS, numpy.arange(600) % 2), sampler=cf.SGLD(), epochs=1, progress=False)
            self.assertEqual(caught.exception.reason, "MODULES_OFF")
            self.assertEqual((fleet.datasets(), fleet.models()), ([], []))


if __name__ == "__main__":
    unittest.main()
