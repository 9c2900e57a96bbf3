"""PARTITIONBY and NOPARTITION as `store.layout` and `store.name`. Pure."""

import re
from collections.abc import Mapping
from typing import Any, NamedTuple

from kafka_archiver.imports.java_times import pattern_of
from kafka_archiver.imports.kcql import Statement
from kafka_archiver.imports.lenses_headers import HeaderClock, InsertedHeader, InsertedHeaders, options_of
from kafka_archiver.imports.lenses_padding import Padding
from kafka_archiver.messages.errors import ConfigError

_DAY = "yyyy-MM-dd"
_TIMES = ("_date", "_topic", "_partition")
# The folder of a record without the field.
_MISSING = {"missing": "null", "null_name": "[missing]"}


class Filing(NamedTuple):
    """The names of objects.

    `prefix`: what of the statement's prefix stays in `store.url`; the rest is in the layout. `name`: None if it is the
    layout's own. `timestamp`: the section of the YAML; empty for its default.
    """

    layout: dict[str, Any]
    prefix: str
    name: str | None = None
    timestamp: Mapping[str, Any] = {}


def filing_of(
    statement: Statement,
    keys_too: bool | None,
    padding: Padding,
    inside: Mapping[str, str] | None = None,
    headers: InsertedHeaders | None = None,
) -> Filing:
    """Return the layout and the names of a statement.

    :param keys_too: the folders are `name=value`, else the values alone; None: as the connector does by default.
    :param inside: what stands before the path of a field of `key` and `value`.
    :param headers: those that transforms insert.
    :raises ConfigError: no layout is the same.
    """
    partition, start = _padded("partition", padding.partition), _padded("start", padding.offset)
    zeros = {"zero_pad": padding.offset, "zero_pad_partition": padding.partition}
    options = {name: digits for name, digits in zeros.items() if digits}
    name = object_name(statement, padding)
    if statement.no_partition:
        return _below(statement, "", {}, name, "NOPARTITION")
    if not statement.partition_by and keys_too:
        return Filing({"path": f"topic={{topic}}/partition={partition}"}, statement.prefix, start)
    if not statement.partition_by:
        return Filing({"name": "lenses", **options}, statement.prefix)
    hive = keys_too is not False
    paths = [
        _path(path, partition, inside or {}, (headers or InsertedHeaders()).shown) for path in statement.partition_by
    ]
    missing = _MISSING if any(path.may_miss for path in paths) else {}
    names = [path.name.lower() for path in paths]
    if all(path.field for path in paths) and len(set(names)) == len(names):
        layout = "lenses_keys_and_values" if hive else "lenses_values"
        fields = [path.filed(hive) for path in paths]
        return Filing({"name": layout, "fields": fields, **missing, **options}, statement.prefix)
    times = [path.time for path in paths if path.time]
    more = {**(options_of(times) if times else {}), **missing}
    timestamp = times[0].clock.timestamp if times and times[0].clock.timestamp != {"from": "record"} else {}
    folders = "/".join(f"{path.name}={{{path.shown}}}" if hive else f"{{{path.shown}}}" for path in paths)
    folders = folders.replace("{{", "{").replace("}}", "}")
    if folders.startswith("_"):
        filing = _below(statement, folders, more, name, "a first folder that begins with _")
        return filing._replace(timestamp=timestamp)
    return Filing({"path": folders, **more}, statement.prefix, name, timestamp)


def object_name(statement: Statement, padding: Padding) -> str:
    """Return the template of the connector's names, without the times of the first and last records."""
    start = _padded("start", padding.offset)
    is_default = not statement.partition_by and not statement.no_partition
    return start if is_default else f"{{topic}}({_padded('partition', padding.partition)}_{start})"


def _below(statement: Statement, folders: str, more: Mapping[str, Any], name: str, what: str) -> Filing:
    """Return a layout that begins with the last folder of the prefix, for paths that no layout has alone.

    :raises ConfigError: there is no prefix.
    """
    parent, _, last = statement.prefix.strip("/").rpartition("/")
    if not last or re.search("[{}]", last):
        raise ConfigError(f"{what} needs a prefix without braces (`bucket:prefix`): paths of a layout have a folder")
    return Filing({"path": "/".join(filter(None, (last, folders))), **more}, parent, name)


