"""Lenses' connector as a whole: topics of several statements, headers of time, codecs, decoded keys."""

from typing import Any

import pytest

from kafka_archiver.imports.base import Imported
from kafka_archiver.imports.kcql import parse
from kafka_archiver.imports.lenses import shares_of
from kafka_archiver.imports.registry import import_text
from kafka_archiver.messages.errors import ConfigError

pytestmark = pytest.mark.unit

HEADERS = "io.lenses.connect.smt.header"
JSON = {
    "value.converter": "org.apache.kafka.connect.json.JsonConverter",
    "value.converter.schemas.enable": "false",
}
AVRO = "io.confluent.connect.avro.AvroConverter"


def made_of(kcql: str, more: dict[str, str] | None = None) -> Imported:
    keys = {"name": "n", "topics": "t,u,v", "connect.s3.kcql": kcql, **JSON, **(more or {})}
    return import_text("\n".join(f"{key}={value}" for key, value in keys.items()), "file")[0]


def decided(imported: Imported) -> list[str]:
    every = [*imported.notes, *(note for draft in imported.drafts for note in draft.notes)]
    return [note.text for note in every if note.kind == "decide"]


@pytest.mark.parametrize(
    ("topics", "source", "expected", "odd"),
    [
        (["t", "*"], {"topics": ["t", "u"]}, [{"topics": ["t"]}, {"topics": ["u"]}], []),
        (["t", "*"], {"pattern": "a|t"}, [{"topics": ["t"]}, {"pattern": "(?!(?:t)$)(?:a|t)"}], []),
        (["*"], {"pattern": "a|t"}, [{"pattern": "a|t"}], []),
        (["*", "t"], {"topics": ["t"]}, [{"topics": ["t"]}, {"topics": ["t"]}], ["an earlier one has t"]),
        (["t", "t"], {"topics": ["t"]}, [{"topics": ["t"]}, {"topics": ["t"]}], ["an earlier one has t"]),
        (["x"], {"topics": ["x", "y"]}, [{"topics": ["x"]}], ["`topics` has y, which no statement names"]),
        (["x", "*"], {"topics": ["y"]}, [{"topics": ["x"]}, {"topics": ["y"]}], ["`topics` has no x"]),
    ],
)
def test_a_topic_belongs_to_the_first_statement_that_fits(
    topics: list[str], source: dict[str, Any], expected: list[dict[str, Any]], odd: list[str]
) -> None:
    statements = parse(";".join(f"INSERT INTO b:p SELECT * FROM `{topic}`" for topic in topics)).statements
    shares, notes = shares_of(statements, source)
    assert list(shares.values()) == expected
    assert len(notes) == len(odd)
    assert all(part in text for part, text in zip(odd, notes, strict=True))


@pytest.mark.parametrize(
    ("kind", "more", "by", "timestamp", "layout"),
    [
        ("InsertRecordTimestampHeaders", {"timezone": "Europe/Berlin"}, "_header.date", None,
         {"path": "date={yyyy-MM-dd}", "timezone": "Europe/Berlin"}),
        ("InsertRollingRecordTimestampHeaders", {"month.format": "MMM", "locale": "de"}, "_header.month", None,
         {"path": "month={MMM}", "locale": "de", "every": "15m"}),
        ("InsertWallclockHeaders", {"header.prefix.name": "w_"}, "_header.w_hour, _value.a", {"from": "wallclock"},
         {"path": "w_hour={HH}/a={value.a}", "missing": "null", "null_name": "[missing]"}),
        ("InsertFieldTimestampHeaders",
         {"field": "a.b", "format.from.pattern": "yyyy-MM-dd,dd.MM.yyyy", "timezone": "Asia/Kolkata"}, "_header.date",
         {"from": "value", "path": "a.b", "patterns": ["yyyy-MM-dd", "dd.MM.yyyy"], "timezone": "Asia/Kolkata"},
         {"path": "date={yyyy-MM-dd}", "timezone": "Asia/Kolkata"}),
        ("InsertRollingFieldTimestampHeaders",
         {"field": "_value.at", "unix.precision": "seconds", "rolling.window.type": "hours",
          "rolling.window.size": "6"},
         "_header.hour", {"from": "value", "path": "at", "unit": "s"}, {"path": "hour={HH}", "every": "6h"}),
        # This transform reads text as UTC, whatever zone it shows.
        ("TimestampConverter",
         {"header.name": "at", "field": "x", "target.type": "string", "format.from.pattern": "yyyyMMdd",
          "format.to.pattern": "yyyy/MM", "timezone": "Asia/Kolkata"}, "_header.at",
         {"from": "value", "path": "x", "patterns": ["yyyyMMdd"]},
         {"path": "at={yyyy/MM}", "timezone": "Asia/Kolkata"}),
        ("InsertWallclockDateTimePart", {"header.name": "h", "date.time.part": "hour"}, "_header.h",
         {"from": "wallclock"}, {"path": "h={H}"}),
        ("InsertRollingWallclock", {"header.name": "h", "format": "HH", "rolling.window.type": "seconds",
                                    "rolling.window.size": "30"}, "_header.h", {"from": "wallclock"},
         {"path": "h={HH}", "every": "30s"}),
    ],
)  # fmt: skip
def test_headers_of_time_are_parts_of_the_path(
    kind: str, more: dict[str, str], by: str, timestamp: dict[str, Any] | None, layout: dict[str, Any]
) -> None:
    keys = {"topics": "t", "transforms": "x", "transforms.x.type": f"{HEADERS}.{kind}"}
    keys |= {f"transforms.x.{key}": value for key, value in more.items()}
    imported = made_of(f"INSERT INTO b:p SELECT * FROM t PARTITIONBY {by}", keys)
    content = imported.drafts[0].content
    assert content.get("timestamp") == timestamp
    assert content["store"]["layout"] == layout
    assert decided(imported) == []


