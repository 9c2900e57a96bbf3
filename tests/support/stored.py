"""The expected and the actual contents of objects of the model's archive, read with other libraries."""

import base64
import csv
import gzip
import io
import json
import struct
from datetime import datetime, timedelta
from typing import Any
from urllib.parse import quote

import fastavro
import pyarrow.parquet as pq
import zstandard
from cryptography.hazmat.primitives.ciphers.aead import AESGCMSIV
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF
from cryptography.hazmat.primitives.keywrap import aes_key_unwrap

from kafka_archiver.audit.readers.mak import MakFile, MakRecord
from kafka_archiver.model.manifest import ObjectEntry
from kafka_archiver.model.plan import Plan
from tests.support.kafka_twin import Entry
from tests.support.outcomes import EPOCH, Row, hour_of

EXTENSIONS = {
    "csv": {"none": ".csv", "gzip": ".csv.gz"},
    "text": {"none": ".txt", "zstd": ".txt.zst"},
    "bytes": {"none": ".bin"},
    "block_gzip": {"gzip": ".gz"},
    "mak": {"none": ".mak", "gzip": ".mak.gz"},
    "jsonl": {"gzip": ".jsonl.gz", "none": ".jsonl", "zstd": ".jsonl.zst"},
    "avro": {"none": ".avro"},
    "parquet": {"none": ".parquet"},
}


def hours(moment: datetime) -> float:
    return (moment - EPOCH) / timedelta(hours=1)


def hour_path(timestamp: int) -> str:
    if hour_of(timestamp) is None:
        return "date=__HIVE_DEFAULT_PARTITION__/hour=__HIVE_DEFAULT_PARTITION__"
    moment = EPOCH + timedelta(milliseconds=timestamp)
    return f"date={moment.year:04d}-{moment:%m-%d}/hour={moment:%H}"


def name_of(chunk: Any, plan: Plan, dead_letter: bool = False) -> str:
    """The name of an object without its extension."""
    topic, layout = quote(chunk.topic, safe=""), "hourly" if dead_letter else plan.settings.layout
    name = f"{topic}+{chunk.partition}+{chunk.start:020d}"
    if layout.startswith("confluent"):
        name = f"{topic}+{chunk.partition}+{chunk.start:010d}"
    elif layout.startswith("lenses_"):
        name = f"{topic}({chunk.partition}_{chunk.start})"
    elif layout == "deviantart":
        name = f"{topic}-{chunk.partition:05d}-{chunk.start:012d}"
    elif layout in ("lenses", "zooz"):
        name = f"{chunk.partition}_{chunk.start}" if layout == "zooz" else str(chunk.start)
    generation = f"+g{chunk.generation}" if chunk.generation else ""
    revision = f"+r{plan.revision}" if plan.revision else ""
    return f"{name}{generation}{revision}"


def key_of(chunk: Any, plan: Plan, folder: str) -> str:
    """The key of the object of a row in a folder."""
    place = {"topic": quote(chunk.topic, safe=""), "partition": chunk.partition}
    extension = EXTENSIONS[plan.settings.format][plan.settings.codec]
    return f"{folder.format(**place)}/{name_of(chunk, plan)}{extension}{_sealed(plan)}"


def letter_of(chunk: Any, plan: Plan, timestamp: int) -> str:
    """The key of the object of a dead letter."""
    folder = f"_dead_letter/{quote(chunk.topic, safe='')}/{hour_path(timestamp)}"
    return f"{folder}/{name_of(chunk, plan, dead_letter=True)}.jsonl.gz{_sealed(plan)}"


def _sealed(plan: Plan) -> str:
    return ".enc" if plan.settings.encryption else ""


def opened(data: bytes, master: bytes, wrapped: bytes) -> bytes:
    """The content of an encrypted object, by the program of docs/howto/encryption.md."""
    head, parts = data[:56], [data[at : at + 65552] for at in range(56, len(data), 65552)]
    key = aes_key_unwrap(master, base64.b64decode(json.loads(wrapped)["wrapped"]["text"]))
    cipher = AESGCMSIV(HKDF(SHA256(), 32, head[24:], b"kafka-archiver/object").derive(key))
    return b"".join(
        cipher.decrypt(n.to_bytes(8) + (n + 1 == len(parts)).to_bytes(4), part, head) for n, part in enumerate(parts)
    )


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


