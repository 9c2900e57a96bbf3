"""The archiver's page in this process, with Airflow's real auth manager, and people who visit it."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from fastapi import FastAPI
from fastapi.testclient import TestClient

from kafka_archiver.orchestration.page.app import make_app
from kafka_archiver.orchestration.page.archives import ArchiveSnapshots
from kafka_archiver.orchestration.page.cache import Cache
from kafka_archiver.orchestration.page.details import Details


class Page:
    """The page as Airflow mounts it, and its archive_snapshots."""

    def __init__(self) -> None:
        from airflow.api_fastapi.app import init_auth_manager

        self.archive_snapshots = ArchiveSnapshots(fresh=0)
        self.server = FastAPI()
        init_auth_manager(self.server)
        app = make_app(self.archive_snapshots)
        self.details: Details = app.state.details
        self.server.mount("/archiver", app)

    def stranger(self, token: str | None = None) -> TestClient:
        """Somebody without a login; perhaps a machine with a token."""
        headers = {b"Authorization": f"Bearer {token}".encode()} if token else {}
        return TestClient(self.server, "http://airflow.example", headers=headers, follow_redirects=False)  # type: ignore[arg-type]

    def user(self, role: str | None, *teams: str) -> TestClient:
        """Somebody with Airflow's cookie, as a browser sends it."""
        from airflow.api_fastapi.app import get_auth_manager
        from airflow.api_fastapi.auth.managers.simple.user import SimpleAuthManagerUser

        user: Any = SimpleAuthManagerUser(username=f"some {role}", role=role, teams=list(teams))
        client = self.stranger()
        client.cookies.set("_token", get_auth_manager().generate_jwt(user))
        return client

    def refresh(self, *names: str) -> None:
        """Look at these archives now."""
        cache: Cache[str, Any] = self.archive_snapshots._cache
        cache._entries.clear()
        self.details._cache._entries.clear()
        cache.many(names, wait=60)


@contextmanager
def teams(opened: Any, *names: str) -> Iterator[None]:
    """Airflow has these teams; the DAGs are those of the first one.

    :param opened: makes sessions on Airflow's database.
    """
    from airflow.models.dagbundle import DagBundleModel
    from airflow.models.team import Team
    from sqlalchemy import delete, select

    with opened() as session:
        new_teams = [Team(name=name) for name in names]
        session.add_all(new_teams)
        bundle = session.scalars(select(DagBundleModel).where(DagBundleModel.name == "dags-folder")).one()
        bundle.teams = new_teams[:1]
    try:
        yield
    finally:
        with opened() as session:
            session.scalars(select(DagBundleModel).where(DagBundleModel.name == "dags-folder")).one().teams = []
            session.flush()
            session.execute(delete(Team))
