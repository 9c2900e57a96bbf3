"""The properties of a document that its schema does not name: found, and treated by `unknown`."""

from collections.abc import Iterator
from typing import assert_never

import msgspec
import numpy as np
import pyarrow as pa

from kafka_archiver.messages.errors import ConfigError
from kafka_archiver.messages.foreign_text import record_value
from kafka_archiver.model.schemas import Unknown
from kafka_archiver.records.decode.base import Decoded, Read
from kafka_archiver.records.decode.json_text.nodes import JsonMap, JsonNode, List, Struct
from kafka_archiver.records.fields import field

# The column that `unknown: column` adds.
COLUMN = "unknown_properties"
_NULL = b"null"
_object = msgspec.json.Decoder(dict[str, msgspec.Raw]).decode
_list = msgspec.json.Decoder(list[msgspec.Raw]).decode
_SHOWN = 200


def strict(node: JsonNode) -> JsonNode:
    """Return a node with the same columns whose objects have no other names."""
    if isinstance(node, Struct):
        return Struct([(part, strict(inner)) for part, inner in node.parts], frozenset())
    if isinstance(node, List):
        return List(strict(node.item), node.kind.value_field)
    return JsonMap(strict(node.value), node.kind.item_field) if isinstance(node, JsonMap) else node


def unnamed(document: bytes | msgspec.Raw, node: JsonNode) -> str | None:
    """Return what the document has beyond the names of the columns, as JSON; None if it has nothing more.

    Values keep their digits. Objects and lists around such a property are there, and of lists the items without one are
    null.

    :param document: one that the node reads.
    """
    unnamed_text = _unnamed_part(bytes(document), node)
    return None if unnamed_text is None else unnamed_text.decode()


def _unnamed_part(text: bytes, node: JsonNode) -> bytes | None:
    if text == _NULL:
        return None
    if isinstance(node, Struct):
        named = {part.name: inner for part, inner in node.parts}
        return _joined(
            (name, _unnamed_part(bytes(raw), named[name]) if name in named else bytes(raw))
            for name, raw in _object(text).items()
        )
    if isinstance(node, JsonMap):
        return _joined((name, _unnamed_part(bytes(raw), node.value)) for name, raw in _object(text).items())
    if isinstance(node, List):
        items = [_unnamed_part(bytes(raw), node.item) for raw in _list(text)]
        return b"[" + b",".join(item or _NULL for item in items) + b"]" if any(items) else None
    return None


def _joined(rests: Iterator[tuple[str, bytes | None]]) -> bytes | None:
    parts = [msgspec.json.encode(name) + b":" + text for name, text in rests if text is not None]
    return b"{" + b",".join(parts) + b"}" if parts else None


def treated(column: pa.Field, read: Read, unknown: Unknown) -> tuple[pa.Field, Read]:
    """Return the field and the reader that treat unnamed properties as the setting says.

    :param read: gives them as `Decoded.unnamed`.
    :raises ConfigError: the schema has a property with the name of the added column.
    """
    if not pa.types.is_struct(column.type):
        return column, read
    match unknown:
        case "drop":
            return column, read
        case "dead_letter":
            return column, _rejecting(read)
        case "column":
            if column.type.get_field_index(COLUMN) >= 0:
                raise ConfigError(
                    f"`unknown: column` adds the column {COLUMN}, which the JSON Schema names; choose `drop`"
                )
            kind = pa.struct([*column.type, field(COLUMN, pa.string(), json="any")])
            return column.with_type(kind), _adding(read, kind)
        case _:
            assert_never(unknown)


def _rejecting(read: Read) -> Read:
    def rejecting(data: pa.Array) -> Decoded:
        decoded = read(data)
        if not decoded.unnamed:
            return decoded
        reasons = {
            row: f"the JSON Schema does not name these properties: {record_value(t, _SHOWN)}"
            for row, t in decoded.unnamed.items()
        }
        places = np.arange(len(data))
        good = pa.array([None if row in reasons else place for row, place in enumerate(places.tolist())], pa.int64())
        return Decoded(decoded.column.take(good), {**reasons, **decoded.reasons})

    return rejecting


def _adding(read: Read, kind: pa.DataType) -> Read:
    def adding(data: pa.Array) -> Decoded:
        decoded = read(data)
        column = decoded.column
        texts = pa.array([decoded.unnamed.get(row) for row in range(len(data))], pa.string())
        parts = [column.field(place) for place in range(column.type.num_fields)]
        mask = column.is_null() if column.null_count else None
        whole = pa.StructArray.from_arrays([*parts, texts], fields=list(kind), mask=mask)
        return Decoded(whole, decoded.reasons)

    return adding
