"""STOREAS and its properties as format, content and chunks of `store`. Pure."""

from collections.abc import Mapping
from typing import Any, NamedTuple

from kafka_archiver.imports.base import FEW, Remarks, small, whole, without_empty
from kafka_archiver.imports.connect import FRAMED, OTHER_COLUMNS, DecodeChoice
from kafka_archiver.imports.kcql import Statement
from kafka_archiver.messages.errors import ConfigError


class _Format(NamedTuple):
    """`store`: the keys of the YAML; `extension`: of the connector's files; `own_extension`: of ours, if it is another
    one.
    """

    store: Mapping[str, Any]
    extension: str
    own_extension: str = ""
    envelope: bool = False


_LINES = {"separator": "\n", "extension": ".text"}
_FORMATS = {
    "JSON": _Format({"format": "jsonl"}, ".json", ".jsonl", envelope=True),
    "AVRO": _Format({"format": "avro"}, ".avro", envelope=True),
    "PARQUET": _Format({"format": "parquet"}, ".parquet", envelope=True),
    "TEXT": _Format({"format": "bytes", "options": _LINES}, ".text"),
    "CSV": _Format({"format": "csv", "options": {"header": False}}, ".csv"),
    "CSV_WITHHEADERS": _Format({"format": "csv"}, ".csv"),
    "BYTES": _Format({"format": "bytes", "options": {"extension": ".bytes"}, "chunk_records": 1}, ".bytes"),
}
VALUES_ONLY = ("bytes",)
_PARTS = ("key", "value", "headers", "metadata")


def name_of(statement: Statement) -> str:
    """Return the format's name, a key of the table.

    :raises ConfigError: the connector has no such format, or only had it once.
    """
    name = statement.store_as or "JSON"
    head = name.partition("_")[0]
    # Of what follows the first _ the connector knows WithHeaders; BYTES alone refuses the rest.
    known = head if head != "CSV" or "WITHHEADERS" not in name.split("_")[1:] else "CSV_WITHHEADERS"
    if known not in _FORMATS or (known == "BYTES" and name != "BYTES"):
        more = (
            "; releases before 5.0 wrote keys, values and their sizes so, and no format here does"
            if head == "BYTES"
            else ""
        )
        raise ConfigError(f"STOREAS {name}: expected {', '.join(_FORMATS)}{more}")
    return known


def has_columns(statement: Statement) -> bool:
    """Return True if objects have columns, if the values are decoded to columns."""
    try:
        form = _FORMATS[name_of(statement)].store["format"]
    except ConfigError:
        return False
    return form not in VALUES_ONLY and not has_envelope(statement)


def has_envelope(statement: Statement) -> bool:
    """Return True if the connector stores keys and headers, too."""
    return _is_true(statement.options, "store.envelope")


def stored(
    statement: Statement, options: dict[str, str], value: DecodeChoice, codec: str, notes: Remarks
) -> dict[str, Any]:
    """Return format, content, chunks and codec. Takes its options out of `options`.

    :param codec: of the connector's key, by our name.
    :raises ConfigError: there is no such format.
    """
    name = name_of(statement)
    form = _FORMATS[name]
    store = dict(form.store)
    _chunks(options, store, notes)
    envelope = _is_true(options, "store.envelope")
    fields = {part: options.pop(f"store.envelope.fields.{part}", "") for part in _PARTS}
    options.pop("store.envelope", None)
    if envelope and not form.envelope:
        notes.remark("decide", f"store.envelope: the connector refuses it with {name}; objects have the values alone")
    elif envelope:
        store["content"] = "record"
        without = [part for part, text in fields.items() if text.lower() == "false"]
        less = f", without {' and '.join(without)}" if without else ""
        text = (
            f"store.envelope: theirs has key, value, headers and metadata{less}; store.content: record has all that "
            "Kafka had in columns of its own (docs/howto/formats.md), so readers need other names"
        )
        notes.remark("decide", text)
    elif store["format"] in ("avro", "parquet") and value.decode in ("bytes", "json"):
        store["content"] = "record"
        text = f"store.content: record, because {store['format']} needs columns, and the values are not decoded"
        notes.remark("decide" if value.is_declared else "differs", text)
    elif store["format"] in ("avro", "parquet") and value.decode in OTHER_COLUMNS:
        kind, text = OTHER_COLUMNS[value.decode]
        notes.remark(kind, text)
    elif value.is_declared and (why := _other_values(name, value)):
        notes.remark("decide", f"STOREAS {name}: {why}")
    codec = _codec(name, codec, notes)
    if form.own_extension:
        notes.remark(
            "differs", f"names end with {form.own_extension} here, with {form.extension} there (compressed: .gz)"
        )
    if name == "JSON" and value.decode == "json" and not value.inside:
        text = "the connector writes each document anew, without spaces and its keys in another order; here it stays"
        notes.remark("differs", text)
    if name.startswith("CSV"):
        notes.remark("differs", "the connector has all values in quotes; here numbers, times and nulls have none")
    return without_empty({**store, "codec": codec})


def _codec(name: str, codec: str, notes: Remarks) -> str:
    """Return the codec of this format: the connector compresses JSON, Avro and Parquet alone."""
    if name in ("AVRO", "PARQUET"):
        return codec
    if name == "JSON":
        if codec not in ("none", "gzip"):
            notes.remark("decide", f"connect.s3.compression.codec: the connector refuses {codec} with JSON")
        return codec
    if codec != "none":
        notes.remark("kept", f"store.codec: none, because the connector does not compress {name}")
    return "none"


def _chunks(options: dict[str, str], store: dict[str, Any], notes: Remarks) -> None:
    """Set the records of a chunk, unless the format decides them."""
    old, new = options.pop("WITH_FLUSH_COUNT", ""), options.pop("flush.count", "")
    count = new or old
    if count and "chunk_records" not in store:
        records = whole(count)
        store["chunk_records"] = records and min(records, 100_000_000)
        text = f"flush by count, {count}: store.chunk_records, so many offsets of a partition"
        if not records:
            text = f"flush by count: expected a whole number from 1, found {count!r}; its default is 1000000 records"
        notes.remark("differs" if records else "by_hand", text)
    elif "chunk_records" in store and count and count != "1":
        notes.remark(
            "decide", f"flush by count, {count}: the connector refuses it with BYTES; an object has one record"
        )
    if 0 < (store.get("chunk_records") or 0) < FEW:
        notes.remark("by_hand", small(store["chunk_records"]))


def _other_values(name: str, value: DecodeChoice) -> str:
    """Return why the values in the objects are others; empty if they are the same."""
    decode = value.decode
    if name in ("BYTES", "TEXT"):
        needed, kind = ("bytes", "bytes") if name == "BYTES" else ("string", "text")
        difference = f"the connector wants {kind}, not values of {decode}; bytes are stored as they are"
        return "" if decode == needed else difference
    if name != "JSON":
        return "" if decode in FRAMED else f"the connector needs values with a schema, and {decode} has none"
    if decode in FRAMED:
        return (
            "dates, times and timestamps are numbers in the connector's JSON, decimals numbers, bytes base64; here "
            "they are as docs/howto/formats.md says"
        )
    if decode == "string":
        return 'the connector writes each text as one JSON string, in quotes; here a line is {"value": …}'
    if decode == "bytes":
        return "the connector cannot write bytes as JSON; here they are stored as they are"
    if value.inside:
        return "the connector writes the payload of {schema, payload} alone; here the whole document is stored"
    return ""


def _is_true(options: Mapping[str, str], name: str) -> bool:
    return options.get(name, "").lower() == "true"
