"""The properties of a decoded schema's columns besides their types, as key-value metadata of a Parquet file."""

from collections.abc import Iterator

import orjson
import pyarrow as pa

from kafka_archiver.records.formats.shared.columns import SOURCE

_KEY = b"kafka_archiver.columns"


def about(schema: pa.Schema) -> dict[bytes, bytes]:
    """Documentation, names and symbols by column, as one JSON object; "" is the record itself.

    Nested columns are named like `items.price`: the items of lists and the values of maps have no name of their own.
    """
    by_column: dict[str, dict[str, str]] = {}
    for path, metadata in [("", schema.metadata), *(pair for field in schema for pair in _pairs(field, field.name))]:
        if properties := {k.decode(): v.decode() for k, v in (metadata or {}).items() if k != SOURCE}:
            by_column.setdefault(path, {}).update(properties)
    return {_KEY: orjson.dumps(by_column)} if by_column else {}


def _pairs(field: pa.Field, path: str) -> Iterator[tuple[str, dict[bytes, bytes] | None]]:
    yield path, field.metadata
    kind = field.type
    if pa.types.is_map(kind):
        yield from _pairs(kind.item_field, path)
    elif pa.types.is_list(kind) or pa.types.is_large_list(kind):
        yield from _pairs(kind.value_field, path)
    elif pa.types.is_struct(kind):
        for child in kind:
            yield from _pairs(child, f"{path}.{child.name}")
