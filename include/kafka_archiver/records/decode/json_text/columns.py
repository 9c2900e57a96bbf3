"""A list of columns as JSON Schema. Pure: planning uses it.

A column: `name`, `type`, and with `type: list` or `map` its `items`, with `type: struct` its `columns`. Types are those
of `TYPES`, decimal(precision, scale), and `json` for any JSON, which stays text. `format` is strptime's, for dates and
times that are not ISO 8601.
"""

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any

from kafka_archiver.messages.errors import ConfigError
from kafka_archiver.model.schemas import Schema

# The keyword of JSON Schema that names a column's type, and that of the format of times.
TYPE, FORMAT = "column", "timeFormat"
# By type, what JSON Schema says of it.
TYPES: Mapping[str, Mapping[str, Any]] = {
    "string": {"type": "string"},
    "bool": {"type": "boolean"},
    **{key: {"type": "integer"} for key in ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32")},
    **{key: {"type": "number"} for key in ("number", "float32", "float64")},
    "binary": {"type": "string", "contentEncoding": "base64"},
    "uuid": {"type": "string", "format": "uuid"},
    "json": {},
    "date": {"type": "string"},
    **{
        key: {"type": ["string", "integer"]}
        for key in ("timestamp[s]", "timestamp[ms]", "timestamp[us]", "timestamp[ns]")
    },
}
DECIMAL = re.compile(r"decimal\(([1-9][0-9]?), ?([0-9]{1,2})\)")
_NESTED = {"list": "items", "map": "items", "struct": "columns"}


def from_columns(columns: Sequence[Mapping[str, Any]]) -> Schema:
    """The schema of a list of columns.

    :raises ConfigError: a column has no name, or a type that does not exist, or is there twice.
    """
    return Schema(kind="JSON", text=json.dumps(_object(columns, "columns")))


def _object(columns: Any, where: str) -> dict[str, Any]:
    if not isinstance(columns, Sequence) or isinstance(columns, str) or not columns:
        raise ConfigError(f"{where}: expected a list of columns, each with name and type; found {columns!r}")
    properties: dict[str, Any] = {}
    for number, column in enumerate(columns):
        name = column.get("name") if isinstance(column, Mapping) else None
        if not isinstance(name, str):
            raise ConfigError(f"{where}.{number}: expected a column with name and type, found {column!r}")
        if name in properties:
            raise ConfigError(f"{where}.{number}: the column {name!r} is there twice")
        properties[name] = _typed({k: v for k, v in column.items() if k != "name"}, f"{where}.{name}")
    return {"type": "object", "properties": properties}


def _typed(column: Any, where: str) -> dict[str, Any]:
    if isinstance(column, str):
        column = {"type": column}
    kind = column.get("type") if isinstance(column, Mapping) else None
    nested = _NESTED.get(str(kind))
    is_time = kind == "date" or str(kind).startswith("timestamp[")
    allowed = {"type", "doc", *([nested] if nested else []), *(["format"] if is_time else [])}
    if not isinstance(column, Mapping) or set(column) - allowed:
        extra = sorted(set(column) - allowed) if isinstance(column, Mapping) else column
        raise ConfigError(f"{where}: a column of type {kind} has {', '.join(sorted(allowed))}; found {extra!r}")
    more = {"description": column["doc"]} if "doc" in column else {}
    if kind == "list":
        return {"type": "array", "items": _typed(column.get("items"), f"{where}.items"), **more}
    if kind == "map":
        return {"type": "object", "additionalProperties": _typed(column.get("items"), f"{where}.items"), **more}
    if kind == "struct":
        return {**_object(column.get("columns"), f"{where}.columns"), **more}
    if kind not in TYPES and not is_decimal(str(kind)):
        names = ", ".join((*TYPES, "decimal(precision, scale)", *_NESTED))
        raise ConfigError(f"{where}.type: expected one of {names}; found {kind!r}")
    written = {FORMAT: column["format"]} if "format" in column else {}
    return {**TYPES.get(str(kind), {"type": ["number", "string"]}), TYPE: kind, **written, **more}


def is_decimal(kind: str) -> bool:
    """Return True if this is decimal(precision, scale), with at most 38 digits."""
    match = DECIMAL.fullmatch(kind)
    return match is not None and int(match[2]) <= int(match[1]) <= 38
