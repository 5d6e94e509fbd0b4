"""Tests with the real binaries that callers come by the tokens of an OpenID Connect issuer."""
import json
import os
import re
import subprocess
import tempfile
import unittest
import urllib.error
import urllib.request

import fleet as fleets
import glewlwyd
import oidc_issuer
import started_fleet
from real_server import free_ports

ADMIN = "The-token-of-an-administrator"
RULES = ("groups=ml team -> vision writer", "groups=shop -> vision predictor", "role=reader -> {org} reader")


class Oidc(unittest.TestCase):
    def setUp(self):
        self.fleet = started_fleet.StartedFleet()
        self.addCleanup(self.fleet.close)
        self.issuer = oidc_issuer.Issuer(self.fleet.path())
        self.addCleanup(self.issuer.close)
        self.settings = self.fleet.path("server.conf")
        self.http = f"127.0.0.1:{free_ports(1)[0]}"

    def serve(self, **settings):
        rules = ", ".join(f'"{rule}"' for rule in RULES)
        with open(self.settings, "w") as f:
            f.write(f'oidc-issuer = "{self.issuer.url}"\noidc-audience = "fleet"\noidc-rule = [{rules}]\n')
            f.writelines(f'{name.replace("_", "-")} = "{value}"\n' for name, value in settings.items())
        self.fleet.environment = {}
        self.fleet.start_server(0, "--config", self.settings, http=self.http, environment={"CHAINFLEET_TOKEN": ADMIN})
        self.fleet.environment = {"CHAINFLEET_TOKEN": ADMIN}
        self.fleet.wait_until_served()

    def run_with(self, token, *arguments):
        return self.fleet.run(*arguments, env={"CHAINFLEET_TOKEN": token})

    def assert_refused(self, said, token, *arguments):
        answer = self.run_with(token, *(arguments or ("get", "jobs")))
        self.assertEqual(answer.returncode, 4, answer)
        self.assertIn(said, answer.stderr)

    def test_a_rule_gives_tenant_and_role(self):
        self.serve()
        self.assertEqual(self.issuer.asked, ["/.well-known/openid-configuration", "/keys"])
        writer = self.issuer.token(groups=["other", "ml team"], sub="ada\n\x1b[2J")
        self.fleet.environment = {"CHAINFLEET_TOKEN": writer}
        job = self.fleet.submit(fleets.walk())
        self.assertEqual(self.fleet.json("describe", job)["tenant"], "vision")
        self.assertIn(job, self.run_with(self.issuer.token(role="reader", org="vision"), "get", "jobs").stdout)
        self.assertNotIn(job, self.run_with(self.issuer.token(role="reader", org="speech"), "get", "jobs").stdout)
        self.assert_refused("does not allow", self.issuer.token(groups=["shop"]))
        self.assert_refused("does not allow", self.issuer.token(role="reader", org="vision"), "cancel", job)
        self.assert_refused("--oidc-rule", self.issuer.token(groups=["strangers"], sub="eve"))
        lines = self.run_with(ADMIN, "audit").stdout
        self.assertIn(r"oidc:ada\u000a\u001b[2J", lines)
        self.assertRegex(self.run_with(ADMIN, "audit", "--raw").stdout, f"oidc:eve.*{re.escape(self.issuer.url)}")
        self.assertEqual(len(self.issuer.asked), 2)

    def test_wrong_tokens(self):
        self.serve()
        good = self.issuer.token(groups="ml team")
        self.assertEqual(self.run_with(good, "get", "jobs").returncode, 0)
        self.assert_refused("expired", self.issuer.token(groups="ml team", seconds=-61))
        self.assert_refused("audience", self.issuer.token(groups="ml team", aud="shop"))
        self.assert_refused("issuer", self.issuer.token(groups="ml team", iss="https://evil.example.org"))
        head, claims, signature = good.split(".")
        self.assert_refused("signature", ".".join((head, claims, signature[:-8] + "AAAAAAAA")))
        self.issuer.make_key("stolen")
        self.assert_refused("did not publish", self.issuer.token("stolen", groups="ml team"))
        self.assertNotIn(good, self.fleet.logs())

    def test_http_takes_them(self):
        self.serve()

        def get(token):
            request = urllib.request.Request(f"http://{self.http}/v1/jobs", headers={"Authorization": "Bearer " + token})
            with urllib.request.urlopen(request, timeout=20) as reply:
                return json.load(reply)

        self.assertEqual(get(self.issuer.token(groups="ml team"))["jobs"], [])
        with self.assertRaises(urllib.error.HTTPError) as refused:
            get(self.issuer.token(groups="ml team", seconds=-61))
        self.assertEqual(refused.exception.code, 401)

    def test_keys_of_a_file(self):
        keys = self.fleet.path("keys.json")
        with open(keys, "w") as f:
            json.dump(self.issuer.keys(), f)
        self.serve(oidc_keys=keys)
        self.assertEqual(self.run_with(self.issuer.token(groups="ml team"), "get", "jobs").returncode, 0)
        self.assertEqual(self.issuer.asked, [])

    def test_settings_that_do_not_fit(self):
        with tempfile.TemporaryDirectory() as folder:
            def refused(*flags):
                done = subprocess.run([os.path.join(fleets.BIN, "chainfleet-server"), "--data-dir", folder, "--listen", "127.0.0.1:0",
                                       "--metrics-listen", "off", "--http-listen", "off", *flags], capture_output=True, text=True, timeout=60)
                self.assertNotEqual(done.returncode, 0)
                return done.stderr

            issuer = ("--oidc-issuer", "https://id.example.org", "--oidc-audience", "fleet")
            self.assertIn("--oidc-issuer", refused("--oidc-audience", "fleet"))
            self.assertIn("--oidc-rule", refused(*issuer))
            self.assertIn("CLAIM=VALUE", refused(*issuer, "--oidc-rule", "vision writer"))
            for url in ("http://id.example.org", "http://127.0.0.1.example.org", "http://127.0.0.1:80@example.org", "ftp://127.0.0.1"):
                self.assertIn("https://", refused("--oidc-issuer", url, "--oidc-audience", "fleet", "--oidc-rule", "sub=ada -> vision"))
            self.assertIn("--oidc-keys", refused(*issuer, "--oidc-rule", "sub=ada -> vision", "--oidc-keys", folder + "/none.json"))