@pytest.mark.parametrize(
    ("more", "why"),
    [
        ({"transforms.x.predicate": "p"}, "it has a predicate"),
        ({"transforms.x.type": f"{HEADERS}.InsertWallclock", "transforms.x.header.name": "date"},
         "its value is a number"),
        ({"transforms.x.type": f"{HEADERS}.NoSuchHeaders2"}, "NoSuchHeaders2 is not known"),
        ({"transforms.x.date.format": "QQ"}, "'QQ' in 'QQ' has no equal here"),
        ({"transforms.x.type": f"{HEADERS}.InsertFieldTimestampHeaders", "transforms.x.field": "_value"},
         "the whole value is the time"),
        ({"transforms.x.type": f"{HEADERS}.InsertRollingRecordTimestampHeaders",
          "transforms.x.rolling.window.size": "0"},
         "expected a window of so many hours"),
        ({"transforms": "y,x", "transforms.y.type": "com.acme.Change", "transforms.x.field": "a",
          "transforms.x.type": f"{HEADERS}.InsertFieldTimestampHeaders"}, "its field is what y before it leaves"),
    ],
)  # fmt: skip
def test_a_header_without_an_equal_is_told_and_so_is_the_path_that_needs_it(more: dict[str, str], why: str) -> None:
    keys = {"topics": "t", "transforms": "x", "transforms.x.type": f"{HEADERS}.InsertRecordTimestampHeaders", **more}
    notes = decided(made_of("INSERT INTO b:p SELECT * FROM t PARTITIONBY _header.date", keys))
    assert any(why in text for text in notes)
    assert any("PARTITIONBY _header.date: " in text and "may insert it" in text for text in notes)


@pytest.mark.parametrize(
    ("by", "why"),
    [
        ("_header.date, _header.w", "found several clocks, and a layout has one"),
        ("_header.w, _date.yyyy", "found several clocks, and a layout has one"),
    ],
)
def test_one_path_has_one_clock(by: str, why: str) -> None:
    keys = {
        "topics": "t",
        "transforms": "x,y",
        "transforms.x.type": f"{HEADERS}.InsertRecordTimestampHeaders",
        "transforms.y.type": f"{HEADERS}.InsertWallclock",
        "transforms.y.header.name": "w",
        "transforms.y.format": "yyyy",
    }
    with pytest.raises(ConfigError, match=f"KCQL, statement 1: .*{why}"):
        made_of(f"INSERT INTO b:p SELECT * FROM t PARTITIONBY {by}", keys)


@pytest.mark.parametrize(
    ("form", "codec", "expected", "why"),
    [
        ("JSON", "GZIP", "gzip", ""),
        ("JSON", "SNAPPY", "snappy", "the connector refuses snappy with JSON"),
        ("TEXT", "GZIP", "none", ""),
        ("CSV", "ZSTD", "none", ""),
        ("PARQUET", "ZSTD", "zstd", ""),
        ("AVRO", "UNCOMPRESSED", "none", ""),
    ],
)
def test_what_is_compressed(form: str, codec: str, expected: str, why: str) -> None:
    keys = {"topics": "t", "connect.s3.compression.codec": codec}
    imported = made_of(f"INSERT INTO b:p SELECT * FROM t STOREAS {form}", keys)
    assert imported.drafts[0].content["store"]["codec"] == expected
    assert any("compression.codec" in text for text in decided(imported)) == bool(why)


def test_a_decoded_key_has_no_place_in_bytes() -> None:
    keys = {"topics": "t", "key.converter": AVRO}
    with pytest.raises(ConfigError, match=r"PARTITIONBY _key needs keys decoded \(avro\), and TEXT has no place"):
        made_of("INSERT INTO b:p SELECT * FROM t PARTITIONBY _key STOREAS TEXT", keys)


def test_a_field_of_the_key_as_time_decodes_the_key() -> None:
    keys = {
        "topics": "t",
        "key.converter": JSON["value.converter"],
        "key.converter.schemas.enable": "false",
        "transforms": "x",
        "transforms.x.type": f"{HEADERS}.InsertFieldTimestampHeaders",
        "transforms.x.field": "_key.ts",
    }
    content = made_of("INSERT INTO b:p SELECT * FROM t PARTITIONBY _header.date", keys).drafts[0].content
    assert content["source"]["key"] == {"decode": "json"}
    assert content["timestamp"] == {"from": "key", "path": "ts", "unit": "ms"}


def test_a_mask_in_front_of_lines_of_text_stays_in_the_yaml() -> None:
    mask = "org.apache.kafka.connect.transforms.MaskField$Value"
    keys = {"topics": "t", "transforms": "m", "transforms.m.type": mask, "transforms.m.fields": "card"}
    content = made_of("INSERT INTO b:p SELECT * FROM t", keys).drafts[0].content
    # Without columns the plan is refused, so that no card is stored.
    assert content["transform"] == {"steps": [{"mask": ["value.card"]}]}
