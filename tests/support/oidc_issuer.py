"""An OpenID Connect issuer on the loopback: its configuration, its keys, and tokens signed by the openssl command."""
import base64
import http.server
import json
import os
import subprocess
import threading
import time


def _text(data):
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


class Issuer:
    """Publishes RSA keys, by default one that is named "first"; `folder` has the private ones."""

    def __init__(self, folder):
        self.folder, self.published, self.asked = folder, [], []
        issuer = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_GET(self):
                issuer.asked.append(self.path)
                pages = {"/.well-known/openid-configuration": {"issuer": issuer.url, "jwks_uri": issuer.url + "/keys"},
                         "/keys": issuer.keys()}
                page = json.dumps(pages.get(self.path, {})).encode()
                self.send_response(200 if self.path in pages else 404)
                self.send_header("Content-Length", str(len(page)))
                self.end_headers()
                self.wfile.write(page)

            def log_message(self, *args):
                """Says nothing."""

        self._server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}"
        self._thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.01})
        self._thread.start()
        self.make_key("first")
        self.published = ["first"]

    def close(self):
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()

    def _path(self, name):
        return os.path.join(self.folder, name + ".key")

    def make_key(self, name):
        subprocess.run(["openssl", "genrsa", "-out", self._path(name), "2048"], check=True, capture_output=True)

    def keys(self):
        keys = []
        for name in self.published:
            said = subprocess.run(["openssl", "rsa", "-in", self._path(name), "-noout", "-modulus"], check=True, capture_output=True, text=True)
            modulus = bytes.fromhex(said.stdout.strip().partition("=")[2])
            keys.append({"kty": "RSA", "use": "sig", "alg": "RS256", "kid": name, "n": _text(modulus), "e": "AQAB"})
        return {"keys": keys}

    def token(self, key="first", seconds=600, **claims):
        """Valid for `seconds` from now, for the audience "fleet" and the subject "ada" unless `claims` say otherwise."""
        header = {"alg": "RS256", "typ": "JWT", "kid": key}
        claims = {"iss": self.url, "aud": "fleet", "sub": "ada", "exp": int(time.time()) + seconds, **claims}
        text = ".".join(_text(json.dumps(part).encode()) for part in (header, claims))
        signature = subprocess.run(["openssl", "dgst", "-sha256", "-sign", self._path(key)], input=text.encode(), check=True, capture_output=True)
        return f"{text}.{_text(signature.stdout)}"
