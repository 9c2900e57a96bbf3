"""A JSON Schema as types that msgspec reads: what they take is valid, without a check of the whole document.

msgspec checks types, names, and what is required. The validating library checks the values of a column at once, where
the schema says more of them. All of this is narrow: a document that is refused here may still be valid.
"""

from collections.abc import Callable, Mapping, Sequence
from functools import reduce
from operator import or_
from types import NoneType
from typing import Annotated, Any, get_args

import msgspec
import numpy as np
import orjson
import pyarrow as pa
import pyarrow.compute as pc

from kafka_archiver.records.decode.json_text.columns import FORMAT, TYPE
from kafka_archiver.records.decode.json_text.nodes import Integers, JsonMap, JsonNode, List, Struct
from kafka_archiver.records.decode.json_text.schema import pointed
from kafka_archiver.records.json_grammar import may_be_deep
from kafka_archiver.records.vectors import Mask

# In these, a keyword means the same.
_DIALECTS = frozenset(
    {f"http://json-schema.org/draft-0{number}/schema" for number in (6, 7)}
    | {f"https://json-schema.org/draft/{date}/schema" for date in ("2019-09", "2020-12")}
)
# They do not decide whether a document is valid.
_NOTES = frozenset({
    "$schema", "$id", "$defs", "definitions", "$comment", "title", "description", "default", "examples", "deprecated",
    "readOnly", "writeOnly", "connect.type", "connect.index", "connect.version", "connect.parameters", TYPE, FORMAT,
})  # fmt: skip
_NAMES: Mapping[Any, str] = {str: "string", int: "integer", bool: "boolean", float: "number"}
# Of a name that is there twice, msgspec keeps only the last value. Wide integers and texts among the others may be what
# orjson refuses: a number that is no double.
_LONG = Annotated[int, msgspec.Meta(ge=-(1 << 63), le=(1 << 63) - 1)]
_LARGE = "[eE][+-]?[0-9]{3}|[0-9]{200}"
# Of a schema.
_DEEPEST = 100


class Valid:
    """Reads documents that are certainly valid.

    :param node: takes only what is valid.
    :param texts: whether it reads parts of a document as text.
    """

    def __init__(self, node: JsonNode, texts: bool) -> None:
        self._node, self._texts = node, texts
        self._decode = msgspec.json.Decoder(node.python).decode

    def read(self, data: pa.Array) -> tuple[pa.Array, Mask] | None:
        """Return the column of the documents that are valid, and which may not be; None: nothing is known of any.

        :param data: JSON documents, without nulls.
        """
        try:
            return self._read(data)
        except (ValueError, RecursionError):
            return None

    def _read(self, data: pa.Array) -> tuple[pa.Array, Mask]:
        values = data.to_pylist()
        if self._texts:
            # It finds what is not UTF-8, too. msgspec does in what it does not read as text.
            text = data.cast(pa.large_string())
            large = pc.indices_nonzero(pc.match_substring_regex(text, _LARGE)).to_pylist()
            for row in large:
                values[row] = b""
        for row in [row for row, value in enumerate(values) if may_be_deep(value)]:
            values[row] = b""
        try:
            documents, is_odd = list(map(self._decode, values)), np.zeros(len(values), np.bool_)
        except (ValueError, RecursionError):
            every = list(map(self._read_document, values))
            documents = [document for document in every if document is not None]
            is_odd = np.array([document is None for document in every], np.bool_)
        return self._node.array(documents), is_odd

    def _read_document(self, value: bytes) -> Any:
        try:
            return self._decode(value)
        except (ValueError, RecursionError):
            return None


def valid(text: Any, node: JsonNode) -> Valid | None:
    """Return a reader of documents that are valid by a schema, with the columns of `node`; None if there is none.

    :param text: the schema: the validating library takes it, and it needs no other one.
    :param node: what the schema's columns are made of.
    """
    try:
        parts = _Parts(text)
        member_type = parts.member(text, node, 0)
    except (_UnclearError, LookupError, ValueError, TypeError, AttributeError):
        return None
    # Then all is text, and has to be read twice.
    return None if member_type.python is msgspec.Raw else Valid(member_type, parts.texts)


class _UnclearError(Exception):
    """Only the validating library knows what this means."""


