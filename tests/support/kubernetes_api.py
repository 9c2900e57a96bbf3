"""What spark-submit knows of a Kubernetes: an API that notes what it is given, and says that the pod has succeeded."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import Any

_STATUS = {
    "phase": "Succeeded",
    "containerStatuses": [
        {
            "name": "spark-kubernetes-driver",
            "image": "spark",
            "imageID": "spark",
            "ready": False,
            "restartCount": 0,
            "state": {"terminated": {"exitCode": 0, "reason": "Completed"}},
        }
    ],
}


class KubernetesApi:
    """:ivar objects: what was made, by kind."""

    def __init__(self) -> None:
        self.objects: dict[str, Any] = {}
        self.url = ""

    @contextmanager
    def serving(self) -> Iterator[KubernetesApi]:
        api = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self) -> None:
                made = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                made["metadata"] = {**made["metadata"], "uid": "1", "namespace": "default", "resourceVersion": "1"}
                api.objects[made["kind"]] = made
                self._answer(201, made)

            do_PATCH = do_POST  # noqa: N815 - http.server's way of naming

            def do_GET(self) -> None:
                if "watch=true" in self.path:
                    # Nothing changes; who watches comes again.
                    self._answer(200, None)
                elif "/pods/" in self.path and "Pod" in api.objects:
                    self._answer(200, {**api.objects["Pod"], "status": _STATUS})
                else:
                    self._answer(404, {"kind": "Status", "apiVersion": "v1", "status": "Failure", "code": 404})

            def _answer(self, code: int, document: Any) -> None:
                body = b"" if document is None else json.dumps(document).encode()
                self.send_response(code)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_: object) -> None:
                pass

        server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        server.daemon_threads = True
        self.url = f"http://127.0.0.1:{server.server_address[1]}"
        Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True).start()
        try:
            yield self
        finally:
            server.shutdown()
            server.server_close()
