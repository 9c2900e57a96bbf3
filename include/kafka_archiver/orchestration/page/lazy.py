"""The application that Airflow mounts. Made at the first request: Airflow loads plugins in every task's process too."""

import threading
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any

Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]


class LazyApp:
    """An ASGI application that imports FastAPI and the archiver when it is first asked."""

    def __init__(self) -> None:
        self._app: Callable[[Scope, Receive, Send], Awaitable[None]] | None = None
        self._lock = threading.Lock()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        with self._lock:
            if self._app is None:
                from kafka_archiver.orchestration.page.app import make_app

                self._app = make_app()
        await self._app(scope, receive, send)
