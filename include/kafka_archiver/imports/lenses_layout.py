"""PARTITIONBY and NOPARTITION as `store.layout` and `store.name`. Pure."""

from collections.abc import Mapping
from typing import Any, NamedTuple

from kafka_archiver.imports.kcql import Statement

_TIMES = ("_date", "_topic", "_partition")


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
        lengths = {"offset": length if strategy and length.isdecimal() else str(_DIGITS)}
    digits = {name: int(value) for name, value in lengths.items() if value.isdecimal() and int(value)}
    return Padding(digits.get("offset"), digits.get("partition"), kind == "rightpad")


def layout_of(statement: Statement, keys_too: bool, padding: Padding) -> tuple[dict[str, Any], str | None]:
    """The layout, and the template of the names if it is not the layout's own.

    :param keys_too: the folders are `name=value`, else the values alone.
    """
    zeros = {"zero_pad": padding.offset, "zero_pad_partition": padding.partition}
    options = {name: digits for name, digits in zeros.items() if digits}
    if not statement.partition_by:
        return {"name": "lenses", **options}, None
    if any(path[0] in _TIMES for path in statement.partition_by):
        folders = "/".join(_folder(path, keys_too) for path in statement.partition_by)
        start = f"{{start:{padding.offset}}}" if padding.offset else "{start}"
        partition = f"{{partition:{padding.partition}}}" if padding.partition else "{partition}"
        return {"path": folders}, f"{{topic}}({partition}_{start})"
    layout = "lenses_keys_and_values" if keys_too else "lenses_values"
    return {"name": layout, "fields": [_field(path) for path in statement.partition_by], **options}, None


def needs(statement: Statement, column: str) -> bool:
    """Whether the paths have fields of the keys or values."""
    paths = [path for path in statement.partition_by if path[0] not in (*_TIMES, "_header")]
    return any(len(path) > 1 if path[0] == "_key" else column == "value" for path in paths if _is_of(path, column))


def _is_of(path: tuple[str, ...], column: str) -> bool:
    return (path[0] == "_key") == (column == "key")


def _field(path: tuple[str, ...]) -> str:
    head, *rest = path
    spaces = {"_key": "key", "_value": "value", "_header": "header"}
    if head in spaces:
        return ".".join([spaces[head], *rest])
    return ".".join(["value", *path])


def _folder(path: tuple[str, ...], keys_too: bool) -> str:
    head, *rest = path
    what = {"_date": ".".join(rest), "_topic": "topic", "_partition": "partition"}.get(head) or _field(path)
    name = {"_date": "date", "_topic": "topic", "_partition": "partition"}.get(head) or path[-1].lstrip("_")
    return f"{name}={{{what}}}" if keys_too else f"{{{what}}}"