class _Parts:
    """Makes nodes that take only what is valid. `texts`: whether one of them reads text."""

    def __init__(self, text: Any) -> None:
        definitions = {key: part for key, part in text.items() if key not in ("$schema", "$id")}
        dialect = {"$schema": text["$schema"]} if "$schema" in text else {}
        known = all(str(name).removesuffix("#") in _DIALECTS for name in dialect.values())
        if not known or not _dollars(definitions) <= {"$ref", "$defs", "$comment"}:
            raise _UnclearError
        self._text, self._dialect, self.texts = text, dialect, False

    def member(self, part: Any, node: JsonNode, depth: int) -> JsonNode:
        """A node that takes null only if it is valid."""
        member_type, null = self._node(part, node, depth)
        return member_type if null else _Checked(member_type, _without_null(member_type.python))

    def _node(self, part: Any, node: JsonNode, depth: int) -> tuple[JsonNode, bool]:
        """A node that takes null, and whether null is valid."""
        if depth > _DEEPEST:
            raise _UnclearError
        if not isinstance(part, Mapping):
            return self._leaf(part, node)
        keywords = part.keys() - _NOTES
        if keywords == {"$ref"}:
            return self._node(self._pointed(part["$ref"]), node, depth + 1)
        for keyword in keywords & {"oneOf", "anyOf"}:
            alternatives = [alternative for alternative in part[keyword] if alternative != {"type": "null"}]
            if len(keywords) == 1 and len(alternatives) == 1 and len(part[keyword]) == 2:
                member_type, null = self._node(alternatives[0], node, depth + 1)
                # Text may be null.
                return (
                    self._leaf(part, node)
                    if member_type.python is msgspec.Raw
                    else (member_type, keyword == "anyOf" or not null)
                )
        types = _types(part)
        null = not types or "null" in types
        if types and ("array" if isinstance(node, List) else "object") not in types:
            return self._leaf(part, node)
        if isinstance(node, Struct) and keywords <= {"type", "properties", "required", "additionalProperties"}:
            names, required = part["properties"], frozenset(part.get("required", ()))
            if list(names) == [field.name for field, _ in node.parts] and required <= names.keys():
                inner = [(field, self.member(names[field.name], its, depth + 1)) for field, its in node.parts]
                return Struct(inner, required), null
        if isinstance(node, JsonMap) and keywords <= {"type", "additionalProperties"}:
            value = self.member(part["additionalProperties"], node.value, depth + 1)
            return JsonMap(value, node.kind.item_field), null
        if isinstance(node, List) and keywords <= {"type", "items"}:
            return List(self.member(part["items"], node.item, depth + 1), node.kind.value_field), null
        return self._leaf(part, node)

    def _pointed(self, reference: str) -> Any:
        if not reference.startswith("#/") or "//" in reference or reference.endswith("/"):
            raise _UnclearError
        return pointed(self._text, reference[1:])

    def _leaf(self, part: Any, node: JsonNode) -> tuple[JsonNode, bool]:
        """A node with a check of its values: as msgspec reads them where orjson reads the same, else of their text."""
        if not _dollars(part) <= {"$comment"}:
            raise _UnclearError
        # Of the extra `json-schema`, which `decode: json` does without.
        import jsonschema_rs

        is_valid = jsonschema_rs.validator_for({**self._dialect, "items": part}).is_valid
        # Integers with a point are left to the validating library.
        python = int | None if isinstance(node, Integers) else node.python
        bare = _without_null(python)
        kinds = {_NAMES.get(kind, "") for kind in get_args(bare) or [bare]}
        types = _types(part) if isinstance(part, Mapping) else set()
        if kinds <= types and part.keys() - _NOTES <= {"type", *([] if "string" in types else ["format"])}:
            return _Checked(node, _bounded(python)), is_valid([None])
        if kinds <= {"string", "integer", "boolean"}:
            return _Checked(node, _bounded(python), is_valid), is_valid([None])
        self.texts = True
        again = node if node.python is msgspec.Raw else _Again(node)
        return _Checked(again, msgspec.Raw, lambda texts: is_valid([orjson.loads(bytes(text)) for text in texts])), True


class _Checked:
    """A node that takes less. :param python: what msgspec reads. :param check: of all values that are not None."""

    def __init__(self, node: JsonNode, python: Any, check: Callable[[list[Any]], bool] | None = None) -> None:
        self.kind, self.python = node.kind, python
        self._node, self._check = node, check

    def array(self, values: Sequence[Any]) -> pa.Array:
        if self._check and not self._check([value for value in values if value is not None]):
            raise ValueError("a value may not be valid")
        return self._node.array(values)


class _Again:
    """Reads the values of a node from their text."""

    python = msgspec.Raw

    def __init__(self, node: JsonNode) -> None:
        self.kind, self._node = node.kind, node
        self._read = msgspec.json.Decoder(node.python).decode

    def array(self, values: Sequence[Any]) -> pa.Array:
        return self._node.array([None if value is None else self._read(value) for value in values])


def _without_null(python: Any) -> Any:
    return reduce(or_, [kind for kind in get_args(python) if kind is not NoneType]) if get_args(python) else python


def _bounded(python: Any) -> Any:
    return reduce(or_, [_LONG if kind is int else kind for kind in get_args(python)])


def _types(part: Mapping[str, Any]) -> set[str]:
    names = part.get("type", [])
    return {names} if isinstance(names, str) else set(names)


def _dollars(part: Any) -> set[str]:
    """The names in a schema that start with $."""
    if isinstance(part, list):
        return set().union(*map(_dollars, part))
    if not isinstance(part, Mapping):
        return set()
    return {name for name in part if name.startswith("$")}.union(*map(_dollars, part.values()))
