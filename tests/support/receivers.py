"""Receivers of alerts and metrics: a webhook, a mail server, statsd and OTLP, each in a thread, on a real socket."""

from __future__ import annotations

import gzip
import json
import socketserver
import threading
from collections import Counter
from email import message_from_string, policy
from email.message import EmailMessage
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Self

from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceRequest


class _Server:
    server: socketserver.BaseServer

    @property
    def port(self) -> int:
        return int(self.server.server_address[1])

    def __enter__(self) -> Self:
        threading.Thread(target=self.server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self.server.shutdown()
        self.server.server_close()


class Webhook(_Server):
    """:ivar documents: the posted documents. :param status: the answer; None: no answer."""

    def __init__(self, status: int | None = 200) -> None:
        self.documents: list[Any] = []
        self.headers: list[dict[str, str]] = []
        self.paths: list[str] = []
        self._closing = threading.Event()
        owner = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                if status is None:
                    owner._closing.wait()
                    return
                owner.paths.append(self.path)
                owner.headers.append(dict(self.headers))
                owner.documents.append(json.loads(body))
                self.send_response(status)
                self.end_headers()

            def log_message(self, *_: object) -> None:
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True

    def __exit__(self, *_: object) -> None:
        self._closing.set()
        super().__exit__()


class MailServer(_Server):
    """:ivar mails: (recipients, message) of each mail."""

    def __init__(self) -> None:
        self.mails: list[tuple[list[str], EmailMessage]] = []
        owner = self

        class Handler(socketserver.StreamRequestHandler):
            def handle(self) -> None:
                recipients: list[str] = []
                self._say("220 test")
                while line := self.rfile.readline().decode().strip():
                    command = line.upper()
                    if command.startswith("RCPT TO:"):
                        recipients.append(line[8:].strip("<> "))
                    if command == "DATA":
                        self._say("354 go on")
                        owner.mails.append((recipients, self._message()))
                        recipients = []
                    self._say("221 bye" if command == "QUIT" else "250 ok")
                    if command == "QUIT":
                        return

            def _message(self) -> EmailMessage:
                lines = []
                while (line := self.rfile.readline().decode()).rstrip("\r\n") != ".":
                    lines.append(line[1:] if line.startswith("..") else line)
                message = message_from_string("".join(lines), policy=policy.default)
                assert isinstance(message, EmailMessage)
                return message

            def _say(self, text: str) -> None:
                self.wfile.write(f"{text}\r\n".encode())

        self.server = socketserver.ThreadingTCPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True


class Statsd(_Server):
    """:ivar counted: the sum of each counter."""

    def __init__(self) -> None:
        self.counted: Counter[str] = Counter()
        owner = self

        class Handler(socketserver.DatagramRequestHandler):
            def handle(self) -> None:
                for line in self.rfile.read().decode().splitlines():
                    name, _, value = line.partition(":")
                    number, _, kind = value.partition("|")
                    if kind == "c":
                        owner.counted[name] += int(number)

        self.server = socketserver.UDPServer(("127.0.0.1", 0), Handler)


class Otlp(_Server):
    """OpenTelemetry's protocol over HTTP. :ivar counted: the sum of each counter, by name and attribute `archive`.

    Each process of Airflow exports its sums, and Airflow's tasks export once, when they end.
    """

    def __init__(self) -> None:
        self.counted: Counter[tuple[str, str | None]] = Counter()
        owner = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                owner._add(gzip.decompress(body) if self.headers.get("Content-Encoding") == "gzip" else body)
                self.send_response(200)
                self.end_headers()

            def log_message(self, *_: object) -> None:
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True

    def _add(self, body: bytes) -> None:
        exported = ExportMetricsServiceRequest.FromString(body)
        metrics = (m for r in exported.resource_metrics for s in r.scope_metrics for m in s.metrics)
        for metric in metrics:
            for point in metric.sum.data_points:
                tags = {tag.key: tag.value.string_value for tag in point.attributes}
                self.counted[metric.name, tags.get("archive")] += int(point.as_double or point.as_int)


def text_of(mail: EmailMessage) -> str:
    """The first text part of a mail."""
    part = next(part for part in mail.walk() if part.get_content_maintype() == "text")
    return str(part.get_content())
