"""The hours of some days as cells of a table, each with its state. Pure."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from datetime import date, datetime
from types import MappingProxyType
from typing import Literal, NamedTuple

from pydantic import BaseModel

from kafka_archiver.model.complete_hours import Verdict
from kafka_archiver.values.documents import UtcTime, Value
from kafka_archiver.values.intervals import hour_start

# none: no run has looked at the hour. running: a run is at work on its interval. unfinished: a run of its interval has
# begun and is not finished, and no run is at work. late: complete, and records came afterwards. letters: complete, and
# some records are dead letters. lost: objects or offsets of the hour are lost. damaged: the last audit found objects
# or the proof of the hour missing or wrong, whatever the proof says.
State = Literal["none", "running", "unfinished", "open", "complete", "late", "letters", "incomplete", "lost", "damaged"]


# The fewest days that are shown.
LEAST = 7


class ProofHead(BaseModel):
    """The beginning of a proof, without its objects."""

    number: int = 0
    status: Verdict
    reason: str | None = None
    complete_as_of: UtcTime | None = None
    rows: int = 0
    bytes: int = 0
    objects: int = 0
    late_rows: int = 0
    lost_rows: int = 0
    former_gone: bool = False


# The worst first: a day has the state of its worst hour.
_WORST: tuple[State, ...] = (
    "damaged", "lost", "incomplete", "unfinished", "running", "open", "letters", "late", "complete", "none",
)  # fmt: skip


class DayCell(NamedTuple):
    """One day. `state`: of its worst hour. `hours`: how many hours are in each state, the worst first."""

    day: date
    state: State
    hours: Mapping[State, int]
    rows: int


class HourCell(Value):
    """One hour. `dead_letters`: objects of dead letters. `damaged`: what the last audit found missing or wrong."""

    hour_start: UtcTime
    state: State
    rows: int = 0
    bytes: int = 0
    objects: int = 0
    late_rows: int = 0
    dead_letters: int = 0
    damaged: int = 0
    reason: str | None = None
    complete_as_of: UtcTime | None = None


# What a proof has of an hour's cell.
_SHOWN = {*ProofHead.model_fields} & {*HourCell.model_fields}


class Coverage(Value):
    """The hours of consecutive days, oldest first, 24 a day.

    `cut`: there are more objects of dead letters than were looked at, so hours may have some that are not shown.
    `damage_cut`: the last audit found more damage, of which the hour is not known.
    """

    archive: str
    hours: tuple[HourCell, ...]
    cut: bool = False
    damage_cut: bool = False

    @property
    def days(self) -> Sequence[tuple[date, Sequence[HourCell]]]:
        starts = range(0, len(self.hours), 24)
        return [(self.hours[at].hour_start.date(), self.hours[at : at + 24]) for at in starts]

    @property
    def known_days(self) -> Sequence[tuple[date, Sequence[HourCell]]]:
        """The days from the first one of which anything is known; at least the last seven."""
        first = next((at for at, cell in enumerate(self.hours) if cell.state != "none"), len(self.hours)) // 24
        return self.days[max(min(first, len(self.days) - LEAST), 0) :]

    @property
    def months(self) -> Sequence[tuple[str, Sequence[DayCell | None]]]:
        """The days by month, like `2026-11`; 31 each, None for a day that is not read or that the month lacks."""
        months: dict[str, list[DayCell | None]] = {}
        for day, hours in self.days:
            states = Counter(cell.state for cell in hours)
            ordered = {state: states[state] for state in _WORST if states[state]}
            cell = DayCell(day, next(iter(ordered)), ordered, sum(hour.rows for hour in hours))
            months.setdefault(f"{day:%Y-%m}", [None] * 31)[day.day - 1] = cell
        return list(months.items())

    @property
    def counts(self) -> Mapping[str, int]:
        """The number of hours in each state."""
        return Counter(cell.state for cell in self.hours)


def cells(
    hours: Iterable[int],
    heads: Mapping[int, ProofHead],
    letters: Mapping[int, int],
    unfinished_intervals: Iterable[range],
    unsure_until: datetime | None,
    damaged: Mapping[int, int] = MappingProxyType({}),
    at_work: bool = True,
) -> list[HourCell]:
    """Return the cells of these hours.

    :param letters: the number of objects of dead letters, by hour.
    :param unfinished_intervals: the hours of each unfinished run's interval.
    :param unsure_until: hours before it may lack lost records.
    :param damaged: the number of objects and proofs that the last audit found wrong, by hour.
    :param at_work: a DAG run is at work, which finishes the unfinished runs.
    """
    spans = list(unfinished_intervals)
    working: State = "running" if at_work else "unfinished"
    result = []
    for hour in hours:
        head, start = heads.get(hour), hour_start(hour)
        run_state = working if any(hour in span for span in spans) else None
        counts = head.model_dump(include=_SHOWN) if head else {}
        letter_count, damage_count = letters.get(hour, 0), damaged.get(hour, 0)
        state: State = "damaged" if damage_count else _state(head, letter_count, run_state, start, unsure_until)
        result.append(
            HourCell(hour_start=start, state=state, dead_letters=letter_count, damaged=damage_count, **counts)
        )
    return result


def _state(
    head: ProofHead | None, letters: int, run_state: State | None, start: datetime, unsure_until: datetime | None
) -> State:
    if head is None:
        return run_state or "none"
    if head.lost_rows:
        return "lost"
    if head.status == "incomplete":
        return "lost" if unsure_until and start < unsure_until else "incomplete"
    if head.status == "open":
        return run_state or "open"
    return "letters" if letters else "late" if head.late_rows else "complete"
