"""spark-submit with what the job must know and nobody else may see."""

import os
from pathlib import Path
from typing import Any

from airflow.providers.apache.spark.hooks.spark_submit import SparkSubmitHook
from airflow.sdk.exceptions import AirflowException

from kafka_archiver.config import Archive
from kafka_archiver.driver.watchdog import TASK_PID
from kafka_archiver.errors import ConfigError
from kafka_archiver.job import ENDPOINTS, VERDICT, Endpoints
from kafka_archiver.orchestration.connections import hidden
from kafka_archiver.orchestration.handover import BY_FILE, FILE, handed_over
from kafka_archiver.orchestration.jvm import java_settings
from kafka_archiver.orchestration.spark_conf import properties_text
from kafka_archiver.orchestration.verdict import Verdict


class SubmitHook(SparkSubmitHook):
    """Hands the endpoints to the driver by its environment, and fails with the job's own cause.

    Spark's settings go through a properties file that only we can read, and not through arguments as the provider
    has them: those are in the log, and in every list of this machine's processes.

    :param folder: for private files and the job's temporary ones; not needed any more once the job has ended.
    :param lock: on the folder. spark-submit inherits it: should this process die first, the folder stays.
    :raises ConfigError: where the driver is to run, others could read what is secret.
    """

    def __init__(self, archive: Archive, endpoints: Endpoints, folder: Path, lock: int, **settings: Any) -> None:
        super().__init__(**settings)
        self._archive = archive
        self._endpoints = endpoints.to_json()
        self._folder = folder
        self._lock = lock
        # In the folder a driver that runs elsewhere leaves none.
        self._verdict = Verdict(folder / "verdict.json")
        # Not what spark-defaults.conf may say: a driver elsewhere is told things in another way.
        self._connection["deploy_mode"] = self._connection["deploy_mode"] or "client"
        handed = handed_over(archive, self._connection["master"], self._connection["deploy_mode"] == "cluster")
        if handed == BY_FILE:
            shipped = _private(folder / FILE, self._endpoints)
            # Beside an argument, Spark would not look at its setting.
            self._files = ",".join(filter(None, [self._conf.get("spark.files"), str(shipped)]))
        told = {**hidden(self._conf), **handed}
        self._properties_file = str(_private(folder / "spark.properties", properties_text(told)))
        # The provider makes arguments of what is left here.
        self._conf = {}

    def submit(self, application: str = "", **kwargs: Any) -> str | None:
        """Run the job.

        :raises ArchiverError: it failed; Permanent- or TransientError with its cause in one line.
        """
        own = {**os.environ, **java_settings(self._archive.source.reader, os.environ, self._folder)}
        told = {ENDPOINTS: self._endpoints, VERDICT: str(self._verdict.file), TASK_PID: str(os.getpid())}
        try:
            return super().submit(application, env={**own, **told}, pass_fds=[self._lock], **kwargs)
        except AirflowException:
            # Its message is the whole command and the output again; both are in the log already.
            raise self._verdict.error(self._submit_sp.returncode if self._submit_sp else None) from None
        except FileNotFoundError:
            raise ConfigError(
                f"{self._connection['spark_binary']} is not on the PATH of this Airflow worker; install Spark there "
                f"(pip install pyspark), or name another in the `spark-binary` of connection {self._conn_id!r}"
            ) from None

    def _process_spark_submit_log(self, itr: Any) -> None:
        super()._process_spark_submit_log(self._verdict.watch(itr))

    def _build_spark_common_args(self) -> list[str]:
        # A file of our own must not mean that spark-defaults.conf is not read.
        return [*super()._build_spark_common_args(), "--load-spark-defaults"]


def _private(file: Path, text: str) -> Path:
    """A file that only we can read, before anything is in it."""
    file.touch(mode=0o600)
    file.write_text(text, encoding="ascii")
    return file
