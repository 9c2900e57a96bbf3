"""Times that pass, in the YAML: 90s, 30m, 12h, 2d."""

from datetime import timedelta
from typing import Any

from pydantic import BeforeValidator, PlainSerializer

from kafka_archiver.values.intervals import duration, spelt


def span(expected: str, least: timedelta = timedelta(seconds=1), most: timedelta = timedelta.max) -> tuple[Any, ...]:
    """The annotations of a field that takes such a time, or null.

    :param expected: what the error says.
    """

    def read(value: Any) -> timedelta | None:
        if value is None:
            return None
        parsed = None
        if isinstance(value, timedelta):
            parsed = value
        elif isinstance(value, str):
            try:
                parsed = duration(value)
            except ValueError:
                parsed = None
        if parsed is None or not least <= parsed <= most:
            raise ValueError(expected)
        return parsed

    return BeforeValidator(read), PlainSerializer(spelt, when_used="json")
