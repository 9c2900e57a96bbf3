"""One statement of Lenses as the sections of an archive. Pure."""

import re
from collections.abc import Mapping
from typing import Any, NamedTuple

from kafka_archiver.imports.base import Note, Remarks, bucket_url, without_empty
from kafka_archiver.imports.connect import TYPED, DecodeChoice
from kafka_archiver.imports.kcql import Statement
from kafka_archiver.imports.lenses_format import VALUES_ONLY, stored
from kafka_archiver.imports.lenses_headers import InsertedHeaders
from kafka_archiver.imports.lenses_layout import Filing, filing_of, needs, needs_fields, object_name, odd_paths
from kafka_archiver.imports.lenses_padding import padding_of
from kafka_archiver.messages.errors import ConfigError

_ROTATION = "rotation is decided by the plan: an object ends with its chunk"
_SCHEDULE = f"`schedule` says when runs start; {_ROTATION}"
_OPTIONS = {
    "WITH_FLUSH_SIZE": _ROTATION,
    "WITH_FLUSH_INTERVAL": _SCHEDULE,
    "flush.size": _ROTATION,
    "flush.interval": _SCHEDULE,
}
# Releases before June 2023 had this syntax alone, and put no zeros in front of offsets.
_OLD = ("WITH_FLUSH_COUNT", "WITH_FLUSH_SIZE", "WITH_FLUSH_INTERVAL", "WITHPARTITIONER")


class Connector(NamedTuple):
    """The connector's keys about all of its statements.

    `columns`: how keys and values are decoded; `padding`: strategy and length; `headers`: those that transforms insert;
    `texts`: whether the header converter leaves text as it is; `is_old`: whether keys are those of older releases;
    `codec`: by our name.
    """

    columns: Mapping[str, DecodeChoice]
    padding: tuple[str, str]
    headers: InsertedHeaders
    texts: bool
    is_old: bool
    codec: str


def sections_of(
    statement: Statement, connector: Connector, source: Mapping[str, Any]
) -> tuple[dict[str, Any], tuple[Note, ...]]:
    """Return the sections `source`, `timestamp` and `store`, and the notes about this statement.

    :param source: the section, with the topics of this statement.
    :raises ConfigError: no archive is the same.
    """
    notes = Remarks()
    columns = connector.columns
    if statement.late:
        text = f"{statement.late} is out of its order: the connector reads neither it nor what follows, without a word"
        notes.remark("decide", text)
    if statement.fields != ("*",):
        text = (
            f"SELECT {', '.join(statement.fields)}: the connector stores all fields, whatever is selected, and so do we"
        )
        notes.remark("kept", text)
    options = dict(statement.options)
    store = stored(statement, options, columns["value"], connector.codec, notes)
    filing = _filed(statement, options, connector, notes)
    store |= without_empty({"layout": filing.layout, "name": filing.name})
    store = {"url": bucket_url(statement.bucket, filing.prefix), **store}
    own = dict(source)
    timed = filing.timestamp.get("from")
    _key(statement, columns, store, own, notes, timed == "key")
    by_value = needs(statement, "value") or timed == "value"
    if store["format"] in VALUES_ONLY and columns["value"].decode in TYPED and not by_value:
        own.pop("value", None)
    for option, value in options.items():
        if not option.startswith("padding."):
            why = _OPTIONS.get(option)
            notes.remark("differs" if why else "decide", f"{option} = {value}: {why or 'no such option here'}")
    return without_empty({"source": own, "timestamp": dict(filing.timestamp), "store": store}), notes.remarks


def _key(
    statement: Statement,
    columns: Mapping[str, DecodeChoice],
    store: dict[str, Any],
    own: dict[str, Any],
    notes: Remarks,
    timed: bool,
) -> None:
    """Decode keys if paths need it, and store them then, as `plan` wants it.

    :param timed: whether the time is a field of the key.
    :raises ConfigError: the format has no place for them.
    """
    decode = columns["key"].decode
    # A whole key of text is the same as its bytes.
    whole_text = decode == "string" and not needs_fields(statement, "key")
    if not timed and (whole_text or not needs(statement, "key")):
        own.pop("key", None)
    elif decode in TYPED and store["format"] in VALUES_ONLY:
        raise ConfigError(
            f"PARTITIONBY _key needs keys decoded ({decode}), and {statement.store_as} has no place for them"
        )
    elif decode in TYPED and store.get("content") != "record":
        store |= {"metadata": ["key"]} if columns["value"].decode in TYPED else {"content": "record"}
        notes.remark("decide", "keys are decoded for PARTITIONBY, so the objects have them, too")


