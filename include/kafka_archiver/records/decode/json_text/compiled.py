"""The nodes of JSON documents as the columns that rows.c fills."""

import numpy as np
import pyarrow as pa

from kafka_archiver.records.decode.json_text.nodes import (
    ArrowValues,
    Integers,
    JsonMap,
    JsonNode,
    JsonTimes,
    List,
    Struct,
)
from kafka_archiver.records.rows.filled import (
    DEEPEST,
    Column,
    CompiledRows,
    NotCompiledError,
    entries,
    items,
    nulls,
    plain,
    struct,
    text,
)
from kafka_archiver.records.rows.library import Kind, library


def compiled(node: JsonNode) -> CompiledRows | None:
    """Return what reads documents in C; None: rows.c is not compiled, or does not read such a type."""
    functions = library()
    if functions is None or not isinstance(node, Struct):
        return None
    try:
        return CompiledRows(functions, _columns(node), is_json=True)
    except NotCompiledError:
        return None


def _columns(node: JsonNode) -> list[Column]:
    columns: dict[int, Column] = {}

    def add(node: JsonNode, depth: int = 0) -> int:
        if depth > DEEPEST:
            raise NotCompiledError
        number = len(columns)
        columns[number] = Column(Kind.REFUSED, nulls(node.kind))
        match node:
            case Struct() if node.required is None:
                parts = [add(part, depth + 1) for _, part in node.parts]
                names = [field.name for field, _ in node.parts]
                column = Column(Kind.RECORD, struct(node.kind, dict(enumerate(parts))), parts=parts, names=names)
            case List():
                part = add(node.item, depth + 1)
                column = Column(Kind.LIST, items(node.kind, part), 4, parts=[part])
            case JsonMap():
                key = len(columns)
                columns[key] = Column(Kind.TEXT, text(pa.string()), 4)
                parts = [key, add(node.value, depth + 1)]
                column = Column(Kind.MAP, entries(node.kind, *parts), 4, parts=parts)
            case _:
                column = _leaf(node)
        column.nullable = True
        columns[number] = column
        return number

    add(node)
    return list(columns.values())


def _leaf(node: JsonNode) -> Column:
    """Return a node without parts. :raises NotCompiledError: C does not read such a type."""
    kind = node.kind
    if isinstance(node, ArrowValues) and pa.types.is_string(kind):
        return Column(Kind.TEXT, text(kind), 4)
    if isinstance(node, ArrowValues) and pa.types.is_boolean(kind):
        return Column(Kind.BOOLEAN, plain(kind))
    if isinstance(node, ArrowValues) and (pa.types.is_float64(kind) or pa.types.is_float32(kind)):
        return Column(Kind.REAL, plain(kind), kind.bit_width // 8)
    if isinstance(node, Integers) and kind in (pa.int32(), pa.int64()):
        limits = np.iinfo(kind.to_pandas_dtype())
        return Column(Kind.INTEGER, plain(kind), kind.bit_width // 8, low=int(limits.min), high=int(limits.max))
    # Formats have no seconds: these are checked.
    if isinstance(node, JsonTimes) and pa.types.is_timestamp(kind) and kind.unit != "s":
        limits = np.iinfo(np.int64)
        return Column(Kind.INTEGER, plain(kind), 8, low=int(limits.min), high=int(limits.max))
    raise NotCompiledError
