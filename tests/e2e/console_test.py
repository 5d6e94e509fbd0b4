"""The console in a real browser: each view of a real fleet, on a desk and a phone, by day and night, by keyboard."""
import base64
import json
import os
import random
import tempfile
import unittest
import urllib.parse

import fleet as fleets
from chromium import Chromium, pixels

JOB = """
name: console
model: {builtin: mlp, hidden: [8]}
dataset: {name: fashion}
prior: {gaussian: {precision: 10}}
sampler: {sgld: {}}
learning_rate: {constant: 0.01}
temperature: 1.0e-4
batch_size: 50
num_epochs: 60
chains: 2
collect: {every_steps: 100}
seed: 7
"""
LONG = JOB.replace("num_epochs: 60", "num_epochs: 1000000")
HELD_OUT = ["--calibrate", "held-out", "--stack", "held-out"]
TOKEN = "The-token-of-somebody-who-looks-on"
HOSTILE = "<img src=x onerror=alert(1)></td><script>alert(1)</script>"
# Puts the hostile text before each text of the replies and events of the addresses that match. The server gets the addresses without it.
HOSTILE_REPLIES = r"""
const real = window.fetch, hostile = %r, matched = new RegExp(%r);
const spoilt = value => typeof value === 'string' && !/^[-0-9.]*$|^[A-Z_0-9]+$|T.*Z$/.test(value) ? hostile + value
  : Array.isArray(value) ? value.map(spoilt)
  : value && typeof value === 'object' ? Object.fromEntries(Object.entries(value).map(([k, v]) => [k, spoilt(v)])) : value;
const spoiltEvents = () => {
  let text = '';
  return new TransformStream({transform(chunk, out) {
    const events = (text + chunk).split('\n\n');
    text = events.pop();
    events.forEach(event => out.enqueue(event.replace(/^data: (.*)$/, (_, data) => 'data: ' + JSON.stringify(spoilt(JSON.parse(data)))) + '\n\n'));
  }});
};
window.fetch = async (path, options) => {
  const reply = await real(path.replaceAll(encodeURIComponent(hostile), ''), options);
  if (!matched.test(path)) return reply;
  if (!path.includes('/watch?')) return new Response(JSON.stringify(spoilt(await reply.json())), {status: reply.status});
  return new Response(reply.body.pipeThrough(new TextDecoderStream()).pipeThrough(spoiltEvents()).pipeThrough(new TextEncoderStream()));
};
"""
# Waits until the page shows the text: every change of the page is looked at. The clock only ends a wait that fails.
UNTIL_SHOWN = """
new Promise(done => {
  const look = () => document.body.innerText.includes(%r) && done(true);
  new MutationObserver(look).observe(document.body, {subtree: true, childList: true, characterData: true, attributes: true});
  setTimeout(done, 60_000, false);
  look();
})
"""
# Waits until the page shows another number of draws and another R-hat of the first quantity.
UNTIL_MORE = """
new Promise(done => {
  const draws = () => document.querySelector('dd a[href^="#/draws/"]').textContent;
  const rhat = () => document.querySelector('[aria-label="table by Quantity"] tbody td:nth-child(2)')?.textContent;
  const first = [draws(), rhat()];
  const look = () => draws() !== first[0] && rhat() !== first[1] && done(true);
  new MutationObserver(look).observe(document.body, {subtree: true, childList: true, characterData: true});
})
"""
SCREENS = [(width, scheme) for width in (1400, 400) for scheme in ("light", "dark")]


