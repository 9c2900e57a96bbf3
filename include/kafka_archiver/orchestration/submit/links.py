"""The buttons of the task `archive`: its run's plan and manifest on the archiver's page, and Spark's UI or history."""

import re
from collections.abc import Callable, Iterable, Iterator
from typing import Any, NamedTuple
from urllib.parse import quote

from airflow.sdk import BaseOperatorLink

from kafka_archiver.orchestration.dag_run.addresses import page_of
from kafka_archiver.spark.failures import APPLICATION

_LINE = re.compile(rf"(?:^|\s){APPLICATION}(?P<id>\S+), UI (?P<ui>\S+)$")


def document_address(archive: str, run: str | None, document: str) -> str:
    """Return the address of a run's document; empty without a run."""
    return f"{page_of(archive)}/runs/{quote(run, safe='')}/{document}" if run else ""


class PlanLink(BaseOperatorLink):
    """The button to the plan. Airflow stores the address as an XCom when the task ends."""

    name = "Plan"
    xcom_key = "_link_plan"

    def get_link(self, operator: Any, *, ti_key: Any) -> str:  # noqa: ARG002 - Airflow's signature
        """Return the address of the plan of the last run that the task read."""
        return document_address(operator.archive_name, operator.run, "plan")


class ManifestLink(BaseOperatorLink):
    """The button to the manifest, once there is one."""

    name = "Manifest"
    xcom_key = "_link_manifest"

    def get_link(self, operator: Any, *, ti_key: Any) -> str:  # noqa: ARG002 - Airflow's signature
        """Return the address of the manifest of the last run that the task read."""
        return document_address(operator.archive_name, operator.run, "manifest")


class Application(NamedTuple):
    """A Spark application. `ui`: the address of its UI; None if it has none."""

    id: str
    ui: str | None


def spark_address(application: Application | None, history: str | None, running: bool) -> str:
    """Return where the button leads; empty if nowhere.

    :param history: the address of Spark's history server.
    """
    if application is None:
        return ""
    if running and application.ui:
        return application.ui
    return f"{history.rstrip('/')}/history/{application.id}/" if history else ""


def find_application(lines: Iterable[str], on_application: Callable[[Application], None]) -> Iterator[str]:
    """Pass the lines of spark-submit's output through, and report the application that the driver names."""
    for line in lines:
        if match := _LINE.search(line.rstrip()):
            on_application(Application(match["id"], None if match["ui"] == "None" else match["ui"]))
        yield line


class SparkLink(BaseOperatorLink):
    """The button to Spark. `ArchiveOperator` stores its address when the job starts, and Airflow when the task ends."""

    name = "Spark"
    xcom_key = "_link_spark"

    def get_link(self, operator: Any, *, ti_key: Any) -> str:  # noqa: ARG002 - Airflow's signature
        """Return the address of the last application of the task."""
        return str(operator.spark_address(running=False))
