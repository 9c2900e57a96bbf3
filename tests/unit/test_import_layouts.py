"""Paths of Confluent's and Aiven's connectors: what Joda, Java and the templates mean by them."""

import json
from datetime import UTC, datetime, timedelta, timezone
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kafka_archiver.config import parse_archive
from kafka_archiver.imports.aiven_template import place_of
from kafka_archiver.imports.joda import braced, locale_of, pattern_of, zone_of
from kafka_archiver.model.layouts.date_patterns import ENGLISH, shown, tokens_of
from kafka_archiver.model.layouts.tokens import TextToken
from kafka_archiver.orchestration.cli.imported_yaml import archives_of
from tests.unit.test_import_gallery import key_of
from tests.unit.test_imports import AVRO, FORMAT, LEAST, PARTITIONER, made_of, noted

TIME = {
    "partitioner__class": f"{PARTITIONER}.TimeBasedPartitioner",
    "path__format": "YYYY",
    "partition__duration__ms": "60000",
    "locale": "en",
    "timezone": "UTC",
    "timestamp__extractor": "Record",
}


def opens(imported: Any) -> list[str]:
    return [note.text for note in imported.notes if note.kind in ("decide", "unknown")]


def shown_by(pattern: str, moment: datetime) -> str:
    return "".join(
        token.text if isinstance(token, TextToken) else shown(token, moment, ENGLISH) for token in tokens_of(pattern)
    )


@pytest.mark.parametrize(
    ("pattern", "zone", "expected"),
    [
        ("YYYY/MM/dd/", "UTC", "YYYY/MM/dd"),
        # One is dropped, as the partitioner does.
        ("YYYY//", "UTC", "YYYY/"),
        ("'day'=dd/ZZZ", "Europe/Berlin", "'day'=dd/'Europe'/'Berlin'"),
        ("ZZZZ'T'HH", "America/New_York", "'America'/'New'_'York''T'HH"),
        ("HHZ ZZ", "UTC", "HHZ ZZ"),
    ],
)
def test_a_pattern_of_joda(pattern: str, zone: str, expected: str) -> None:
    assert pattern_of(pattern, "/", zone) == expected


def test_a_zone_s_name_in_a_path_is_text() -> None:
    moment = datetime(2026, 11, 21, 5, tzinfo=UTC)
    assert shown_by(pattern_of("'it''s' ZZZ HH", "/", "America/New_York"), moment) == "it's America/New_York 05"


@pytest.mark.parametrize("pattern", ["CC", "YYYY z", "'open", "YYYY-MM-dd'T'HH:mm:ssX"])
def test_letters_without_an_equal_are_a_line_and_a_problem(pattern: str) -> None:
    with pytest.raises(ValueError, match=r"'|quote"):
        pattern_of(pattern, "/", "UTC")
    imported, content = made_of("confluent", **TIME | AVRO_KEYS | {"path__format": pattern})
    assert [note.kind for note in noted(imported, "path.format")] == ["decide"]
    assert content["store"]["layout"]["path_format"] == pattern
    assert problems_of(TIME | {"path__format": pattern})


AVRO_KEYS = {key.replace(".", "__"): value for key, value in AVRO.items()}


def problems_of(more: dict[str, str]) -> tuple[str, ...]:
    keys = LEAST["confluent"] | {key.replace("__", "."): value for key, value in more.items()}
    return archives_of(json.dumps(keys), "file").archives[0].problems


@pytest.mark.parametrize("path", ["/YYYY", "YYYY//MM", "YYYY///"])
def test_folders_without_a_name_are_a_line_and_a_problem(path: str) -> None:
    imported, _ = made_of("confluent", **TIME | AVRO_KEYS | {"path__format": path})
    assert "folders without a name" in noted(imported, "path.format")[0].text
    assert problems_of(TIME | {"path__format": path})