class InABrowser(unittest.TestCase):
    def setUp(self):
        self.browser = Chromium(width=1400, reaches="127.0.0.1")
        self.addCleanup(self.browser.close)

    def keep(self, name):
        folder = os.environ.get("CHAINFLEET_KEEP_PICTURES")  # to look at them
        if folder:
            with open(os.path.join(folder, f"console-{name}.png"), "wb") as f:
                f.write(self.browser.picture())

    def check_fit(self, width, scheme):
        """The page is no wider than the screen, and its background is that of the scheme."""
        self.assertLessEqual(self.browser.evaluate("document.documentElement.scrollWidth"), width)
        page = pixels(self.browser.picture({"x": 0, "y": 200, "width": 40, "height": 40}))
        self.assertEqual(sum(page[20][5]) < 200, scheme == "dark")

    def screen(self, width, scheme):
        self.browser.media(prefers_color_scheme=scheme)
        self.browser.call("Emulation.setDeviceMetricsOverride", width=width, height=900, deviceScaleFactor=1, mobile=False)

    def show(self, view, text):
        self.browser.open("about:blank")
        self.browser.open(f"http://{self.fleet.http_address}/{view}")
        self.wait_for_text(text)

    def wait_for_text(self, text):
        if not self.browser.evaluate(UNTIL_SHOWN % text):
            self.fail(f"the page does not show {text!r}: " + self.browser.evaluate("document.body.innerText"))

    def wait_until(self, condition):
        """Looks at each frame of the page."""
        look = f"const look = () => {condition} ? done(true) : requestAnimationFrame(look)"
        self.assertTrue(self.browser.evaluate(f"new Promise(done => {{ setTimeout(done, 60_000, false); {look}; look(); }})"), condition)

    def check_charts(self, least=2):
        colors = ("[...document.querySelectorAll('canvas')].map(c => new Set(new Uint32Array(c.getContext('2d')"
                  ".getImageData(0, 0, c.width, c.height).data.buffer)).size)")
        found = self.browser.evaluate(f"new Promise(done => requestAnimationFrame(() => done({colors})))")
        self.assertGreaterEqual(len(found), least)
        self.assertGreater(min(found), 8, "blank, or nearly")

    def press(self, key, code, text=None):
        for kind in ("keyDown" if text else "rawKeyDown", "keyUp"):
            self.browser.call("Input.dispatchKeyEvent", type=kind, key=key, code=key, windowsVirtualKeyCode=code,
                              **({"text": text} if text and kind == "keyDown" else {}))

    def tab_to(self, text):
        """Presses Tab until the element whose text, placeholder or label begins so has the focus."""
        for _ in range(60):
            self.press("Tab", 9)
            if self.browser.evaluate("(e => (e.placeholder || e.labels?.[0]?.textContent || e.textContent).trim())(document.activeElement)").startswith(text):
                return
        self.fail(f"no Tab leads to {text}")

    def enter(self, text, shown):
        """Goes to an element, presses Enter, and waits until the page shows a text."""
        self.tab_to(text)
        self.press("Enter", 13, "\r")
        self.wait_for_text(shown)

    def predict(self, row, shown):
        """Fills in the form of a job and sends it, by keyboard."""
        self.tab_to(f"{len(row)} numbers")
        self.browser.call("Input.insertText", text=" ".join(map(str, row)))
        self.enter("Predict", shown)

    def rows_by(self, header):
        """The texts of the table whose first column has this header."""
        return self.browser.evaluate(f"[...document.querySelectorAll('[aria-label=\"table by {header}\"] tbody tr')]"
                                     ".map(row => [...row.cells].map(cell => cell.textContent))")

    def fact(self, name):
        return self.browser.evaluate(f"[...document.querySelectorAll('dt')].find(e => e.textContent === {name!r}).nextSibling.textContent")

    def spoil(self, addresses):
        self.browser.call("Page.addScriptToEvaluateOnNewDocument", source=HOSTILE_REPLIES % (HOSTILE, addresses))

    def check_inert(self):
        """No text of a user has become an element."""
        self.assertEqual(self.browser.evaluate("document.scripts.length"), 2)
        self.assertEqual(self.browser.evaluate("document.querySelectorAll('main img, main script, #trouble *').length"), 0)

    def check_hostile(self):
        """The view itself shows the hostile text, as text."""
        self.assertTrue(self.browser.evaluate("document.getElementById('trouble').hidden"))
        self.assertIn(HOSTILE, self.browser.evaluate("document.getElementById('main').innerText"))
        self.check_inert()


