"""An HTTP server in a thread, on a real socket, for handlers of tests."""

import ssl
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

from scripts.stack.ports import HOST


class Handler(BaseHTTPRequestHandler):
    """A handler that does not log its requests."""

    def answer(self, status: int, body: bytes = b"", content_type: str = "application/json") -> None:
        self.send_response(status)
        self.send_header("Content-Type", content_type)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:
        """Log nothing."""


@contextmanager
def serving(handler: type[Handler], certificate: Path | None = None) -> Iterator[str]:
    """Yields its URL. :param certificate: key and certificate in one PEM file, for TLS."""
    server = ThreadingHTTPServer((HOST, 0), handler)
    server.daemon_threads = True
    if certificate:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(certificate)
        server.socket = context.wrap_socket(server.socket, server_side=True)
    threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True).start()
    try:
        yield f"{'https' if certificate else 'http'}://{HOST}:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()
