"""Reads objects with the standard library, zstandard, orjson, fastavro and pyarrow.

This package shares no code with the formats' encoders and readers, so it does not share their mistakes. A distribution
that adds a format adds its reader, a `FormatReader`, by an entry point of the group below. It cannot replace a reader.
"""

from functools import lru_cache
from importlib.metadata import entry_points

from kafka_archiver.audit.readers import avro, csv, index, jsonl, mak, parquet, raw
from kafka_archiver.audit.readers.base import FormatReader
from kafka_archiver.messages.errors import error_in_words

GROUP = "kafka_archiver.audit_readers"
READERS = {
    "avro": FormatReader(records=avro.records, values=avro.values, sidecar=index.blocks),
    "block_gzip": FormatReader(records=jsonl.records, values=jsonl.lines, sidecar=index.members),
    "bytes": FormatReader(values=raw.values),
    "csv": FormatReader(records=csv.records, values=csv.rows),
    "jsonl": FormatReader(records=jsonl.records, values=jsonl.lines, sidecar=index.frames),
    "mak": FormatReader(records=mak.records),
    "parquet": FormatReader(records=parquet.records, values=parquet.values),
    "text": FormatReader(values=raw.lines),
}


def names() -> tuple[str, ...]:
    """Return the names of the formats that have a reader."""
    return tuple(sorted({*READERS, *entry_points(group=GROUP).names}))


def reader_of(name: str) -> FormatReader:
    """Return the reader of a format. One that is missing or cannot be loaded reads nothing; its `fault` says why."""
    return READERS.get(name) or _added(name)


@lru_cache
def _added(name: str) -> FormatReader:
    entries = tuple(entry_points(group=GROUP, name=name))
    if len(entries) != 1:
        several = " and ".join(entry.value for entry in entries)
        fault = f"several distributions add one: {several}" if entries else "no distribution adds one"
        return FormatReader(fault=f"the audit has no reader of {name!r}, and {fault} (entry points of {GROUP})")
    try:
        reader = entries[0].load()
    except Exception as error:  # noqa: BLE001 - an import may raise anything
        place = f"{name!r} ({entries[0].value})"
        return FormatReader(fault=f"the audit's reader of {place} cannot be loaded: {error_in_words(error)}")
    if not isinstance(reader, FormatReader):
        what = f"found {type(reader).__name__}, expected a FormatReader of kafka_archiver.audit.readers.base"
        return FormatReader(fault=f"the audit's reader of {name!r} ({entries[0].value}) is none: {what}")
    return reader
