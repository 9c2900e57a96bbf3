"""The columns of a CSV file."""

from typing import NamedTuple

import pyarrow as pa

from kafka_archiver.errors import ConfigError
from kafka_archiver.formats.base import VALUE
from kafka_archiver.formats.csv import cells
from kafka_archiver.formats.csv.values import is_binary
from kafka_archiver.formats.shared.records import is_kafkas


class Column(NamedTuple):
    """A column of the file; `source`: the field of the object's schema."""

    name: str
    source: pa.Field
    cells: cells.Cells


def columns_of(schema: pa.Schema) -> list[Column]:
    """The columns of an object's schema.

    :raises ConfigError: a column has no text, or two have one name.
    """
    if schema.equals(VALUE):
        return [Column("value", VALUE.field("value"), cells.QUOTED)]
    found = [Column(field.name, field, _cells(field)) for field in schema]
    found += [Column(f"{field.name}_base64", field, cells.OTHER_BASE64) for field in schema if _is_raw(field)]
    names = [column.name for column in found]
    if len(set(names)) < len(names):
        raise ConfigError(f"store.format: csv needs columns of different names, found {', '.join(names)}")
    return found


def _is_raw(field: pa.Field) -> bool:
    """Whether the field is Kafka's key or value."""
    return field.name in ("key", "value") and is_kafkas(field)


def _cells(field: pa.Field) -> cells.Cells:
    kind = field.type
    if _is_raw(field):
        return cells.IF_UTF8
    if field.name == "headers" and is_kafkas(field):
        return cells.HEADERS
    if pa.types.is_nested(kind):
        found = cells.JSON
    elif is_binary(kind):
        found = cells.BASE64
    else:
        named = kind.value_type if pa.types.is_dictionary(kind) else kind
        found = cells.QUOTED if pa.types.is_string(named) or pa.types.is_large_string(named) else cells.BARE
    try:
        found.text(pa.array([], kind))
    except (pa.ArrowNotImplementedError, NotImplementedError) as error:
        raise ConfigError(f"store.format: csv has no text for the column {field.name} of type {kind}") from error
    return found
