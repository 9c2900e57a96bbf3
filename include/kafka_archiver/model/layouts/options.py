"""Options that several layouts have."""

import re
from datetime import timedelta
from typing import Annotated, Any, Literal
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from pydantic import AfterValidator, BeforeValidator, Field

from kafka_archiver.model.layouts.date_patterns import ENGLISH
from kafka_archiver.model.object_keys import NO_TIME, RESERVED
from kafka_archiver.values.intervals import duration
from kafka_archiver.values.yaml_values import YamlValue


def or_null(value: object) -> object:
    """The word for YAML's null, which people write without quotes."""
    return "null" if value is None else value


Missing = Annotated[Literal["bad_record", "null", "skip"], BeforeValidator(or_null)]


def zone_name(name: str) -> str:
    """The name of a time zone, checked.

    :raises ValueError: there is no such zone.
    """
    try:
        ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        raise ValueError('expected the name of a time zone like "UTC" or "Europe/Berlin"') from None
    return name


def _locale(name: str) -> str:
    if not re.fullmatch(r"[A-Za-z]{2,3}([-_][A-Za-z]{4})?([-_]([A-Za-z]{2}|\d{3}))?", name):
        raise ValueError('expected a locale like "en", "de" or "pt-BR"')
    return name.replace("_", "-")


Locale = Annotated[str, AfterValidator(_locale)]


def _null_name(name: str) -> str:
    if not re.fullmatch(r"[A-Za-z0-9._~\[\]-]{1,100}", name) or name in {*RESERVED, ".", ".."}:
        raise ValueError("expected letters, digits, `.`, `_`, `-`, `~`, `[` and `]`, and no folder of the archiver")
    return name


def _every(text: str) -> str:
    milliseconds(text)
    return text


def milliseconds(text: str) -> int:
    """A length of time like 15m or 900000ms, in milliseconds; 0 if empty.

    :raises ValueError: the text is something else.
    """
    delay = timedelta(milliseconds=int(text[:-2])) if re.fullmatch(r"\d{1,12}ms", text) else None
    try:
        delay = duration(text) if text and delay is None else delay or timedelta()
    except ValueError:
        delay = timedelta()
    if text and not timedelta(0) < delay <= timedelta(days=366):
        raise ValueError(f"expected a time like 30s, 15m, 1h, 1d or 900000ms, found {text!r}")
    return delay // timedelta(milliseconds=1)


class ClockOptions(YamlValue):
    """Where and how parts of times are shown. `zone_data`, `names`: of the zone and the locale, frozen in plans."""

    timezone: Annotated[str, AfterValidator(zone_name)] = "UTC"
    locale: Locale = "en"
    zone_data: str = ""
    names: dict[str, list[str]] = Field(default_factory=dict)

    def clock(self) -> dict[str, Any]:
        """The fields of a form."""
        return {"zone": self.timezone, "zone_data": self.zone_data, "names": self.names or ENGLISH}


class Every(ClockOptions):
    """A clock whose local times may be rounded down."""

    every: Annotated[str, AfterValidator(_every)] = ""

    def clock(self) -> dict[str, Any]:
        """The fields of a form."""
        return super().clock() | {"every_ms": milliseconds(self.every)}


class Values(YamlValue):
    """The treatment of values that are missing or long."""

    missing: Missing = "bad_record"
    null_name: Annotated[str, AfterValidator(_null_name)] = NO_TIME
    longest: Annotated[int, Field(ge=40, le=500)] = 200

    def values(self) -> dict[str, Any]:
        """The fields of a form."""
        return {"missing": self.missing, "null_name": self.null_name, "longest": self.longest}
