"""The fields of a form that a browser has sent. Pure."""

import re
from collections.abc import Sequence
from datetime import datetime
from typing import NamedTuple

from kafka_archiver.messages.errors import ConfigError
from kafka_archiver.values.documents import isoformat

# Kafka's times begin in 1970. Later than that, an interval around the hour would end after the last date there is.
_HOUR = re.compile(r"(19[7-9][0-9]|[2-8][0-9]{3})-[0-9]{2}-[0-9]{2}[T ][0-9]{2}(:[0-9]{2})?")


class SubmittedForm(NamedTuple):
    """The fields of a form; each may be there several times."""

    fields: Sequence[tuple[str, str]]

    def get(self, name: str) -> str:
        """Return the first value of a field; empty if there is none."""
        return next((value.strip() for key, value in self.fields if key == name), "")

    def all(self, name: str) -> list[str]:
        """Return all values of a field."""
        return [value.strip() for key, value in self.fields if key == name and value.strip()]

    def hour(self, name: str) -> datetime:
        """Return an hour, UTC: 2026-11-21T05:00, or 2026-11-21 05.

        :raises ConfigError: it is not an hour.
        """
        text = self.get(name)
        try:
            start = datetime.fromisoformat(f"{text[:13]}:00Z") if _HOUR.fullmatch(text) else None
        except ValueError:
            start = None
        if start is None:
            raise ConfigError(f"`{name}`: expected an hour since 1970, like 2026-11-21T05:00, found {text[:40]!r}")
        return start

    def hours(self) -> tuple[datetime, datetime]:
        """Return the fields `first` and `last`. Raises ConfigError."""
        first, last = self.hour("first"), self.hour("last")
        if first > last:
            raise ConfigError(f"the first hour, {isoformat(first)}, is after the last, {isoformat(last)}")
        return first, last


def own_fields(form: SubmittedForm) -> list[tuple[str, str]]:
    """Return the fields that have a value, without those of every form."""
    return [(field, value) for field, value in form.fields if value.strip() and field not in ("csrf", "agreed")]