class Console(InABrowser):
    @classmethod
    def setUpClass(cls):
        cls.fleet = fleets.Fleet(workers=1)
        cls.addClassCleanup(cls.fleet.close)
        cls.fleet.up()
        cls.fleet.put_fashion("fashion", 500)
        cls.job = cls.fleet.submit(JOB)
        cls.fleet.run("wait", cls.job, "--timeout", "240s", check=True)
        cls.fleet.put_fashion("held-out", 100)
        cls.fleet.run("evaluate", cls.job, "--dataset", "fashion", "--curve", "4", *HELD_OUT, check=True)
        cls.evaluation = cls.fleet.json("get", "evaluations", cls.job)["evaluations"][0]["id"]
        cls.fleet.run("alias", "set", "champion", cls.job, check=True)
        cls.views = {"#/jobs": cls.job, "#/jobs/" + cls.job: "Convergence", "#/workers": "worker-0", "#/data": "champion",
                     "#/evaluations": cls.evaluation, "#/evaluations/" + cls.evaluation: "mean single draw theta", "#/draws/" + cls.job: "theta"}

    def test_every_view_is_drawn_from_this_server_alone(self):
        for view, text in self.views.items():
            with self.subTest(view=view):
                self.show(view, text)
                self.assertEqual(self.browser.complaints(), [])
                for asked in self.browser.requests():
                    self.assertTrue(asked.startswith(f"http://{self.fleet.http_address}/"), asked)
                self.assertNotIn("undefined", self.browser.evaluate("document.body.innerText"))
                self.assertNotIn("[object", self.browser.evaluate("document.body.innerText"))
                self.keep(view.strip("#/").split("/")[0] + ("-one" if view.count("/") > 1 else ""))

    def test_every_view_fits_desk_and_phone_by_day_and_night(self):
        for width, scheme in SCREENS:
            self.screen(width, scheme)
            for view, text in self.views.items():
                with self.subTest(view=view, width=width, scheme=scheme):
                    self.show(view, text)
                    self.check_fit(width, scheme)
                    self.keep(f"{width}-{scheme}-" + view.strip("#/").split("/")[0] + ("-one" if view.count("/") > 1 else ""))

    def test_charts_are_drawn(self):
        for view, text in (("#/jobs/" + self.job, "of each chain, by step"),
                           ("#/evaluations/" + self.evaluation, "NLL by the number of draws")):
            self.show(view, text)
            self.check_charts()

    def test_an_evaluation_shows_its_conformal_sets_and_weights_of_chains(self):
        found = self.fleet.json("evaluate", "--attach", self.evaluation)
        self.show("#/evaluations/" + self.evaluation, "Thresholds from 100 rows of held-out; coverage and size on the 500 rows scored. "
                  "A set has the classes with probability at least 1 - threshold.")
        sets = self.rows_by("Level %")
        self.assertEqual([row[0] for row in sets], ["50", "80", "90", "95", "99"])
        self.assertEqual([row[2] for row in sets], [f"{100 * one['coverage']:.2f}" for one in found["conformal"]])
        self.assertEqual(self.rows_by("Chain"), [[str(chain), f"{one['stacking']:.4f}", f"{one['pseudo_bma']:.4f}"]
                                                 for chain, one in enumerate(found["weights"])])

    def test_a_running_job_is_followed_by_events(self):
        job = self.fleet.submit(LONG.replace("name: console", "name: long"))
        self.addCleanup(self.fleet.run, "cancel", job)
        self.show("#/jobs/" + job, "RUNNING")
        self.assertTrue(any("/watch?" in asked for asked in self.browser.requests()), self.browser.requests())
        self.browser.evaluate("clearTimeout(timer), setTimeout = () => 0")  # nothing but events draws the page from here on
        self.assertTrue(self.browser.evaluate(UNTIL_MORE))
        self.fleet.run("cancel", job, check=True)
        self.wait_for_text("CANCELLED")
        self.assertEqual(self.browser.complaints(), [])

    def test_orders_are_given_by_keyboard(self):
        job = self.fleet.submit(LONG.replace("name: console", "name: ordered"))
        self.addCleanup(self.fleet.run, "cancel", job)
        self.show("#/jobs/" + job, "RUNNING")
        self.browser.evaluate("asked = [], confirm = text => asked.push(text)")
        for order, shown in (("Pause", "PAUSED"), ("Resume", "RUNNING"), ("Cancel", "CANCELLED"), ("Delete", "DELETING")):
            self.enter(order, shown)
        self.assertEqual(self.browser.evaluate("asked"), [f"cancel {job}?", f"delete {job}?"])

    def test_a_row_is_predicted_on_every_screen(self):
        for width, scheme in SCREENS:
            with self.subTest(width=width, scheme=scheme):
                self.screen(width, scheme)
                self.show("#/jobs/" + self.job, "Convergence")
                self.predict([0] * 784, "Mean probability of each class")
                self.assertIn("nats", self.fact("Mutual information"))
                self.check_fit(width, scheme)
                self.check_charts()
                self.keep(f"predicted-{width}-{scheme}")
                self.assertEqual(self.browser.complaints(), [])

    def test_a_row_of_another_length_is_refused_in_words(self):
        self.show("#/jobs/" + self.job, "Convergence")
        self.browser.evaluate("""{ const box = document.querySelector('textarea');
            box.value = '1, 2'; box.dispatchEvent(new Event('input')); box.form.requestSubmit(); }""")
        self.wait_for_text("the row has 2 numbers; the job takes 784")

    def test_text_that_is_markup_is_shown_and_not_run(self):
        self.spoil("^/v1/")
        for view in self.views:
            with self.subTest(view=view):
                self.show(view, HOSTILE)
                self.check_hostile()

    def test_events_with_markup_are_shown_and_not_run(self):
        job = self.fleet.submit(LONG.replace("name: console", "name: events"))
        self.addCleanup(self.fleet.run, "cancel", job)
        self.spoil("/watch[?]")
        self.show("#/jobs/" + job, HOSTILE)
        self.check_hostile()
        self.assertEqual(self.browser.evaluate("document.querySelector('h1').textContent"), HOSTILE + job)
        self.assertEqual(self.browser.complaints(), [])

    def test_names_of_classes_with_markup_are_shown_and_not_run(self):
        self.fleet.put_fashion("hostile", 500, "--class-names", ",".join(f"{HOSTILE}{k}" for k in range(10)))
        job = self.fleet.submit(JOB.replace("console", "hostile").replace("fashion", "hostile").replace("num_epochs: 60", "num_epochs: 20"))
        self.fleet.run("wait", job, "--timeout", "240s", check=True)
        self.screen(400, "light")
        self.show("#/jobs/" + job, "Convergence")
        self.predict([0] * 784, HOSTILE)
        self.check_hostile()
        self.assertIn(self.fact("Class"), [f"{HOSTILE}{k}" for k in range(10)])
        self.check_fit(400, "light")
        self.check_charts()
        self.assertEqual(self.browser.complaints(), [])

    def test_addresses_that_no_link_has_show_an_error_or_the_jobs(self):
        self.show("#/jobs/%", "no job %")
        self.show("#/constructor", self.job)
        self.assertEqual([said for said in self.browser.complaints() if "404" not in str(said)], [])

    def test_no_job_can_be_called_script(self):
        self.show("#/jobs", self.job)
        body = json.dumps({"spec": {"name": "<script>", "model": {"potential": {"gaussian": {"dimension": 2}}}, "sampler": {"sgld": {}},
                                    "step_size": {"constant": 0.1}, "batch_size": 1, "num_steps": 1000}})
        reply = self.browser.evaluate(f"fetch('/v1/jobs', {{method: 'POST', body: {body!r}}}).then(reply => reply.json())")
        self.assertEqual((reply["code"], [field["field"] for field in reply["fields"]]), ("INVALID_ARGUMENT", ["name"]))
        self.browser.evaluate("draw()")
        self.assertNotIn("<script>", self.browser.evaluate("document.body.innerText"))
        self.check_inert()
        for view in ("jobs", "draws", "evaluations"):  # the name is in the address
            for name in ("<script>", HOSTILE):
                with self.subTest(view=view, name=name):
                    self.show(f"#/{view}/{urllib.parse.quote(name, safe='')}", name)
                    self.check_inert()

    def test_a_keyboard_is_enough(self):
        self.show("#/workers", "worker-0")
        for view, text in (("Data", "champion"), ("Evaluations", self.evaluation), ("Workers", "worker-0"), ("Jobs", self.job)):
            self.browser.evaluate("document.activeElement.blur()")
            self.enter(view, text)
        self.tab_to(self.job)
        self.browser.evaluate("draw()")  # as the timer does
        self.assertEqual(self.browser.evaluate("document.activeElement.textContent"), self.job, "the focus stays")
        self.press("Enter", 13, "\r")
        self.wait_for_text("Convergence")
        self.predict([0] * 784, "Mutual information")
        self.enter(self.evaluation, "mean single draw theta")
        self.enter(self.job, "Convergence")
        self.enter("12 committed", "Kinds")

    def test_a_state_is_chosen_by_keyboard(self):
        self.show("#/jobs", self.job)
        self.tab_to("State")
        self.browser.evaluate("clearTimeout(timer), refresh = () => 0")  # nothing but choices draws the page from here on
        self.press("Enter", 13, "\r")
        self.wait_until("document.activeElement.matches('select:open')")
        for _ in ("PENDING", "RUNNING", "PAUSED", "SUCCEEDED", "SUCCEEDED_EARLY", "FAILED"):
            self.press("ArrowDown", 40)
        self.press("Enter", 13, "\r")
        self.wait_for_text("There are no jobs here")
        for key, code, text, shown in (("s", 83, "s", self.job), ("ArrowDown", 40, None, "There are no jobs here"), ("ArrowUp", 38, None, self.job)):
            self.press(key, code, text)  # the list stays closed, and the focus stays
            self.wait_for_text(shown)
        self.assertEqual(self.browser.evaluate("[location.hash, document.activeElement.value]"), ["#/jobs?state=SUCCEEDED", "SUCCEEDED"])

    def test_an_image_is_chosen_by_keyboard_and_predicted(self):
        self.show("#/jobs/" + self.job, "Convergence")
        with tempfile.NamedTemporaryFile(suffix=".png") as image:
            image.write(base64.b64decode(self.browser.evaluate("""(() => { const canvas = document.createElement('canvas');
                canvas.width = canvas.height = 56; const context = canvas.getContext('2d'); context.fillStyle = 'white';
                context.fillRect(0, 0, 56, 28); return canvas.toDataURL().split(',')[1]; })()""")))
            image.flush()
            self.choose_file(image.name)
            self.wait_until("document.querySelector('textarea').value")
        row = [int(value) for value in self.browser.evaluate("document.querySelector('textarea').value").split(",")]
        self.assertEqual((len(row), set(row[:13 * 28]), set(row[15 * 28:])), (784, {255}, {0}), "white above, black below")
        self.enter("Predict", "Mean probability of each class")

    def choose_file(self, path):
        """Opens the browser's dialog of files by keyboard, and answers in its place."""
        self.browser.call("Page.setInterceptFileChooserDialog", enabled=True)
        self.tab_to("or an image")
        self.press("Enter", 13, "\r")
        self.browser.wait_for("Page.fileChooserOpened")
        [node] = [event["params"]["backendNodeId"] for event in self.browser.events if event["method"] == "Page.fileChooserOpened"]
        self.browser.call("DOM.setFileInputFiles", files=[path], backendNodeId=node)

    def test_a_page_is_small(self):
        self.show("#/jobs", self.job)
        size = self.browser.evaluate("performance.getEntriesByType('resource').concat(performance.getEntriesByType('navigation'))"
                                     ".filter(e => !e.name.includes('/v1/')).reduce((sum, e) => sum + e.decodedBodySize, 0)")
        self.assertLess(size, 400_000)
        self.assertGreater(size, 100_000)