class _Path(NamedTuple):
    """One path after PARTITIONBY.

    `name`: of its folder; `shown`: the placeholder; `field`: of the record, if it is one; `time`: if it is a part of a
    time; `may_miss`: whether records without it have a folder of their own.
    """

    name: str
    shown: str
    field: str = ""
    time: InsertedHeader | None = None
    may_miss: bool = False

    def filed(self, hive: bool) -> Any:
        """Return the entry of `fields`; `as` if the folder is not called as the last part of the field."""
        return (
            self.field
            if not hive or self.name == self.field.rsplit(".", 1)[-1]
            else {"field": self.field, "as": self.name}
        )


def _path(
    path: tuple[str, ...], partition: str, inside: Mapping[str, str], shown: Mapping[str, InsertedHeader]
) -> _Path:
    head, *path_in_value = path
    name = ".".join(path_in_value)
    if head == "_date" and path_in_value:
        pattern = _date(path)[0]
        return _Path("date", pattern, time=InsertedHeader(pattern, HeaderClock({"from": "record"})))
    if head in _TIMES or head in ("_header", "_value"):
        if bool(path_in_value) != (head in ("_header", "_value")):
            raise ConfigError(
                f"PARTITIONBY {'.'.join(path)}: expected a path after _header, _value and _date, and none else"
            )
        if head in _TIMES:
            return _Path(head[1:], "topic" if head == "_topic" else partition.strip("{}"))
    if head == "_header":
        if name in shown and len(path_in_value) == 1:
            return _Path(name, shown[name].pattern, time=shown[name])
        if len(path_in_value) > 1:
            raise ConfigError(f"PARTITIONBY {'.'.join(path)}: a field within a header has no place in a layout")
        return _Path(name, f"header.{name}", f"header.{name}")
    if head == "_key" and not path_in_value:
        return _Path("key", "key", "key")
    column, fields = (head[1:], path_in_value) if head in ("_key", "_value") else ("value", list(path))
    field = f"{column}.{inside.get(column, '')}{'.'.join(fields)}"
    return _Path(".".join(fields), field, field, may_miss=True)


def _padded(name: str, digits: int | None) -> str:
    return f"{{{name}:{digits}}}" if digits else f"{{{name}}}"


def needs(statement: Statement, column: str) -> bool:
    """Return True if the paths have the key or fields of this column."""
    paths = [path for path in statement.partition_by if path[0] not in (*_TIMES, "_header")]
    return any((path[0] == "_key") == (column == "key") for path in paths)


def needs_fields(statement: Statement, column: str) -> bool:
    """Return True if the paths have fields of this column, so that it has to be decoded."""
    paths = [path for path in statement.partition_by if path[0] not in (*_TIMES, "_header") and path != ("_key",)]
    return any((path[0] == "_key") == (column == "key") for path in paths)


def odd_paths(statement: Statement) -> list[str]:
    """Return why paths are not the same here; those that are the same are not in it."""
    reasons = []
    for path in statement.partition_by:
        text = f"PARTITIONBY {'.'.join(path)}"
        if path[0] == "_date":
            pattern, why = _date(path)
            reasons += [why] if why else []
            reasons.append(
                f"{text}: the connector shows the time by its worker's time zone and locale, which the file does not "
                "have; here it is UTC: see `store.layout.timezone`"
            )
            if re.search("[xw]", pattern.replace("'", "")):
                reasons.append(f"{text}: weeks are those of ISO 8601, not of the worker's locale")
        elif path[0] != "_header" and any("." in part for part in path):
            reasons.append(f"{text}: a dot in a field's name means a field within a field here")
        elif path[0] != "_header" and any(part.isdigit() for part in path[1:]):
            reasons.append(f"{text}: a number is a field's name here, no place in a list")
    return reasons


def _date(path: tuple[str, ...]) -> tuple[str, str]:
    """Return our pattern of `_date.<pattern>`, and why it is another one; empty if it is the same."""
    try:
        return pattern_of(".".join(path[1:])), ""
    except ValueError as error:
        return _DAY, f"PARTITIONBY {'.'.join(path)}: {error}; {_DAY} stands in its place"
