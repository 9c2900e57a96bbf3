"""A link between two processes that a test can hold: connections stay, and nothing passes."""

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from scripts.stack.ports import HOST


class HeldLink:
    """Forwards the connections of one port to another. `hold` and `release` may be called at any time."""

    def __init__(self, port: int, target: int) -> None:
        self._port, self._target = port, target
        self._flows = threading.Event()
        self._flows.set()

    def hold(self) -> None:
        """Let nothing pass, in either direction, while all connections stay."""
        self._flows.clear()

    def release(self) -> None:
        """Let everything pass, also what was held."""
        self._flows.set()

    @contextmanager
    def serving(self) -> Iterator["HeldLink"]:
        """Serve until the block ends."""
        with socket.create_server((HOST, self._port)) as server:
            threading.Thread(target=self._accept, args=(server,), daemon=True).start()
            try:
                yield self
            finally:
                self.release()

    def _accept(self, server: socket.socket) -> None:
        # The end of the block closes the server's socket.
        with suppress(OSError):
            while True:
                client, _ = server.accept()
                try:
                    upstream = socket.create_connection((HOST, self._target), 5)
                except OSError:
                    client.close()
                    continue
                upstream.settimeout(None)
                for source, sink in ((client, upstream), (upstream, client)):
                    threading.Thread(target=self._pump, args=(source, sink), daemon=True).start()

    def _pump(self, source: socket.socket, sink: socket.socket) -> None:
        with suppress(OSError):
            while data := source.recv(1 << 16):
                self._flows.wait()
                sink.sendall(data)
        for end in (source, sink):
            with suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)
            end.close()