def _filed(statement: Statement, options: dict[str, str], connector: Connector, notes: Remarks) -> Filing:
    """Return layout and names. Takes its options out of `options`."""
    is_old = connector.is_old or any(name in statement.options for name in _OLD)
    display = options.pop("WITHPARTITIONER", "").lower()
    keys_too = {"keysandvalues": True, "values": False}.get(display)
    if display and keys_too is None:
        notes.remark("decide", f"WITHPARTITIONER = {display}: expected KeysAndValues or Values")
    if (include := options.pop("partition.include.keys", "").lower()) in ("true", "false"):
        keys_too = include == "true"
    elif include:
        notes.remark("decide", f"partition.include.keys = {include}: expected true or false")
    suffix = options.pop("key.suffix", "")
    padding = padding_of(options, *connector.padding)
    for text in padding.odd:
        notes.remark("decide", text)
    inside = {column: decoded.inside for column, decoded in connector.columns.items()}
    # The older syntax of a statement without PARTITIONBY has no display of its own.
    filing = filing_of(
        statement, keys_too if statement.partition_by or include else None, padding, inside, connector.headers
    )
    if suffix:
        filing = filing._replace(name=f"{object_name(statement, padding)}{suffix}")
    if statement.prefix.startswith("/") or "//" in statement.prefix:
        filing = filing._replace(prefix=re.sub("/+", "/", filing.prefix))
        notes.remark("decide", f"{statement.prefix!r}: the connector's keys have empty folders; here they have none")
    if is_old and padding.offset and not connector.padding[0] and not any(o.startswith("padding.") for o in options):
        text = "releases before 5.0 (June 2023) put no zeros in front of offsets: then remove zero_pad or the digits"
        notes.remark("decide", text)
    notes.remark(
        "differs", "a name has the first offset of a chunk; the connector's has that of the file's last record"
    )
    if statement.no_partition:
        notes.remark("decide", "NOPARTITION: the connector's keys have two slashes behind the prefix; here it is one")
    elif not statement.partition_by:
        text = (
            "names have no times of the first and last records, which releases since 8.0 add: <offset>_<first>_<last>"
        )
        notes.remark("differs", text)
    else:
        _note_partitions(statement, connector, notes)
    return filing


def _note_partitions(statement: Statement, connector: Connector, notes: Remarks) -> None:
    for text in odd_paths(statement):
        notes.remark("decide", text)
    headers = [".".join(path[1:]) for path in statement.partition_by if path[0] == "_header"]
    hidden = [name for name in headers if name not in connector.headers.shown]
    if hidden and connector.headers.other_transforms:
        inserting = ", ".join(connector.headers.other_transforms)
        text = (
            f"PARTITIONBY _header.{', _header.'.join(hidden)}: {inserting} may insert it; then "
            "the record in Kafka does not have it, and is a bad record here"
        )
        notes.remark("decide", text)
    if hidden and not connector.texts:
        text = (
            "headers are text as they stand; the connector's converter reads 007 as 7 and takes quotes off, unless "
            "header.converter is StringConverter"
        )
        notes.remark("differs", text)
    if needs(statement, "value") or any(len(path) > 1 and path[0] == "_key" for path in statement.partition_by):
        text = (
            "numbers are as they stand in JSON, or as Arrow writes them; the connector's are as Java writes them (1.50 "
            "is 1.5). Values are percent-encoded, so a slash makes no folder"
        )
        notes.remark("differs", text)
    if (
        any(path[0] == "_key" and len(path) == 1 for path in statement.partition_by)
        and not connector.columns["key"].is_declared
    ):
        text = "PARTITIONBY _key: the file has no key.converter, and keys are taken as text; else correct source.key"
        notes.remark("decide", text)
    text = (
        "with PARTITIONBY the connector commits the oldest offset that is not flushed: files of other paths may have "
        "later records already. These are archived too, and so exist in the old file and in the new"
    )
    notes.remark("by_hand", text)
