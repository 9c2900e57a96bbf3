"""The tasks `archive`, `restore` and `verify`: one spark-submit for a run, or for a step of a restore."""

import logging
import resource
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any

from airflow.providers.apache.spark.operators.spark_submit import SparkSubmitOperator
from airflow.sdk import Context
from airflow.sdk.exceptions import AirflowSkipException

from kafka_archiver.config import Archive
from kafka_archiver.driver import spark_jobs
from kafka_archiver.jobs.base import JobDocument
from kafka_archiver.jobs.endpoints import Endpoints
from kafka_archiver.jobs.registry import document_type
from kafka_archiver.jobs.restore import RestoreStep
from kafka_archiver.messages.errors import PermanentError
from kafka_archiver.orchestration.connections import (
    NamedConnection,
    endpoints,
    find_connection,
    open_archive,
    target_endpoints,
)
from kafka_archiver.orchestration.dag_run.params import with_params
from kafka_archiver.orchestration.dag_run.restore_form import allowed
from kafka_archiver.orchestration.dag_run.xcoms import CPU, PLAN, PROGRESS, work_of
from kafka_archiver.orchestration.submit.hook import SubmitHook
from kafka_archiver.orchestration.submit.links import Application, ManifestLink, PlanLink, SparkLink, spark_address
from kafka_archiver.orchestration.submit.package import build_mapper, build_package
from kafka_archiver.orchestration.submit.spark_conf import spark_conf
from kafka_archiver.records.writer.disk import locked_directory
from kafka_archiver.values.documents import isoformat

log = logging.getLogger(__name__)
JOB = Path(spark_jobs.__file__).with_name("archive.py")


class ArchiveOperator(SparkSubmitOperator):
    """The task that submits the archive's Spark job; skipped when there is nothing to read.

    The YAML's `spark.conf` and the Spark connection configure the job.

    :param document: the class of the job's document. Its main program is in `driver/spark_jobs`.
    """

    # No templates: Airflow would store and show the YAML's values, and {{APP_ID}} is Spark's own.
    template_fields: Sequence[str] = ()
    operator_extra_links: Sequence[Any] = (PlanLink(), ManifestLink(), SparkLink())

    def __init__(self, *, archive: Archive, document: type[JobDocument], **kwargs: Any) -> None:
        super().__init__(
            conn_id=archive.spark.connection,
            application=str(JOB),
            name=f"archive_{archive.archive}",
            conf=spark_conf(archive.spark.conf),
            # Reconnecting to the job of a lost worker would only help in cluster mode. A second job beside it does no
            # harm: it writes the same bytes.
            durable=False,
            **kwargs,
        )
        self._archive, self._document = archive, document
        self._application: Application | None = None
        # The last run of the ledger that a job was submitted for.
        self.run: str | None = None
        self._runs: list[str] = []
        self.archive_name = archive.archive

    def spark_address(self, running: bool) -> str:
        """Return the address of the UI or history of the task's last Spark application; empty if there is none."""
        return spark_address(self._application, self._archive.spark.history_url, running)

    def get_openlineage_facets_on_complete(self, task_instance: Any) -> Any:  # noqa: ARG002 - Airflow's signature
        """Return what the task has read and written. Airflow's provider of OpenLineage calls this."""
        from kafka_archiver.orchestration.submit.lineage import operator_lineage, sum_up

        context = open_archive(self._archive)
        done = ((context.ledger.plan(run), context.ledger.manifest(run)) for run in self._runs)
        topics = sum_up((plan, manifest) for plan, manifest in done if plan and manifest)
        return operator_lineage(self._archive.store.url, context.cluster.brokers, topics)

    def execute(self, context: Context) -> None:
        """Submit a job for each run to read, first the unfinished earlier runs.

        :raises AirflowSkipException: all offsets of the plan are archived, or there are none.
        """
        from kafka_archiver.work.backlog import archive_runs

        work = work_of(context)
        if not work.archive:
            raise AirflowSkipException("there are no offsets to read")
        self.require_connection()
        archive = with_params(self._archive, context["params"])

        def submit_run(run: str) -> None:
            self.run = run
            self._runs.append(run)
            self.submit(context, partial(self.hook, archive, run), run)

        before = _cpu_of_children()
        archive_runs(open_archive(archive), work, submit_run)
        context["ti"].xcom_push(CPU, round(_cpu_of_children() - before, 2))

    def require_connection(self) -> None:
        """Check that the Spark connection exists: without one, the hook would use the master `yarn`."""
        find_connection(NamedConnection(self._conn_id, "spark.connection", ("spark", "yarn", "k8s")))

    def submit(self, context: Context, make_hook: Callable[[Path, int], SubmitHook], name: str) -> None:
        """Submit one job. The page finds its Spark application and its progress.

        :param make_hook: from the folder of the job's files, and its lock.
        :param name: of the run or restore that it works on.
        """

        def keep_application(application: Application) -> None:
            self._application = application
            context["ti"].xcom_push(SparkLink.xcom_key, self.spark_address(running=True))

        with locked_directory(None) as (folder, lock):
            self._hook = make_hook(folder, lock)
            self._hook.on_application = keep_application
            self._hook.on_progress = progress_keeper(context["ti"], name)
            super().execute(context)

    def hook(self, archive: Archive, run: str, folder: Path, lock: int) -> SubmitHook:
        """Return spark-submit for a run, with the package and its temporary files in `folder`."""
        return self._submission(archive, endpoints(archive), [run], folder, lock)

    def _submission(
        self, archive: Archive, clients: Endpoints, arguments: Sequence[str], folder: Path, lock: int
    ) -> SubmitHook:
        return SubmitHook(
            archive,
            clients,
            folder,
            lock,
            conn_id=self._conn_id,
            conf=self.conf,
            name=self.name,
            py_files=",".join(
                str(zipped) for zipped in (build_package(folder), build_mapper(folder, archive)) if zipped
            ),
            application_args=[self._document.of(archive, arguments).to_argument()],
        )


