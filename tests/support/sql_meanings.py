"""The SQL of the model test, and the meaning of each text in Python."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any


@dataclass(frozen=True)
class SeenRecord:
    """A record as Spark's expressions see it. `timestamp`: in milliseconds. `fields`: of its value."""

    partition: int
    offset: int
    timestamp: int
    key: bytes | None
    fields: dict[str, Any]

    @property
    def moment(self) -> datetime:
        return datetime(1970, 1, 1, tzinfo=UTC) + timedelta(milliseconds=self.timestamp)


def _divided(record: SeenRecord, dividend: int, count: int) -> int | None:
    """Return null of null. Raises ZeroDivisionError where Spark raises an error."""
    number = record.fields.get("n")
    return None if number is None else dividend // (number % count)


def _is_small(record: SeenRecord) -> bool | None:
    quotient = _divided(record, 100, 4)
    return None if quotient is None else quotient > 40


def _is_not_first_of_three(record: SeenRecord) -> bool | None:
    number = record.fields.get("n")
    return None if number is None else number % 3 != 1


# Of values with a schema or without one: without, fields are text. None: null, which filters.
WHERES: dict[str, Callable[[SeenRecord], bool | None]] = {
    "CAST(value.n AS bigint) % 3 <> 1": _is_not_first_of_three,
    "value.g IS NULL OR value.g <> 'x'": lambda record: record.fields.get("g") != "x",
    "CAST(100 / (CAST(value.n AS int) % 4) AS int) > 40": _is_small,
    "offset % 3 <> 2 AND (key IS NULL OR key = X'61')": (
        lambda record: record.offset % 3 != 2 and record.key in (None, b"a")
    ),
    "hour(timestamp) % 2 = 0 OR partition = 1": (
        lambda record: record.moment.hour % 2 == 0 or record.partition == 1
    ),
}  # fmt: skip
# Of values with a schema.
SELECTS: dict[tuple[str, ...], Callable[[SeenRecord], dict[str, Any]]] = {
    ("value.n AS number", "upper(value.g) AS g", "date_format(timestamp, 'yyyy-MM-dd HH:mm:ss.SSS') AS h"): (
        lambda record: {
            "number": record.fields.get("n"),
            "g": None if (text := record.fields.get("g")) is None else text.upper(),
            "h": record.moment.strftime("%Y-%m-%d %H:%M:%S.") + f"{record.timestamp % 1000:03d}",
        }
    ),
    ("*", "10 DIV (value.n % 5) AS q"): (
        lambda record: {
            **{name: record.fields.get(name) for name in ("n", "g", "t")}, "q": _divided(record, 10, 5),
        }
    ),
    ("CAST(key AS string) AS g", "offset AS o", "CAST(timestamp AS string) AS at"): (
        lambda record: {
            "g": record.key and record.key.decode(), "o": record.offset, "at": _as_text(record.moment),
        }
    ),
}  # fmt: skip
TIME = "timestamp_millis(CAST(value.t AS bigint))"


def _as_text(moment: datetime) -> str:
    """Return a timestamp as Spark casts it, in UTC: no zeros at the end."""
    text = f"{moment.year:04d}-{moment:%m-%d %H:%M:%S.%f}"
    return text.rstrip("0").rstrip(".")
