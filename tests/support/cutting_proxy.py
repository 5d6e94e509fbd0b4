"""A proxy on loopback that cuts connections: each after so many bytes that one of the two sides has sent through it."""
import socket
import threading


class CuttingProxy:
    """`cuts` connections end after `limit` bytes from the server, or to it; later ones stay. `address` is where to connect."""

    def __init__(self, address, limit, cuts, to_server=False):
        host, _, port = address.rpartition(":")
        self._target, self._limit, self._to_server = (host, int(port)), limit, to_server
        self._left, self._lock = cuts, threading.Lock()
        self._listener = socket.create_server(("127.0.0.1", 0))
        self._sockets = []
        self.address = f"127.0.0.1:{self._listener.getsockname()[1]}"
        threading.Thread(target=self._accept, daemon=True).start()

    @property
    def cuts_left(self):
        with self._lock:
            return self._left

    def _accept(self):
        while True:
            try:
                client, _ = self._listener.accept()
                server = socket.create_connection(self._target)
            except OSError:
                return
            self._sockets += [client, server]
            for source, target, counted in ((client, server, self._to_server), (server, client, not self._to_server)):
                threading.Thread(target=self._copy, args=(source, target, counted), daemon=True).start()

    def _copy(self, source, target, counted):
        seen = 0
        try:
            while part := source.recv(16384):
                seen += len(part)
                if counted and seen > self._limit and self._take_cut():
                    break
                target.sendall(part)
        except OSError:
            pass
        for end in (source, target):
            try:
                end.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass

    def _take_cut(self):
        with self._lock:
            taken = self._left > 0
            self._left -= taken
            return taken

    def close(self):
        for one in (self._listener, *self._sockets):
            one.close()
