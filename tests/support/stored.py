"""The expected and the actual contents of objects of the model's archive, read with other libraries."""

import base64
import gzip
import io
import json
from datetime import UTC, datetime, timedelta
from typing import Any
from urllib.parse import quote

import fastavro
import msgspec
import pyarrow.parquet as pq
import zstandard

from kafka_archiver.manifest import ObjectEntry
from kafka_archiver.plan import Plan
from tests.support.kafka_twin import Entry

HOUR = 3_600_000
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
EXTENSIONS = {
    "jsonl": {"gzip": ".jsonl.gz", "none": ".jsonl", "zstd": ".jsonl.zst"},
    "avro": {"none": ".avro"},
    "parquet": {"none": ".parquet"},
}


def hour_of(timestamp: int) -> int | None:
    return timestamp // HOUR if 0 <= timestamp < 253_402_300_800_000 else None


def hours(moment: datetime) -> float:
    return (moment - EPOCH) / timedelta(hours=1)


def hour_path(timestamp: int) -> str:
    if hour_of(timestamp) is None:
        return "date=__HIVE_DEFAULT_PARTITION__/hour=__HIVE_DEFAULT_PARTITION__"
    moment = EPOCH + timedelta(milliseconds=timestamp)
    return f"date={moment.year:04d}-{moment:%m-%d}/hour={moment:%H}"


def name_of(chunk: Any, plan: Plan, dead_letter: bool = False) -> str:
    """The name of an object without its extension."""
    topic = quote(chunk.topic, safe="")
    name = f"{topic}+{chunk.partition}+{chunk.start:020d}"
    if not dead_letter and plan.settings.layout == "lenses":
        name = str(chunk.start)
    if not dead_letter and plan.settings.layout == "deviantart":
        name = f"{topic}-{chunk.partition:05d}-{chunk.start:012d}"
    generation = f"+g{chunk.generation}" if chunk.generation else ""
    revision = f"+r{plan.revision}" if plan.revision else ""
    return f"{name}{generation}{revision}"


def key_of(chunk: Any, plan: Plan, offset: int, entry: Entry, dead_letter: bool) -> str:
    """The key of a record's object without its extension."""
    null = "__HIVE_DEFAULT_PARTITION__"
    topic = quote(chunk.topic, safe="")
    name = name_of(chunk, plan, dead_letter)
    if dead_letter:
        return f"_dead_letter/{topic}/{hour_path(entry.timestamp)}/{name}"
    there = None if hour_of(entry.timestamp) is None else EPOCH + timedelta(milliseconds=entry.timestamp)
    day = null if there is None else f"{there.year:04d}-{there:%m-%d}"
    # 10:30 ahead of UTC at the beginning, 5:30 until 1986, 5:45 since.
    kathmandu = null if there is None or there.year > 9998 else f"{there + timedelta(minutes=345):%H-%M}"
    if there is not None and there.year < 1986:
        kathmandu = f"{there + timedelta(minutes=330):%H-%M}"
    assert entry.record
    folder = {
        "hourly": f"{topic}/{hour_path(entry.timestamp)}",
        "daily": f"{topic}/date={day}",
        "topic_partition": f"{topic}/partition={chunk.partition}",
        "offsets": f"{topic}/partition={chunk.partition}/offsets={offset // 3 * 3:020d}",
        "fields": f"{topic}/key={null if entry.record.key is None else entry.record.key.decode()}",
        "path": f"{topic}/p{chunk.partition}/{kathmandu}",
        "lenses": f"{topic}/{chunk.partition}",
        "deviantart": day,
    }[plan.settings.layout]
    return f"{folder}/{name}"


def is_bad(value: bytes, settings: Any) -> bool:
    """Whether a value is bad. Every value of the model is JSON, or text with a newline."""
    if settings.value_decode == "json":
        return not _is_json(value)
    return settings.content == "value" and b"\n" in value and not _is_json(value)


def _is_json(value: bytes) -> bool:
    try:
        msgspec.json.decode(value)
    except msgspec.DecodeError:
        return False
    return True


def _text(name: str, value: bytes | None) -> dict[str, Any]:
    if value is None:
        return {name: None}
    try:
        return {name: value.decode()}
    except UnicodeDecodeError:
        return {f"{name}_base64": base64.b64encode(value).decode()}


def _place(entry: ObjectEntry, offset: int, e: Entry) -> dict[str, Any]:
    return {
        "topic": entry.topic,
        "partition": entry.partition,
        "offset": offset,
        "timestamp": e.timestamp,
        "timestamp_type": 0,
    }


def as_json(entry: ObjectEntry, offset: int, e: Entry) -> dict[str, Any]:
    assert e.record is not None
    return {
        **_place(entry, offset, e),
        **_text("key", e.record.key),
        **_text("value", e.record.value),
        "headers": [{"key": k, **_text("value", v)} for k, v in e.record.headers],
    }


def as_row(entry: ObjectEntry, offset: int, e: Entry) -> dict[str, Any]:
    assert e.record is not None
    return {
        **_place(entry, offset, e),
        "key": e.record.key,
        "value": e.record.value,
        "headers": [{"key": k, "value": v} for k, v in e.record.headers],
    }


def parse(data: bytes, key: str, plan: Plan) -> list[Any]:
    if key.endswith(".avro"):
        return [_with_ms(dict(r)) for r in fastavro.reader(io.BytesIO(data), return_record_name=False)]  # type: ignore[arg-type]
    if key.endswith(".parquet"):
        return [_with_ms(row) for row in pq.read_table(io.BytesIO(data)).to_pylist()]
    if key.endswith(".gz"):
        data = gzip.decompress(data)
    elif key.endswith(".zst"):
        data = zstandard.ZstdDecompressor().stream_reader(io.BytesIO(data), read_across_frames=True).read()
    lines = data.split(b"\n")
    assert lines.pop() == b"", f"{key} does not end in a newline"
    whole = key.startswith("_dead_letter/") or plan.settings.content == "record"
    return [json.loads(line) for line in lines] if whole else lines


def _with_ms(row: dict[str, Any]) -> dict[str, Any]:
    moment = row["timestamp"]
    return row if isinstance(moment, int) else {**row, "timestamp": (moment - EPOCH) // timedelta(milliseconds=1)}