class Numbers(InABrowser):
    """A job that learns numbers, and its evaluation."""

    @classmethod
    def setUpClass(cls):
        cls.fleet = fleets.Fleet(workers=1)
        cls.addClassCleanup(cls.fleet.close)
        cls.fleet.up()
        source = random.Random(5)
        rows = [(x, 2 * x + source.gauss(0, 0.3)) for x in (source.gauss(0, 1) for _ in range(500))]
        with open(cls.fleet.path("line.csv"), "w") as f:
            f.write("x,y\n" + "".join(f"{x},{y}\n" for x, y in rows))
        cls.fleet.run("dataset", "put", "line", cls.fleet.path("line.csv"), "--target", "y", "--target-type", "float32", check=True)
        cls.job = cls.fleet.submit(JOB.replace("name: fashion", "name: line") + "likelihood: {gaussian: {variance: 0.09}}\n")
        cls.fleet.run("wait", cls.job, "--timeout", "240s", check=True)
        cls.fleet.run("dataset", "put", "held-out", cls.fleet.path("line.csv"), "--target", "y", "--target-type", "float32", check=True)
        cls.fleet.run("evaluate", cls.job, "--dataset", "line", *HELD_OUT, check=True)
        cls.evaluation = cls.fleet.json("get", "evaluations", cls.job)["evaluations"][0]["id"]

    def test_a_prediction_is_a_distribution_on_every_screen(self):
        for width, scheme in SCREENS:
            with self.subTest(width=width, scheme=scheme):
                self.screen(width, scheme)
                self.show("#/jobs/" + self.job, "One row of shape [1]")
                self.predict([1], "Probability that the number is below x")
                low, high = map(float, self.fact("Central 90 %").split(" to "))
                self.assertLess(low, high)
                self.check_fit(width, scheme)
                self.check_charts()
                self.keep(f"predicted-numbers-{width}-{scheme}")
                self.assertEqual(self.browser.complaints(), [])

    def test_an_evaluation_is_drawn_on_every_screen(self):
        for width, scheme in SCREENS:
            with self.subTest(width=width, scheme=scheme):
                self.screen(width, scheme)
                self.show("#/evaluations/" + self.evaluation, "An interval is the mean ± threshold standard deviations.")
                self.assertEqual(len(self.rows_by("Level %")), 5)
                self.check_fit(width, scheme)
                self.check_charts(least=1)
                self.keep(f"evaluated-numbers-{width}-{scheme}")
                self.assertEqual(self.browser.complaints(), [])


