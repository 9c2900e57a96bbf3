"""Times in paths: zones, locales, rounding; and times that are read from values."""

import re
import zoneinfo
from datetime import UTC, datetime, timedelta
from typing import Any
from zoneinfo import ZoneInfo

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kafka_archiver.config.times import Timestamp
from kafka_archiver.messages.errors import ConfigError
from kafka_archiver.model.layouts.form import PathForm
from kafka_archiver.model.layouts.frozen_zone import packed
from kafka_archiver.model.layouts.read_times import Parser, UnreadableTimeError
from kafka_archiver.model.layouts.registry import form_of, named, resolve
from kafka_archiver.model.layouts.template import parsed
from kafka_archiver.model.settings import EventTime, Settings
from kafka_archiver.planning import time_settings as freezing
from kafka_archiver.records.pipeline.base import NONE, TIME, Marks
from kafka_archiver.records.pipeline.filing.clock import TimeLabels
from kafka_archiver.records.pipeline.filing.event_time import time_stage
from kafka_archiver.values.intervals import LAST_MS, to_ms
from tests.support.chunks import Row, batch

pytestmark = pytest.mark.unit

ZONES = [
    "UTC",
    "Europe/Berlin",
    "Australia/Lord_Howe",
    "Asia/Kathmandu",
    "Pacific/Apia",
    "America/St_Johns",
    "Africa/Monrovia",
]
LAST_DAY = datetime.max.replace(tzinfo=UTC).toordinal()
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def clock(pattern: str, zone: str = "UTC", every: int = 0, locale: str = "en") -> TimeLabels:
    data = packed(freezing._zone_file(zone)) if zone != "UTC" else ""
    names = freezing.locale_names(locale)
    return TimeLabels(PathForm(parsed(pattern), zone=zone, zone_data=data, every_ms=every, names=names))


def texts(shown: TimeLabels, times: list[int]) -> list[str | None]:
    codes, labels = shown.labels(np.array(times, np.int64))
    shown_texts = [labels[code] for code in codes.tolist()]
    return [None if label is None else "|".join(label) for label in shown_texts]


def moment(text: str, zone: str = "UTC") -> int:
    return to_ms(datetime.fromisoformat(text).replace(tzinfo=ZoneInfo(zone)).astimezone(UTC))


# Around the changes of these zones, and anywhere.
TIMES = st.integers(-(2**63) + 1, 2**63 - 1) | st.integers(-(10**13), 10**13)
TIMES |= st.builds(
    lambda base, more: base + more,
    st.sampled_from(
        [
            1_743_296_400_000,
            1_761_440_400_000,
            1_743_865_200_000,
            1_759_590_000_000,
            1_325_239_200_000,
            -4_000_000_000_000,
        ]
    ),
    st.integers(-8_000_000, 8_000_000),
)


@given(
    st.sampled_from(ZONES),
    st.lists(TIMES, min_size=1, max_size=20),
    st.sampled_from(["{yyyy-MM-dd}/{HH}", "{D}/{HH}/{mm}", "{s}/{SSS}", "{dd}"]),
)
def test_the_parts_of_a_time_are_those_of_the_zone(zone: str, times: list[int], pattern: str) -> None:
    def expected(time: int) -> str | None:
        try:
            local = (EPOCH + timedelta(milliseconds=time)).astimezone(ZoneInfo(zone))
        except OverflowError:
            return None
        if zone != "UTC" and not 1 < local.toordinal() < LAST_DAY:
            return ""
        return {
            "{yyyy-MM-dd}/{HH}": f"{local.year:04d}-{local:%m-%d}|{local:%H}",
            "{D}/{HH}/{mm}": f"{local.timetuple().tm_yday}|{local:%H|%M}",
            "{s}/{SSS}": f"{local.second}|{local.microsecond // 1000:03d}",
            "{dd}": f"{local:%d}",
        }[pattern]

    shown = clock(pattern, zone)
    for text, time in zip(texts(shown, times), times, strict=True):
        # The first and the last day of all dates have no date in every zone.
        assert expected(time) in (text, "") or (text is None and abs(time) > 6 * 10**13)


def test_an_hour_that_is_twice_and_one_that_is_never() -> None:
    berlin = clock("{yyyy-MM-dd'T'HH:mm Z}", "Europe/Berlin")
    twice = [moment("2025-10-26T00:30"), moment("2025-10-26T01:30")]
    assert texts(berlin, twice) == ["2025-10-26T02:30 +0200", "2025-10-26T02:30 +0100"]
    gap = [moment("2025-03-30T00:59"), moment("2025-03-30T01:00")]
    assert texts(berlin, gap) == ["2025-03-30T01:59 +0100", "2025-03-30T03:00 +0200"]
    # By half an hour, inside of an hour of UTC.
    howe = clock("{dd'T'HH}", "Australia/Lord_Howe")
    assert texts(howe, [moment("2025-04-05T14:59"), moment("2025-04-05T15:00")]) == ["06T01", "06T01"]
    assert texts(howe, [moment("2025-10-04T15:29"), moment("2025-10-04T15:30")]) == ["05T01", "05T02"]


