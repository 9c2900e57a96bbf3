"""PARTITIONBY and NOPARTITION as `store.layout` and `store.name`. Pure."""

from typing import Any

from kafka_archiver.imports.kcql import Statement

_TIMES = ("_date", "_topic", "_partition")


def layout_of(statement: Statement, keys_too: bool, width: int | None) -> tuple[Any, str | None]:
    """The layout, and the template of the names if it is not the layout's own.

    :param keys_too: the folders are `name=value`, else the values alone.
    :param width: the digits of an offset in names.
    """
    start = f"{{start:{width}}}" if width else "{start}"
    if not statement.partition_by:
        return "lenses", f"{start}" if width else None
    name = f"{{topic}}({{partition}}_{start})"
    if any(path[0] in _TIMES for path in statement.partition_by):
        folders = "/".join(_folder(path, keys_too) for path in statement.partition_by)
        return {"path": folders}, name
    layout = "lenses_keys_and_values" if keys_too else "lenses_values"
    made = {"name": layout, "fields": [_field(path) for path in statement.partition_by]}
    return made, name if width else None


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