class RealIssuer(unittest.TestCase):
    """Glewlwyd of Debian, over HTTPS with an authority that the host does not know."""

    def setUp(self):
        self.fleet = started_fleet.StartedFleet()
        self.addCleanup(self.fleet.close)
        self.fleet.pki("init")
        self.fleet.pki("issue", "issuer", "--host", "localhost")
        self.authority = self.fleet.path("pki", "ca.crt")
        self.issuer = glewlwyd.Glewlwyd(self.authority, self.fleet.path("pki", "issuer.crt"), self.fleet.path("pki", "issuer.key"))
        self.addCleanup(self.issuer.close)
        self.issuer.start()

    def serve(self, *flags):
        self.fleet.start_server(0, "--oidc-issuer", self.issuer.url, "--oidc-audience", glewlwyd.SCOPE, "--oidc-rule",
                                f"client_id={glewlwyd.CLIENT} -> vision writer", *flags, environment={"CHAINFLEET_TOKEN": ADMIN})
        self.fleet.wait_until(0, lambda answer: "does not know" not in answer.stderr and answer.returncode != 5)

    def test_its_tokens_are_taken_also_after_its_key_changed(self):
        self.serve("--oidc-ca", self.authority)
        self.fleet.environment = {"CHAINFLEET_TOKEN": self.issuer.token()}
        job = self.fleet.submit(fleets.walk())
        self.assertEqual(self.fleet.json("describe", job)["tenant"], "vision")
        self.assertEqual(self.fleet.run("token", "list").returncode, 4, "a writer makes no tokens")
        self.issuer.change_key()
        self.serve("--oidc-ca", self.authority)  # it reads the keys at its start, and later at most every 30 s
        refused = self.fleet.run("get", "jobs")
        self.assertEqual(refused.returncode, 4, refused)
        self.assertIn("did not publish", refused.stderr)
        self.fleet.environment = {"CHAINFLEET_TOKEN": self.issuer.token()}
        self.assertIn(job, self.fleet.run("get", "jobs", check=True).stdout)

    def test_without_its_authority_no_token_is_taken(self):
        self.serve()
        refused = self.fleet.run("get", "jobs", "--timeout", "2s", env={"CHAINFLEET_TOKEN": self.issuer.token()})
        self.assertNotEqual(refused.returncode, 0)
        with open(self.fleet.path("run", "server-0.log")) as log:
            self.assertIn("cannot read the issuer's keys", log.read())


if __name__ == "__main__":
    unittest.main()
