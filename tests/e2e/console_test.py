"""The console in a real browser: each view of a real fleet, on a desk and a phone, by day and night, by keyboard."""
import base64
import os
import random
import tempfile
import unittest

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
TOKEN = "The-token-of-somebody-who-looks-on"
HOSTILE = "<img src=x onerror=alert(1)></td><script>alert(1)</script>"
# Draws what a page of the console asks for, with hostile text wherever a reply has text.
HOSTILE_REPLIES = """
const real = window.fetch;
window.fetch = async (...asked) => {
  const reply = await real(...asked);
  if (!String(asked[0]).startsWith('/v1/')) return reply;
  const spoilt = value => typeof value === 'string' && !/^[-0-9.]*$|^[A-Z_]+$|T.*Z$/.test(value) ? %r
    : Array.isArray(value) ? value.map(spoilt)
    : value && typeof value === 'object' ? Object.fromEntries(Object.entries(value).map(([k, v]) => [k, spoilt(v)])) : value;
  return new Response(JSON.stringify(spoilt(await reply.json())), {status: reply.status});
};
""" % HOSTILE
# Waits, without a clock, until the page shows the text: every change of the page is looked at.
UNTIL_SHOWN = """
new Promise(done => {
  const look = () => document.body.innerText.includes(%r) && done(true);
  new MutationObserver(look).observe(document.body, {subtree: true, childList: true, characterData: true, attributes: true});
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
        self.assertTrue(self.browser.evaluate(UNTIL_SHOWN % text))

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


class Console(InABrowser):
    @classmethod
    def setUpClass(cls):
        cls.fleet = fleets.Fleet(workers=1)
        cls.addClassCleanup(cls.fleet.close)
        cls.fleet.up()
        cls.fleet.put_fashion("fashion", 500)
        cls.job = cls.fleet.submit(JOB)
        cls.fleet.run("wait", cls.job, "--timeout", "240s", check=True)
        cls.fleet.run("evaluate", cls.job, "--dataset", "fashion", "--curve", "4", check=True)
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
        for width in (1400, 400):
            for scheme in ("light", "dark"):
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

    def test_a_running_job_is_followed_by_events(self):
        job = self.fleet.submit(JOB.replace("name: console", "name: long").replace("num_epochs: 60", "num_epochs: 1000000"))
        self.addCleanup(self.fleet.run, "cancel", job)
        self.show("#/jobs/" + job, "RUNNING")
        self.assertTrue(any("/watch?" in asked for asked in self.browser.requests()), self.browser.requests())
        self.browser.evaluate("clearTimeout(timer), setTimeout = () => 0")  # nothing but events draws the page from here on
        self.assertTrue(self.browser.evaluate(UNTIL_MORE))
        self.fleet.run("cancel", job, check=True)
        self.assertTrue(self.browser.evaluate(UNTIL_SHOWN % "CANCELLED"))
        self.assertEqual(self.browser.complaints(), [])

    def test_orders_are_given_by_keyboard(self):
        job = self.fleet.submit(JOB.replace("name: console", "name: ordered").replace("num_epochs: 60", "num_epochs: 1000000"))
        self.addCleanup(self.fleet.run, "cancel", job)
        self.show("#/jobs/" + job, "RUNNING")
        self.browser.evaluate("asked = [], confirm = text => asked.push(text)")
        for order, shown in (("Pause", "PAUSED"), ("Resume", "RUNNING"), ("Cancel", "CANCELLED"), ("Delete", "DELETING")):
            self.tab_to(order)
            self.press("Enter", 13, "\r")
            self.assertTrue(self.browser.evaluate(UNTIL_SHOWN % shown))
        self.assertEqual(self.browser.evaluate("asked"), [f"cancel {job}?", f"delete {job}?"])

    def test_a_row_is_predicted(self):
        self.show("#/jobs/" + self.job, "Convergence")
        self.browser.evaluate("""{ const box = document.querySelector('textarea');
            box.value = Array(784).fill(0).join(','); box.dispatchEvent(new Event('input')); box.form.requestSubmit(); }""")
        self.assertTrue(self.browser.evaluate(UNTIL_SHOWN % "Mutual information"))
        self.assertTrue(self.browser.evaluate(UNTIL_SHOWN % "Mean probability of each class"))
        self.keep("predicted")

    def test_a_row_of_another_length_is_refused_in_words(self):
        self.show("#/jobs/" + self.job, "Convergence")
        self.browser.evaluate("""{ const box = document.querySelector('textarea');
            box.value = '1, 2'; box.dispatchEvent(new Event('input')); box.form.requestSubmit(); }""")
        self.assertTrue(self.browser.evaluate(UNTIL_SHOWN % "the row has 2 numbers; the job takes 784"))

    def test_text_that_is_markup_is_shown_and_not_run(self):
        self.browser.call("Page.addScriptToEvaluateOnNewDocument", source=HOSTILE_REPLIES)
        for view in self.views:
            with self.subTest(view=view):
                self.show(view, HOSTILE)
                self.assertEqual(self.browser.evaluate("document.scripts.length"), 2)
                self.assertEqual(self.browser.evaluate("document.querySelectorAll('main img').length"), 0)

    def test_a_keyboard_is_enough(self):
        self.show("#/workers", "worker-0")
        for view, text in (("Data", "champion"), ("Evaluations", self.evaluation), ("Workers", "worker-0"), ("Jobs", self.job)):
            self.browser.evaluate("document.activeElement.blur()")
            self.tab_to(view)
            self.press("Enter", 13, "\r")
            self.assertTrue(self.browser.evaluate(UNTIL_SHOWN % text))
        self.tab_to(self.job)
        self.browser.evaluate("draw()")  # as the timer does
        self.assertEqual(self.browser.evaluate("document.activeElement.textContent"), self.job, "the focus stays")
        self.press("Enter", 13, "\r")
        self.assertTrue(self.browser.evaluate(UNTIL_SHOWN % "Convergence"))
        self.tab_to("784 numbers")
        self.browser.call("Input.insertText", text="0 " * 784)
        self.tab_to("Predict")
        self.press("Enter", 13, "\r")
        self.assertTrue(self.browser.evaluate(UNTIL_SHOWN % "Mutual information"))
        self.tab_to(self.evaluation)
        self.press("Enter", 13, "\r")
        self.assertTrue(self.browser.evaluate(UNTIL_SHOWN % "mean single draw theta"))
        self.tab_to(self.job)
        self.press("Enter", 13, "\r")
        self.assertTrue(self.browser.evaluate(UNTIL_SHOWN % "Convergence"))
        self.tab_to("12 committed")
        self.press("Enter", 13, "\r")
        self.assertTrue(self.browser.evaluate(UNTIL_SHOWN % "Kinds"))

    def test_an_image_is_predicted(self):
        self.show("#/jobs/" + self.job, "Convergence")
        with tempfile.NamedTemporaryFile(suffix=".png") as image:
            image.write(base64.b64decode(self.browser.evaluate("""(() => { const canvas = document.createElement('canvas');
                canvas.width = canvas.height = 56; const context = canvas.getContext('2d'); context.fillStyle = 'white';
                context.fillRect(0, 0, 56, 28); return canvas.toDataURL().split(',')[1]; })()""")))
            image.flush()
            node = self.browser.call("Runtime.evaluate", expression="document.querySelector('input[type=file]')")["result"]["objectId"]
            self.browser.call("DOM.setFileInputFiles", files=[image.name], objectId=node)
            self.assertTrue(self.browser.evaluate("new Promise(done => { const look = () => document.querySelector('textarea').value ? "
                                                  "done(true) : requestAnimationFrame(look); look(); })"))
        row = [int(value) for value in self.browser.evaluate("document.querySelector('textarea').value").split(",")]
        self.assertEqual((len(row), set(row[:13 * 28]), set(row[15 * 28:])), (784, {255}, {0}), "white above, black below")
        self.browser.evaluate("document.querySelector('textarea').form.requestSubmit()")
        self.assertTrue(self.browser.evaluate(UNTIL_SHOWN % "Mean probability of each class"))

    def test_a_page_is_small(self):
        self.show("#/jobs", self.job)
        size = self.browser.evaluate("performance.getEntriesByType('resource').concat(performance.getEntriesByType('navigation'))"
                                     ".filter(e => !e.name.includes('/v1/')).reduce((sum, e) => sum + e.decodedBodySize, 0)")
        self.assertLess(size, 400_000)
        self.assertGreater(size, 100_000)


class Numbers(InABrowser):
    def test_a_job_that_learns_numbers_shows_distributions(self):
        self.fleet = fleets.Fleet(workers=1)
        self.addCleanup(self.fleet.close)
        self.fleet.up()
        source = random.Random(5)
        rows = [(x, 2 * x + source.gauss(0, 0.3)) for x in (source.gauss(0, 1) for _ in range(500))]
        with open(self.fleet.path("line.csv"), "w") as f:
            f.write("x,y\n" + "".join(f"{x},{y}\n" for x, y in rows))
        self.fleet.run("dataset", "put", "line", self.fleet.path("line.csv"), "--target", "y", "--target-type", "float32", check=True)
        job = self.fleet.submit(JOB.replace("name: fashion", "name: line") + "likelihood: {gaussian: {variance: 0.09}}\n")
        self.fleet.run("wait", job, "--timeout", "240s", check=True)
        self.fleet.run("evaluate", job, "--dataset", "line", check=True)
        self.show("#/jobs/" + job, "One row of shape [1]")
        self.browser.evaluate("""{ const box = document.querySelector('textarea');
            box.value = '1'; box.dispatchEvent(new Event('input')); box.form.requestSubmit(); }""")
        self.assertTrue(self.browser.evaluate(UNTIL_SHOWN % "Probability that the number is below x"))
        said = self.browser.evaluate("[...document.querySelectorAll('dt')].find(e => e.textContent === 'Central 90 %').nextSibling.textContent")
        low, high = map(float, said.split(" to "))
        self.assertLess(low, high)
        self.check_charts()
        self.keep("predicted-numbers")
        self.show("#/evaluations/" + self.fleet.json("get", "evaluations", job)["evaluations"][0]["id"], "RMSE of single draws")
        self.check_charts(least=1)
        self.keep("evaluated-numbers")
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
        for width, scheme in ((1400, "light"), (400, "dark")):
            with self.subTest(width=width, scheme=scheme):
                self.screen(width, scheme)
                self.browser.open("about:blank")
                self.browser.open(f"http://{fleet.http_address}/#/workers")
                self.assertTrue(self.browser.evaluate(UNTIL_SHOWN % "The token stays in this tab"))
                self.assertNotIn("worker-0", self.browser.evaluate("document.body.innerText"))
                self.check_fit(width, scheme)
                self.keep(f"login-{width}-{scheme}")
                self.tab_to("Token")
                self.browser.call("Input.insertText", text=TOKEN)
                self.assertNotIn(TOKEN, self.browser.evaluate("document.body.innerText"))
                self.press("Enter", 13, "\r")
                self.assertTrue(self.browser.evaluate(UNTIL_SHOWN % "worker-0"))
                self.check_fit(width, scheme)
                self.tab_to("Log out")
                self.press("Enter", 13, "\r")
                self.assertTrue(self.browser.evaluate(UNTIL_SHOWN % "The token stays in this tab"))
                self.assertNotIn("Log out", self.browser.evaluate("document.body.innerText"))
                self.assertIsNone(self.browser.evaluate("sessionStorage.getItem('token')"))


if __name__ == "__main__":
    unittest.main()
