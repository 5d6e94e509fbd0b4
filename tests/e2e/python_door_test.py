"""The Python package at its door: a fleet of this machine, commands and methods, broken lines, and what is refused."""
import contextlib
import fcntl
import os
import pathlib
import re
import signal
import struct
import subprocess
import sys
import tempfile
import termios
import unittest
import unittest.mock

os.environ.setdefault("PYDEVD_DISABLE_FILE_VALIDATION", "1")  # a warning of the kernel's debugger, which nobody uses
import fleet as fleets
import python_package  # first: it says where the next ones are
import chainfleet as cf
import numpy
from chainfleet import local_fleet
from connected_fleet import ConnectedFleet
from cutting_proxy import CuttingProxy
from jupyter_client import KernelManager

TOKEN = "The-token-of-an-operator-of-this-test"
WORKER_TOKEN = "The-token-of-the-workers-of-this-test"
PATIENCE = 120  # seconds, of one cell of a notebook
X = numpy.random.default_rng(7).normal(size=(600, 4)).astype(numpy.float32)
Y = (X[:, 0] > 0).astype(int)
NETWORK = cf.Model(builtin="mlp", hidden=[16])
SCRIPT = """
import chainfleet as cf, numpy
fleet = cf.local(data_dir={folder!r}, workers=1, listen="127.0.0.1:0")
x = numpy.zeros((600, 4), "f4")
fleet.sample("mlp", data=(x, numpy.arange(600) % 2), sampler=cf.SGLD(), chains=2, steps=10_000_000, collect=cf.Collect(every_steps=1000), name="long")
"""


