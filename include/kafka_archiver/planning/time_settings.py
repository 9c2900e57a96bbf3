"""The data of time zones and locales, and the time of a wall clock, as plans freeze them."""

from datetime import datetime
from importlib.resources import files
from pathlib import Path
from typing import Any
from zoneinfo import TZPATH

from kafka_archiver.model.layouts.date_patterns import Names
from kafka_archiver.model.layouts.frozen_zone import packed
from kafka_archiver.model.layouts.options import ClockOptions
from kafka_archiver.model.layouts.registry import options_of
from kafka_archiver.model.plan import Plan
from kafka_archiver.model.settings import Settings
from kafka_archiver.values.intervals import to_ms

_PACKAGE = "tzdata.zoneinfo"


def with_zone_data(settings: Settings) -> Settings:
    """Return the settings with the data of the zones and locales that they name. Only what differs from UTC and
    English.
    """
    options = options_of(settings.layout, settings.layout_options)
    update: dict[str, Any] = {}
    if isinstance(options, ClockOptions):
        frozen = _frozen_zone(options.timezone, options.locale)
        if frozen:
            update["layout_options"] = {**settings.layout_options, **frozen}
    if settings.time.timezone != "UTC" or settings.time.locale != "en":
        frozen = _frozen_zone(settings.time.timezone, settings.time.locale)
        names = {kind: tuple(listed) for kind, listed in frozen.get("names", {}).items()}
        update["time"] = settings.time.model_copy(update={**frozen, "names": names})
    return settings.model_copy(update=update) if update else settings


def with_wall_clock(settings: Settings, moment: datetime, old: Plan | None = None) -> Settings:
    """Return the settings with the time of the wall clock: a revision of a run has that of the run.

    :param moment: of planning. :param old: the plan that this one repeats.
    """
    if settings.time.source != "wallclock":
        return settings
    first = old.settings.time.at if old else None
    at = first if first is not None else to_ms(old.planned_at if old else moment)
    return settings.model_copy(update={"time": settings.time.model_copy(update={"at": at})})


def _frozen_zone(timezone: str, locale: str) -> dict[str, Any]:
    frozen: dict[str, Any] = {}
    if timezone != "UTC":
        frozen["zone_data"] = packed(_zone_file(timezone))
    if locale != "en":
        frozen["names"] = {kind: list(listed) for kind, listed in locale_names(locale).items()}
    return frozen


def _zone_file(name: str) -> bytes:
    """Return the data of a zone that exists."""
    for directory in TZPATH:
        path = Path(directory, *name.split("/"))
        if path.is_file():
            return path.read_bytes()
    return files(_PACKAGE).joinpath(*name.split("/")).read_bytes()


def locale_names(locale: str) -> Names:
    """Return the names of months and days in a locale, as Unicode's CLDR has them."""
    # Imported late: most archives need no names.
    from babel import Locale

    data = Locale.parse(locale, sep="-")

    def listed(names: Any, numbers: range) -> list[str]:
        return [str(names[number]) for number in numbers]

    months, days = data.months["format"], data.days["format"]
    halves = data.day_periods["format"]["abbreviated"]
    return {
        "months": listed(months["wide"], range(1, 13)),
        "months_short": listed(months["abbreviated"], range(1, 13)),
        "days": listed(days["wide"], range(7)),
        "days_short": listed(days["abbreviated"], range(7)),
        "halves": [str(halves["am"]), str(halves["pm"])],
        "eras": [str(data.eras["abbreviated"][1])],
    }
