"""The application that Airflow mounts. Made at the first request: Airflow loads plugins in every task's process too."""

import asyncio
import threading
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any, TypeAlias

Scope: TypeAlias = MutableMapping[str, Any]
Receive: TypeAlias = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send: TypeAlias = Callable[[MutableMapping[str, Any]], Awaitable[None]]
App: TypeAlias = Callable[[Scope, Receive, Send], Awaitable[None]]


class LazyApp:
    """An ASGI application that imports FastAPI and the archiver when it is first asked."""

    def __init__(self) -> None:
        self._app: App | None = None
        self._lock = threading.Lock()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        app = self._app
        if app is None:
            # The imports take seconds, in which Airflow's server goes on.
            app = await asyncio.to_thread(self._make)
        await app(scope, receive, send)

    def _make(self) -> App:
        with self._lock:
            if self._app is None:
                from kafka_archiver.orchestration.page.app import make_app

                self._app = make_app()
            return self._app
