"""What stands before a registry that lets in only some: it asks for a user and password, over TLS if it should."""

import ssl
import threading
import urllib.error
import urllib.request
from base64 import b64encode
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

from scripts.stack.ports import HOST


@contextmanager
def guarding(url: str, user_info: str, certificate: Path | None = None) -> Iterator[str]:
    """Pass GETs on to the registry at `url`. Yields the guard's URL.

    :param certificate: key and certificate in one PEM file, for TLS.
    """

    class Guard(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            if self.headers.get("Authorization") != f"Basic {b64encode(user_info.encode()).decode()}":
                self._answer(401, b"<html>who are you?</html>")
                return
            try:
                with urllib.request.urlopen(f"{url}{self.path}", timeout=30) as response:
                    self._answer(response.status, response.read())
            except urllib.error.HTTPError as error:
                self._answer(error.code, error.read())

        def _answer(self, status: int, body: bytes) -> None:
            self.send_response(status)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: object) -> None:
            pass

    server = ThreadingHTTPServer((HOST, 0), Guard)
    if certificate:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(certificate)
        server.socket = context.wrap_socket(server.socket, server_side=True)
    serving = threading.Thread(target=server.serve_forever, daemon=True)
    serving.start()
    try:
        yield f"{'https' if certificate else 'http'}://{HOST}:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()
