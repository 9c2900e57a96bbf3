"""The hours of some days as values. Pure."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from datetime import date, datetime
from typing import Literal

from pydantic import BaseModel

from kafka_archiver.documents import UtcTime, Value
from kafka_archiver.intervals import hour_start
from kafka_archiver.proof import Verdict

# none: no run has looked at the hour. running: a run is at work on its interval. late: complete, and records came
# afterwards. letters: complete, and some records are dead letters. lost: objects or offsets of the hour are lost.
State = Literal["none", "running", "open", "complete", "late", "letters", "incomplete", "lost"]


# Days that are always shown.
LEAST = 7


class Head(BaseModel):
    """The beginning of a proof, without its objects."""

    status: Verdict
    reason: str | None = None
    complete_as_of: UtcTime | None = None
    rows: int = 0
    bytes: int = 0
    objects: int = 0
    late_rows: int = 0
    lost_rows: int = 0


class HourCell(Value):
    """One hour. `dead_letters`: objects of dead letters."""

    hour_start: UtcTime
    state: State
    rows: int = 0
    bytes: int = 0
    objects: int = 0
    late_rows: int = 0
    dead_letters: int = 0
    reason: str | None = None
    complete_as_of: UtcTime | None = None


class Coverage(Value):
    """The hours of consecutive days, oldest first, 24 a day.

    `cut`: there are more objects of dead letters than were looked at, so hours may have some that are not shown.
    """

    archive: str
    hours: tuple[HourCell, ...]
    cut: bool = False

    @property
    def days(self) -> Sequence[tuple[date, Sequence[HourCell]]]:
        """The hours by day."""
        starts = range(0, len(self.hours), 24)
        return [(self.hours[at].hour_start.date(), self.hours[at : at + 24]) for at in starts]

    @property
    def known_days(self) -> Sequence[tuple[date, Sequence[HourCell]]]:
        """The days from the first one of which anything is known; at least the last seven."""
        first = next((at for at, cell in enumerate(self.hours) if cell.state != "none"), len(self.hours)) // 24
        return self.days[max(min(first, len(self.days) - LEAST), 0) :]

    @property
    def counts(self) -> Mapping[str, int]:
        """The number of hours in each state."""
        return Counter(cell.state for cell in self.hours)


def cells(
    hours: Iterable[int],
    heads: Mapping[int, Head],
    letters: Mapping[int, int],
    running: Iterable[range],
    unsure: datetime | None,
) -> list[HourCell]:
    """The cells of these hours.

    :param letters: the number of objects of dead letters, by hour.
    :param running: the hours of each unfinished run's interval.
    :param unsure: hours before it may lack lost records.
    """
    at_work = list(running)
    return [
        _cell(hour, heads.get(hour), letters.get(hour, 0), any(hour in span for span in at_work), unsure)
        for hour in hours
    ]


def _cell(hour: int, head: Head | None, letters: int, running: bool, unsure: datetime | None) -> HourCell:
    start = hour_start(hour)
    if head is None:
        return HourCell(hour_start=start, state="running" if running else "none", dead_letters=letters)
    told = head.model_dump(exclude={"status", "lost_rows"})
    return HourCell(hour_start=start, state=_state(head, letters, running, start, unsure), dead_letters=letters, **told)


def _state(head: Head, letters: int, running: bool, start: datetime, unsure: datetime | None) -> State:
    if head.lost_rows:
        return "lost"
    if head.status == "incomplete":
        return "lost" if unsure and start < unsure else "incomplete"
    if head.status == "open":
        return "running" if running else "open"
    return "letters" if letters else "late" if head.late_rows else "complete"
