"""A Kubernetes API for spark-submit: it records created objects, and reports that the pod has succeeded."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from tests.support.http_servers import Handler, serving

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
    """:ivar objects: the created objects, by kind."""

    def __init__(self) -> None:
        self.objects: dict[str, Any] = {}
        self.url = ""

    @contextmanager
    def serving(self) -> Iterator[KubernetesApi]:
        api = self

        class Api(Handler):
            protocol_version = "HTTP/1.1"

            def do_POST(self) -> None:  # noqa: N802
                created = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                created["metadata"] = {
                    **created["metadata"],
                    "uid": "1",
                    "namespace": "default",
                    "resourceVersion": "1",
                }
                api.objects[created["kind"]] = created
                self._answer(201, created)

            do_PATCH = do_POST  # noqa: N815 - http.server's way of naming

            def do_GET(self) -> None:  # noqa: N802
                if "watch=true" in self.path:
                    # No event: the client watches again.
                    self._answer(200, None)
                elif "/pods/" in self.path and "Pod" in api.objects:
                    self._answer(200, {**api.objects["Pod"], "status": _STATUS})
                else:
                    self._answer(404, {"kind": "Status", "apiVersion": "v1", "status": "Failure", "code": 404})

            def _answer(self, code: int, document: Any) -> None:
                self.answer(code, b"" if document is None else json.dumps(document).encode())

        with serving(Api) as self.url:
            yield self
