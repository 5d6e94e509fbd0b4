"""Jobs in MLflow's file store, and models of them that predict through a real server and a real worker."""
import json
import os
import shutil
import tempfile
import unittest
import unittest.mock

import python_package  # noqa: F401  first: it says where the next ones are
import chainfleet as cf
import numpy
import pandas
from connected_fleet import ConnectedFleet
from real_torch import torch

os.environ["MLFLOW_ALLOW_FILE_STORE"] = "true"
os.environ["MLFLOW_DISABLE_TELEMETRY"] = "true"
import mlflow  # noqa: E402
import chainfleet.mlflow  # noqa: E402
from chainfleet.v1 import jobs_pb2  # noqa: E402


class Metrics(unittest.TestCase):
    def test_nested_rhat_is_logged_where_chains_share_their_starts(self):
        job = jobs_pb2.Job()
        for nested, descriptive in ((1.02, False), (1.05, False), (9, True)):
            job.diagnostics.add(rhat=1.5, nested_rhat=nested, descriptive=descriptive)
        self.assertEqual(chainfleet.mlflow._metrics(job)["nested_rhat"], 1.05)
        for found in job.diagnostics:
            found.ClearField("nested_rhat")
        self.assertEqual(chainfleet.mlflow._metrics(job), {"draws": 0, "rhat": 1.5, "ess": 0})


