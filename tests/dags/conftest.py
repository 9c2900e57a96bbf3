"""Archives in a folder of the test's own, connections from the environment, and what Airflow makes of both."""

import json
from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any, NamedTuple

import pytest
from airflow.dag_processing.dagbag import DagBag
from airflow.sdk import DAG
from airflow.sdk.bases.operator import ExecutorSafeguard

from kafka_archiver.config import Archive, parse_archive
from kafka_archiver.config.archives import read_archives
from kafka_archiver.context.archive_context import Context
from kafka_archiver.orchestration.connections import endpoints
from kafka_archiver.orchestration.dags.archive import archive_dag, dag_id
from kafka_archiver.orchestration.submit.operator import ArchiveOperator
from kafka_archiver.state.status.facts import Facts
from kafka_archiver.values.intervals import to_ms
from kafka_archiver.values.ranges import Range
from kafka_archiver.work.plan import PlannedWork
from scripts.stack.paths import ROOT
from tests.support.brokers import Brokers
from tests.support.metadata import database_with
from tests.support.runs import DAY, P0, P1

DAGS = ROOT / "dags"
MINIMAL = "archive: {name}\nsource: {{topics: [{name}]}}\nstore: {{url: 's3://bucket/lake'}}\n"
SECRET = "hunter2-hunter2"
RUN = "20261121T050000Z"

AddConnection = Callable[..., None]
MakeArchive = Callable[..., Archive]
Call = Callable[..., "Shown"]
Session = Callable[[], Any]


