"""spark-submit with private endpoints and settings."""

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

from airflow.providers.apache.spark.hooks.spark_submit import SparkSubmitHook
from airflow.sdk.exceptions import AirflowException

from kafka_archiver.config import Archive
from kafka_archiver.driver.end_with_parent import TASK_PID
from kafka_archiver.jobs.endpoints import ENDPOINTS, VERDICT, Endpoints
from kafka_archiver.messages.errors import ConfigError
from kafka_archiver.messages.progress import find_progress
from kafka_archiver.orchestration.connections import mask_secrets
from kafka_archiver.orchestration.submit.handover import BY_FILE, FILE, handover_settings
from kafka_archiver.orchestration.submit.links import Application, find_application
from kafka_archiver.orchestration.submit.output import LevelledLog, Verdict
from kafka_archiver.orchestration.submit.package import PACKAGE
from kafka_archiver.orchestration.submit.spark_conf import java_settings, local_daemon, properties_text


class SubmitHook(SparkSubmitHook):
    """spark-submit that hands the endpoints to the driver by its environment, and fails with the job's own cause.

    Spark's settings go through a properties file that only we can read. The provider would use arguments, which are in
    the log and in every list of this machine's processes.

    :param folder: for private and temporary files of the job; it may be removed when the job has ended.
    :param lock: on the folder. spark-submit inherits it, so the folder stays if this process dies first.
    :raises ConfigError: others could read secrets where the driver runs.
    """

    # Told the Spark application once the driver has named it.
    on_application: Callable[[Application], None] = staticmethod(lambda _: None)
    # Told each line about the job's progress.
    on_progress: Callable[[str], None] = staticmethod(lambda _: None)
    _output: LevelledLog | None = None

    def __init__(self, archive: Archive, endpoints: Endpoints, folder: Path, lock: int, **settings: Any) -> None:
        super().__init__(**settings)
        self._archive = archive
        self._endpoints = endpoints.to_json()
        self._folder = folder
        self._lock = lock
        self._verdict = Verdict(folder / "verdict.json")
        # Fixed here, so that spark-defaults.conf cannot change it: the handover depends on where the driver runs.
        self._connection["deploy_mode"] = self._connection["deploy_mode"] or "client"
        handed = handover_settings(archive, self._connection["master"], self._connection["deploy_mode"] == "cluster")
        if handed == BY_FILE:
            shipped = _private(folder / FILE, self._endpoints)
            # The argument --files hides Spark's setting.
            self._files = ",".join(filter(None, [self._conf.get("spark.files"), str(shipped)]))
        daemon = local_daemon(self._conf, self._connection["master"], folder / PACKAGE)
        settings_to_write = {**mask_secrets(self._conf), **daemon, **handed}
        self._properties_file = str(_private(folder / "spark.properties", properties_text(settings_to_write)))
        # The provider would pass these as arguments.
        self._conf = {}

    def submit(self, application: str = "", **kwargs: Any) -> str | None:
        """Run the job.

        :raises ArchiverError: the job failed; a PermanentError or TransientError with its cause in one line.
        """
        environment = {**os.environ, **java_settings(self._reader(), os.environ, self._folder)}
        handed = {ENDPOINTS: self._endpoints, VERDICT: str(self._verdict.file), TASK_PID: str(os.getpid())}
        try:
            return super().submit(application, env={**environment, **handed}, pass_fds=[self._lock], **kwargs)
        except AirflowException:
            # The provider's message repeats the whole command and output; both are in the log already.
            raise self._verdict.error(self._submit_sp.returncode if self._submit_sp else None) from None
        except FileNotFoundError:
            raise ConfigError(
                f"{self._connection['spark_binary']} is not on the PATH of this Airflow worker; install Spark there "
                f"(pip install pyspark), or name another in the `spark-binary` of connection {self._conn_id!r}"
            ) from None

    @property
    def log(self) -> Any:
        """Airflow's logger; while spark-submit's output is read, each line has its own level."""
        return self._output or super().log

    def _reader(self) -> str:
        # SQL passes through the JVM, whoever reads.
        transform = self._archive.settings.transform
        return "spark" if transform and transform.sql else self._archive.source.reader

    def _process_spark_submit_log(self, itr: Any) -> None:
        self._output = LevelledLog(super().log)
        try:
            lines = find_application(self._verdict.watch(itr), self.on_application)
            super()._process_spark_submit_log(find_progress(lines, self.on_progress))
        finally:
            self._output = None

    def _build_spark_common_args(self) -> list[str]:
        # With a properties file, spark-submit would ignore spark-defaults.conf.
        return [*super()._build_spark_common_args(), "--load-spark-defaults"]


def _private(file: Path, text: str) -> Path:
    """Write a file that only we can read. The mode is set before the content."""
    file.touch(mode=0o600)
    file.write_text(text, encoding="ascii")
    return file