@pytest.mark.parametrize(
    ("pattern", "locale", "expected"),
    [
        ("{MMMM}/{EEE}", "de", "März|So."),
        ("{MMM}/{EEEE}", "de-DE", "März|Sonntag"),
        ("{MMMM}/{EEE}", "en-US", "March|Sun"),
        ("{G yyyy MMM d, hh:mm a}", "en", "AD 2026 Mar 1, 12:05 AM"),
        ("{xxxx-'W'ww-e}", "en", "2026-W09-7"),
        ("{yy}/{k}/{K}/{h}", "fr", "26|24|0|12"),
        ("{MMMM}", "th", "มีนาคม"),
    ],
)
def test_names_of_locales_and_rare_parts(pattern: str, locale: str, expected: str) -> None:
    assert texts(clock(pattern, locale=locale), [moment("2026-03-01T00:05")]) == [expected]


def test_times_are_rounded_down_in_local_time() -> None:
    shown = clock("{HH:mm}", "Asia/Kathmandu", every=20 * 60_000)
    times = [moment(f"2026-03-01T10:{minute:02d}", "Asia/Kathmandu") for minute in (0, 19, 20, 59)]
    assert texts(shown, times) == ["10:00", "10:00", "10:20", "10:40"]


def test_a_plan_keeps_its_paths_if_the_time_zone_database_changes() -> None:
    name, options = named({"name": "daily", "timezone": "Europe/Berlin", "locale": "de"})
    planned = resolve(freezing.with_zone_data(Settings(layout=name, layout_options=options)))
    read = Settings.model_validate_json(planned.model_dump_json())
    zoneinfo.reset_tzpath([])
    try:
        ZoneInfo.clear_cache()
        times = [moment("2025-10-25T21:59"), moment("2025-10-25T22:00")]
        assert texts(TimeLabels(form_of(read)), times) == ["2025-10-25", "2025-10-26"]
    finally:
        zoneinfo.reset_tzpath()


@pytest.mark.parametrize(
    ("options", "text", "expected"),
    [
        ({}, "2026-11-21T05:00:00Z", "2026-11-21T05:00"),
        ({}, "2026-11-21T05:00:00.123456789+01:00", "2026-11-21T04:00:00.123"),
        ({}, "2026-11-21", "2026-11-21T00:00"),
        ({}, "20261121T050000,5+0530", "2026-11-20T23:30:00.500"),
        ({}, "2026-W47-6 05 Z", "2026-11-21T05:00"),
        ({}, "1795237200000", "2026-11-21T05:00"),
        ({"unit": "s"}, "1795237200.5", "2026-11-21T05:00:00.500"),
        ({"unit": "us"}, "1795237200000999", "2026-11-21T05:00"),
        ({"unit": "ns"}, "-1", "1969-12-31T23:59:59.999"),
        ({"patterns": ("dd.MM.yyyy HH:mm", "yyyy")}, "21.11.2026 05:00", "2026-11-21T05:00"),
        ({"patterns": ("dd.MM.yyyy HH:mm", "yyyy")}, "2026", "2026-01-01T00:00"),
        ({"patterns": ("EEE, d MMM yyyy HH:mm:ss Z",)}, "Sat, 21 nov 2026 05:00:00 -0030", "2026-11-21T05:30"),
        ({"patterns": ("yyyy-MM-dd'T'HH:mm:ss.SSSXXX",)}, "2026-11-21T05:00:00.250+05:45", "2026-11-20T23:15:00.250"),
        ({"patterns": ("yyyy-D hh a",)}, "2026-325 12 AM", "2026-11-21T00:00"),
        ({"patterns": ("yyyy-MM-dd HH:mm",), "timezone": "Europe/Berlin"}, "2025-10-26 02:30", "2025-10-26T00:30"),
        ({"patterns": ("yyyy-MM-dd HH:mm",), "timezone": "Europe/Berlin"}, "2025-03-30 02:30", "2025-03-30T01:30"),
        ({"patterns": ("d. MMMM yyyy",), "locale": "de"}, "1. März 2026", "2026-03-01T00:00"),
    ],
)
def test_times_are_read_from_text(options: dict[str, Any], text: str, expected: str) -> None:
    time = freezing.with_zone_data(Settings(time=EventTime(source="value", **options))).time
    assert Parser(time)(text) == to_ms(datetime.fromisoformat(expected).replace(tzinfo=UTC))


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({}, "soon"), ({}, ""), ({}, "NaN"), ({}, "1e99"), ({}, "-0044-03-15"), ({}, "12026-01-01"),
        ({"unit": "s"}, "253402300800"), ({"patterns": ("yyyy-MM-dd",)}, "2026-02-30"),
        ({"patterns": ("yyyy-MM-dd",)}, "1795237200000"), ({"patterns": ("yyyy-D",)}, "2026-366"),
        # Python would read the year 1710 and 1970 here.
        ({"patterns": ("iso",)}, "1710123150000"), ({}, "2026_11_21"), ({}, "1" * 50), ({}, "\u0661"),
    ],
)  # fmt: skip
def test_text_that_is_no_time(options: dict[str, Any], text: str) -> None:
    with pytest.raises(UnreadableTimeError):
        Parser(EventTime(source="value", **options))(text)