class Mlflow(ConnectedFleet):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.mkdtemp(prefix="chainfleet-mlflow-")
        cls.addClassCleanup(shutil.rmtree, cls.folder)
        mlflow.set_tracking_uri(f"file://{cls.folder}/runs")
        super().setUpClass()
        environment = unittest.mock.patch.dict(os.environ)
        environment.start()
        cls.addClassCleanup(environment.stop)
        os.environ.pop("CHAINFLEET_ADDRESS", None)
        source = numpy.random.default_rng(7)
        cls.x = source.normal(size=(500, 3)).astype(numpy.float32)
        cls.y = (cls.x[:, 0] > 0).astype(int)

    def sample(self, **more):
        options = {"sampler": cf.SGLD(), "chains": 2, "epochs": 100, "learning_rate": 0.1, "progress": False, "wait": False, **more}
        return self.fleet.sample(options.pop("model", cf.Model(builtin="mlp", hidden=[8])), options.pop("data", (self.x, self.y)), **options)

    def load(self, uri):
        """Its connection ends with the test."""
        model = mlflow.pyfunc.load_model(uri)
        self.addCleanup(model._model_impl.job._fleet.close)
        return model

    def history(self, run, metric):
        found = mlflow.MlflowClient().get_metric_history(run, metric)
        return sorted((one.step, one.value) for one in found if one.step)

    def test_a_run_has_settings_metrics_while_chains_run_and_a_model_that_predicts_as_the_job(self):
        job = self.sample(epochs=None, steps=100_000_000, collect=cf.Collect(every_steps=400), trace_every=20)
        log_metrics = mlflow.log_metrics

        def end_once_all_were_logged(metrics, step):
            log_metrics(metrics, step=step)
            if metrics["draws"] and "rhat" in metrics:
                job.abort()

        with unittest.mock.patch.object(mlflow, "log_metrics", end_once_all_were_logged):
            info = chainfleet.mlflow.log_job(job, interval=0.1)
        run = mlflow.MlflowClient().search_runs(["0"], f"tags.`chainfleet.job` = '{job.id}'")[0]
        self.assertEqual((run.info.status, run.info.run_name), ("FINISHED", job.id))
        settings = {name: run.data.params[name] for name in ("model.hidden", "sampler.sgld", "learning_rate.constant", "chains")}
        self.assertEqual(settings, {"model.hidden": "[8]", "sampler.sgld": "{}", "learning_rate.constant": "0.1", "chains": "2"})
        self.assertEqual(mlflow.artifacts.load_dict(f"runs:/{run.info.run_id}/job.json")["id"], job.id)
        draws = self.history(run.info.run_id, "draws")
        ended = job.describe()
        self.assertEqual(draws[-1], (ended.steps_done, ended.num_draws))
        self.assertEqual(draws, sorted(draws, key=lambda one: one[1]))
        for metric in ("energy/chain_0", "step_size/chain_1"):
            self.assertGreater(len(self.history(run.info.run_id, metric)), 1)
        self.assertLess(abs(run.data.metrics["rhat"] - max(d.rhat for d in ended.diagnostics if not d.descriptive)), 1e-9)
        model = self.load(info.model_uri)
        expected = job.predict(self.x[:5])
        for rows in (self.x[:5], pandas.DataFrame(self.x[:5].astype(float), columns=list("abc"))):
            made = model.predict(rows)
            numpy.testing.assert_array_equal(made[["probability_0", "probability_1"]], expected.mean_probability)
            numpy.testing.assert_array_equal(made["predicted_class"], expected.predicted_class)
            numpy.testing.assert_array_equal(made["mutual_information"], expected.mutual_information)
        with self.assertRaisesRegex(mlflow.exceptions.MlflowException, "schema"):
            model.predict(self.x[:5, :2])

    def test_a_saved_model_names_a_version_and_finds_a_server_that_has_moved(self):
        job = self.sample(collect=cf.Collect(every_steps=10)).wait(progress=False)
        path = os.path.join(self.folder, "saved")
        chainfleet.mlflow.save_model(job, path, address="127.0.0.1:1")
        with open(os.path.join(path, "data", "chainfleet.json"), encoding="utf-8") as file:
            known = json.load(file)
        self.assertEqual(known, {"job": job.id, "version": job.snapshot().version, "address": "127.0.0.1:1"})
        with unittest.mock.patch.dict(os.environ, {"CHAINFLEET_ADDRESS": self.started.address}):
            made = self.load(path).predict(self.x[:2])
        numpy.testing.assert_array_equal(made["probability_1"], job.predict(self.x[:2]).mean_probability[:, 1])

    def test_an_exported_model_predicts_without_a_server_as_the_server_does(self):
        module = torch.nn.Sequential(torch.nn.Linear(3, 8), torch.nn.Tanh(), torch.nn.Linear(8, 2))
        job = self.sample(model=module, data=(10 + 3 * self.x, self.y), epochs=20).wait(progress=False)
        path = os.path.join(self.folder, "exported")
        chainfleet.mlflow.save_model(job, path, draws="export")
        rows, expected = 10 + 3 * self.x[:50], job.predict(10 + 3 * self.x[:50])
        self.assertGreater(expected.draws_used, 2)
        nowhere = {"CHAINFLEET_ADDRESS": "127.0.0.1:1"}
        with unittest.mock.patch.dict(os.environ, nowhere), unittest.mock.patch.object(chainfleet.mlflow, "connect", None):
            model = mlflow.pyfunc.load_model(path)
            made = model.predict(pandas.DataFrame(rows.astype(float)))
            average = model.get_raw_model()
            tensor = average(torch.from_numpy(rows))
        numpy.testing.assert_allclose(made[["probability_0", "probability_1"]], expected.mean_probability, atol=1e-5)
        numpy.testing.assert_array_equal(made["predicted_class"], expected.predicted_class)
        numpy.testing.assert_allclose(tensor.numpy(), expected.mean_probability, atol=1e-5)
        self.assertEqual(average.draws_used, expected.draws_used)
        with self.assertRaisesRegex(mlflow.exceptions.MlflowException, "schema"):
            model.predict(rows[:, :2])

    def test_options_that_cannot_be_exported_are_refused_with_a_remedy(self):
        job = self.sample(epochs=2).wait(progress=False)
        for words, options in (("torch module of job", {"draws": "export"}), ("does not take", {"draws": "files"}),
                               ("does not take", {"draws": "export", "version": 1}), ("does not take", {"kinds": "theta"})):
            with self.assertRaisesRegex(cf.errors.InvalidArgument, words) as caught:
                chainfleet.mlflow.save_model(job, os.path.join(self.folder, "refused"), **options)
            self.assertTrue(caught.exception.hint)
            self.assertFalse(os.path.exists(os.path.join(self.folder, "refused")))

    def test_classes_have_the_names_of_the_data_set(self):
        self.fleet.put_dataset("named", self.x, self.y, class_names=("low", "high"), progress=False)
        job = self.sample(model=torch.nn.Linear(3, 2), data="named", epochs=20).wait(progress=False)
        expected, named = job.predict(self.x[:9]), numpy.array(["low", "high"])
        for draws in ("server", "export"):
            path = os.path.join(self.folder, f"named-{draws}")
            chainfleet.mlflow.save_model(job, path, draws=draws)
            model = self.load(path) if draws == "server" else mlflow.pyfunc.load_model(path)
            made = model.predict(self.x[:9])
            self.assertEqual(made["predicted_class"].tolist(), named[expected.predicted_class].tolist())
            numpy.testing.assert_allclose(made[["probability_low", "probability_high"]], expected.mean_probability, atol=1e-5)

    def test_images_and_numbers(self):
        images = numpy.random.default_rng(1).integers(0, 256, (60, 1, 4, 4), dtype=numpy.uint8)
        job = self.sample(data=(images, images.mean(axis=(1, 2, 3))), epochs=10).wait(progress=False)
        path = os.path.join(self.folder, "images")
        chainfleet.mlflow.save_model(job, path)
        made = self.load(path).predict(images[:4])
        self.assertEqual(list(made), ["mean", "variance_aleatoric", "variance_epistemic"])
        numpy.testing.assert_array_equal(made["mean"], job.predict(images[:4]).mean)

    def test_a_job_that_fails_ends_its_run_failed_with_the_reason(self):
        job = self.sample(sampler=cf.EMCMC(eta=1e-9), learning_rate=100.0)
        with self.assertRaisesRegex(cf.JobFailed, "DIVERGED"):
            chainfleet.mlflow.log_job(job, interval=0.1)
        run = mlflow.MlflowClient().search_runs(["0"], f"tags.`chainfleet.job` = '{job.id}'")[0]
        self.assertEqual(run.info.status, "FAILED")
        self.assertIsNone(mlflow.active_run())

    def test_an_active_run_goes_on_and_a_density_has_no_model(self):
        job = self.fleet.sample(cf.potentials.Gaussian(dimension=2), sampler=cf.HMC(), step_size=0.5, steps=100, collect=cf.Collect(every_steps=5), wait=False)
        with mlflow.start_run() as run:
            with self.assertRaisesRegex(cf.errors.InvalidArgument, "no data set"):
                chainfleet.mlflow.log_job(job, interval=0.1)
            self.assertEqual(mlflow.active_run().info.run_id, run.info.run_id)
        self.assertGreater(self.history(run.info.run_id, "acceptance_rate/chain_0")[-1][1], 0.3)


if __name__ == "__main__":
    unittest.main()