def progress_keeper(ti: Any, run: str) -> Callable[[str], None]:
    """Return what keeps the last line about the progress of a run where the page finds it: in an XCom of its task."""

    def keep(text: str) -> None:
        try:
            ti.xcom_push(PROGRESS, {"run": run, "text": text, "at": isoformat(datetime.now(UTC))})
        except Exception:
            # The page shows an older line; the job goes on.
            log.exception("the progress of run %s is not shown", run)

    return keep


def _cpu_of_children() -> float:
    """Return the CPU seconds of all processes that this one has started and that have ended."""
    spent = resource.getrusage(resource.RUSAGE_CHILDREN)
    return spent.ru_utime + spent.ru_stime


class RestoreOperator(ArchiveOperator):
    """The task that submits a step of a restore; its plan is frozen."""

    template_fields: Sequence[str] = ()
    operator_extra_links: Sequence[Any] = (SparkLink(),)

    def __init__(self, *, archive: Archive, step: RestoreStep, **kwargs: Any) -> None:
        super().__init__(archive=archive, document=document_type("restore"), **kwargs)
        self._step = step

    def get_openlineage_facets_on_complete(self, task_instance: Any) -> Any:  # noqa: ARG002 - Airflow's signature
        """Return nothing: lineage is of archives."""
        return None

    def execute(self, context: Context) -> None:
        """Submit the job."""
        self.require_connection()
        params = context["params"]
        clients = target_endpoints(self._archive, params.get("to"))
        arguments = [restore_of(context), self._step, *allowed(params)]
        self.submit(context, partial(self._submission, self._archive, clients, arguments), arguments[0])


def restore_of(context: Any) -> str:
    """Return the name of the restore that the task `plan` of this DAG run has planned.

    :raises PermanentError: `plan` has no result.
    """
    name = context["ti"].xcom_pull(task_ids=PLAN)
    if not name:
        raise PermanentError(
            f"the task `{PLAN}` of this DAG run has no result: clear it, and the tasks behind it; the plan of a "
            "restore is frozen, so this repeats nothing"
        )
    return str(name)
