"""The button of the task `archive` that leads to Spark: to its UI while the job runs, then to the history server."""

import re
from collections.abc import Callable, Iterable, Iterator
from typing import Any, NamedTuple

from airflow.sdk import BaseOperatorLink

from kafka_archiver.spark.failures import APPLICATION

_LINE = re.compile(rf"(?:^|\s){APPLICATION}(?P<id>\S+), UI (?P<ui>\S+)$")


class Application(NamedTuple):
    """A Spark application. `ui`: the address of its UI; None if it has none."""

    id: str
    ui: str | None


def address(application: Application | None, history: str | None, running: bool) -> str:
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
    """The button. Airflow stores its address as an XCom when the task ends; `ArchiveOperator` when the job starts."""

    name = "Spark"
    xcom_key = "_link_spark"

    def get_link(self, operator: Any, *, ti_key: Any) -> str:  # noqa: ARG002 - Airflow's signature
        """Return the address of the last application of the task."""
        return str(operator.spark_address(running=False))
