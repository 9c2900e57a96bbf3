"""The outcome of one record, by the documentation: its rows and their folders, or why it has none. Not by the code."""

import json
import zlib
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import Any, Literal
from urllib.parse import quote

import msgspec

from kafka_archiver.mapper import Record
from kafka_archiver.model.settings import Settings
from tests.support import mapped
from tests.support.kafka_twin import Entry
from tests.support.sql_meanings import SELECTS, WHERES, SeenRecord

HOUR = 3_600_000
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
NULL = "__HIVE_DEFAULT_PARTITION__"
MASKED = {"mask": {"fields": ["value.g"], "keep": 1}}
STEPS = [MASKED, {"drop": ["value.t"]}, {"rename": {"value.n": "number"}}]
# Columns of the values, for `STEPS`.
SCHEMA = [{"name": "n", "type": "int64"}, {"name": "g", "type": "string"}, {"name": "t", "type": "int64"}]


@dataclass(frozen=True)
class Row:
    """One stored row. `columns`: of a decoded value. `folder`: without the topic's, see `folder_of`."""

    key: bytes | None
    value: bytes | None
    headers: Any
    columns: dict[str, Any] | None = None
    folder: str = ""


@dataclass(frozen=True)
class Outcome:
    """`time`: by which it is filed; None without one. `rows`: if it is archived."""

    what: Literal["archived", "filtered", "bad"]
    time: int | None = None
    rows: tuple[Row, ...] = ()


def hour_of(time: int | None) -> int | None:
    """The hour since 1970; None for a time outside the years to 9999."""
    return time // HOUR if time is not None and 0 <= time < 253_402_300_800_000 else None


def is_json(value: bytes | None) -> bool:
    """Return True if it is one JSON document."""
    try:
        msgspec.json.decode(value or b"null")
    except msgspec.DecodeError:
        return False
    return True


def is_deadly(value: bytes | None) -> bool:
    """Return True if a record may end the process that decodes it."""
    return b'"deadly"' in (value or b"")


def outcome(settings: Settings, topic: str, partition: int, offset: int, entry: Entry) -> Outcome:
    """Return the outcome of a record under the settings of a plan."""
    record = entry.record
    assert record is not None
    if record.value is None and settings.null_value == "skip":
        return Outcome("filtered")
    if settings.max_value_bytes is not None and len(record.value or b"") > settings.max_value_bytes:
        return Outcome("bad")
    if settings.value_decode == "json" and not is_json(record.value):
        return Outcome("bad")
    time = _time(settings, entry)
    if isinstance(time, Outcome):
        return time
    try:
        rows = _transformed(settings, topic, partition, offset, entry)
    except (ValueError, ZeroDivisionError):
        return Outcome("bad")
    filed = [_filed(settings, row, offset, time) for row in rows]
    if "bad" in filed:
        return Outcome("bad")
    kept = tuple(row for row in filed if isinstance(row, Row))
    if not kept:
        return Outcome("filtered")
    return Outcome("bad") if any(_does_not_fit(settings, row) for row in kept) else Outcome("archived", time, kept)


def _time(settings: Settings, entry: Entry) -> "int | Outcome | None":
    of, record = settings.time, entry.record
    assert record is not None
    kafkas = entry.timestamp if hour_of(entry.timestamp) is not None else None
    if of.source == "record":
        return kafkas
    if of.source == "wallclock":
        return of.at
    if of.source == "header":
        value = next((v for k, v in reversed(record.headers) if k == of.field), None)
    else:
        value = (json.loads(record.value or b"null") or {}).get("t")
    if value is not None:
        return int(value)
    return {"record": kafkas, "null": None, "skip": Outcome("filtered"), "bad_record": Outcome("bad")}[of.missing]


