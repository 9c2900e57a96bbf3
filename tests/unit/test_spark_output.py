"""The task's log of spark-submit's output."""

import logging
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kafka_archiver.messages.progress import EVERY, ChunkProgress, find_progress
from kafka_archiver.orchestration.submit.links import Application, find_application, spark_address
from kafka_archiver.orchestration.submit.output import LevelledLog, split_level
from kafka_archiver.spark.failures import APPLICATION
from kafka_archiver.state.status.facts import JobProgress

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


@given(st.lists(st.tuples(st.integers(0, 1000), st.floats(0, 60)), min_size=1))
def test_a_job_says_at_most_every_ten_seconds_how_far_it_is_and_the_task_finds_the_line(
    chunks: list[tuple[int, float]],
) -> None:
    moment, line_moments = 0.0, list[float]()
    progress = ChunkProgress(len(chunks), total := sum(offsets for offsets, _ in chunks), lambda: moment)
    done, texts = 0, list[str]()
    for number, (offsets, seconds) in enumerate(chunks, 1):
        moment, done = moment + seconds, done + offsets
        line = progress.add(offsets)
        assert (line is not None) == (moment - (line_moments or [0.0])[-1] >= EVERY)
        if line is not None:
            line_moments.append(moment)
            logged = [f"2026-11-21 05:00:04,123 INFO {line}\n", "progress"]
            assert list(find_progress(logged, texts.append)) == logged
            assert texts.pop().startswith(f"{number:,} of {len(chunks):,} chunks")
            assert texts == []
            known = JobProgress(run="r", text=line, at=datetime.now(UTC))
            assert known.percent == (100 * done // total if total else None)


def test_the_time_left_is_that_of_the_offsets_left_at_the_rate_so_far() -> None:
    moments = iter([0.0, 5.0, 20.0])
    progress = ChunkProgress(4, 8000, lambda: next(moments))
    assert progress.add(1000) is None
    assert progress.add(1000) == "progress: 2 of 4 chunks (25 %), 100 offsets/s, 1 min 0 s left"
