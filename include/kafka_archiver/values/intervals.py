"""Data intervals of runs and hours of records. UTC throughout."""

from datetime import UTC, datetime, timedelta

from kafka_archiver.values.documents import UtcTime, Value

MS_PER_HOUR = 3_600_000
# 9999-12-31T23:59:59.999Z, the last instant that dates can name.
LAST_MS = 253_402_300_799_999
_ID = "%Y%m%dT%H%M%SZ"
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


class Interval(Value):
    """The Airflow data interval of a run: `[start, end)`."""

    start: UtcTime
    end: UtcTime

    @property
    def id(self) -> str:
        """The name of its run in the ledger: 20261121T050000Z."""
        return run_id(self.start)

    def __str__(self) -> str:
        return f"[{self.start:%Y-%m-%d %H:%M:%S}, {self.end:%Y-%m-%d %H:%M:%S}) UTC"


def run_id(start: datetime) -> str:
    """The ledger's name of the run whose interval starts at `start`."""
    # strftime does not pad years before 1000.
    moment = start.astimezone(UTC)
    return f"{moment.year:04d}{moment.strftime(_ID[2:])}"


def parse_run_id(text: str) -> datetime:
    """The interval start that `text` names.

    :raises ValueError: `text` is not of the form 20261121T050000Z.
    """
    start = datetime.strptime(text, _ID).replace(tzinfo=UTC)
    # strptime also takes single digits, lower case and the digits of other scripts.
    if run_id(start) != text:
        raise ValueError(f"not the name of a run: {text!r}")
    return start


_UNITS = {"s": 1, "m": 60, "h": 3600, "d": 86400, "w": 7 * 86400}


def duration(text: str) -> timedelta:
    """A number and a unit: 90s, 30m, 12h, 1d or 2w.

    :raises ValueError: the text is something else.
    """
    seconds = _UNITS.get(text[-1:])
    # More digits could be more weeks than dates have.
    if seconds is None or not text[:-1].isdecimal() or len(text) > 6:
        raise ValueError(f"expected a time like 90s, 30m, 12h, 1d or 2w, found {text!r}")
    return timedelta(seconds=int(text[:-1]) * seconds)


def spelt(span: timedelta | None) -> str | None:
    """The text that `duration` reads as this time."""
    if span is None:
        return None
    seconds = int(span.total_seconds())
    unit = next(unit for unit, size in reversed(_UNITS.items()) if seconds % size == 0)
    return f"{seconds // _UNITS[unit]}{unit}"


def to_ms(moment: datetime) -> int:
    """Milliseconds since 1970 (exact; a float would not be)."""
    return (moment - _EPOCH) // timedelta(milliseconds=1)


def from_ms(milliseconds: int) -> datetime:
    """The instant `milliseconds` after 1970."""
    return _EPOCH + timedelta(milliseconds=milliseconds)


def hour_of(timestamp_ms: int) -> int | None:
    """The hour (whole hours since 1970) in which a record is filed; None when its time is missing or unusable.

    Kafka says -1 for "no timestamp"; nothing before 1970 or after 9999 can be a `date=`.
    """
    return timestamp_ms // MS_PER_HOUR if 0 <= timestamp_ms <= LAST_MS else None


def to_hour(moment: datetime) -> int:
    """The hour (whole hours since 1970) in which a moment lies."""
    return to_ms(moment) // MS_PER_HOUR


def hour_start(hour: int) -> datetime:
    """The first instant of an hour."""
    return from_ms(hour * MS_PER_HOUR)


def hour_after(moment: datetime) -> datetime:
    """Return the end of the hour of a moment."""
    return hour_start(to_hour(moment) + 1)


def hours_between(start: datetime, end: datetime) -> range:
    """The whole hours inside `[start, end)`."""
    return range(-(-to_ms(start) // MS_PER_HOUR), to_hour(end))
