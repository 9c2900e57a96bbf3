"""`health`: the limits beyond which an archive is not healthy."""

from datetime import timedelta
from typing import Annotated, Any

from pydantic import BeforeValidator, Field, PlainSerializer

from kafka_archiver.config.section import Section
from kafka_archiver.intervals import duration, spelt


def _span(value: Any) -> timedelta | None:
    expected = "expected a time like 90m, 12h or 2d"
    if value is None or isinstance(value, timedelta):
        return value
    if not isinstance(value, str):
        raise ValueError(expected)
    try:
        found = duration(value)
    except ValueError:
        raise ValueError(expected) from None
    if not found:
        raise ValueError(expected)
    return found


Span = Annotated[timedelta | None, BeforeValidator(_span), PlainSerializer(spelt, when_used="json")]


class Health(Section):
    """The limits of one archive.

    `max_lag_records`: offsets that wait; null: no limit. `max_age`: since the end of the last complete hour; null: two
    intervals of the schedule and an hour. `max_audit_age`: since the last audit; null: no limit. `ignore`: names of
    checks that do not count.
    """

    max_lag_records: Annotated[int, Field(ge=0)] | None = None
    max_age: Span = None
    max_audit_age: Span = timedelta(days=3)
    ignore: tuple[Annotated[str, Field(min_length=1)], ...] = ()