def as_json(entry: ObjectEntry, offset: int, e: Entry, row: Row) -> dict[str, Any]:
    return {
        **_place(entry, offset, e),
        **_text("key", row.key),
        **_text("value", row.value),
        "headers": [{"key": k, **_text("value", v)} for k, v in row.headers],
    }


def as_row(entry: ObjectEntry, offset: int, e: Entry, row: Row) -> dict[str, Any]:
    return {
        **_place(entry, offset, e),
        "key": row.key,
        "value": row.value,
        "headers": [{"key": k, "value": v} for k, v in row.headers],
    }


def as_mak(version: int, offset: int, e: Entry, row: Row) -> MakRecord:
    if version == 1:
        return MakRecord(row.key or b"", row.value or b"", offset)
    return MakRecord(row.key, row.value, offset, e.timestamp, 0, tuple(row.headers))


def expected_of(plan: Plan, entry: ObjectEntry, rows: list[tuple[int, Entry, Row]]) -> list[Any]:
    """Return what `parse` should give."""
    settings = plan.settings
    if entry.key.startswith("_dead_letter/"):
        return [as_json(entry, *located_row) for located_row in rows]
    if settings.format == "mak":
        return [as_mak(int(str(settings.options["version"])), *located_row) for located_row in rows]
    if settings.content == "record":
        form = as_json if settings.format in ("jsonl", "csv", "block_gzip") else as_row
        return [form(entry, *located_row) for located_row in rows]
    columns = [row.columns for _, _, row in rows]
    if columns[0] is not None:
        # Python's reader gives null and the empty text alike.
        texts = [[None if v in (None, "") else str(v) for v in row.values()] for row in columns if row is not None]
        return texts if settings.format == "csv" else columns
    values = [row.value for _, _, row in rows]
    match settings.format:
        case "csv":
            return [[value and value.decode()] for value in values]
        case "text":
            return [value or b"" for value in values]
        case "bytes":
            return values
    return [b"null" if value is None else value.replace(b"\n", b" ") for value in values]


def parse(data: bytes, key: str, plan: Plan) -> list[Any]:
    settings = plan.settings
    letter = key.startswith("_dead_letter/")
    if key.endswith(".avro"):
        return [_with_ms(dict(r)) for r in fastavro.reader(io.BytesIO(data), return_record_name=False)]  # type: ignore[arg-type]
    if key.endswith(".parquet"):
        return [_with_ms(row) for row in pq.read_table(io.BytesIO(data)).to_pylist()]
    if key.endswith(".gz"):
        data = gzip.decompress(data)
    elif key.endswith(".zst"):
        data = zstandard.ZstdDecompressor().stream_reader(io.BytesIO(data), read_across_frames=True).read()
    if not letter and settings.format in ("csv", "bytes", "mak"):
        return {"csv": _csv, "bytes": _framed, "mak": _mak}[settings.format](data, settings.content == "record")
    lines = data.split(b"\n")
    assert lines.pop() == b"", f"{key} does not end in a newline"
    transform = settings.transform
    typed = transform is not None and bool(transform.steps or (transform.sql and transform.sql.select))
    whole = letter or settings.content == "record" or typed
    return [json.loads(line) for line in lines] if whole else lines


def _csv(data: bytes, record: bool) -> list[Any]:
    head, *lines = csv.reader(io.StringIO(data.decode(), newline=""))
    if not record:
        return [[cell or None for cell in line or [""]] for line in lines]
    rows = [{name: cell for name, cell in zip(head, line, strict=True) if "base64" not in name} for line in lines]
    numbers = ("partition", "offset", "timestamp", "timestamp_type")
    return [
        {**{name: cell or None for name, cell in row.items()}, **{name: int(row[name]) for name in numbers},
         "headers": json.loads(row["headers"])}
        for row in rows
    ]  # fmt: skip


def _framed(data: bytes, _: bool) -> list[Any]:
    values: list[bytes | None] = []
    while data:
        [size] = struct.unpack(">i", data[:4])
        values.append(None if size < 0 else data[4 : 4 + size])
        data = data[4 + max(size, 0) :]
    return values


def _mak(data: bytes, _: bool) -> list[Any]:
    return list(MakFile(io.BytesIO(data)).records())


def _with_ms(row: dict[str, Any]) -> dict[str, Any]:
    moment = row.get("timestamp")
    return {**row, "timestamp": (moment - EPOCH) // timedelta(milliseconds=1)} if isinstance(moment, datetime) else row
