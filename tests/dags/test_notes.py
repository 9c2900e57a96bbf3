"""The notes of DAG runs, written in a real metadata database by the listener that the scheduler calls."""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from kafka_archiver.orchestration.alerts.cause import CAUSE
from kafka_archiver.orchestration.dag_run.figures import Figures
from kafka_archiver.orchestration.dag_run.xcoms import FIGURES
from scripts.stack.paths import ROOT
from tests.dags.conftest import Session

pytestmark = pytest.mark.dags
FIVE = datetime(2026, 11, 21, 5, tzinfo=UTC)
WORK = "20261121T050000Z"


@pytest.fixture
def plugin(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Airflow with this checkout's plugins, and nothing else."""
    from airflow import plugins_manager, settings
    from airflow.listeners.listener import get_listener_manager

    monkeypatch.setattr(settings, "PLUGINS_FOLDER", str(ROOT / "plugins"))
    caches = (plugins_manager._get_plugins, get_listener_manager)
    for cache in caches:
        cache.cache_clear()
    yield
    for cache in caches:
        cache.cache_clear()


class Runs:
    """Runs of a DAG that end as the test says, and their notes."""

    def __init__(self, session: Session) -> None:
        self._session, self._count = session, 0

    def end(self, state: str, xcoms: dict[tuple[str, str], Any], task: str = "verify", **more: Any) -> str:
        """End a run; `xcoms` by task and key. Returns its id."""
        from airflow.models import DagRun
        from airflow.models.serialized_dag import SerializedDagModel
        from airflow.models.xcom import XComModel
        from airflow.utils.types import DagRunTriggeredByType

        self._count += 1
        start = FIVE + timedelta(hours=self._count)
        with self._session() as session:
            dag = SerializedDagModel.get_dag("archive_orders", session=session)
            assert dag is not None
            run = dag.create_dagrun(
                run_id=f"run_{self._count}", run_type=more.pop("kind", "scheduled"), state="running",
                logical_date=start, data_interval=(start, start + timedelta(hours=1)),
                triggered_by=DagRunTriggeredByType.TEST, run_after=start + timedelta(hours=1), session=session, **more,
            )  # fmt: skip
            for (of, key), value in xcoms.items():
                XComModel.set(
                    key=key, value=value, dag_id=run.dag_id, task_id=of, run_id=run.run_id, serialize=False,
                    session=session,
                )  # fmt: skip
            for ti in run.get_task_instances(session=session):
                if ti.task_id == task and state == "failed":
                    ti.state = "failed"
            session.flush()
            stored_run = session.get(DagRun, run.id)
            assert stored_run is not None
            stored_run.set_state(state)
            stored_run.notify_dagrun_state_changed(msg="x")
        return f"run_{self._count}"

    def note(self, run: str) -> str | None:
        from airflow.models import DagRun
        from sqlalchemy import select

        with self._session() as session:
            return session.scalars(select(DagRun).where(DagRun.run_id == run)).one().note

    def write(self, run: str, text: str) -> None:
        """Write a note as a person does in the UI."""
        from airflow.models import DagRun
        from sqlalchemy import select

        with self._session() as session:
            note = session.scalars(select(DagRun).where(DagRun.run_id == run)).one().dag_run_note
            note.content, note.user_id = text, "a_person"


@pytest.fixture
def runs(session: Session, plugin: None) -> Runs:
    return Runs(session)


def figures(*runs: str) -> dict[tuple[str, str], Any]:
    run_figures = Figures(runs=runs, records=5, objects=1, bytes=100, hours_closed=1)
    return {("close_hours", FIGURES): run_figures.model_dump(mode="json")}


def works(*names: str) -> dict[tuple[str, str], Any]:
    return {("plan", "return_value"): {"runs": list(names), "archive": list(names), "idle": False}}


def why(task: str = "verify") -> dict[tuple[str, str], Any]:
    return {(task, CAUSE): {"permanent": True, "cause": "IntegrityError: x"}}


def test_a_run_s_note_has_its_figures_or_its_cause(runs: Runs) -> None:
    assert runs.note(runs.end("success", figures(WORK))) == "5 records in 1 object (100 B); 1 hour became complete"
    assert runs.note(runs.end("failed", why())) == "verify failed: IntegrityError: x"
    killed = runs.note(runs.end("failed", {}))
    assert killed is not None
    assert killed.startswith("verify failed: the task's process ended without reporting an error")
    cleared_alone = runs.note(runs.end("failed", {}, task="none"))
    assert cleared_alone is not None
    assert cleared_alone.startswith("no task failed, but tasks behind a cleared one did not run again")


def test_a_failed_run_names_the_run_that_settled_it(runs: Runs) -> None:
    first_run, other_run = (runs.end("failed", {**why(), **works(name)}) for name in (WORK, "20261121T060000Z"))
    done = runs.end("success", figures(WORK))
    assert runs.note(first_run) == f"done later by run {done}; it had failed: verify failed: IntegrityError: x"
    # The last one has left none open.
    assert runs.note(other_run) == f"done later by run {done}; it had failed: verify failed: IntegrityError: x"


def test_a_rebuild_settles_only_itself(runs: Runs) -> None:
    failed = runs.end("failed", {**why(), **works(WORK)})
    runs.end("success", figures("20261121T040000Z+r1"), conf={"rebuild": {"run": "20261121T040000Z"}})
    assert runs.note(failed) == "verify failed: IntegrityError: x"


def test_the_note_of_a_person_stays(runs: Runs) -> None:
    failed = runs.end("failed", {**why(), **works(WORK)})
    runs.write(failed, "the disk was full")
    runs.end("success", figures(WORK))
    assert runs.note(failed) == "the disk was full"


def test_a_broken_xcom_costs_the_note_and_not_the_scheduler(runs: Runs) -> None:
    assert runs.note(runs.end("success", {("close_hours", FIGURES): {"runs": 5}})) is None