class Local(unittest.TestCase):
    def setUp(self):
        self.folder = self.enterContext(tempfile.TemporaryDirectory(prefix="chainfleet-local-"))
        self.addCleanup(cf.down, self.folder)
        self.options = {"data_dir": self.folder, "workers": 1, "listen": "127.0.0.1:0"}

    def test_a_fleet_is_started_found_again_and_stopped(self):
        with cf.local(**self.options) as fleet:
            job = fleet.sample(NETWORK, data=(X, Y), sampler=cf.EMCMC(eta=4e-4), chains=2, epochs=4)
            self.assertEqual(job.state(), "SUCCEEDED")
            begun = fleet.info()
            with cf.local(**self.options) as again:
                self.assertEqual((again.info(), again.connection.addresses), (begun, fleet.connection.addresses))
                self.assertEqual(again.job().id, job.id)
            cf.down(self.folder)
            with self.assertRaises(cf.errors.Unavailable) as caught:
                cf.connect(fleet.connection.addresses, timeout=1)
            self.assertEqual(caught.exception.reason, "NO_SERVER")
        with cf.local(**self.options) as fleet:
            self.assertEqual(fleet.job().id, job.id, "the data stay")

    def test_a_backup_fills_the_stores_of_another_server(self):
        with cf.local(**self.options) as fleet:
            job = fleet.sample(NETWORK, data=(X, Y), sampler=cf.SGLD(), chains=1, epochs=2, progress=False)
            expected = job.predict(X[:5]).mean_probability
            folder, other = (os.path.join(self.folder, name) for name in ("copy", "other"))
            self.assertIn("objects", fleet.backup(folder))
            fleet.backup(folder, verify=True)
        cf.down(self.folder)
        self.addCleanup(cf.down, other)
        cf.restore(folder, data_dir=other)
        with self.assertRaisesRegex(cf.errors.FailedPrecondition, "the store is not empty, it has jobs"):
            cf.restore(folder, data_dir=other)
        with cf.local(**{**self.options, "data_dir": other}) as fleet:
            numpy.testing.assert_array_equal(fleet.job(job.id).predict(X[:5]).mean_probability, expected)
        cf.down(other)
        running = os.path.join(self.folder, "running")
        self.addCleanup(cf.down, running)
        with cf.local(**{**self.options, "data_dir": running}) as fleet:
            self.assertIn("restored", fleet.restore(folder))
            numpy.testing.assert_array_equal(fleet.job(job.id).predict(X[:5]).mean_probability, expected)

    def test_a_start_that_fails_has_the_words_of_the_program(self):
        with self.assertRaisesRegex(cf.errors.FailedPrecondition, "chainfleet up.*128 bits") as caught:
            cf.local(**self.options, token="weak")
        self.assertEqual(caught.exception.reason, "PROGRAM_FAILED")

    def test_control_c_leaves_the_job_running_and_says_how_to_find_it(self):
        ours, its = os.openpty()
        fcntl.ioctl(its, termios.TIOCSWINSZ, struct.pack("4H", 24, 100, 0, 0))
        child = subprocess.Popen([sys.executable, "-B", "-c", SCRIPT.format(folder=self.folder)], stdin=its, stdout=its, stderr=its,
                                 start_new_session=True, preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0),
                                 env={**os.environ, "PYTHONPATH": python_package.PACKAGE})
        os.close(its)
        said = self.read_until(ours, rb"long-\w{6}  \[[#-]{20}\] \d+\.\d %")
        os.write(ours, b"\x03")
        said += self.read_until(ours, rb"KeyboardInterrupt")
        self.assertEqual(child.wait(60), -signal.SIGINT)
        os.close(ours)
        found = re.search(rb"To re-attach: fleet.job\('(long-\w{6})'\)", said)
        self.assertTrue(found, said)
        with cf.local(**self.options) as fleet:
            job = fleet.job(found.group(1).decode())
            self.assertIn(job.state(), ("PENDING", "RUNNING"))
            job.cancel()

    @contextlib.contextmanager
    def kernel(self):
        """The kernel of a notebook: its manager and its client."""
        folder = self.enterContext(tempfile.TemporaryDirectory(prefix="chainfleet-kernel-"))
        manager = KernelManager(transport="ipc", connection_file=os.path.join(folder, "kernel.json"))
        manager.start_kernel(cwd=folder, env={**os.environ, "PYTHONPATH": python_package.PACKAGE, "PYTHONDONTWRITEBYTECODE": "1", "IPYTHONDIR": folder})
        client = manager.client()
        try:
            client.start_channels()
            client.wait_for_ready(timeout=PATIENCE)
            yield manager, client
        finally:
            client.stop_channels()
            manager.shutdown_kernel(now=True)

    def test_an_interrupted_notebook_leaves_the_job_running_and_says_how_to_find_it(self):
        contents, interrupts = [], []

        def note(message):
            contents.append(message["content"])
            if not interrupts and re.search(r"long-\w{6}  RUNNING", message["content"].get("data", {}).get("text/html", "")):
                interrupts.append(manager.interrupt_kernel())

        with self.kernel() as (manager, client):
            # stop_on_error would abort a cell that comes right after one that failed
            reply = client.execute_interactive(SCRIPT.format(folder=self.folder), stop_on_error=False, timeout=PATIENCE, output_hook=note)["content"]
            self.assertEqual((reply["status"], reply["ename"]), ("error", "KeyboardInterrupt"), contents)
            said = "".join(content["text"] for content in contents if content.get("name") == "stderr")
            found = re.search(r"To re-attach: (fleet\.job\('(long-\w{6})'\))", said)
            self.assertTrue(found, contents)
            self.assertFalse([line for line in reply["traceback"] if "/grpc/" in line], "the frames of grpc say nothing to a user")
            client.execute_interactive(f"print({found.group(1)}.state())", timeout=PATIENCE, output_hook=note)
            self.assertEqual([content["text"] for content in contents if content.get("name") == "stdout"], ["RUNNING\n"], contents[-3:])
        with cf.local(**self.options) as fleet:
            job = fleet.job(found.group(2))
            self.assertEqual(job.state(), "RUNNING", "the end of the kernel does not end the job")
            job.cancel()

    def read_until(self, descriptor, pattern):
        said = b""
        while not re.search(pattern, said):
            said += os.read(descriptor, 65536)
        return said