@pytest.mark.parametrize("hours", [*range(-12, 15), -9.5, 4.5, 5.5, 6.5, 9.5])
def test_an_offset_is_a_zone_with_the_same_times_since_1970(hours: float) -> None:
    minutes = int(hours * 60)
    sign = "-" if minutes < 0 else "+"
    name, known = zone_of(f"{sign}{abs(minutes) // 60:02d}:{abs(minutes) % 60:02d}")
    assert known
    zone = ZoneInfo(name)
    at = datetime(1970, 1, 1, tzinfo=UTC)
    while at.year < 2037:
        assert at.astimezone(zone).utcoffset() == timezone(timedelta(minutes=minutes)).utcoffset(None)
        at += timedelta(days=11, hours=7)


@pytest.mark.parametrize("zone", ["+03:30", "+15:00", "-13", "C", "+5", "PST8"])
def test_an_offset_without_a_zone_is_a_problem_that_names_it(zone: str) -> None:
    imported, _ = made_of("confluent", **TIME | AVRO_KEYS | {"timezone": zone})
    assert bool(opens(imported)) == (zone[0] in "+-" and zone != "+5")
    [problem] = problems_of(TIME | {"timezone": zone, **AVRO_KEYS})
    assert "store.layout" in problem


@pytest.mark.parametrize(
    ("pattern", "locale", "expected", "checked"),
    [
        # No name in the path: the locale decides nothing.
        ("YYYY-MM-dd", "de_DE", "", False),
        ("YYYY-MM-dd", "C", "", False),
        ("MMM", "en", "", False),
        ("MMMM", "EN", "", False),
        # new Locale("en-US") is a language that Java does not know; its root has short English names.
        ("MMM/E/a", "en-US", "", False),
        ("MMM", "US", "", False),
        ("MMMM", "en_US", "", True),
        ("EEEE", "US", "", True),
        ("G", "C", "", True),
        ("MMMM", "de", "de", True),
        ("'Monat'=MM", "de", "", False),
    ],
)
def test_a_locale_counts_where_a_path_has_names(pattern: str, locale: str, expected: str, checked: bool) -> None:
    used, check = locale_of(pattern, locale)
    assert (used, bool(check)) == (expected, checked)
    imported, content = made_of("confluent", **TIME | AVRO_KEYS | {"path__format": pattern, "locale": locale})
    assert content["store"]["layout"].get("locale", "") == expected
    assert bool(opens(imported)) == checked
    # No locale of a file is a traceback.
    assert problems_of(TIME | AVRO_KEYS | {"path__format": pattern, "locale": locale}) == ()


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("partitioner.class", "com.acme.DailyPartitioner"),
        ("partitioner.class", "DailyPartitioner"),
        ("format.class", "com.acme.JsonFormat"),
        ("timestamp.extractor", "com.acme.RecordField"),
        ("value.converter", "com.acme.AvroConverter"),
    ],
)
def test_a_class_is_known_by_its_whole_name(key: str, value: str) -> None:
    imported, content = made_of("confluent", **TIME | AVRO_KEYS | {key.replace(".", "__"): value})
    assert [note.kind for note in noted(imported, key)] == ["decide"]
    if key == "partitioner.class":
        # Nothing is taken for it.
        assert content["store"]["layout"] == value


@pytest.mark.parametrize("name", ["TimeBasedPartitioner$RecordFieldTimestampExtractor", None])
def test_an_extractor_may_have_its_whole_name(name: str | None) -> None:
    extractor = f"{PARTITIONER}.{name}" if name else "RecordField"
    _, content = made_of("confluent", **TIME | AVRO_KEYS | {"timestamp__extractor": extractor})
    assert content["timestamp"] == {"from": "value", "path": "timestamp"}


@pytest.mark.parametrize("missing", ["timezone", "partition__duration__ms"])
def test_what_the_partitioner_needs_is_asked_for(missing: str) -> None:
    imported, _ = made_of("confluent", **{key: value for key, value in (TIME | AVRO_KEYS).items() if key != missing})
    assert [text for text in opens(imported) if "without which the connector does not start" in text]


