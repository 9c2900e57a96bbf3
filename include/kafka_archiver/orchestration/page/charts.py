"""The charts of an archive's page, drawn from its ledger and its DAG runs. Pure."""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from kafka_archiver.messages.wording import count, size, span
from kafka_archiver.state.coverage import Coverage
from kafka_archiver.state.status.facts import DagRun

HOURS = 72


class Point(NamedTuple):
    """One bar. `text`: its label and value. `bad`: it is drawn as a failure."""

    value: float
    text: str
    bad: bool = False

    def share(self, top: float) -> float:
        """Return the height in percent; what is not zero is seen."""
        return round(max(100 * self.value / top, 2), 2) if top and self.value else 0


class Chart(NamedTuple):
    """Bars, oldest first. `total`: a sum as text."""

    title: str
    points: Sequence[Point]
    total: str


def charts_of(coverage: Coverage | None, runs: Iterable[DagRun]) -> list[Chart]:
    """Return the charts that have points: records and bytes by hour, records and duration by DAG run."""
    return [chart for chart in (*_by_hour(coverage), *_by_run(runs)) if any(point.value for point in chart.points)]


def _by_hour(coverage: Coverage | None) -> Iterable[Chart]:
    known = [cell for cell in coverage.hours if cell.state != "none"][-HOURS:] if coverage else []
    named = [(f"{cell.hour_start:%m-%d %H}:00", cell) for cell in known]
    rows = [Point(cell.rows, f"{name} {count(cell.rows, 'record')}") for name, cell in named]
    stored = [Point(cell.bytes, f"{name} {size(cell.bytes)}") for name, cell in named]
    yield Chart("Records by hour", rows, count(sum(cell.rows for cell in known), "record"))
    yield Chart("Bytes by hour", stored, size(sum(cell.bytes for cell in known)))


def _by_run(runs: Iterable[DagRun]) -> Iterable[Chart]:
    ended = [run for run in runs if run.begun and run.ended][::-1]
    wrote = [(run, run.wrote.records if run.wrote else 0) for run in ended]
    rows = [Point(number, f"{run.run_id} {count(number, 'record')}", run.state == "failed") for run, number in wrote]
    took = [
        Point(
            (run.ended - run.begun).total_seconds(),
            f"{run.run_id} {span(run.ended - run.begun)}, {run.state}",
            run.state == "failed",
        )
        for run in ended
        if run.ended and run.begun
    ]
    yield Chart("Records by DAG run", rows, count(sum(number for _, number in wrote), "record"))
    yield Chart("Duration by DAG run", took, count(len(took), "run"))
