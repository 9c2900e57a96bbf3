"""`timestamp`, `schedule`, `timezone`: the times of records and of runs."""

import re
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from itertools import pairwise
from typing import Annotated, Any, Self

from croniter import CroniterBadDateError, croniter  # type: ignore[import-untyped]
from pydantic import AfterValidator, BeforeValidator, ConfigDict, Field, PlainSerializer, model_validator

from kafka_archiver.config.section import Section
from kafka_archiver.model.layouts.options import Locale, or_null, zone_name
from kafka_archiver.model.layouts.template import field_of
from kafka_archiver.model.settings import EventTime, NoTime, TimeSource, TimeUnit
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


def _path(name: str) -> str:
    if name:
        field_of(f"value.{name}")
    return name


def _pattern(pattern: str) -> str:
    # Imported late: only archives with patterns need it.
    from kafka_archiver.model.layouts.read_times import compiled

    wrong = ""
    if re.search(r"%[A-Za-z]", pattern):
        wrong = "% and a letter are of strftime; its %Y-%m-%d %H:%M:%S is yyyy-MM-dd HH:mm:ss here"
    elif "m" in (bare := re.sub(r"'[^']*'", "", pattern)) and not re.search("[HhKk]", bare):
        wrong = "it has minutes (mm) and no hour (HH); months are MM"
    try:
        compiled(pattern)
    except ValueError as error:
        wrong = wrong or str(error)
    if wrong:
        raise ValueError(f"a pattern of a time like yyyy-MM-dd'T'HH:mm:ssX, or iso: {wrong}")
    return pattern


_FIRINGS = 200


class Timestamp(Section):
    """The time that files a record, and what the archive may assume about the records' times.

    `from`: see `plan.EventTime`, as for `unit`, `patterns`, `timezone` and `missing`. `path`: a field of the value or
    the key; `header`: a header's name; `sql`: an expression of Spark's.
    `max_disorder`: no record is that much older than an earlier record of its partition. With it, a loss leaves fewer
    hours incomplete, and a backfill can prove its hours alone.
    """

    model_config = ConfigDict(serialize_by_alias=True)

    from_: Annotated[TimeSource, Field(alias="from")] = "record"
    path: Annotated[str, AfterValidator(_path)] = ""
    header: str = ""
    sql: str = ""
    unit: TimeUnit | None = None
    patterns: tuple[Annotated[str, AfterValidator(_pattern)], ...] = ()
    timezone: Annotated[str, AfterValidator(zone_name)] = "UTC"
    locale: Locale = "en"
    missing: Annotated[NoTime, BeforeValidator(or_null)] = "bad_record"
    max_disorder: Annotated[
        timedelta | None,
        *span("expected a time of a second to a week, like 30s, 5m or 1h", most=timedelta(weeks=1)),
    ] = None

    @property
    def event_time(self) -> EventTime:
        """Return it as a plan has it, not yet frozen."""
        source = self.from_
        if source == "record":
            return EventTime()
        return EventTime(
            source=source,
            field=self.header or self.sql or self.path,
            unit=self.unit,
            patterns=self.patterns,
            timezone=self.timezone,
            locale=self.locale,
            missing=self.missing,
        )

    @model_validator(mode="after")
    def _goes_together(self) -> Self:
        own = {"value": ("path",), "key": ("path",), "header": ("header",), "sql": ("sql",)}.get(self.from_, ())
        names = ("path", "header", "sql", "unit", "patterns", "timezone", "locale", "missing")
        set_names = {name for name in names if getattr(self, name) != type(self).model_fields[name].default}
        reads = {"unit", "patterns", "timezone", "locale", "missing"} if own else set()
        reads = {"missing"} if self.from_ == "sql" else reads
        if wrong := sorted(set_names - {*own, *reads}):
            raise ValueError(f"no `{wrong[0]}` with `from: {self.from_}`")
        if self.from_ == "header" and not self.header:
            raise ValueError("`header` (a header's name) with `from: header`")
        if self.from_ == "sql" and not self.sql:
            raise ValueError("`sql` (an expression of Spark's that gives a timestamp) with `from: sql`")
        if self.from_ != "record" and self.max_disorder is not None:
            raise ValueError("`max_disorder` with `from: record` only: Kafka's index knows no other times")
        return self


def _schedule(value: Any) -> Any:
    if value is not None and (not isinstance(value, str) or not _fires(value)):
        raise ValueError('expected a cron expression of five fields like "0 * * * *", or "@hourly", or null')
    return value


def _fires(expression: str) -> bool:
    """Return True if the expression is valid and ever fires. Airflow would stop at any other, for every archive."""
    # Refused: R, a random value that differs at each call; a sixth field (seconds) and a seventh (years).
    fields = 1 if expression.startswith("@") else 5
    if not croniter.is_valid(expression) or re.search(r"\bR\b", expression) or len(expression.split()) != fields:
        return False
    try:
        croniter(expression).get_next()
    except CroniterBadDateError:
        return False
    return True


@lru_cache
def longest_interval(schedule: str) -> timedelta:
    """The longest time between two runs of a cron schedule, among its next firings."""
    firings = croniter(schedule, datetime(2026, 1, 1, tzinfo=UTC))
    times: list[datetime] = [firings.get_next(datetime) for _ in range(_FIRINGS)]
    return max(later - earlier for earlier, later in pairwise(times))


Schedule = Annotated[str | None, BeforeValidator(_schedule)]
Timezone = Annotated[str, AfterValidator(zone_name)]
