"""PARTITIONBY and NOPARTITION as `store.layout` and `store.name`. Pure."""

import re
from collections.abc import Mapping
from typing import Any, NamedTuple

from kafka_archiver.imports.base import whole
from kafka_archiver.imports.java_times import ours
from kafka_archiver.imports.kcql import Statement

_TIMES = ("_date", "_topic", "_partition")
_DAY = "yyyy-MM-dd"
# The connector's default: zeros in front of offsets.
_DIGITS = 12


class Padding(NamedTuple):
    """The digits of offsets and partitions in names; None: as many as they have. `right`: zeros would be behind."""

    offset: int | None = _DIGITS
    partition: int | None = None
    right: bool = False


def padding_of(options: Mapping[str, str], strategy: str, length: str) -> Padding:
    """The padding that a statement says, or the connector's keys.

    :param options: PROPERTIES; those that begin with `padding.` count.
    :param strategy: connect.s3.padding.strategy; empty: not given.
    :param length: connect.s3.padding.length.
    """
    own = {name: value for name, value in options.items() if name.startswith("padding.")}
    kind = (own.get("padding.type") or strategy or "LeftPad").lower()
    if kind == "noop":
        return Padding(None)
    lengths = {name.removeprefix("padding.length."): value for name, value in own.items() if ".length." in name}
    if not lengths:
        lengths = {"offset": length if strategy and whole(length) else str(_DIGITS)}
    digits = {name: min(found, 40) for name, value in lengths.items() if (found := whole(value))}
    return Padding(digits.get("offset"), digits.get("partition"), kind == "rightpad")


def layout_of(
    statement: Statement, keys_too: bool, padding: Padding, inside: Mapping[str, str] | None = None
) -> tuple[dict[str, Any], str | None]:
    """The layout, and the template of the names if it is not the layout's own.

    :param keys_too: the folders are `name=value`, else the values alone.
    :param inside: what stands before the path of a field of `key` and `value`.
    """
    zeros = {"zero_pad": padding.offset, "zero_pad_partition": padding.partition}
    options = {name: digits for name, digits in zeros.items() if digits}
    if not statement.partition_by:
        return {"name": "lenses", **options}, None
    if any(path[0] in _TIMES for path in statement.partition_by):
        folders = "/".join(_folder(path, keys_too, inside or {}) for path in statement.partition_by)
        start = f"{{start:{padding.offset}}}" if padding.offset else "{start}"
        partition = f"{{partition:{padding.partition}}}" if padding.partition else "{partition}"
        return {"path": folders}, f"{{topic}}({partition}_{start})"
    layout = "lenses_keys_and_values" if keys_too else "lenses_values"
    return {"name": layout, "fields": [_field(path, inside or {}) for path in statement.partition_by], **options}, None


def needs(statement: Statement, column: str) -> bool:
    """Whether the paths have fields of the keys or values."""
    paths = [path for path in statement.partition_by if path[0] not in (*_TIMES, "_header")]
    return any(len(path) > 1 if path[0] == "_key" else column == "value" for path in paths if _is_of(path, column))


def _is_of(path: tuple[str, ...], column: str) -> bool:
    return (path[0] == "_key") == (column == "key")


def _field(path: tuple[str, ...], inside: Mapping[str, str]) -> str:
    head, *rest = path
    if head == "_header":
        return ".".join(["header", *rest])
    column, fields = (head[1:], rest) if head in ("_key", "_value") else ("value", path)
    return ".".join([column, inside.get(column, "") + ".".join(fields)]) if fields else column


def _folder(path: tuple[str, ...], keys_too: bool, inside: Mapping[str, str]) -> str:
    head = path[0]
    if head == "_date":
        what, name = _date(path)[0], "date"
    elif head in _TIMES:
        what = name = head[1:]
    else:
        what, name = _field(path, inside), path[-1].lstrip("_")
    return f"{name}={{{what}}}" if keys_too else f"{{{what}}}"


def _date(path: tuple[str, ...]) -> tuple[str, str]:
    """Our pattern of `_date.<pattern>`, and why it is another one; empty if it is the same."""
    try:
        return ours(".".join(path[1:])), ""
    except ValueError as error:
        return _DAY, f"PARTITIONBY {'.'.join(path)}: {error}; {_DAY} stands in its place"


def odd_dates(statement: Statement) -> list[str]:
    """Why dates of the paths are others; those that are the same are not in it."""
    dates = [path for path in statement.partition_by if path[0] == "_date"]
    weeks = [".".join(path) for path in dates if re.search("[xw]", _date(path)[0].replace("'", ""))]
    odd = [why for path in dates if (why := _date(path)[1])]
    return odd + [f"PARTITIONBY {path}: weeks are those of ISO 8601, not of the worker's locale" for path in weeks]
