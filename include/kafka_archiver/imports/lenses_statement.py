"""One statement of Lenses as the sections `source` and `store` of an archive. Pure."""

from collections.abc import Mapping
from typing import Any

from kafka_archiver.imports.base import FEW, Note, bucket_url, small, whole, without_empty
from kafka_archiver.imports.connect import TYPED, Decoded
from kafka_archiver.imports.kcql import Statement
from kafka_archiver.imports.lenses_layout import layout_of, needs, odd_dates, padding_of

_FORMATS: dict[str, dict[str, Any]] = {
    "AVRO": {"format": "avro"},
    "PARQUET": {"format": "parquet"},
    "JSON": {"format": "jsonl"},
    "TEXT": {"format": "text"},
    "CSV": {"format": "csv", "options": {"header": False}},
    "CSV_WITHHEADERS": {"format": "csv"},
    "BYTES": {"format": "bytes", "chunk_records": 1},
}
_VALUES_ONLY = ("text", "bytes")
_ROTATION = "rotation is decided by the plan: an object ends with its chunk"
_SCHEDULE = f"`schedule` says when runs start; {_ROTATION}"
_OPTIONS = {
    "WITH_FLUSH_SIZE": _ROTATION,
    "WITH_FLUSH_INTERVAL": _SCHEDULE,
    "flush.size": _ROTATION,
    "flush.interval": _SCHEDULE,
}


def has_columns(statement: Statement) -> bool:
    """Whether objects have columns, if the values are decoded to columns."""
    form = _FORMATS.get(statement.store_as or "JSON", {}).get("format")
    return form not in (None, *_VALUES_ONLY) and statement.options.get("store.envelope", "").lower() != "true"


def section_of(
    statement: Statement, columns: Mapping[str, Decoded], padding: tuple[str, str], source: dict[str, Any]
) -> tuple[dict[str, Any], tuple[Note, ...]]:
    """The sections, and the notes about this statement.

    :param columns: how keys and values are decoded.
    :param padding: the connector's strategy and length.
    :param source: the connector's section, with all its topics.
    """
    notes: list[Note] = []
    if statement.fields != ("*",):
        text = f"SELECT {', '.join(statement.fields)}: say it as `transform` by hand; all fields are stored"
        notes.append(Note("lacks", "", text))
    own = dict(source)
    if statement.topic != "*":
        rest = {key: value for key, value in source.items() if key not in ("topics", "pattern")}
        own = {"topics": [statement.topic], **rest}
    options = dict(statement.options)
    store = {
        "url": bucket_url(statement.bucket, statement.prefix),
        **_stored(statement, options, columns["value"].decode, notes),
    }
    store |= _filed(statement, options, padding, columns, notes)
    if not needs(statement, "key"):
        own.pop("key", None)
    elif columns["key"].decode in TYPED and store.get("content") != "record" and store["format"] not in _VALUES_ONLY:
        store |= {"metadata": ["key"]} if columns["value"].decode in TYPED else {"content": "record"}
        notes.append(Note("differs", "", "keys are decoded for PARTITIONBY, so the objects have them, too"))
    if store["format"] in _VALUES_ONLY and columns["value"].decode in TYPED:
        own.pop("value", None)
        text = (
            f"values are not decoded ({columns['value'].decode}): the format {store['format']} stores them as they are"
        )
        notes.append(Note("differs", "", text))
    for option, value in options.items():
        if not option.startswith("padding."):
            why = _OPTIONS.get(option)
            text = f"{option} = {value}: {why or 'no such option here'}"
            notes.append(Note("differs" if why else "lacks", "", text))
    return {"source": own, "store": store}, tuple(notes)


def _stored(statement: Statement, options: dict[str, str], decode: str, notes: list[Note]) -> dict[str, Any]:
    """Format, content and chunks. Takes its options out of `options`."""
    name = statement.store_as or "JSON"
    if name not in _FORMATS:
        plain = "BYTES" if name.startswith("BYTES") else "JSON"
        found = _FORMATS[plain]["format"]
        notes.append(Note("lacks", "", f"STOREAS {name}: `{found}` stands in its place, see docs/FORMATS.md"))
        name = plain
    made = dict(_FORMATS[name])
    count = options.pop("WITH_FLUSH_COUNT", "") or options.pop("flush.count", "")
    if count and "chunk_records" not in made:
        found = whole(count)
        made["chunk_records"] = found and min(found, 100_000_000)
        text = f"flush by count, {count}: store.chunk_records, so many offsets of a partition"
        if not found:
            text = f"flush by count: expected a whole number from 1, found {count!r}; its default is 1000000 records"
        notes.append(Note("differs" if found else "by_hand", "", text))
    if 0 < (made.get("chunk_records") or 0) < FEW:
        notes.append(Note("by_hand", "", small(made["chunk_records"])))
    envelope = options.pop("store.envelope", "false").lower() == "true"
    if envelope and made["format"] in _VALUES_ONLY:
        notes.append(Note("lacks", "", f"store.envelope: the format {made['format']} has values only"))
    elif envelope:
        made["content"] = "record"
        notes.append(Note("differs", "", "store.envelope: store.content: record, with our own columns"))
    elif made["format"] in ("avro", "parquet") and decode in ("bytes", "json"):
        made["content"] = "record"
        text = f"store.content: record, because {made['format']} needs columns, and the values are not decoded"
        notes.append(Note("differs", "", text))
    return without_empty(made)


def _filed(
    statement: Statement,
    options: dict[str, str],
    padding: tuple[str, str],
    columns: Mapping[str, Decoded],
    notes: list[Note],
) -> dict[str, Any]:
    """Layout and names. Takes its options out of `options`."""
    keys_too = options.pop("WITHPARTITIONER", "KeysAndValues").lower() == "keysandvalues"
    keys_too = options.pop("partition.include.keys", str(keys_too)).lower() == "true"
    digits = padding_of(options, *padding)
    layout, name = layout_of(statement, keys_too, digits, {column: found.inside for column, found in columns.items()})
    for option in ("padding.length.offset", "padding.length.partition"):
        if option in options and whole(options[option], 0) is None:
            text = f"{option}: expected a whole number, found {options[option]!r}; numbers have no zeros in front"
            notes.append(Note("by_hand", "", text))
    if digits.right:
        notes.append(Note("lacks", "", "RightPad: zeros behind a number make it another; they are in front"))
    if not statement.partition_by:
        text = "names have no times of the first and last records, which recent versions of the connector add"
        notes.append(Note("differs", "", text))
        return without_empty({"layout": layout, "name": name})
    notes += [Note("lacks", "", text) for text in odd_dates(statement)]
    for path in statement.partition_by:
        if any("." in part for part in path) and path[0] != "_header":
            text = f"PARTITIONBY {'.'.join(path)}: a dot in a field's name means a field within a field here"
            notes.append(Note("lacks", "", text))
    text = (
        "with PARTITIONBY the connector commits the oldest offset that is not flushed: files of other paths may have "
        "later records already. These are archived too, and so exist in the old file and in the new"
    )
    notes.append(Note("by_hand", "", text))
    return without_empty({"layout": layout, "name": name})