def _transformed(settings: Settings, topic: str, partition: int, offset: int, entry: Entry) -> list[Row]:
    record, transform = entry.record, settings.transform
    assert record is not None
    if transform is None:
        return [Row(record.key, record.value, record.headers)]
    if sql := transform.sql:
        fields = json.loads(record.value or b"null") if settings.value_decode == "json" else None
        seen_record = SeenRecord(partition, offset, entry.timestamp, record.key, fields or {})
        if sql.where and not WHERES[sql.where](seen_record):
            return []
        if sql.select:
            return [Row(record.key, record.value, record.headers, SELECTS[sql.select](seen_record))]
    if transform.mapper is not None:
        mapped_record = Record(
            topic, partition, offset, entry.timestamp, 0, record.key, record.value, tuple(record.headers)
        )
        return [Row(row.key, row.value, row.headers) for row in mapped.split(mapped_record)]
    if not transform.steps:
        return [Row(record.key, record.value, record.headers)]
    document = json.loads(record.value or b"{}")
    text = document.get("g")
    masked = None if text is None else "*" * (len(text) - 1) + text[-1:]
    return [Row(record.key, record.value, record.headers, {"number": document.get("n"), "g": masked})]


def _does_not_fit(settings: Settings, row: Row) -> bool:
    """Return True if the format cannot hold a row."""
    if settings.content != "value" or row.columns is not None or row.value is None:
        return False
    if settings.format == "text":
        return b"\n" in row.value
    return settings.format in ("jsonl", "block_gzip") and b"\n" in row.value and not is_json(row.value)


def _filed(settings: Settings, row: Row, offset: int, time: int | None) -> Row | str:
    options: Any = settings.layout_options
    texts = {field["field"]: _text(row, field) for field in options.get("fields", [])}
    if settings.layout == "path":
        texts = {"time": time}
    if None in texts.values() and options.get("missing") != "null":
        return "bad" if options.get("missing") == "bad_record" else "skip"
    local = None if time is None else EPOCH + timedelta(milliseconds=time)
    return replace(row, folder=_folder(settings, offset, local, texts))


def _text(row: Row, field: dict[str, Any]) -> Any:
    column, _, name = field["field"].partition(".")
    value: Any = row.key if column == "key" else None
    if column == "header":
        value = next((v for k, v in reversed(row.headers) if k == name), None)
    elif column == "value":
        value = (row.columns or json.loads(row.value or b"null") or {}).get(name)
    if value is None:
        return None
    data = value if isinstance(value, bytes) else str(value).encode()
    return str(zlib.crc32(data) % field["buckets"]) if field.get("buckets") else quote(data, safe="") or "+"


def _folder(settings: Settings, offset: int, local: datetime | None, texts: dict[str, Any]) -> str:
    options: Any = settings.layout_options
    day = NULL if local is None else f"{local.year:04d}-{local:%m-%d}"
    date = [NULL] * 4 if local is None else [f"{local.year:04d}", f"{local:%m}", f"{local:%d}", f"{local:%H}"]
    hive = [f"{name}={text}" for name, text in zip(("year", "month", "day", "hour"), date, strict=True)]
    columns = [field.get("as") or field["field"].rsplit(".", 1)[-1] for field in options.get("fields", [])]
    values = [
        NULL if texts.get(field["field"]) is None else texts[field["field"]] for field in options.get("fields", [])
    ]
    fields = "/".join(f"{name}={text}" for name, text in zip(columns, values, strict=True))
    # 10:30 ahead of UTC at the beginning, 5:30 until 1986, 5:45 since.
    kathmandu = NULL if local is None or local.year > 9998 else f"{local + timedelta(minutes=345):%H-%M}"
    if local is not None and local.year < 1986:
        kathmandu = f"{local + timedelta(minutes=330):%H-%M}"
    return {
        "hourly": f"{{topic}}/date={day}/hour={date[3]}",
        "zooz": f"{{topic}}/date={day}/hour={date[3]}",
        "daily": f"{{topic}}/date={day}",
        "topic_partition": "{topic}/partition={partition}",
        "confluent_default": "{topic}/partition={partition}",
        "offsets": f"{{topic}}/partition={{partition}}/offsets={offset // 3 * 3:020d}",
        "fields": f"{{topic}}/{fields}",
        "confluent_field": f"{{topic}}/{fields}",
        "confluent_daily": f"{{topic}}/{'/'.join(hive[:3])}",
        "confluent_hourly": f"{{topic}}/{'/'.join(hive)}",
        "confluent_time": f"{{topic}}/{hive[0]}/{date[1]}/{hive[3]}",
        "path": f"{{topic}}/p{{partition}}/{kathmandu}",
        "lenses": "{topic}/{partition}",
        "lenses_keys_and_values": fields,
        "lenses_values": "/".join(values),
        "deviantart": day,
    }[settings.layout]
