"""Infers a JSON Schema from documents. Pure: planning uses it."""

import json
from collections.abc import Iterable
from typing import Any

from kafka_archiver.model.schemas import Schema

# Objects with more names than this have names for data: their columns would be as many.
_MOST_NAMES = 2000
# What is nested deeper stays text.
_DEEPEST = 50
_LONG = 1 << 63


class _Number(str):
    """A number that is not an integer, or does not fit 64 bits."""


class _Shape:
    """The kinds of values at one place of the documents."""

    def __init__(self) -> None:
        self.kinds: set[str] = set()
        self.names: dict[str, _Shape] = {}
        self.items: _Shape | None = None

    def see(self, value: Any, depth: int = 0) -> None:
        if value is None:
            return
        if depth > _DEEPEST:
            self.kinds |= {"object", "array"}
        elif isinstance(value, dict):
            self.kinds.add("object")
            for name, part in value.items():
                self.names.setdefault(name, _Shape()).see(part, depth + 1)
        elif isinstance(value, list):
            self.kinds.add("array")
            self.items = self.items or _Shape()
            for item in value:
                self.items.see(item, depth + 1)
        else:
            self.kinds.add(_kind(value))

    def schema(self, top: bool = False) -> dict[str, Any]:
        kinds = self.kinds - {"integer"} if "number" in self.kinds else self.kinds
        if len(kinds) != 1:
            return {}
        [kind] = kinds
        if kind == "array":
            return {"type": kind, "items": self.items.schema() if self.items else {}}
        if kind == "object":
            strange = any(ch in '\\"' or ch < " " or "\ud800" <= ch <= "\udfff" for name in self.names for ch in name)
            # Readers do not distinguish them. Columns of the value can be renamed.
            strange |= not top and len({name.lower() for name in self.names}) < len(self.names)
            if strange or not 0 < len(self.names) <= _MOST_NAMES:
                return {}
            return {"type": kind, "properties": {name: shape.schema() for name, shape in self.names.items()}}
        return {"type": kind}


def infer(values: Iterable[bytes]) -> Schema:
    """The schema of what these documents have in common, in the order in which names appear.

    Values that are no JSON object do not count. What has different types in different documents, or is always null or
    empty, is any JSON, which stays text; so is an object within the document if two of its names differ in case only.
    Text stays text, also where it looks like a time; numbers that are not all integers of 64 bits keep their digits,
    as text.
    """
    shape = _Shape()
    shape.kinds.add("object")
    for value in values:
        try:
            document = json.loads(value, parse_float=_Number, parse_constant=_refuse)
        except (ValueError, RecursionError):
            continue
        if isinstance(document, dict):
            shape.see(document)
    return Schema(kind="JSON", text=json.dumps(shape.schema(top=True) or {"type": "object"}))


def _kind(value: Any) -> str:
    if isinstance(value, bool):
        return "boolean"
    if isinstance(value, int):
        return "integer" if -_LONG <= value < _LONG else "number"
    return "number" if isinstance(value, _Number) else "string"


def _refuse(name: str) -> None:
    raise ValueError(f"{name} is not JSON")
