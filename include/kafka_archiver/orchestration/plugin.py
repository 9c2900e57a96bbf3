"""The archiver in Airflow's UI: a page in the navigation, tabs, a panel on the dashboard, a note on each DAG run.

Health and metrics are below /archiver, too.

Airflow finds it by the entry point `airflow.plugins`.
"""

import asyncio
import threading
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any, TypeAlias
from urllib.parse import urlsplit

from airflow.configuration import conf
from airflow.plugins_manager import AirflowPlugin

from kafka_archiver.orchestration import before_fork
from kafka_archiver.orchestration.metadata import notes

Scope: TypeAlias = MutableMapping[str, Any]
Receive: TypeAlias = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send: TypeAlias = Callable[[MutableMapping[str, Any]], Awaitable[None]]
App: TypeAlias = Callable[[Scope, Receive, Send], Awaitable[None]]
# A proxy may serve Airflow below a path.
_ABOVE = urlsplit(conf.get("api", "base_url", fallback="") or "").path.rstrip("/")
# In the greys of Airflow's own; white behind the lines shows the icon of the selected entry, whose ground is dark.
_ICON = {"icon": f"{_ABOVE}/archiver/static/nav.svg", "icon_dark_mode": f"{_ABOVE}/archiver/static/nav-dark.svg"}


class LazyApp:
    """An ASGI application that imports FastAPI and the archiver when it is first asked: tasks load plugins, too."""

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


class ArchiverPlugin(AirflowPlugin):
    """Loaded by every process of Airflow, so it imports nothing heavy."""

    name = "archiver"
    fastapi_apps = [{"app": LazyApp(), "url_prefix": "/archiver", "name": "Archiver"}]  # noqa: RUF012 - Airflow's form
    external_views = [  # noqa: RUF012 - Airflow's form
        {
            "name": "Archives",
            "href": f"{_ABOVE}/archiver/",
            "destination": "nav",
            # Airflow 3.3 and later; before, it is among the plugins' entries.
            "nav_top_level": True,
            "url_route": "archiver",
            **_ICON,
        },
        # Tabs of each DAG and each DAG run; of a DAG that belongs to no archive, the page says so.
        {
            "name": "Archive",
            "href": f"{_ABOVE}/archiver/dags/{{DAG_ID}}",
            "destination": "dag",
            "url_route": "archive",
            **_ICON,
        },
        {
            "name": "Account",
            "href": f"{_ABOVE}/archiver/dags/{{DAG_ID}}/runs/{{RUN_ID}}",
            "destination": "dag_run",
            "url_route": "account",
            **_ICON,
        },
    ]
    # A panel on the dashboard when an archive is in trouble. Airflow takes only such an app there.
    react_apps = [  # noqa: RUF012 - Airflow's form
        {
            "name": "Archives in trouble",
            "bundle_url": f"{_ABOVE}/archiver/static/dashboard.js",
            "destination": "dashboard",
        },
    ]
    # Airflow calls them when one of its services starts, and when a DAG run ends.
    listeners = [before_fork, notes]  # noqa: RUF012 - Airflow's form
