"""The decoders of JSON."""

import json
from collections.abc import Callable, Sequence
from typing import Any

import msgspec
import numpy as np
import pyarrow as pa

from kafka_archiver.messages.errors import ConfigError
from kafka_archiver.messages.foreign_text import foreign, record_value
from kafka_archiver.model.schemas import Schema
from kafka_archiver.records.decode.base import Decoded, Decoder, DecoderInput, Read, interleaved, one_after_the_other
from kafka_archiver.records.decode.frames import Framed, Unframed
from kafka_archiver.records.decode.json_text.compiled import compiled
from kafka_archiver.records.decode.json_text.nodes import JsonNode
from kafka_archiver.records.decode.json_text.schema import columns_of
from kafka_archiver.records.decode.json_text.unnamed import strict, treated, unnamed
from kafka_archiver.records.decode.json_text.valid import valid
from kafka_archiver.records.decode.undecodable import decode_in_halves
from kafka_archiver.records.json_grammar import deep_enough, is_json, may_be_deep
from kafka_archiver.records.vectors import Mask, bounds, indices

# Raises ValueError if a document is not valid.
Check = Callable[[bytes], None]
# Returns the column of the documents that it reads, and which it leaves; None: all.
Fast = Callable[[pa.Array], tuple[pa.Array, Mask] | None]
ANY = Schema(kind="JSON", text="{}")
# Rows at a time: the Python objects of 10,000 take twice the CPU, because they do not fit the processor's caches.
_ROWS = 1000


def make_json(of: DecoderInput) -> Decoder:
    """Make the decoder `json`: what a document has for the columns of the schema. No schema: the text, checked.

    :raises ConfigError: the schema is not valid, or contains itself.
    """
    # Without a schema nothing is named, so no property is unknown.
    unknown = of.unknown if of.schema else None
    field, node = _columns(of.schema or ANY, of)
    # Columns are a choice here, so nothing is looked for that is dropped by it.
    finds_unnamed = unknown in ("column", "dead_letter")
    read = _some_rows(_DocumentReading(node, finds_unnamed=finds_unnamed))
    # What it reads has no property without a column.
    in_c = compiled(node)
    read = _FastFirst(lambda data: in_c.read(*bounds(data)), read, gives_up=True) if in_c else read
    field, read = treated(field, read, unknown or "drop")
    return Framed(field, dict.fromkeys(of.writers, read)) if of.framed else Unframed(field, read)


def make_json_schema(of: DecoderInput) -> Decoder:
    """Make the decoder `json_schema`: as `json`; and each document is valid by the schema that it was written with.

    :raises ConfigError: as `make_json`.
    """
    own, node = _columns(of.required_schema, of)

    def reader(writer: Schema) -> tuple[pa.Field, Read]:
        return treated(own, _valid(node, writer, of.unknown is not None), of.unknown or "drop")

    if not of.framed:
        return Unframed(*reader(of.required_schema))
    field, reads = treated(own, _DocumentReading(node), of.unknown or "drop")[0], dict[int, Read | str]()
    for number, writer in of.writers.items():
        try:
            reads[number] = reader(writer)[1]
        except ConfigError as error:
            reads[number] = f"schema id {number} cannot be used: {error}"
    return Framed(field, reads)


def _columns(schema: Schema, of: DecoderInput) -> tuple[pa.Field, JsonNode]:
    # Old plans do not say what becomes of unknown properties, and have no rules.
    return columns_of(schema, of.column, 0 if of.unknown is None else of.json_rules)


def _valid(node: JsonNode, writer: Schema, finds_unnamed: bool) -> Read:
    slow = _DocumentReading(node, _check(writer), finds_unnamed)
    fast = None if writer.references else valid(json.loads(writer.text), node)
    return _some_rows(_FastFirst(fast.read, slow) if fast else slow)


def _some_rows(read: Read) -> Read:
    """Reads some rows at a time."""

    def each(data: pa.Array) -> Decoded:
        if len(data) <= _ROWS:
            return read(data)
        return one_after_the_other([read(data.slice(start, _ROWS)) for start in range(0, len(data), _ROWS)])

    return each


