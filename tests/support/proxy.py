"""A proxy for the real S3 server, so that a test can fail, damage, hold or kill at an exact request.

It forwards requests unchanged (with the Host header, which is part of the signature).
"""

import http.client
import socket
import struct
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Literal, NamedTuple
from urllib.parse import parse_qs, unquote, urlsplit

SLOW_SECONDS = 0.3
_CODES = {403: "AccessDenied", 429: "TooManyRequests", 500: "InternalError", 503: "SlowDown"}


class Request(NamedTuple):
    """A request: its S3 operation, the key (without bucket), the number of earlier requests of that operation, and the
    server's status (0 before it has answered).
    """

    verb: str
    key: str
    number: int
    status: int = 0


# The action of a rule: None forwards the request, a number is an HTTP status to answer.
# reset: break the connection in the middle of the request, or of the answer · slow: delay the answer ·
# damage: change one bit of the request's body, or of the answer's · cut: half of the answer's body, then a normal end.
Action = int | Literal["reset", "slow", "damage", "cut"] | None
# Called before a request is forwarded (False) and after the server has carried it out (True).
Rule = Callable[[Request, bool], Action]


def verb_of(method: str, query: str) -> str:
    """The S3 operation of a request."""
    parameters = parse_qs(query, keep_blank_values=True)
    if "uploadId" in parameters:
        return {"PUT": "part", "POST": "complete", "DELETE": "abort"}.get(method, method.lower())
    if "uploads" in parameters:
        return "start" if method == "POST" else "uploads"
    return "list" if "list-type" in parameters else method.lower()


@dataclass(frozen=True)
class Hold:
    """A rule that holds requests of an operation on keys with this ending; later they are forwarded, or refused.

    The rule sets `came` with the first request. The test sets `gone` to release all held and later requests.
    """

    verb: str
    ending: str = ""
    refused: bool = False
    came: threading.Event = field(default_factory=threading.Event)
    gone: threading.Event = field(default_factory=threading.Event)

    def __call__(self, request: Request, done: bool) -> Action:
        """See `Rule`."""
        if done or self.gone.is_set() or request.verb != self.verb or not request.key.endswith(self.ending):
            return None
        self.came.set()
        assert self.gone.wait(300)
        return 503 if self.refused else None


class S3Proxy:
    """`endpoint_url`: the address for clients. `rule`: may change at any time. `seen`: the requests so far."""

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
        thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)
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
            size = int(self.headers.get("Content-Length") or 0)
            action = proxy.rule(request, False)
            try:
                body = self.rfile.read(size // 2 if action == "reset" else size)
                if action == "reset":
                    return self._reset()
                if isinstance(action, int):
                    return self._refuse(action)
                connection = http.client.HTTPConnection(upstream, timeout=60)
                headers = {k: v for k, v in self.headers.items() if k.lower() != "expect"}
                connection.request(self.command, self.path, _flip(body) if action == "damage" else body, headers)
                response = connection.getresponse()
                content = response.read()
                connection.close()
                action = proxy.rule(request._replace(status=response.status), True)
                if isinstance(action, int):
                    return self._refuse(action)
                self._answer(response.status, dict(response.getheaders()), content, action)
            except (BrokenPipeError, ConnectionResetError):
                # The test has killed the client.
                self.close_connection = True

        def _refuse(self, status: int) -> None:
            self._answer(status, {}, f"<Error><Code>{_CODES.get(status, 'Told')}</Code></Error>".encode())

        def _answer(self, status: int, headers: dict[str, str], content: bytes, action: Action = None) -> None:
            if action == "slow":
                threading.Event().wait(SLOW_SECONDS)
            self.send_response(status)
            for name, value in headers.items():
                if name.lower() not in ("content-length", "transfer-encoding", "connection", "server", "date"):
                    self.send_header(name, value)
            length = headers.get("Content-Length") if self.command == "HEAD" else str(len(content))
            self.send_header("Content-Length", length or "0")
            if action == "reset":
                # Send the status and some headers only.
                self.flush_headers()
                self._reset()
                return
            self.end_headers()
            if self.command != "HEAD":
                sent = content[: len(content) // 2] if action == "cut" else content
                self.wfile.write(_flip(sent) if action == "damage" else sent)
            self.close_connection = self.close_connection or action == "cut"

        def _reset(self) -> None:
            self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            # Close now: the server would close it in order. The file also keeps it open.
            self.rfile.close()
            self.connection.close()
            self.close_connection = True

        # ruff: noqa: N815 - the names that http.server looks for
        do_GET = do_PUT = do_POST = do_DELETE = do_HEAD = _serve

        def log_message(self, *_: object) -> None:
            pass

    return Handler


def _flip(data: bytes) -> bytes:
    """The data with one bit changed in the middle."""
    middle = len(data) // 2
    return data[:middle] + bytes([data[middle] ^ 1]) + data[middle + 1 :] if data else data
