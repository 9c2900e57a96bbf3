"""spark-submit with what the job must know and nobody else may see."""

import json
import os
from pathlib import Path
from typing import Any

from airflow.providers.apache.spark.hooks.spark_submit import SparkSubmitHook
from airflow.sdk.exceptions import AirflowException

from kafka_archiver.errors import ConfigError
from kafka_archiver.orchestration.jvm import java_settings
from kafka_archiver.orchestration.verdict import Verdict
from kafka_archiver.spark.watchdog import TASK_PID
from kafka_archiver.steps.context import Endpoints

# What the job reads (kafka_archiver.spark.main, not imported here: it would load Spark into Airflow).
ENDPOINTS = "KAFKA_ARCHIVER_ENDPOINTS"
_REDACTED = "(?i)secret|password|token|access[.]?key|kafka_archiver_endpoints"


class SubmitHook(SparkSubmitHook):
    """Hands the endpoints to the driver by its environment, and fails with the job's own cause.

    The provider's `env_vars` would put them on the command line with YARN and Kubernetes, and the command into the
    log; there they go through a properties file that only we can read, and only for a driver on another machine.

    :param folder: for the properties file and the job's temporary files; not needed any more once the job has ended.
    :param lock: on the folder. spark-submit inherits it: should this process die first, the folder stays.
    :param reader: the archive's `source.reader`.
    """

    def __init__(self, endpoints: Endpoints, folder: Path, lock: int, reader: str, **settings: Any) -> None:
        super().__init__(**settings)
        self._endpoints = endpoints.to_json()
        self._folder = folder
        self._lock = lock
        self._reader = reader
        self._verdict = Verdict()
        if self._connection["deploy_mode"] == "cluster":
            self._hand_over_by_file()

    def submit(self, application: str = "", **kwargs: Any) -> str | None:
        """Run the job.

        :raises ArchiverError: it failed; Permanent- or TransientError with its cause in one line.
        """
        own = {**os.environ, **java_settings(self._reader, os.environ, self._folder)}
        environment = {**own, ENDPOINTS: self._endpoints, TASK_PID: str(os.getpid())}
        try:
            return super().submit(application, env=environment, pass_fds=[self._lock], **kwargs)
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
        args: list[str] = super()._build_spark_common_args()
        # A file of our own must not mean that spark-defaults.conf is not read.
        return [*args, "--load-spark-defaults"] if self._properties_file else args

    def _hand_over_by_file(self) -> None:
        prefix = (
            "spark.kubernetes.driverEnv" if self._is_kubernetes else "spark.yarn.appMasterEnv" if self._is_yarn else ""
        )
        if not prefix:
            raise ConfigError(
                f"Spark connection {self._conn_id!r} asks for deploy mode 'cluster' at {self._connection['master']}; "
                "Spark runs Python jobs there in mode 'client' only: set its extra `deploy-mode` to 'client'"
            )
        file = self._folder / "endpoints.properties"
        file.touch(mode=0o600)
        # Java's properties take a backslash for an escape, also inside JSON.
        value = self._endpoints.replace("\\", "\\\\")
        file.write_text(f"{prefix}.{ENDPOINTS}={value}\nspark.redaction.regex={_REDACTED}\n", encoding="ascii")
        self._properties_file = str(file)


def spark_conf(settings: dict[str, str | int | bool]) -> dict[str, str]:
    """Spark's settings for the command: our defaults, then the archive's."""
    return {
        name: value if isinstance(value, str) else json.dumps(value) for name, value in (DEFAULTS | settings).items()
    }


# Above warnings Spark says a hundred lines that nobody needs beside the job's own.
DEFAULTS: dict[str, str | int | bool] = {"spark.log.level": "WARN"}
