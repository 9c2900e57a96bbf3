"""A record as the page shows it, from its line of JSON. Every part is text that can do nothing. Pure."""

import json
import re
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from typing import Any, NamedTuple, Self

from kafka_archiver.messages.foreign_text import foreign

# Characters of a part of a record that are shown: of one line of it, and of all.
LINE, TEXT = 4000, 16_000
_SHOWN = ("topic", "partition", "offset", "timestamp", "timestamp_type")
_TOKENS = re.compile(r'"(?:[^"\\]|\\.)*"|[{}\[\],:]|[^\s{}\[\],:"]+')


class ShownRecord(NamedTuple):
    """One record. `place`: topic, partition and offset; empty if the line lacks one. `moment`: None if it has no usable
    time. `error`: why it is a dead letter. `fields`: the other parts by name; `value`: its value, in lines; `note`: of
    which kind it is. `key`: of the object that has it; `hour`: to which all records of that object belong.
    """

    place: str = ""
    offset: int | None = None
    moment: datetime | None = None
    error: str = ""
    fields: tuple[tuple[str, str], ...] = ()
    value: str = ""
    note: str = ""
    key: str = ""
    hour: datetime | None = None

    @classmethod
    def of(cls, line: bytes) -> Self:
        """Return the record of a line, as `format: jsonl`, `content: record` or a dead letter has it."""
        try:
            record = json.loads(line)
        except (ValueError, RecursionError):
            record = None
        if not isinstance(record, dict):
            return cls(value=_lines(line.decode(errors="replace")))
        place, offset = _place(record)
        value, note = _value(record)
        return cls(
            place=place,
            offset=offset,
            moment=_moment(record.get("timestamp")),
            error=foreign(str(record.get("error", "")), LINE),
            fields=tuple((foreign(name), foreign(text, LINE)) for name, text in _fields(record)),
            value=_lines(value),
            note=note,
        )


def indented(text: str) -> str:
    """Return JSON with a line for each value; each value stays as it is written."""
    parts, depth, before = [], 0, ""
    for token in _TOKENS.findall(text):
        closes = token in "}]"
        depth -= closes
        if before and ((closes and before not in "{[") or (before in "{[," and not closes)):
            parts.append("\n" + "  " * depth)
        parts.append(": " if token == ":" else token)
        depth += token in "{["
        before = token
    return "".join(parts)


def _place(record: Mapping[str, Any]) -> tuple[str, int | None]:
    """Return where the record is, as text, and its offset."""
    topic, partition, offset = (record.get(name) for name in ("topic", "partition", "offset"))
    if not isinstance(topic, str) or not isinstance(partition, int) or not isinstance(offset, int):
        return "", None
    return foreign(f"{topic}+{partition}@{offset}"), offset


def _moment(timestamp: object) -> datetime | None:
    try:
        return datetime.fromtimestamp(timestamp / 1000, UTC) if isinstance(timestamp, int) else None
    except (ValueError, OverflowError, OSError):
        return None


def _value(record: Mapping[str, Any]) -> tuple[str, str]:
    """Return the value as text, and a word for what it is."""
    if "value_base64" in record:
        return str(record["value_base64"]), "base64"
    value = record.get("value")
    if value is None:
        return "", "null" if "value" in record else ""
    if not isinstance(value, str):
        return json.dumps(value, indent=2, ensure_ascii=False), ""
    try:
        is_container = len(value) <= TEXT and isinstance(json.loads(value), dict | list)
    except (ValueError, RecursionError):
        is_container = False
    return (indented(value), "JSON, laid out anew") if is_container else (value, "" if value else "empty")


def _fields(record: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    hidden = {*(_SHOWN if _place(record)[0] else ()), "value", "value_base64", "error", "headers"}
    # A time that is none is shown as it is.
    if "timestamp" in record and _moment(record["timestamp"]) is None:
        hidden.discard("timestamp")
    for name, content in record.items():
        if name not in hidden:
            yield name.replace("_base64", ", base64"), _text(content)
    for header in record.get("headers") or ():
        name, content = _header(header)
        yield f"header {name}", content


def _header(header: object) -> tuple[str, str]:
    if not isinstance(header, dict):
        return "", _text(header)
    base64 = "value_base64" in header
    return f"{header.get('key')}{', base64' * base64}", _text(header["value_base64"] if base64 else header.get("value"))


def _text(content: object) -> str:
    return content if isinstance(content, str) else json.dumps(content, ensure_ascii=False)


def _lines(text: str) -> str:
    return "\n".join(foreign(part, LINE) for part in text[:TEXT].split("\n")) + "…" * (len(text) > TEXT)
