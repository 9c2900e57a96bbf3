"""What Airflow's own metrics get of a run."""

from collections.abc import Iterator
from typing import Any

import pytest
from airflow.sdk.observability import stats

from kafka_archiver.orchestration.dags.emitted import COUNTERS, emit
from kafka_archiver.steps.figures import Figures

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
    made: Any = Recorder()
    stats.initialize(factory=lambda: made, export_legacy_names=False)
    yield made
    from airflow.sdk._shared.observability.metrics.base_stats_logger import NoStatsLogger

    stats.initialize(factory=NoStatsLogger, export_legacy_names=False)


def test_a_run_counts_once_with_its_archive_as_tag_and_in_the_name(recorder: Recorder) -> None:
    found = Figures(runs=("a",), records=5, objects=2, bytes=300, lost=1, hours_closed=1)
    emit("or.ders", found)
    emit("or.ders", found)
    assert recorder.counted["kafka_archiver.records"] == 10
    assert recorder.tags["kafka_archiver.records"] == {"archive": "or.ders"}
    assert recorder.counted["kafka_archiver.or__ders.records"] == 10
    assert recorder.counted["kafka_archiver.or__ders.lost"] == 2
    assert recorder.counted["kafka_archiver.or__ders.dead_letters"] == 0
    assert len(recorder.counted) == 2 * len(COUNTERS)


def test_each_counter_is_a_figure() -> None:
    assert set(COUNTERS) < set(Figures.model_fields)
