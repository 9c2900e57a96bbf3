"""The charts of an archive's page, drawn from its ledger and its DAG runs. Pure."""

from collections.abc import Iterable, Sequence
from datetime import date
from typing import NamedTuple

from kafka_archiver.messages.wording import count, size, span
from kafka_archiver.state.coverage import Coverage
from kafka_archiver.state.status.facts import DagRun

HOURS = 72


class Point(NamedTuple):
    """One bar. `label`: its hour, or when its run was due; `shown`: its value. `bad`: it is drawn as a failure."""

    value: float
    label: str
    shown: str
    bad: bool = False

    @property
    def text(self) -> str:
        """Its label and value."""
        return f"{self.label} {self.shown}{', failed' * self.bad}"

    def share(self, top: float) -> float:
        """Return the height in percent; what is not zero is seen."""
        return round(max(100 * self.value / top, 2), 2) if top and self.value else 0


class Chart(NamedTuple):
    """Bars, oldest first. `total`: a sum as text. `days`: the sums of the last two days as text, the last day first."""

    title: str
    points: Sequence[Point]
    total: str
    days: Sequence[tuple[date, str]] = ()

    @property
    def most(self) -> str:
        """The highest value, as text."""
        return max(self.points).shown


def charts_of(coverage: Coverage | None, runs: Iterable[DagRun]) -> list[Chart]:
    """Return the charts that have points: records and bytes by hour, records and duration by DAG run."""
    return [chart for chart in (*_by_hour(coverage), *_by_run(runs)) if any(point.value for point in chart.points)]


def _by_hour(coverage: Coverage | None) -> Iterable[Chart]:
    known = [cell for cell in coverage.hours if cell.state != "none"][-HOURS:] if coverage else []
    named = [(f"{cell.hour_start:%m-%d %H}:00", cell) for cell in known]
    days = coverage.days[:-3:-1] if coverage else []
    rows_by_day = [(day, count(sum(cell.rows for cell in hours), "record")) for day, hours in days]
    bytes_by_day = [(day, size(sum(cell.bytes for cell in hours))) for day, hours in days]
    rows = [Point(cell.rows, name, count(cell.rows, "record")) for name, cell in named]
    stored = [Point(cell.bytes, name, size(cell.bytes)) for name, cell in named]
    yield Chart("Records by hour", rows, count(sum(cell.rows for cell in known), "record"), rows_by_day)
    yield Chart("Bytes by hour", stored, size(sum(cell.bytes for cell in known)), bytes_by_day)


def _by_run(runs: Iterable[DagRun]) -> Iterable[Chart]:
    ended = [(run, run.ended - run.begun) for run in runs if run.begun and run.ended][::-1]
    wrote = [(run, run.wrote.records if run.wrote else 0) for run, _ in ended]
    rows = [Point(number, _due(run), count(number, "record"), run.state == "failed") for run, number in wrote]
    took = [Point(time.total_seconds(), _due(run), span(time), run.state == "failed") for run, time in ended]
    yield Chart("Records by DAG run", rows, count(sum(number for _, number in wrote), "record"))
    yield Chart("Duration by DAG run", took, count(len(took), "run"))


def _due(run: DagRun) -> str:
    return f"{run.due:%m-%d %H:%M}"