class _FastFirst:
    """Reads documents fast, and those that this leaves in another way.

    :param gives_up: once it leaves most of some documents, the others are of their kind: no longer try.
    """

    def __init__(self, fast: Fast, slow: Read, gives_up: bool = False) -> None:
        self._fast: Fast | None = fast
        self._slow, self._gives_up = slow, gives_up

    def __call__(self, data: pa.Array) -> Decoded:
        passed = self._fast(data) if self._fast else None
        if passed is None:
            return self._slow(data)
        column, is_left = passed
        rows = np.flatnonzero(is_left)
        if not len(rows):
            return Decoded(column, {})
        if self._gives_up and 2 * len(rows) > len(data):
            self._fast = None
        return interleaved(column, is_left, self._slow(data.take(indices(rows))))


class _DocumentReading:
    """Reads documents one by one.

    :param finds_unnamed: it also gives the properties that have no column.
    """

    def __init__(self, node: JsonNode, check: Check | None = None, finds_unnamed: bool = False) -> None:
        self._node, self._check = node, check
        self._decode = msgspec.json.Decoder(node.python).decode
        self._strictly = msgspec.json.Decoder(strict(node).python).decode if finds_unnamed else None

    def __call__(self, data: pa.Array) -> Decoded:
        values = data.to_pylist()
        reasons: dict[int, str] = {}
        rests: dict[int, str] = {}
        try:
            data.cast(pa.large_string())
            if self._check:
                for value in values:
                    self._check(value)
            if any(map(may_be_deep, values)):
                raise ValueError
            documents = list(map(self._strictly or self._decode, values))
        except (ValueError, RecursionError):
            # In msgspec, all errors are ValueErrors.
            documents = [self._read_row(row, value, reasons, rests) for row, value in enumerate(values)]
        decoded = decode_in_halves(documents, self._array, self._node.kind)
        return Decoded(decoded.column, {**decoded.reasons, **reasons}, rests)

    def _read_row(self, row: int, value: bytes, reasons: dict[int, str], rests: dict[int, str]) -> Any:
        try:
            # How deep msgspec goes depends on Python's version and on the caller's stack.
            with deep_enough():
                document = self._read_document(row, value, reasons, rests)
            if row in reasons or not may_be_deep(value) or is_json(value):
                return document
        except RecursionError:
            pass
        reasons[row] = "the document is nested too deep"
        rests.pop(row, None)
        return None

    def _read_document(self, row: int, value: bytes, reasons: dict[int, str], rests: dict[int, str]) -> Any:
        try:
            value.decode()
            if self._check:
                self._check(value)
            document = self._decode(value)
            if self._strictly and (unnamed_text := unnamed(value, self._node)):
                rests[row] = unnamed_text
            return document
        except UnicodeDecodeError:
            reasons[row] = "the bytes are not UTF-8"
        except msgspec.ValidationError as error:
            reasons[row] = f"the document does not fit the columns: {error}"
        except ValueError as error:
            reasons[row] = f"{error}"
        return None

    def _array(self, values: Sequence[Any]) -> pa.Array:
        try:
            return self._node.array(values)
        except ValueError as error:
            raise ValueError(f"the document does not fit the columns: {error}") from None


def _check(schema: Schema) -> Check:
    """The check of documents by a JSON Schema with its references."""
    import jsonschema_rs
    import orjson

    try:
        resources = list(_resources(schema))
        registry = jsonschema_rs.Registry(resources) if resources else None
        validator = jsonschema_rs.validator_for(json.loads(schema.text), registry=registry)
    except (ValueError, jsonschema_rs.ReferencingError) as error:
        raise ConfigError(f"schema {schema.fingerprint} is not a JSON Schema: {error}") from None

    def check(value: bytes) -> None:
        document = orjson.loads(value)
        if not validator.is_valid(document):
            error = next(validator.iter_errors(document))
            where = "/".join(map(str, error.instance_path)) or "the document"
            keyword = next((part for part in reversed(error.schema_path) if isinstance(part, str)), "")
            raise ValueError(
                f"the document is not valid by its JSON Schema: {foreign(where)} ({foreign(keyword)}): "
                f"{record_value(error.message)}"
            )

    return check


def _resources(schema: Schema) -> Any:
    for reference in schema.references:
        yield reference.name, json.loads(reference.imported.text)
        yield from _resources(reference.imported)
