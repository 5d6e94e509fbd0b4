"""The Python package as a user has it, against a real server and a real worker."""
import contextlib
import csv
import doctest
import io
import json
import os
import re
import socket
import tempfile
import unittest
import unittest.mock

import fleet as fleets
import python_package  # noqa: F401  first: it says where the next ones are
import chainfleet as cf
import numpy
from chainfleet import local_fleet
from connected_fleet import ConnectedFleet


class Package(ConnectedFleet):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        source = numpy.random.default_rng(7)
        cls.x = source.normal(size=(600, 4)).astype(numpy.float32)
        cls.y = (cls.x[:, 0] + cls.x[:, 1] > 0).astype(int)
        cls.job = cls.fleet.sample(cf.Model(builtin="mlp", hidden=[16]), data=(cls.x[:500], cls.y[:500]), sampler=cf.EMCMC(eta=4e-4),
                                   chains=2, epochs=20, learning_rate=0.1, seed=3, wait=False)
        cls.states = list(cls.job.watch(timeout=120))
        cls.job.wait(timeout=60)

    def test_a_watch_ends_with_all_steps_of_both_chains(self):
        last = self.states[-1]
        self.assertEqual((self.job.state(), last.state, last.steps_done), ("SUCCEEDED", cf.v1.jobs_pb2.Job.SUCCEEDED, last.steps_total))
        self.assertEqual([len(chains) for chains in (last.chains, self.job.describe().chains)], [2, 2])
        steps = [state.steps_done for state in self.states]
        self.assertEqual(steps, sorted(steps))

    def test_predictions_are_arrays_and_better_than_chance(self):
        made = self.job.predict(self.x[500:])
        self.assertEqual((made.mean_probability.shape, made.mutual_information.shape), ((100, 2), (100,)))
        numpy.testing.assert_allclose(made.mean_probability.sum(axis=1), 1, atol=1e-6)
        self.assertGreater((made.predicted_class == self.y[500:]).mean(), 0.9)
        self.assertEqual(made.error("mutual_information").shape, (100,))
        self.assertEqual(made.draws_used, made.draws_in_version)

    def test_draws_are_the_network_that_predicts(self):
        """The average over draws, computed here, is what the server says of the same draws."""
        draws, total, weight = self.job.draws(), 0, 0
        self.assertEqual((draws.chains, draws.kinds, len(draws)), ((0, 1), ("theta", "theta_a"), 2 * 10))
        seen = self.job.standardise(self.x[500:])
        for draw in draws:
            layers = list(draw.parameters.values())
            hidden = numpy.maximum(seen @ layers[0].T + layers[1], 0)
            logits = hidden @ layers[2].T + layers[3]
            odds = numpy.exp(logits - logits.max(axis=1, keepdims=True))
            total = total + draw.weight * odds / odds.sum(axis=1, keepdims=True)
            weight += draw.weight
        made = self.job.predict(self.x[500:], kinds="theta")
        numpy.testing.assert_allclose(made.mean_probability, total / weight, atol=1e-5)

    def test_traces_versions_aliases_and_workers(self):
        self.assertEqual([trace.chain for trace in self.job.traces("energy")], [0, 1])
        version = self.job.snapshot().version
        self.assertIn(version, [snapshot.version for snapshot in self.job.snapshots()])
        self.assertEqual(self.fleet.set_alias("best", self.job, version), self.fleet.alias("best"))
        self.assertEqual([(alias.name, alias.job_id) for alias in self.fleet.aliases()], [("best", self.job.id)])
        for name in ("best", self.job.id):
            numpy.testing.assert_array_equal(self.fleet.predict(name, self.x[:9]).mean_probability, self.job.predict(self.x[:9]).mean_probability)
        self.fleet.delete_alias("best")
        self.assertEqual([self.fleet.worker(worker.id).id for worker in self.fleet.workers()], ["worker-0"])
        for find, reason in ((self.fleet.dataset, "DATASET_NOT_FOUND"), (self.fleet.model, "MODEL_NOT_FOUND"),
                             (self.fleet.alias, "ALIAS_NOT_FOUND"), (self.fleet.worker, "WORKER_NOT_FOUND")):
            with self.assertRaises(cf.errors.NotFound) as caught:
                find("nobody")
            self.assertEqual(caught.exception.reason, reason)
        name = self.job.describe().spec.dataset.name
        self.assertEqual(self.fleet.dataset(name).num_rows, 500)
        self.assertEqual(self.fleet.job().id, self.job.id)
        self.assertIn(500, [dataset.num_rows for dataset in self.fleet.datasets()])

    def test_an_evaluation_scores_held_out_rows(self):
        made = self.job.evaluate((self.x[500:], self.y[500:]))
        self.assertEqual(self.job.evaluations()[0].state, cf.v1.predict_pb2.EvaluationOperation.SUCCEEDED)
        self.assertGreater(max(score.accuracy for score in made.scores), 0.9)
        self.assertEqual(made.draws_used, 20)
        newest = self.job.evaluate((self.x[500:], self.y[500:]), newest=1, kinds="theta", ece_bins=5)
        self.assertEqual((newest.draws_used, newest.score("theta").num_draws), (2, 2))
        with self.assertRaisesRegex(TypeError, "no argument 'ece_bin'"):
            self.job.evaluate((self.x[500:], self.y[500:]), ece_bin=5)

    def test_predictions_use_the_weights_and_the_thresholds_of_an_evaluation(self):
        held_out, x = (self.x[450:500], self.y[450:500]), self.x[500:]
        made = self.job.evaluate((x, self.y[500:]), calibration=held_out, stacking=held_out)
        self.assertAlmostEqual(sum(chain.stacking for chain in made.weights), 1)
        sets = self.job.predict(x, conformal=made.id, level=0.8).prediction_set
        self.assertEqual((sets.dtype, sets.shape[0]), (numpy.bool_, len(x)))
        covered = sets[numpy.arange(len(x)), self.y[500:]].mean()
        self.assertAlmostEqual(covered, next(row.coverage for row in made.conformal if row.level == 0.8))
        weighted = self.job.predict(x, weights=made.id, pseudo_bma=True)
        chains = [self.job.predict(x, chains=[chain.chain.index]).mean_probability for chain in made.weights]
        expected = sum(chain.pseudo_bma * mean for chain, mean in zip(made.weights, chains))
        numpy.testing.assert_allclose(weighted.mean_probability, expected, rtol=1e-9)
        self.assertIsNone(weighted.prediction_set)

    def test_an_evaluation_or_a_report_that_is_refused_leaves_no_data_behind(self):
        before, data = self.fleet.datasets(), (self.x[510:], self.y[510:])
        wrong = ({"ood": (self.x[520:], [])}, {"ood": "unknown"}, {"kinds": "thetaa"}, {"ece_bins": -1}, {"version": 99},
                 {"calibration": (self.x[520:, 1:], self.y[520:])})
        calls = [lambda given=given: self.job.evaluate(data, progress=False, **given) for given in wrong]
        for call in (*calls, lambda: self.job.report("/nowhere/page.html", data, point="x")):
            with self.assertRaises(cf.ChainfleetError):
                call()
            self.assertEqual(self.fleet.datasets(), before)

    def test_programs_write_the_report_and_the_export_of_the_same_job(self):
        with tempfile.TemporaryDirectory() as folder:
            page, exported = os.path.join(folder, "report.html"), os.path.join(folder, "draws.npz")
            self.job.report(page, (self.x[500:], self.y[500:]), class_names=("low", "<high>"), flatness=True)
            with open(page, encoding="utf-8") as file:
                self.assertIn("low", file.read())
            self.job.export(exported, chains=[1])
            arrays, stacked = numpy.load(exported), self.job.draws().of_chains([1]).stack()
            numpy.testing.assert_array_equal(arrays["theta/fc1.weight"], stacked["fc1.weight"])

    def test_programs_write_the_traces_that_the_package_reads(self):
        with tempfile.TemporaryDirectory() as folder:
            files = [os.path.join(folder, name) for name in ("traces.csv", "traces.npz")]
            for file in files:
                self.job.export(file, traces=True)
            with open(files[0], encoding="utf-8") as file:
                written = file.read()
            columns = dict(numpy.load(files[1]))
        self.assertEqual(written, self.fleet.run_program("get", "traces", self.job.id, "-o", "csv"))
        rows = list(csv.DictReader(io.StringIO(written)))
        with self.assertRaises(cf.reasons.NotTraced) as raised:
            self.job.traces("none")
        quantities = set(str(raised.exception).splitlines()[0].partition("the traced quantities are ")[2].split(", "))
        self.assertIn("anchor_distance", quantities)
        self.assertEqual((set(columns), list(rows[0])[:3]), (quantities | {"chain", "point", "step"}, ["chain", "point", "step"]))
        for quantity in quantities:
            for trace in self.job.traces(quantity):
                of_chain = columns["chain"] == trace.chain
                numpy.testing.assert_array_equal(columns["step"][of_chain], trace.steps)
                numpy.testing.assert_array_equal(columns[quantity][of_chain], trace.values)
                self.assertEqual([float(row[quantity]) for row in rows if row["chain"] == str(trace.chain)], trace.values.tolist())

    def test_data_that_looks_wrong_is_stored_with_a_warning(self):
        images = numpy.zeros((4, 8, 8, 3), numpy.uint8)
        with self.assertWarnsRegex(UserWarning, "data set last: .*channels come last"):
            self.fleet.put_dataset("last", images, numpy.array([0, 2, 0, 2]), progress=False)
        [stored] = [dataset for dataset in self.fleet.datasets() if dataset.name == "last"]
        self.assertEqual(len(stored.warnings), 2)

    def test_class_names_go_from_the_data_set_to_every_answer(self):
        names, renamed = ("no", 'a "yes", or so'), ("lower", "upper")
        with self.assertRaisesRegex(cf.errors.InvalidArgument, "class_names: there are 3 names, and 2 classes"):
            self.fleet.put_dataset("named", self.x[:500], self.y[:500], class_names=("a", "b", "c"), progress=False)
        self.fleet.put_dataset("named", self.x[:500], self.y[:500], class_names=names, progress=False)
        job = self.fleet.sample(cf.Model(builtin="mlp", hidden=[4]), data="named", sampler=cf.SGLD(), epochs=2, seed=1, progress=False)
        made = job.predict(self.x[500:])
        self.assertEqual(made.class_names, names)
        self.assertIn("a &quot;yes&quot;, or so", made._repr_html_())
        self.assertIn("mean_probability_no", made.to_pandas())
        with tempfile.TemporaryDirectory() as folder:
            rows, table, arrays, page = (os.path.join(folder, name) for name in ("x.npy", "p.csv", "p.npz", "report.html"))
            numpy.save(rows, self.x[500:])
            shown = self.fleet.run_program("predict", job.id, "--input", rows).splitlines()
            self.fleet.run_program("predict", job.id, "--input", rows, "--output", table)
            self.fleet.run_program("predict", job.id, "--input", rows, "--output", arrays)
            self.assertEqual(tuple(numpy.load(arrays)["class_names"].tolist()), names)
            self.assertEqual(tuple(json.loads(self.fleet.run_program("predict", job.id, "--input", rows, "-o", "json"))["class_names"]), names)
            job.report(page, (self.x[500:], self.y[500:]))
            with open(table, encoding="utf-8", newline="") as file:
                header, first = list(csv.reader(file))[:2]
            with open(page, encoding="utf-8") as file:
                self.assertIn(r'a \"yes\", or so', file.read())
        self.assertTrue(all(names[made.predicted_class[row]] in line for row, line in enumerate(shown[1:11])), shown)
        for k, name in enumerate(names):
            self.assertEqual(float(first[header.index("mean_probability_" + name)]), made.mean_probability[0, k])
        self.fleet.put_dataset("named", self.x[:500], self.y[:500], class_names=renamed, progress=False)
        stored = {dataset.name: tuple(dataset.class_names) for dataset in self.fleet.datasets()}
        self.assertEqual((stored["named"], job.predict(self.x[500:]).class_names), (renamed, names))
        again = self.fleet.sample(cf.Model(builtin="mlp", hidden=[4]), data="named", sampler=cf.SGLD(), epochs=2, seed=1, progress=False)
        self.assertEqual(tuple(again.describe().inputs.class_names), renamed)
        for made_here in (job, again):  # another test asks for the newest job
            made_here.delete()

    def test_draws_of_one_point_of_a_sweep(self):
        job = self.fleet.sample(cf.potentials.Gaussian(dimension=2), sampler=cf.SGLD(), step_size=0.1, steps=20, chains=2,
                                collect=cf.Collect(every_steps=10), sweep=cf.Sweep(temperature=[1.0, 2.0]), progress=False)
        self.assertEqual((job.draws().chains, job.draws("temperature=2").chains), ((0, 1, 2, 3), (2, 3)))
        with self.assertRaises(cf.reasons.PointRequired):
            job.to_torch(object())
        job.delete()

    def test_a_job_is_paused_resumed_cancelled_and_deleted(self):
        job = self.fleet.sample("mlp", data=(self.x, self.y), sampler=cf.SGLD(), steps=10_000_000, collect=cf.Collect(every_steps=1000),
                                wait=False, progress=False)
        for verb, state in ((job.pause, "PAUSED"), (job.resume, "RUNNING"), (job.cancel, "CANCELLED")):
            verb()
            self.assertIn(state, [cf.v1.jobs_pb2.Job.State.Name(found.state) for found in self.until(job, state)])
        with self.assertRaises(cf.errors.FailedPrecondition):
            job.resume()
        job.delete()
        self.assertNotIn(job.id, [found.id for found in self.fleet.jobs() if found.state != cf.v1.jobs_pb2.Job.DELETING])

    @staticmethod
    def until(job, state):
        for found in job.watch(timeout=60):
            yield found
            if cf.v1.jobs_pb2.Job.State.Name(found.state) == state:
                return

    def test_a_wrong_shape_is_refused_before_anything_is_sent(self):
        before = [dataset.name for dataset in self.fleet.datasets()]
        with self.assertRaisesRegex(cf.errors.InvalidArgument, r"\[100, 3\].*\['n', 4\]"):
            self.job.predict(self.x[500:, :3])
        with self.assertRaisesRegex(cf.errors.InvalidArgument, "600 rows, y has 599"):
            self.fleet.sample("mlp", data=(self.x, self.y[1:]), sampler=cf.SGLD(), epochs=1)
        self.assertEqual([dataset.name for dataset in self.fleet.datasets()], before)

    def test_an_unknown_job_has_a_class_and_a_request_id(self):
        with self.assertRaisesRegex(cf.reasons.JobNotFound, "nobody") as caught:
            self.fleet.job("nobody")
        self.assertTrue(caught.exception.request_id)

    def test_wrong_fields_are_named_and_nothing_is_stored(self):
        before = len(self.fleet.jobs()), len(self.fleet.datasets())
        with self.assertRaises(cf.errors.InvalidArgument) as caught:
            self.fleet.sample("mlp", data=(self.x[:123], self.y[:123]), sampler=cf.EMCMC(eta=-1), epochs=1, temperature=-1)
        paths = {violation.path for violation in caught.exception.violations}
        self.assertEqual(paths, {"sampler.emcmc.eta", "temperature"})
        self.assertEqual((len(self.fleet.jobs()), len(self.fleet.datasets())), before)

    def test_no_server_is_an_error_with_a_remedy(self):
        with socket.socket() as taken:  # bound, but nothing listens
            taken.bind(("127.0.0.1", 0))
            address = f"127.0.0.1:{taken.getsockname()[1]}"
            with self.assertRaisesRegex(cf.errors.Unavailable, f"no chainfleet server answers at {address}") as caught:
                cf.connect(address, timeout=1)
        self.assertIn("chainfleet up", caught.exception.hint)


