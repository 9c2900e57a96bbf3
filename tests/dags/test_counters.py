"""Figures of a run in Airflow's own metrics."""

from collections.abc import Iterator
from typing import Any

import pytest
from airflow.sdk._shared.observability.metrics.base_stats_logger import NoStatsLogger
from airflow.sdk.observability import stats
from airflow.sdk.observability.metrics.stats_utils import get_stats_factory

from kafka_archiver.orchestration.dag_run.figures import COUNTERS, Figures, emit
from tests.support.receivers import Statsd
from tests.support.waiting import until

pytestmark = pytest.mark.dags


class Recorder:
    """A backend of Airflow's metrics."""

    def __init__(self) -> None:
        self.counted: dict[str, int] = {}
        self.tags: dict[str, Any] = {}

    def incr(self, stat: str, count: int = 1, rate: float = 1, tags: dict[str, Any] | None = None) -> None:
        self.counted[stat] = self.counted.get(stat, 0) + count
        self.tags[stat] = tags


@pytest.fixture
def recorder() -> Iterator[Recorder]:
    metrics: Any = Recorder()
    stats.initialize(factory=lambda: metrics, export_legacy_names=False)
    yield metrics
    stats.initialize(factory=NoStatsLogger, export_legacy_names=False)


def test_a_run_counts_once_with_its_archive_as_tag_and_in_the_name(recorder: Recorder) -> None:
    figures = Figures(runs=("a",), records=5, objects=2, bytes=300, lost=1, hours_closed=1)
    emit("or.ders", figures)
    emit("or.ders", figures)
    assert recorder.counted["kafka_archiver.records"] == 10
    assert recorder.tags["kafka_archiver.records"] == {"archive": "or.ders"}
    assert recorder.counted["kafka_archiver.or__ders.records"] == 10
    assert recorder.counted["kafka_archiver.or__ders.lost"] == 2
    assert recorder.counted["kafka_archiver.or__ders.dead_letters"] == 0
    assert len(recorder.counted) == 2 * len(COUNTERS)


@pytest.fixture
def through_statsd(monkeypatch: pytest.MonkeyPatch) -> Iterator[Statsd]:
    """Airflow's own client of statsd, made as a task's process makes it, and a receiver."""
    with Statsd() as receiver:
        monkeypatch.setenv("AIRFLOW__METRICS__STATSD_ON", "True")
        monkeypatch.setenv("AIRFLOW__METRICS__STATSD_HOST", "127.0.0.1")
        monkeypatch.setenv("AIRFLOW__METRICS__STATSD_PORT", str(receiver.port))
        stats.initialize(factory=get_stats_factory(), export_legacy_names=False)
        yield receiver
        stats.initialize(factory=NoStatsLogger, export_legacy_names=False)


def test_statsd_gets_them_by_name(through_statsd: Statsd) -> None:
    for _ in range(2):
        emit("or.ders", Figures(runs=("a",), records=5, objects=2, bytes=300, lost=1, hours_closed=1))
    counted = {f"airflow.kafka_archiver.{where}hours_closed": 2 for where in ("", "or__ders.")}
    until(lambda: counted.items() <= through_statsd.counted.items())
    assert through_statsd.counted["airflow.kafka_archiver.records"] == 10
    assert through_statsd.counted["airflow.kafka_archiver.or__ders.bytes"] == 600
    assert len(through_statsd.counted) == 2 * len(COUNTERS)


def test_each_counter_is_a_figure() -> None:
    assert set(COUNTERS) < set(Figures.model_fields)