@pytest.fixture
def archives(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty folder of archives, the one that the DAG files read."""
    folder = tmp_path / "archives"
    folder.mkdir()
    monkeypatch.setenv("ARCHIVER_CONFIG_DIR", str(folder))
    return folder


@pytest.fixture
def archive() -> MakeArchive:
    """Makes an archive called orders; more YAML as text."""

    def make(more: str = "", name: str = "orders") -> Archive:
        return parse_archive(MINIMAL.format(name=name) + more, f"{name}.yaml")

    return make


@pytest.fixture
def connection(monkeypatch: pytest.MonkeyPatch) -> Iterator[AddConnection]:
    """Adds an Airflow connection."""
    # Set before the code under test would, so that it is unset afterwards.
    monkeypatch.setenv("_AIRFLOW_PROCESS_CONTEXT", "server")

    def add(conn_id: str, conn_type: str, extra: dict[str, Any] | None = None, **fields: Any) -> None:
        value = json.dumps({"conn_type": conn_type, **fields, "extra": extra or {}})
        monkeypatch.setenv(f"AIRFLOW_CONN_{conn_id.upper()}", value)

    return add


@pytest.fixture
def local_connections(connection: AddConnection) -> None:
    """The three connections that archives name when they name none, with secrets in two of them."""
    sasl = {"security.protocol": "SASL_SSL", "sasl.mechanism": "PLAIN", "sasl.username": "u", "sasl.password": SECRET}
    connection("kafka_default", "kafka", {"bootstrap.servers": "broker:9092", **sasl})
    connection("aws_default", "aws", {"region_name": "eu-central-1"}, login="AKIDEXAMPLE", password=SECRET)
    connection("spark_default", "spark", {"deploy-mode": "client"}, host="local[2]")


def load() -> DagBag:
    """Load dags/ as Airflow does."""
    return DagBag(dag_folder=DAGS, bundle_path=DAGS, bundle_name="test")


def dag_of(archive: Archive) -> DAG:
    return archive_dag(archive)


@pytest.fixture
def may_execute(monkeypatch: pytest.MonkeyPatch) -> None:
    """Airflow lets nobody but itself execute an operator."""
    monkeypatch.setattr(ExecutorSafeguard, "test_mode", True)


@pytest.fixture
def kubernetes(monkeypatch: pytest.MonkeyPatch) -> None:
    """The provider wants a client to be installed; a submission that waits for its end does not use it."""
    monkeypatch.setattr("airflow.providers.apache.spark.hooks.spark_submit.kube_client", object(), raising=False)


def operator_of(archive: Archive) -> ArchiveOperator:
    """The task `archive`."""
    task = dag_of(archive).get_task("archive")
    assert isinstance(task, ArchiveOperator)
    return task


def context_of(archive: tuple[str, ...] = (RUN,)) -> Any:
    """Return what Airflow hands to it, after a `plan` that found these runs to archive."""
    work = PlannedWork(runs=archive or (RUN,), archive=archive).to_dict()
    pushed: dict[str, Any] = {}
    ti = SimpleNamespace(
        xcom_pull=lambda task_ids: work if task_ids == "plan" else None, xcom_push=pushed.__setitem__, pushed=pushed
    )
    return {
        "ti": ti,
        "params": {"max_records": 1_000, "policies": {}, "rebuild": None, "dead_letters": None, "repair": None},
    }


def logged(capfd: pytest.CaptureFixture[str]) -> str:
    """Return what Airflow logged: outside of tasks it writes to standard output."""
    text = capfd.readouterr().out
    assert "Spark-Submit cmd: spark-submit --master" in text
    return text


class Shown(NamedTuple):
    """The end of a command, and what it has printed."""

    code: object
    out: str
    err: str

    @property
    def json(self) -> Any:
        return json.loads(self.out)

    @property
    def lines(self) -> list[str]:
        return [line.rstrip() for line in self.out.splitlines()]


def caller(group: Sequence[str], capsys: pytest.CaptureFixture[str]) -> Call:
    """Calls commands as Airflow's parser does. `code` is what each has to end with; None: that is for the test."""
    from airflow.cli.cli_parser import get_parser

    def call(*words: str, code: int | None = 0) -> Shown:
        capsys.readouterr()
        ended: object = 0
        try:
            args = get_parser().parse_args([*group, *words])
            args.func(args)
        except SystemExit as end:
            ended = end.code
        shown = Shown(ended, *capsys.readouterr())
        assert code is None or shown.code == code, shown
        return shown

    return call


@pytest.fixture
def call(capsys: pytest.CaptureFixture[str]) -> Call:
    """Calls `airflow archive`."""
    return caller(["archive"], capsys)


@pytest.fixture
def orders(archives: Path, tmp_path: Path) -> Path:
    """The archive orders, in a store of its own in memory."""
    file = archives / "orders.yaml"
    file.write_text(
        "archive: orders\nsource: {topics: [orders]}\n"
        f"store: {{url: 'memory://{tmp_path.name}/lake', chunk_records: 2}}\n"
    )
    return file


@pytest.fixture
def brokers(monkeypatch: pytest.MonkeyPatch, local_connections: None) -> Brokers:
    """One record an hour in each of two partitions; three hours so far."""
    answers = Brokers({P0: Range(0, 3), P1: Range(0, 3)}, first=to_ms(DAY) // 3_600_000)
    for opener in ("context.archive_context.connect", "orchestration.cli.doctor_checks.Cluster"):
        monkeypatch.setattr(f"kafka_archiver.{opener}", answers)
    return answers


@pytest.fixture
def quiet(monkeypatch: pytest.MonkeyPatch) -> None:
    """An Airflow that has the archive's DAG and nothing to say of it; of others tells test_condition.py."""
    # The importing module first: imported behind the other one, it would keep the stand-in for ever.
    for module in ("cli.doctor_checks", "metadata.facts"):
        monkeypatch.setattr(
            f"kafka_archiver.orchestration.{module}.facts_of", lambda archive, _: Facts(dag_id=dag_id(archive))
        )


@pytest.fixture
def context(orders: Path, brokers: Brokers) -> Context:
    archives = read_archives(orders.parent).valid
    return Context.open(archives["orders"], endpoints(archives["orders"]))


STARTED = """
from airflow.sdk import DAG, CronDataIntervalTimetable, Param
from airflow.providers.standard.operators.empty import EmptyOperator
hourly = CronDataIntervalTimetable("0 * * * *", timezone="UTC")
params = {name: Param(None, type=["null", "object", "array"]) for name in ("rebuild", "dead_letters", "repair")}
with DAG("archive_orders", schedule=hourly, params=params):
    plan, archive, verify, commit, close_hours = (
        EmptyOperator(task_id=name) for name in ("plan", "archive", "verify", "commit", "close_hours")
    )
    plan >> archive >> verify >> commit >> close_hours
"""


@pytest.fixture(scope="module")
def started(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """A metadata database with a DAG archive_orders, for what starts runs of it."""
    with database_with(tmp_path_factory.mktemp("airflow"), STARTED):
        yield


@pytest.fixture
def session(started: None) -> Session:
    """Opens sessions on the database: a live scheduler and DAG processor, DAGs that may run, and no runs."""
    from airflow.jobs.job import Job
    from airflow.models import DagModel, DagRun
    from airflow.models.backfill import Backfill, BackfillDagRun
    from airflow.utils.session import create_session
    from sqlalchemy import delete, update

    with create_session() as clean:
        for table in (BackfillDagRun, DagRun, Backfill, Job):
            clean.execute(delete(table))
        clean.execute(update(DagModel).values(is_paused=False, is_stale=False))
        for job in ("SchedulerJob", "DagProcessorJob"):
            clean.add(Job(job_type=job, state="running", latest_heartbeat=datetime.now(UTC)))
    return create_session


@pytest.fixture
def ends(session: Session, monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    """Let each task end, one at each look; then the run."""
    from airflow.models import DagRun
    from airflow.models.taskinstance import TaskInstance
    from sqlalchemy import select

    from kafka_archiver.orchestration.metadata import start

    task_states = {"plan": "success", "archive": "success"}
    waiting = iter(range(100))

    def tick(_: float) -> None:
        assert next(waiting) < 50, "nothing comes to an end"
        with session() as opened:
            left = {ti.task_id: ti for ti in opened.scalars(select(TaskInstance).where(TaskInstance.state.is_(None)))}
            dag_run = opened.scalars(select(DagRun).where(DagRun.state == "queued")).one()
            if following := left.get("plan") or left.get("archive"):
                following.state = task_states[following.task_id]
                following.end_date = datetime.now(UTC)
                following.start_date = following.end_date - timedelta(seconds=7)
            else:
                dag_run.state = "failed" if "failed" in task_states.values() else "success"

    monkeypatch.setattr(start, "follow", partial(start.follow, pause=tick))
    return task_states


def confs(session: Session) -> list[Any]:
    """Return the parameters of the runs, in their order."""
    from airflow.models import DagRun
    from sqlalchemy import select

    with session() as opened:
        return [dag_run.conf for dag_run in opened.scalars(select(DagRun).order_by(DagRun.id))]


def pause(session: Session) -> None:
    from airflow.models import DagModel
    from sqlalchemy import update

    with session() as opened:
        opened.execute(update(DagModel).values(is_paused=True))
