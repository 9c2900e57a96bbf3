"""The task `archive`: one spark-submit for the runs that `plan` found."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from airflow.providers.apache.spark.operators.spark_submit import SparkSubmitOperator
from airflow.sdk import Context
from airflow.sdk.exceptions import AirflowSkipException

from kafka_archiver.config import Archive
from kafka_archiver.errors import PermanentError
from kafka_archiver.job import ArchiveJob
from kafka_archiver.orchestration.connections import endpoints
from kafka_archiver.orchestration.gate import PLAN
from kafka_archiver.orchestration.lookup import Wanted, find
from kafka_archiver.orchestration.package import build_package
from kafka_archiver.orchestration.spark_conf import spark_conf
from kafka_archiver.orchestration.submit import SubmitHook
from kafka_archiver.steps.plan import Work
from kafka_archiver.writer.disk import held_directory


class ArchiveOperator(SparkSubmitOperator):
    """Submits the archive's Spark job; skipped when there is nothing to read.

    Everything about a job is in the YAML's `spark.conf` and the Spark connection, so there are no other arguments.

    :param job: spark_jobs/archive.py.
    """

    # What comes from the YAML is no template: it would be stored and shown, and {{APP_ID}} is Spark's own.
    template_fields: Sequence[str] = ()

    def __init__(self, *, archive: Archive, job: Path, **kwargs: Any) -> None:
        super().__init__(
            conn_id=archive.spark.connection,
            application=str(job),
            name=f"archive_{archive.archive}",
            conf=spark_conf(archive.spark.conf),
            # Reconnecting to the job of a lost worker would save time in cluster mode only; a second job beside it
            # writes the same bytes.
            durable=False,
            **kwargs,
        )
        self._archive = archive

    def execute(self, context: Context) -> None:
        """A job for each run that is to be read. What earlier runs have left unfinished is finished on the way.

        :raises AirflowSkipException: all offsets of the plan are archived, or there are none.
        """
        from kafka_archiver.steps.backlog import archive_runs
        from kafka_archiver.steps.context import Context as Opened

        work = work_of(context)
        if not work.archive:
            raise AirflowSkipException("there are no offsets to read")
        # The hook would go on with a master called yarn.
        find(Wanted(self._conn_id, "spark.connection", ("spark", "yarn", "k8s")))
        archive = with_params(self._archive, context["params"])

        def submit(run: str) -> None:
            with held_directory(None) as (folder, lock):
                self._hook = self.hook(archive, run, folder, lock)
                super(ArchiveOperator, self).execute(context)

        archive_runs(Opened.open(archive, endpoints(archive)), work, submit)

    def hook(self, archive: Archive, run: str, folder: Path, lock: int) -> SubmitHook:
        """spark-submit for a run, with the package and all that it puts down for a while in `folder`."""
        return SubmitHook(
            archive,
            endpoints(archive),
            folder,
            lock,
            conn_id=self._conn_id,
            conf=self.conf,
            name=self.name,
            py_files=str(build_package(folder)),
            application_args=[ArchiveJob.of(archive, [run]).to_argument()],
        )


def with_params(archive: Archive, params: Mapping[str, Any]) -> Archive:
    """The archive as this DAG run wants it.

    :raises ConfigError: there is no such policy or choice.
    """
    source = archive.source.model_copy(update={"max_records_per_run": params["max_records"]})
    return archive.model_copy(update={"source": source}).choosing(params["policies"])


def work_of(context: Context) -> Work:
    """What `plan` of this DAG run found.

    :raises PermanentError: it has not run.
    """
    found = context["ti"].xcom_pull(task_ids=PLAN)
    if found is None:
        raise PermanentError(
            f"the task `{PLAN}` of this DAG run has no result, so nobody knows what is to be done; "
            f"`airflow dags trigger {context['ti'].dag_id}` plans it again"
        )
    return Work.from_dict(found)
