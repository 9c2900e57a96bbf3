"""The task's log of spark-submit's output."""

import logging

import pytest

from kafka_archiver.orchestration.submit.links import Application, find_application, spark_address
from kafka_archiver.orchestration.submit.output import LevelledLog, split_level
from kafka_archiver.spark.failures import APPLICATION

pytestmark = pytest.mark.unit


@pytest.mark.parametrize(
    ("line", "level", "text"),
    [
        ("26/11/21 05:00:04 WARN Utils: no such host", logging.WARNING, "Utils: no such host"),
        ("2026-11-21 05:00:04,123 INFO chunk 1 of 6", logging.INFO, "chunk 1 of 6"),
        ("2026-11-21 05:00:04,123 ERROR a 100%s b", logging.ERROR, "a 100%s b"),
        ("26/11/21 05:00:04 FATAL x", logging.CRITICAL, "x"),
        ("WARNING: Using incubator modules", logging.INFO, "WARNING: Using incubator modules"),
        ("26/11/21 05:00:04 WARNED x", logging.INFO, "26/11/21 05:00:04 WARNED x"),
        ("", logging.INFO, ""),
    ],
)
def test_a_line_has_one_time_and_one_level(line: str, level: int, text: str) -> None:
    assert split_level(line) == (level, text)


def test_lines_are_logged_at_their_level_and_airflow_s_own_messages_as_they_are(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.DEBUG)
    log = LevelledLog(logging.getLogger("x"))
    log.info("26/11/21 05:00:04 ERROR 100% full")
    log.info("Identified %s", "26/11/21 05:00:04 ERROR x")
    log.error("really")
    assert [(r.levelname, r.getMessage()) for r in caplog.records] == [
        ("ERROR", "100% full"), ("INFO", "Identified 26/11/21 05:00:04 ERROR x"), ("ERROR", "really"),
    ]  # fmt: skip


def test_the_driver_s_line_names_the_application() -> None:
    applications: list[Application] = []
    lines = [
        "x",
        f"2026-11-21 05:00:04,123 INFO {APPLICATION}app-20261121-0001, UI http://driver:4040\n",
        f"{APPLICATION}local-1, UI None",
        f"a {APPLICATION}",
    ]
    assert list(find_application(lines, applications.append)) == lines
    assert applications == [Application("app-20261121-0001", "http://driver:4040"), Application("local-1", None)]


@pytest.mark.parametrize(
    ("application", "history", "running", "leads_to"),
    [
        (None, "https://h", True, ""),
        (Application("a", "http://d:4040"), "https://h/", True, "http://d:4040"),
        (Application("a", "http://d:4040"), "https://h/", False, "https://h/history/a/"),
        (Application("a", "http://d:4040"), None, False, ""),
        (Application("a", None), "https://h", True, "https://h/history/a/"),
    ],
)
def test_the_button_leads_to_the_ui_while_the_job_runs_and_then_to_the_history(
    application: Application | None, history: str | None, running: bool, leads_to: str
) -> None:
    assert spark_address(application, history, running) == leads_to