class Verbs(unittest.TestCase):
    """Each command of the command line is a method, as the table of the guide says."""

    def commands(self, *verb):
        done = subprocess.run([os.path.join(fleets.BIN, "chainfleet"), *verb, "--help"], capture_output=True, text=True, check=True)
        listed = re.search(r"^Subcommands:\n(.*?)\n\n", done.stdout + "\n\n", re.M | re.S)
        names = re.findall(r"^  (\w+)(?:, [\w, ]+?)?(?:  |$)", listed.group(1), re.M) if listed else []
        return [inner for name in names for inner in self.commands(*verb, name)] if names else [" ".join(verb)]

    def test_the_guide_has_a_method_for_each_command(self):
        with open(os.path.join(python_package.ROOT, "docs/guides/python.md"), encoding="utf-8") as file:
            rows = re.findall(r"^\| `([a-z ]+)` \| `(?:cf\.(?=\w+\.))?(\w+)\.(\w+)", file.read(), re.M)
        self.assertEqual(sorted(command for command, _, _ in rows), sorted(self.commands()))
        homes = {"cf": cf, "contexts": cf.contexts, "pki": cf.pki, "fleet": cf.Fleet, "job": cf.Job}
        usage = subprocess.run([os.path.join(fleets.BIN, "chainfleet"), "describe", "--help"], capture_output=True, text=True, check=True).stdout
        kinds = re.findall(r"\w+", re.search(r"where KIND is ([\w, ]+)", usage).group(1).replace(" or ", ", "))
        for command, home, name in [*rows, *(("describe", "fleet", kind) for kind in kinds)]:
            self.assertTrue(callable(getattr(homes[home], name)), command)


class ThisMachine(unittest.TestCase):
    """Commands that write files of this machine, and need no server."""

    def setUp(self):
        self.folder = self.enterContext(tempfile.TemporaryDirectory(prefix="chainfleet-machine-"))

    def test_contexts_are_added_chosen_and_deleted(self):
        self.enterContext(unittest.mock.patch.dict(os.environ, {"CHAINFLEET_CONTEXTS": os.path.join(self.folder, "contexts.yaml")}))
        self.assertEqual(cf.contexts.known(), cf.contexts.Contexts())
        lab, prod = cf.contexts.Context("lab:7400", token_file="~/lab"), cf.contexts.Context("prod:1,prod:2", token_command="echo -n x", ca_file="system")
        cf.contexts.add("lab", lab)
        cf.contexts.add("prod", prod)
        self.assertEqual(cf.contexts.known(), cf.contexts.Contexts("lab", {"lab": lab, "prod": prod}))
        cf.contexts.use("prod")
        cf.contexts.delete("lab")
        self.assertEqual(cf.contexts.known(), cf.contexts.Contexts("prod", {"prod": prod}))
        for call in (cf.contexts.use, cf.contexts.delete):
            with self.assertRaisesRegex(cf.errors.NotFound, "known: prod") as caught:
                call("lab")
            self.assertEqual(caught.exception.reason, "NO_CONTEXT")
            self.assertIn("chainfleet context set lab", caught.exception.hint)

    def test_certificates_are_issued_and_renewed_and_scripts_printed(self):
        folder = pathlib.Path(self.folder, "pki")
        cf.pki.init(folder)
        cf.pki.issue("server", ["localhost", "127.0.0.1"], folder)
        first = (folder / "server.crt").read_text()
        cf.pki.renew("server", folder, days=30)
        self.assertNotEqual((folder / "server.crt").read_text(), first)
        self.assertIn("-F _chainfleet chainfleet", cf.run_program(["completion", "bash"]))