class Guide(unittest.TestCase):
    """Guides whose Python blocks run in order, as typed, and print what is shown."""

    def follow(self, page, least):
        folder = self.enterContext(tempfile.TemporaryDirectory(prefix="chainfleet-guide-"))
        self.enterContext(contextlib.chdir(folder))
        os.symlink(os.path.join(python_package.ROOT, "deploy"), "deploy")  # as in a clone
        self.enterContext(unittest.mock.patch.dict(os.environ, {"XDG_DATA_HOME": folder}))
        self.enterContext(unittest.mock.patch.object(local_fleet, "_is_free", lambda address: False))  # others use 7400
        self.addCleanup(cf.down)
        with open(os.path.join(python_package.ROOT, page), encoding="utf-8") as file:
            session = file.read()
        flags = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
        test = doctest.DocTestParser().get_doctest(session, {}, page, page, 0)
        self.assertGreater(len(test.examples), least)
        said = io.StringIO()
        result = doctest.DocTestRunner(optionflags=flags, verbose=False).run(test, out=said.write)
        self.assertEqual(result.failed, 0, said.getvalue())

    def test_the_tutorial(self):
        from real_torch import torch  # noqa: F401  one block imports it

        self.follow("docs/guides/python.md", 40)
        with open(os.path.join(python_package.ROOT, "docs/guides/first_job.md"), encoding="utf-8") as page, open("first.yaml", "w") as file:
            file.write(re.search(r"<<'EOF'\n(.*?)^EOF$", page.read(), re.M | re.S)[1])
        fleet = cf.local(progress=False)
        twins = fleet.job("first").describe().spec, fleet.submit_file("first.yaml").describe().spec
        self.assertEqual(*twins, "the guides of the command line and of Python run the same job")

    def test_a_lora_posterior(self):
        from real_torch import torch  # noqa: F401  the guide imports it

        self.follow("docs/guides/lora.md", 30)

    def test_coming_from_stan(self):
        self.follow("docs/guides/from_stan.md", 12)


if __name__ == "__main__":
    unittest.main()
