"""`timestamp`, `schedule`, `timezone`: the times of records and of runs."""

import re
from datetime import timedelta
from typing import Annotated, Any
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from croniter import CroniterBadDateError, croniter  # type: ignore[import-untyped]
from pydantic import AfterValidator, BeforeValidator

from kafka_archiver.config.section import Section
from kafka_archiver.intervals import duration


def _disorder(value: Any) -> timedelta | None:
    expected = "expected a time of a second to a week, like 30s, 5m or 1h"
    if value is None:
        return None
    if not isinstance(value, str):
        raise ValueError(expected)
    try:
        found = duration(value)
    except ValueError:
        raise ValueError(expected) from None
    if not timedelta(seconds=1) <= found <= timedelta(weeks=1):
        raise ValueError(expected)
    return found


class Timestamp(Section):
    """What the archive may assume about the records' times.

    `max_disorder`: no record is that much older than an earlier record of its partition. With it, a backfill can prove
    its hours alone.
    """

    max_disorder: Annotated[timedelta | None, BeforeValidator(_disorder)] = None


def _schedule(value: Any) -> Any:
    if value is not None and (not isinstance(value, str) or not _fires(value)):
        raise ValueError('expected a cron expression of five fields like "0 * * * *", or "@hourly", or null')
    return value


def _fires(expression: str) -> bool:
    """Whether the expression is valid and ever fires. Airflow would stop at any other, for every archive."""
    # Refused: R, a random value that differs at each call; a sixth field (seconds) and a seventh (years).
    fields = 1 if expression.startswith("@") else 5
    if not croniter.is_valid(expression) or re.search(r"\bR\b", expression) or len(expression.split()) != fields:
        return False
    try:
        croniter(expression).get_next()
    except CroniterBadDateError:
        return False
    return True


def _timezone(name: str) -> str:
    try:
        ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        raise ValueError('expected the name of a time zone like "UTC" or "Europe/Berlin"') from None
    return name


Schedule = Annotated[str | None, BeforeValidator(_schedule)]
Timezone = Annotated[str, AfterValidator(_timezone)]