class Transfers(ConnectedFleet):
    """Files and URIs, and lines that break in the middle of something."""

    @classmethod
    def environment(cls, folder):
        return {"CHAINFLEET_DATASET_ROOT": folder}

    def test_files_and_uris_are_stored_once_under_the_same_arrays(self):
        paths = [pathlib.Path(self.started.folder, name) for name in ("x.npy", "y.npy")]
        for path, array in zip(paths, (X[:300], Y[:300])):
            numpy.save(path, array)
        before = {dataset.name for dataset in self.fleet.datasets()}
        uris = [path.as_uri() for path in paths]
        sources = (paths, paths, uris, uris, cf.Files(*paths), (X[:300], Y[:300]))
        jobs = [self.fleet.sample(NETWORK, data=data, sampler=cf.SGLD(), epochs=2, seed=5, progress=False) for data in sources]
        names = [job.describe().spec.dataset.name for job in jobs]
        self.assertEqual({dataset.name for dataset in self.fleet.datasets()} - before, set(names))
        self.assertEqual([names.index(name) for name in names], [0, 0, 2, 2, 0, 5], "the same content has one name, and a URI one of its own")
        for name in set(names):
            numpy.testing.assert_array_equal(self.fleet.get_dataset(name)[0], X[:300])
            numpy.testing.assert_array_equal(self.fleet.get_dataset(name)[1], Y[:300])

    def through(self, **options):
        proxy = CuttingProxy(self.started.address, **options)
        self.addCleanup(proxy.close)
        fleet = cf.connect(proxy.address)
        self.addCleanup(fleet.close)
        return proxy, fleet

    def test_an_iteration_over_draws_goes_on_where_it_was(self):
        job = self.fleet.sample(cf.Model(builtin="mlp", hidden=[400, 400]), data=(X, Y), sampler=cf.SGLD(), chains=2, steps=40,
                                collect=cf.Collect(every_steps=4), progress=False)
        direct = [(draw.chain, draw.index, draw.weight, draw.parameters) for draw in job.draws()]
        sizes = [record.segment.object.size_bytes for record in job.draws()._records]
        proxy, fleet = self.through(limit=max(sizes) // 2, cuts=3)
        count = 0
        for count, draw in enumerate(fleet.job(job.id).draws(), 1):
            chain, index, weight, parameters = direct[count - 1]
            self.assertEqual((draw.chain, draw.index, draw.weight), (chain, index, weight))
            for name, value in parameters.items():
                numpy.testing.assert_array_equal(draw.parameters[name], value)
        self.assertEqual((count, len(direct), proxy.cuts_left), (20, 20, 0))

    def test_an_upload_that_breaks_is_sent_again_whole(self):
        x = numpy.random.default_rng(1).normal(size=(2000, 500)).astype(numpy.float32)
        proxy, fleet = self.through(limit=1 << 20, cuts=2, to_server=True)
        fleet.put_dataset("broken", x, numpy.arange(2000) % 2, progress=False)
        self.assertEqual(proxy.cuts_left, 0)
        numpy.testing.assert_array_equal(self.fleet.get_dataset("broken")[0], x)

    def test_an_upload_whose_server_stays_away_leaves_nothing(self):
        before = [dataset.name for dataset in self.fleet.datasets()]
        proxy = CuttingProxy(self.started.address, limit=1 << 20, cuts=10**9, to_server=True)
        self.addCleanup(proxy.close)
        with cf.connect(proxy.address, timeout=1.5) as fleet:
            with self.assertRaises(cf.errors.Unavailable):
                fleet.sample(NETWORK, data=(numpy.zeros((2000, 500), "f4"), numpy.arange(2000) % 2), sampler=cf.SGLD(), epochs=1, progress=False)
        self.assertEqual([dataset.name for dataset in self.fleet.datasets()], before)
        self.assertNotIn("mlp-sgld", [job.spec.name for job in self.fleet.jobs("PENDING")])


class Application(ConnectedFleet):
    """A program that may only predict."""

    TOKEN = TOKEN

    @classmethod
    def environment(cls, folder):
        return {**super().environment(folder), "CHAINFLEET_WORKER_TOKEN": WORKER_TOKEN}

    def test_a_predictor_predicts_by_name_and_reads_nothing(self):
        job = self.fleet.sample(NETWORK, data=(X, Y), sampler=cf.SGLD(), chains=1, epochs=2, progress=False)
        self.fleet.set_alias("signs", job)
        expected = job.predict(X[:300]).mean_probability
        with cf.connect(self.started.address, self.fleet.create_token("predictor")) as application:
            for name in (job.id, "signs"):
                numpy.testing.assert_array_equal(application.predict(name, X[:300]).mean_probability, expected)
            with self.assertRaises(cf.errors.InvalidArgument):
                application.predict("signs", X[:, :2])
            with self.assertRaises(cf.reasons.NotAllowed):
                application.job(job.id)


class Refused(ConnectedFleet):
    """Wrong input raises one exception with a reason and a remedy, and leaves nothing behind."""

    TOKEN = TOKEN

    @classmethod
    def environment(cls, folder):
        return {**super().environment(folder), "CHAINFLEET_WORKER_TOKEN": WORKER_TOKEN}

    def refused(self, kind, reason, **wrong):
        given = {"model": NETWORK, "data": (X, Y), "sampler": cf.SGLD(), "epochs": 1, "progress": False, **wrong}
        with self.assertRaises(cf.ChainfleetError) as caught:
            self.fleet.sample(**given)
        self.assertIsInstance(caught.exception, kind)
        self.assertEqual(caught.exception.reason, reason, str(caught.exception))
        self.assertIn("what to do: ", str(caught.exception))
        self.assertEqual((self.fleet.datasets(), self.fleet.models(), self.fleet.jobs()), ([], [], []))

    def test_a_token_that_was_made_for_reading_reads_until_it_is_revoked(self):
        made = self.fleet.create_token("reader", lifetime=3600, note="a notebook")
        [kept] = self.fleet.tokens()
        self.assertEqual((kept.note, kept.tenant, kept.expires_at.seconds - kept.created_at.seconds), ("a notebook", "default", 3600))
        self.assertEqual(self.fleet.token(kept.id), kept)
        with cf.connect(self.started.address, made) as reader:
            self.assertEqual(reader.jobs(), [])
            caller = reader.info().caller
            self.assertEqual((caller.principal, caller.tenant, caller.expires_at), (kept.id, "default", kept.expires_at))
            self.assertIn(("jobs", 0), [(limit.name, limit.used) for limit in caller.limits])
            for call in (reader.tokens, lambda: reader.delete_dataset("x"), lambda: list(reader.audit())):
                with self.assertRaises(cf.reasons.NotAllowed):
                    call()
            self.fleet.revoke_token(kept.id)
            with self.assertRaises(cf.reasons.Unauthenticated):
                reader.jobs()
        with self.assertRaises(cf.reasons.TokenNotFound):
            self.fleet.token(kept.id)
        with self.assertRaisesRegex(cf.errors.InvalidArgument, "role: is 'king'"):
            self.fleet.create_token("king")
        with self.assertRaises(cf.errors.InvalidArgument):
            self.fleet.create_token("reader", max_uses=1)
        refused = [line["method"].split("/")[-1] for line in self.fleet.audit() if line.get("principal") == kept.id]
        self.assertEqual(refused, ["ListTokens", "DeleteDataset", "ListAudit"])

    def test_a_data_set_is_there_for_those_with_whom_it_is_shared(self):
        self.fleet.put_dataset("lent", X, Y, progress=False)
        self.addCleanup(self.fleet.delete_dataset, "lent")
        token = self.fleet.create_token("writer", tenant="vision", lifetime=3600)
        [made] = self.fleet.tokens()
        self.addCleanup(self.fleet.revoke_token, made.id)
        with cf.connect(self.started.address, token) as vision:
            self.assertEqual(vision.datasets(), [])
            self.assertEqual(list(self.fleet.share_dataset("lent", ["vision"]).shared_with), ["vision"])
            self.assertEqual([dataset.name for dataset in vision.datasets()], ["default/lent"])
            self.assertEqual(vision.get_dataset("default/lent")[0].shape, X.shape)
            with self.assertRaises(cf.reasons.NotOwner):
                vision.share_dataset("default/lent", ["*"])
            self.fleet.share_dataset("lent", stop=True)
            with self.assertRaises(cf.reasons.DatasetNotFound):
                vision.get_dataset("default/lent")
        with self.assertRaises(cf.reasons.ModelNotFound):
            self.fleet.share_model("nothing", ["vision"])

    def test_wrong_data(self):
        nan = numpy.where(X == X[3, 1], numpy.nan, X)
        for data in ((X.astype(object), Y), (X * 1j, Y), (X.ravel(), Y), (nan, Y), (X, Y[1:]), (X, Y - 1), ([["a"]], [0]), 5):
            self.refused(cf.errors.InvalidArgument, "INVALID_DATA", data=data)
        self.refused(cf.errors.NotFound, "NO_FILE", data=cf.Files("/nowhere.npz"))

    def test_a_wrong_field(self):
        self.refused(cf.errors.InvalidArgument, "INVALID_FIELD", chains=-1)
        self.assertEqual(self.refused_fields(chains=-1), ["chains"])

    def refused_fields(self, **wrong):
        with self.assertRaises(cf.errors.InvalidArgument) as caught:
            self.fleet.sample(NETWORK, data=(X, Y), sampler=cf.SGLD(), epochs=1, progress=False, **wrong)
        return [violation.path for violation in caught.exception.violations]

    def test_a_network_that_does_not_fit_the_data(self):
        for wrong in ({"model": cf.Model(builtin="lenet5")}, {"data": (X, numpy.zeros(len(X), int))}):
            with self.assertRaises(cf.errors.InvalidArgument):
                self.fleet.sample(**{"model": NETWORK, "data": (X, Y), "sampler": cf.SGLD(), "epochs": 1, "progress": False, **wrong})
            self.assertEqual((self.fleet.datasets(), self.fleet.jobs()), ([], []))

    def test_a_file_that_the_server_cannot_decode(self):
        with tempfile.NamedTemporaryFile(suffix=".npz") as file:
            file.write(b"no archive")
            file.flush()
            self.refused(cf.errors.InvalidArgument, "INVALID_DATA", data=cf.Files(file.name))

    def test_a_module_where_none_are_taken(self):
        class NoModule:
            pass

        self.refused(cf.errors.InvalidArgument, "INVALID_MODEL", model=NoModule())

    def test_a_wrong_token(self):
        for token in ("", "The-token-of-nobody-who-is-known-here"):
            with self.assertRaises(cf.errors.Unauthenticated) as caught:
                cf.connect(self.started.address, token)
            self.assertEqual(caught.exception.reason, "UNAUTHENTICATED")
            self.assertIn("token=", caught.exception.hint)

    def test_a_token_that_lacks_the_right(self):
        with self.assertRaises(cf.reasons.NotAllowed) as caught:
            with cf.connect(self.started.address, WORKER_TOKEN) as fleet:
                fleet.jobs()
        self.assertIsInstance(caught.exception, cf.errors.PermissionDenied)
        self.assertEqual(caught.exception.reason, "NOT_ALLOWED")
        self.assertIn("use a token of the kind", caught.exception.hint)

    def test_an_unknown_name_or_a_wrong_one(self):
        for call, reason in ((lambda: self.fleet.delete_alias("nobody"), "ALIAS_NOT_FOUND"),
                             (lambda: self.fleet.drain("nobody"), "WORKER_NOT_FOUND"),
                             (lambda: self.fleet.evaluation("nobody"), "EVALUATION_NOT_FOUND"),
                             (lambda: self.fleet.put_dataset("No Name", X, Y), "INVALID_FIELD"),
                             (lambda: self.fleet.put_model("No Name", __file__), "INVALID_FIELD")):
            with self.assertRaises(cf.ChainfleetError) as caught:
                call()
            self.assertEqual(caught.exception.reason, reason, str(caught.exception))
            self.assertIn("what to do: ", str(caught.exception))
        self.assertEqual([violation.path for violation in caught.exception.violations], ["name"])

    def test_programs_get_the_token(self):
        self.assertIn("data in", self.fleet.doctor())


if __name__ == "__main__":
    unittest.main()
