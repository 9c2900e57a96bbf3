"""A proxy before the real S3 server, so that a test can fail, hold or kill at one exact request.

It passes requests on as they came (the Host header too, which is part of the signature).
"""

import http.client
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import NamedTuple
from urllib.parse import parse_qs, unquote, urlsplit


class Request(NamedTuple):
    """What came in: the verb as S3 names it, the key (without bucket), and how many of that verb came before."""

    verb: str
    key: str
    number: int


# Called before a request is passed on (False) and after the server has carried it out (True).
# Returns an HTTP status to answer with instead, or None.
Rule = Callable[[Request, bool], int | None]


def verb_of(method: str, query: str) -> str:
    """The S3 operation of a request."""
    found = parse_qs(query, keep_blank_values=True)
    if "uploadId" in found:
        return {"PUT": "part", "POST": "complete", "DELETE": "abort"}.get(method, method.lower())
    if method == "POST" and "uploads" in found:
        return "start"
    return method.lower()


class S3Proxy:
    """`endpoint_url` is where clients go; `rule` may be changed at any time; `seen` is what came."""

    def __init__(self, upstream: str) -> None:
        self.rule: Rule = lambda _, __: None
        self.seen: list[Request] = []
        self._lock = threading.Lock()
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), _handler(self, urlsplit(upstream).netloc))
        self.endpoint_url = f"http://127.0.0.1:{self._server.server_port}"

    def note(self, verb: str, key: str) -> Request:
        """Count a request."""
        with self._lock:
            request = Request(verb, key, sum(r.verb == verb for r in self.seen))
            self.seen.append(request)
            return request

    @contextmanager
    def serving(self) -> Iterator["S3Proxy"]:
        """Serve until the block ends."""
        thread = threading.Thread(target=self._server.serve_forever, daemon=True)
        thread.start()
        try:
            yield self
        finally:
            self._server.shutdown()
            self._server.server_close()


def _handler(proxy: S3Proxy, upstream: str) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def _serve(self) -> None:
            split = urlsplit(self.path)
            key = unquote(split.path).lstrip("/").partition("/")[2]
            request = proxy.note(verb_of(self.command, split.query), key)
            body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            try:
                if status := proxy.rule(request, False):
                    return self._answer(status, {}, b"")
                connection = http.client.HTTPConnection(upstream, timeout=60)
                headers = {k: v for k, v in self.headers.items() if k.lower() != "expect"}
                connection.request(self.command, self.path, body, headers)
                response = connection.getresponse()
                content = response.read()
                connection.close()
                if status := proxy.rule(request, True):
                    return self._answer(status, {}, b"")
                self._answer(response.status, dict(response.getheaders()), content)
            except (BrokenPipeError, ConnectionResetError):
                # The client was killed: that is what the test is about.
                self.close_connection = True

        def _answer(self, status: int, headers: dict[str, str], content: bytes) -> None:
            self.send_response(status)
            for name, value in headers.items():
                if name.lower() not in ("content-length", "transfer-encoding", "connection", "server", "date"):
                    self.send_header(name, value)
            length = headers.get("Content-Length") if self.command == "HEAD" else str(len(content))
            self.send_header("Content-Length", length or "0")
            self.end_headers()
            if self.command != "HEAD":
                self.wfile.write(content)

        # ruff: noqa: N815 - the names that http.server looks for
        do_GET = do_PUT = do_POST = do_DELETE = do_HEAD = _serve

        def log_message(self, *_: object) -> None:
            pass

    return Handler