ROWS = [
    Row(0, 7, value=b'{"t": 5}', headers=(("t", b"5"),)),
    Row(1, 7, value=b'{"t": null}'),
    Row(2, -1, value=b'{"t": "no"}', headers=(("t", b"\xff"),)),
    Row(3, 7, value=None),
]


@pytest.mark.parametrize(
    ("missing", "times", "rejected", "filtered"),
    [
        ("bad_record", [5, NONE, NONE, NONE], [1, 2, 3], []),
        ("null", [5, NONE, NONE, NONE], [], []),
        ("record", [5, 7, NONE, 7], [], []),
        ("skip", [5, NONE, NONE, NONE], [], [1, 2, 3]),
    ],
)
@pytest.mark.parametrize("source", ["value", "header"])
def test_a_time_that_is_missing(
    source: Any, missing: Any, times: list[int], rejected: list[int], filtered: list[int]
) -> None:
    settings = Settings(value_decode="json", time=EventTime(source=source, field="t", missing=missing))
    stage, marks = time_stage(settings), Marks()
    assert stage
    assert stage(batch(ROWS), marks).column(TIME).to_pylist() == times
    assert sorted(marks.rejected) == rejected
    assert marks.filtered().tolist() == filtered
    if rejected:
        assert "`timestamp.from` is" in marks.rejected[2]
        assert "is null or missing" in marks.rejected[1]


def test_typed_times_are_taken_as_they_are() -> None:
    settings = Settings(value_decode="avro", time=EventTime(source="value", field="a.t"))
    stage = time_stage(settings)
    assert stage
    exact = pa.array(
        [datetime(2026, 1, 1, tzinfo=UTC), None, datetime(1960, 1, 1, tzinfo=UTC), None], pa.timestamp("us", "UTC")
    )
    inner = pa.StructArray.from_arrays([exact], ["t"])
    decoded = batch(ROWS).append_column("value_decoded", pa.StructArray.from_arrays([inner], ["a"]))
    marks = Marks()
    assert stage(decoded, marks).column(TIME).to_pylist() == [1767225600000, NONE, -315619200000, NONE]
    assert sorted(marks.rejected) == [1, 3]


def test_the_wall_clock_is_the_time_of_the_plan_also_in_a_revision() -> None:
    settings = Settings(time=EventTime(source="wallclock"))
    planned = freezing.with_wall_clock(settings, datetime(2026, 11, 21, tzinfo=UTC))
    stage = time_stage(planned)
    assert stage
    assert set(stage(batch(ROWS), Marks()).column(TIME).to_pylist()) == {1795219200000}
    assert planned.asked() == settings


def test_a_time_of_bytes_is_refused() -> None:
    with pytest.raises(ConfigError, match=r"timestamp\.path: value\.t is a field of the value, so it needs"):
        resolve(Settings(time=EventTime(source="value", field="t")))


def test_the_last_moment_has_a_date_in_utc() -> None:
    assert texts(clock("{yyyy-MM-dd}"), [LAST_MS, LAST_MS + 1]) == ["9999-12-31", None]


@pytest.mark.parametrize(
    ("pattern", "why"),
    [
        ("%Y-%m-%d", "% and a letter are of strftime"),
        ("yyyy-mm-dd", "it has minutes (mm) and no hour (HH); months are MM"),
        ("HH:mm", "it has no year (yyyy)"),
        ("yyyy QQ", "'Q' is no part of a time that can be read"),
        ("yyyy'T", 'the quote in "yyyy\'T" is not closed'),
    ],
)
def test_a_pattern_that_reads_no_time_is_refused(pattern: str, why: str) -> None:
    with pytest.raises(ValueError, match=rf"a pattern of a time like .*, or iso: {re.escape(why)}"):
        Timestamp.model_validate({"from": "header", "header": "h", "patterns": [pattern]})
