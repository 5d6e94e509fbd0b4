"""Glewlwyd, a real issuer of OpenID Connect, on loopback over HTTPS. `ready` makes its plugin, a scope and a client."""
import base64
import json
import os
import sqlite3
import ssl
import subprocess
import time
import urllib.error
import urllib.parse
import urllib.request

from real_server import RealServer, free_ports

TABLES = "/usr/share/dbconfig-common/data/glewlwyd/install/sqlite3"
SETTINGS = """
port = {port}
bind_address = "127.0.0.1"
external_url = "https://localhost:{port}/"
api_prefix = "api"
login_url = "login.html"
log_mode = "console"
log_level = "INFO"
session_key = "session"
admin_scope = "g_admin"
profile_scope = "g_profile"
user_module_path = "/usr/lib/glewlwyd/user"
client_module_path = "/usr/lib/glewlwyd/client"
user_auth_scheme_module_path = "/usr/lib/glewlwyd/scheme"
plugin_module_path = "/usr/lib/glewlwyd/plugin"
hash_algorithm = "SHA512"
use_secure_connection = true
secure_connection_key_file = "{key}"
secure_connection_pem_file = "{certificate}"
secure_connection_ca_file = "{authority}"
database = {{ type = "sqlite3"; path = "{database}"; }};
"""
CLIENT, SECRET, SCOPE = "notebook", "the-secret-of-the-client", "models"
PATIENCE = 60  # seconds


class Glewlwyd(RealServer):
    def __init__(self, authority, certificate, key):
        """certificate, key: of localhost, signed by `authority`; paths of PEM files."""
        super().__init__("glewlwyd")
        self.port = free_ports(1)[0]
        self.url = f"https://localhost:{self.port}/api/oidc"
        self.files = {"authority": authority, "certificate": certificate, "key": key}
        self.calls = urllib.request.build_opener(urllib.request.HTTPCookieProcessor(),
                                                 urllib.request.HTTPSHandler(context=ssl.create_default_context(cafile=authority)))

    def path(self, name):
        return os.path.join(self.folder, name)

    def start(self):
        with sqlite3.connect(self.path("issuer.db")) as database, open(TABLES, encoding="utf-8") as tables:
            database.executescript(tables.read())
        with open(self.path("issuer.conf"), "w", encoding="utf-8") as file:
            file.write(SETTINGS.format(port=self.port, database=self.path("issuer.db"), **self.files))
        self.start_process()
        self.make_client()

    def start_process(self):
        with open(self.path("log"), "a") as log:
            self.process = subprocess.Popen(["glewlwyd", "--config-file=" + self.path("issuer.conf")], stdout=log, stderr=log, preexec_fn=self.die_with_parent)
        end = time.monotonic() + PATIENCE
        while True:
            try:  # the password of a new database
                return self.call("POST", "/auth/", {"username": "admin", "password": "password"})
            except (urllib.error.URLError, ConnectionError) as error:
                if time.monotonic() > end or self.process.poll() is not None:
                    with open(self.path("log")) as log:
                        raise AssertionError(log.read()[-2000:]) from error

    def make_plugin(self):
        """With a fresh key."""
        for command in (["genrsa", "-out", self.path("private.pem"), "2048"], ["rsa", "-in", self.path("private.pem"), "-pubout", "-out", self.path("public.pem")]):
            subprocess.run(["openssl", *command], check=True, stderr=subprocess.DEVNULL)
        texts = {}
        for name in ("private", "public"):
            with open(self.path(name + ".pem"), encoding="utf-8") as file:
                texts[name] = file.read()
        off = {f"auth-type-{kind}-enabled": False for kind in ("code", "token", "id-token", "none", "refresh", "device", "password")}
        self.call("POST", "/mod/plugin/", {"module": "oidc", "name": "oidc", "display_name": "oidc", "order_rank": 0, "parameters": {
            "iss": self.url, "jwt-type": "rsa", "jwt-key-size": "256", "key": texts["private"], "cert": texts["public"], "jwks-show": True,
            "access-token-duration": 3600, "refresh-token-duration": 3600, "code-duration": 600, "refresh-token-rolling": False,
            "allow-non-oidc": True, "subject-type": "public", **off, "auth-type-client-enabled": True}})

    def change_key(self):
        self.call("DELETE", "/mod/plugin/oidc")
        self.make_plugin()

    def make_client(self):
        self.make_plugin()
        self.call("POST", "/scope/", {"name": SCOPE, "display_name": SCOPE, "description": SCOPE, "password_required": False, "scheme": {}})
        self.call("POST", "/client/", {"client_id": CLIENT, "name": CLIENT, "confidential": True, "enabled": True, "client_secret": SECRET, "scope": [SCOPE],
                                       "authorization_type": ["client_credentials"], "token_endpoint_auth_method": ["client_secret_basic"]})

    def token(self):
        """A JWT of the client: `aud` is the scope, `client_id` and `sub` the client."""
        basic = base64.b64encode(f"{CLIENT}:{SECRET}".encode()).decode()
        form = urllib.parse.urlencode({"grant_type": "client_credentials", "scope": SCOPE}).encode()
        return self.send("POST", "/oidc/token", form, {"Authorization": "Basic " + basic})["access_token"]

    def call(self, verb, path, body=None):
        return self.send(verb, path, None if body is None else json.dumps(body).encode(), {"Content-Type": "application/json"})

    def send(self, verb, path, body, headers):
        request = urllib.request.Request(f"https://localhost:{self.port}/api{path}", data=body, headers=headers, method=verb)
        with self.calls.open(request, timeout=20) as reply:
            text = reply.read()
        return json.loads(text) if text else None