class Tokens(InABrowser):
    def test_views_need_the_token_and_log_out_forgets_it(self):
        """On a desk and a phone, by day and night, by keyboard."""
        with tempfile.NamedTemporaryFile("w", suffix=".tokens") as tokens:
            tokens.write(TOKEN + "\n")
            tokens.flush()
            fleet = fleets.Fleet(workers=1, environment={"CHAINFLEET_TOKEN_FILE": tokens.name})
            self.addCleanup(fleet.close)
            fleet.up()
        for width, scheme in SCREENS:
            with self.subTest(width=width, scheme=scheme):
                self.screen(width, scheme)
                self.browser.open("about:blank")
                self.browser.open(f"http://{fleet.http_address}/#/workers")
                self.wait_for_text("The token stays in this tab")
                self.assertNotIn("worker-0", self.browser.evaluate("document.body.innerText"))
                self.check_fit(width, scheme)
                self.keep(f"login-{width}-{scheme}")
                self.tab_to("Token")
                self.browser.call("Input.insertText", text=TOKEN)
                self.assertNotIn(TOKEN, self.browser.evaluate("document.body.innerText"))
                self.press("Enter", 13, "\r")
                self.wait_for_text("worker-0")
                self.check_fit(width, scheme)
                self.tab_to("Log out")
                self.press("Enter", 13, "\r")
                self.wait_for_text("The token stays in this tab")
                self.assertNotIn("Log out", self.browser.evaluate("document.body.innerText"))
                self.assertIsNone(self.browser.evaluate("sessionStorage.getItem('token')"))


if __name__ == "__main__":
    unittest.main()
