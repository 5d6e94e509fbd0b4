"""A headless Chromium that is asked about pages over its pipe of the DevTools protocol. Standard library only.

It has no network, unless a test lets it reach one host: every name resolves to nothing and a proxy that is not there takes all the rest, so whatever a page asks for
beside itself fails, and is told.
"""
import base64
import json
import os
import select
import shutil
import struct
import subprocess
import tempfile
import time
import zlib

PATIENCE = 60  # seconds, of one answer


class Chromium:
    """Owns a browser with one empty page; `close` leaves nothing behind."""

    def __init__(self, width=1280, height=900, reaches=""):
        """reaches: the only host that the browser finds."""
        self.profile = tempfile.mkdtemp(prefix="chainfleet-chromium-")
        to_browser, self.writing = os.pipe()
        self.reading, from_browser = os.pipe()

        def as_three_and_four():
            ends = os.dup(to_browser), os.dup(from_browser)  # above both, whatever numbers the pipes have
            os.dup2(ends[0], 3)
            os.dup2(ends[1], 4)

        self.process = subprocess.Popen(
            [shutil.which("chromium"), "--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--hide-scrollbars",
             "--no-first-run", "--disable-background-networking", "--disable-component-update", "--disable-sync",
             f"--host-resolver-rules=MAP * ~NOTFOUND{f', EXCLUDE {reaches}' if reaches else ''}",
             "--no-proxy-server" if reaches else "--proxy-server=127.0.0.1:9", f"--user-data-dir={self.profile}",
             "--remote-debugging-pipe", "about:blank"],
            pass_fds=(3, 4), preexec_fn=as_three_and_four, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        os.close(to_browser)
        os.close(from_browser)
        self.buffer, self.messages, self.events, self.session = b"", 0, [], None
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        self.session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.call(f"{domain}.enable")
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=False)

    def receive(self):
        end = time.monotonic() + PATIENCE
        while b"\0" not in self.buffer:
            ready, _, _ = select.select([self.reading], [], [], max(0, end - time.monotonic()))
            chunk = os.read(self.reading, 1 << 20) if ready else b""
            if not chunk:
                raise AssertionError("chromium does not answer" if not ready else "chromium has ended")
            self.buffer += chunk
        message, _, self.buffer = self.buffer.partition(b"\0")
        return json.loads(message)

    def call(self, method, **parameters):
        """The result of one command; what happens meanwhile is kept in `events`."""
        self.messages += 1
        command = {"id": self.messages, "method": method, "params": parameters}
        if self.session:
            command["sessionId"] = self.session
        data = json.dumps(command).encode() + b"\0"
        while data:
            data = data[os.write(self.writing, data):]
        while True:
            message = self.receive()
            if message.get("id") == self.messages:
                if "error" in message:
                    raise AssertionError(f"{method}: {message['error']}")
                return message["result"]
            if "method" in message:
                self.events.append(message)

    def wait_for(self, method):
        while not any(event["method"] == method for event in self.events):
            message = self.receive()
            if "method" in message:
                self.events.append(message)

    def open(self, path):
        """Loads a file, or an address, and waits until it is drawn."""
        self.events.clear()
        self.call("Page.navigate", url=path if "://" in path else "file://" + os.path.abspath(path))
        self.wait_for("Page.loadEventFired")

    def evaluate(self, expression):
        result = self.call("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        if "exceptionDetails" in result:
            raise AssertionError(result["exceptionDetails"])
        return result["result"].get("value")

    def requests(self):
        """Addresses that the page asked for, without the data inside of it."""
        asked = [event["params"]["request"]["url"] for event in self.events if event["method"] == "Network.requestWillBeSent"]
        return [url for url in asked if not url.startswith("data:")]

    def complaints(self):
        """The messages of the console: errors, warnings, exceptions, violations of the content security policy."""
        return [event["params"] for event in self.events
                if event["method"] in ("Log.entryAdded", "Runtime.exceptionThrown", "Runtime.consoleAPICalled")]

    def media(self, **features):
        """prefers_color_scheme="dark", media="print"."""
        media = features.pop("media", "")
        self.call("Emulation.setEmulatedMedia", media=media,
                  features=[{"name": name.replace("_", "-"), "value": value} for name, value in features.items()])

    def picture(self, region=None):
        """PNG bytes of a region {x, y, width, height} of the page, or of all of it."""
        if region is None:
            size = self.call("Page.getLayoutMetrics")["cssContentSize"]
            region = {"x": 0, "y": 0, "width": size["width"], "height": size["height"]}
        shot = self.call("Page.captureScreenshot", format="png", captureBeyondViewport=True, clip={**region, "scale": 1})
        return base64.b64decode(shot["data"])

    def close(self):
        self.process.terminate()
        try:
            self.process.wait(10)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait(10)
        os.close(self.writing)
        os.close(self.reading)
        shutil.rmtree(self.profile, ignore_errors=True)


def pixels(png):
    """Rows of (red, green, blue) of a PNG with 8 bits a sample, as browsers write it."""
    at, data, channels, width = 8, b"", 0, 0
    while at < len(png):
        length, kind = struct.unpack(">I4s", png[at:at + 8])
        body = png[at + 8:at + 8 + length]
        if kind == b"IHDR":
            width, _, depth, color = struct.unpack(">IIBB", body[:10])
            channels = {2: 3, 6: 4}[color]
            assert depth == 8
        if kind == b"IDAT":
            data += body
        at += 12 + length
    data, stride = zlib.decompress(data), width * channels
    rows, before = [], bytearray(stride)
    for begin in range(0, len(data), stride + 1):
        line = bytearray(data[begin + 1:begin + 1 + stride])
        unfilter(data[begin], line, before, channels)
        before = line
        rows.append([tuple(line[i:i + 3]) for i in range(0, stride, channels)])
    return rows


def unfilter(kind, line, before, channels):
    """In place; the five filters of the PNG specification, section 9.2."""
    for i in range(len(line)):
        left = line[i - channels] if i >= channels else 0
        corner = before[i - channels] if i >= channels else 0
        up = before[i]
        if kind == 1:
            line[i] = (line[i] + left) & 255
        elif kind == 2:
            line[i] = (line[i] + up) & 255
        elif kind == 3:
            line[i] = (line[i] + (left + up) // 2) & 255
        elif kind == 4:
            estimate = left + up - corner
            nearest = min((left, up, corner), key=lambda value: abs(estimate - value))
            line[i] = (line[i] + nearest) & 255
