"""The decoders of JSON."""

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import msgspec
import numpy as np
import pyarrow as pa

from kafka_archiver.messages.errors import ConfigError
from kafka_archiver.messages.foreign_text import foreign, record_value
from kafka_archiver.model.schemas import Schema, Unknown
from kafka_archiver.records.decode.base import Decoded, Decoder, DecoderInput, Read, renumbered
from kafka_archiver.records.decode.frames import Framed, Unframed
from kafka_archiver.records.decode.json_text.compiled import compiled
from kafka_archiver.records.decode.json_text.nodes import JsonNode
from kafka_archiver.records.decode.json_text.schema import columns_of
from kafka_archiver.records.decode.json_text.unnamed import strict, treated, unnamed
from kafka_archiver.records.decode.json_text.valid import Valid, valid
from kafka_archiver.records.decode.undecodable import decode_in_halves
from kafka_archiver.records.json_grammar import deep_enough, is_json, may_be_deep
from kafka_archiver.records.rows.filled import MOST_BYTES, CompiledRows
from kafka_archiver.records.vectors import bounds, indices

# Raises ValueError if a document is not valid.
Check = Callable[[bytes], None]
ANY = Schema(kind="JSON", text="{}")
# Rows at a time: the Python objects of 10,000 take twice the CPU, because they do not fit the processor's caches.
_ROWS = 1000


def make_json(of: DecoderInput) -> Decoder:
    """Make the decoder `json`. Without a schema nothing is named, so no property is unknown."""
    return json_decoder(of.schema, of.writers, of.framed, of.column, of.unknown if of.schema else None, of.json_rules)


def make_json_schema(of: DecoderInput) -> Decoder:
    """Make the decoder `json_schema`."""
    return json_schema_decoder(of.required_schema, of.writers, of.framed, of.column, of.unknown, of.json_rules)


def json_decoder(
    schema: Schema | None,
    writers: Mapping[int, Schema],
    framed: bool,
    column: str,
    unknown: Unknown | None = "drop",
    rules: int = 2,
) -> Decoder:
    """A decoder of JSON documents: what a document has for the columns of the schema. No schema: the text, checked.

    :param unknown: what becomes of properties that have no column; None as in old plans, which have no rules.
    :param rules: see `columns_of`.
    :raises ConfigError: the schema is not valid, or contains itself.
    """
    field, node = columns_of(schema or ANY, column, 0 if unknown is None else rules)
    # Columns are a choice here, so nothing is looked for that is dropped by it.
    finds_unnamed = unknown in ("column", "dead_letter")
    read = _some_rows(_DocumentReading(node, finds_unnamed=finds_unnamed))
    # What it reads has no property without a column.
    in_c = compiled(node)
    read = _InC(in_c, read) if in_c else read
    field, read = treated(field, read, unknown or "drop")
    return Framed(field, dict.fromkeys(writers, read)) if framed else Unframed(field, read)


def json_schema_decoder(
    schema: Schema,
    writers: Mapping[int, Schema],
    framed: bool,
    column: str,
    unknown: Unknown | None = "drop",
    rules: int = 2,
) -> Decoder:
    """Like `json_decoder`; and each document is valid by the schema that it was written with.

    :raises ConfigError: like `json_decoder`.
    """
    own, node = columns_of(schema, column, 0 if unknown is None else rules)

    def reader(writer: Schema) -> tuple[pa.Field, Read]:
        return treated(own, _valid(node, writer, unknown is not None), unknown or "drop")

    if not framed:
        return Unframed(*reader(schema))
    field, reads = treated(own, _DocumentReading(node), unknown or "drop")[0], dict[int, Read | str]()
    for number, writer in writers.items():
        try:
            reads[number] = reader(writer)[1]
        except ConfigError as error:
            reads[number] = f"schema id {number} cannot be used: {error}"
    return Framed(field, reads)


def _valid(node: JsonNode, writer: Schema, finds_unnamed: bool) -> Read:
    slow = _DocumentReading(node, _check(writer), finds_unnamed)
    fast = None if writer.references else valid(json.loads(writer.text), node)
    return _some_rows(_FastFirst(fast, slow) if fast else slow)


def _some_rows(read: Read) -> Read:
    """Reads some rows at a time."""

    def each(data: pa.Array) -> Decoded:
        if len(data) <= _ROWS:
            return read(data)
        starts = range(0, len(data), _ROWS)
        parts = [(range(start, len(data)), read(data.slice(start, _ROWS))) for start in starts]
        return Decoded(
            pa.concat_arrays([part.column for _, part in parts]),
            {row: text for rows, part in parts for row, text in renumbered(part.reasons, rows).items()},
            {row: text for rows, part in parts for row, text in renumbered(part.unnamed, rows).items()},
        )

    return each


class _FastFirst:
    """Reads documents that are certainly valid fast, and the others one by one."""

    def __init__(self, fast: Valid, slow: Read) -> None:
        self._fast, self._slow = fast, slow

    def __call__(self, data: pa.Array) -> Decoded:
        try:
            column, odd = self._fast.read(data)
        except (ValueError, RecursionError):
            return self._slow(data)
        if not odd:
            return Decoded(column, {})
        rows = np.array(odd)
        slow = self._slow(data.take(indices(rows)))
        places = np.arange(len(data))
        places[rows] = np.arange(len(data), len(data) + len(odd))
        joined = pa.concat_arrays([column, slow.column]).take(indices(places))
        return Decoded(joined, renumbered(slow.reasons, odd), renumbered(slow.unnamed, odd))


class _InC:
    """Reads documents in C, and those that it leaves with another reading."""

    def __init__(self, in_c: CompiledRows, slow: Read) -> None:
        self._in_c: CompiledRows | None = in_c
        self._slow = slow

    def __call__(self, data: pa.Array) -> Decoded:
        whole, starts, ends = bounds(data)
        passed = self._in_c.read(whole, starts, ends) if self._in_c and len(whole) <= MOST_BYTES else None
        if passed is None:
            return self._slow(data)
        column, bad = passed
        if not bad.any():
            return Decoded(column, {})
        rows, good = np.flatnonzero(bad), np.flatnonzero(~bad)
        if len(rows) > len(good):
            # Documents of this kind are not for C: it would only take time.
            self._in_c = None
        slow = self._slow(data.take(indices(rows)))
        places = np.empty(len(data), np.int64)
        places[good], places[rows] = np.arange(len(good)), len(good) + np.arange(len(rows))
        joined = pa.concat_arrays([column, slow.column]).take(indices(places))
        return Decoded(joined, renumbered(slow.reasons, rows), renumbered(slow.unnamed, rows))


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