def by_field(value: dict[str, Any], fields: str, **more: str) -> str:
    keys = LEAST["confluent"] | {
        "format.class": f"{FORMAT}.avro.AvroFormat",
        "value.converter": AVRO["value.converter"],
        "partitioner.class": f"{PARTITIONER}.FieldPartitioner",
        "partition.field.name": fields,
        "errors.tolerance": "all",
        **more,
    }
    [archive] = archives_of(json.dumps(keys), "file").archives
    return key_of({"value": value}, parse_archive(archive.yaml, "x", {}))


@pytest.mark.parametrize(
    ("value", "fields", "expected"),
    [
        ({"country": "DE"}, "country", "country=DE"),
        # The connector writes null as a text, whatever errors.tolerance is.
        ({"country": None}, "country", "country=null"),
        ({"address": {"city": "Bonn"}}, "address.city", "address.city=Bonn"),
        ({"address": {"city": "Bonn"}, "city": 7}, "address.city, city", "address.city=Bonn/city=7"),
        ({"paid": True, "n": -1}, "paid,n", "paid=true/n=-1"),
    ],
)
def test_folders_of_fields_are_the_connector_s(value: dict[str, Any], fields: str, expected: str) -> None:
    assert by_field(value, fields) == f"s3://b/topics/t/{expected}/t+3+0000000042"


def test_a_value_that_is_a_folder_and_a_column_is_kept() -> None:
    keys = {"partitioner__class": f"{PARTITIONER}.FieldPartitioner", "partition__field__name": "country,address.city"}
    assert made_of("confluent", **AVRO_KEYS, **keys)[1]["store"]["rename"] == {"country": "country"}
    assert "rename" not in made_of("confluent", **keys)[1]["store"]


@given(st.lists(st.sampled_from(["YYYY", "MM", "'a'", "'it''s'", "/", "-", "=", "HH", "'x{'", "dd"]), min_size=1))
def test_a_pattern_in_braces_shows_the_same(parts: list[str]) -> None:
    pattern = "".join(parts)
    moment = datetime(2026, 11, 21, 5, 7, tzinfo=UTC)
    try:
        path = braced(pattern)
    except ValueError:
        assert "{" in pattern
        return
    for token in tokens_of(pattern):
        if not isinstance(token, TextToken):
            path = path.replace("{" + token.pattern + "}", shown(token, moment, ENGLISH), 1)
    assert path == shown_by(pattern, moment)


@pytest.mark.parametrize(
    ("template", "path", "name"),
    [
        ("a/{{topic}}-{{partition}}-{{start_offset}}", "a", "{topic}-{partition}-{start}"),
        ("{{ topic }}/{{ partition : padding=true }}/{{start_offset:padding = TRUE}}.jsonl.gz",
         "{topic}/{partition:10}", "{start:20}"),
        ("a/{{timestamp:unit=YYYY}}/{{timestamp:unit=HH}}h/{{topic}}+{{partition}}+{{start_offset:padding=false}}",
         "a/{yyyy}/{HH}h", "{topic}+{partition}+{start}"),
        ("v1.2/{{topic}}.{{partition}}-{{start_offset}}.gz", "v1.2", "{topic}.{partition}-{start}"),
    ],
)  # fmt: skip
def test_a_template_of_aiven(template: str, path: str, name: str) -> None:
    place = place_of(template, "UTC", by_record=True)
    assert (place.layout, place.name, place.wrong) == ({"path": path}, name, "")
    assert place.timestamp == ({"from": "record"} if "timestamp" in template else {})


@pytest.mark.parametrize(
    "template",
    ["k{{key}}", "a/{{local_date}}/{{topic}}", "a/{{timestamp:unit=mm}}", "a/{{nothing}}", "a/{{topic}",
     "a/{x}/{{topic}}", "a/{{topic:padding=true}}"],
)  # fmt: skip
def test_a_template_that_cannot_be_said_is_refused(template: str) -> None:
    place = place_of(template, "UTC", by_record=False)
    assert place.wrong
    # No layout has such a name.
    assert place.layout == template
