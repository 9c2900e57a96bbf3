"""Values of records by the names that the YAML has: value.a.b, key, header.x.

As a part of a path: `model/layouts/segment`.
"""

import json
from collections.abc import Sequence
from typing import Any, NamedTuple

import msgspec
import pyarrow as pa
import pyarrow.compute as pc

from kafka_archiver.model.decoders import decoder_type
from kafka_archiver.model.settings import Settings
from kafka_archiver.records.formats.shared.columns import HEADER, VALUE_DECODED
from kafka_archiver.records.formats.shared.columns import KEY as KEY_DECODED
from kafka_archiver.records.formats.shared.plain_types import plain
from kafka_archiver.records.formats.shared.texts import in_iso_years, units, uuids
from kafka_archiver.records.json_grammar import deep_enough
from kafka_archiver.records.pipeline.headers import last_header

_OBJECT = msgspec.json.Decoder(dict[str, msgspec.Raw]).decode
_STRING = msgspec.json.Decoder(str).decode


class NoPlaceError(ValueError):
    """The field is an object or an array."""


def text_at(document: bytes, path: Sequence[str]) -> str | None:
    """The text of a field: of a string its characters, of a number its digits as they stand there, true or false.

    :param document: one JSON document. :param path: names, from the outside; without names it is the document itself.
    :returns: None if the field is null, or is not there.
    :raises NoPlaceError: the field is an object or an array.
    """
    try:
        return _quick(document, path)
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError):
        # Half a surrogate pair, or deeply nested.
        return _slow(document, path)


def _quick(document: bytes, path: Sequence[str]) -> str | None:
    value: Any = document
    for name in path:
        if bytes(value).lstrip()[:1] != b"{":
            return None
        value = _OBJECT(value).get(name)
        if value is None:
            return None
    text = bytes(value).strip()
    if text[:1] == b'"':
        return _STRING(text)
    if text[:1] in (b"{", b"["):
        raise NoPlaceError("an object" if text[:1] == b"{" else "an array")
    return None if text == b"null" else text.decode()


class _Digits(str):
    """A number as it stands in the document."""


def _slow(document: bytes, path: Sequence[str]) -> str | None:
    with deep_enough():
        value = json.loads(document, parse_int=_Digits, parse_float=_Digits)
    for name in path:
        if not isinstance(value, dict) or value.get(name) is None:
            return None
        value = value[name]
    if isinstance(value, dict | list):
        raise NoPlaceError("an object" if isinstance(value, dict) else "an array")
    if isinstance(value, bool):
        return "true" if value else "false"
    return None if value is None else str(value)


class Found(NamedTuple):
    """A value of each record: null if it has none. `wrong`: by row, what it is instead of a single value."""

    values: pa.Array
    wrong: dict[int, str]


class Extract:
    """Takes one value of each record.

    :param field: `value`, `value.a.b`, `key`, `key.a` or `header.x`.
    """

    def __init__(self, field: str, settings: Settings) -> None:
        column, _, subpath = field.partition(".")
        self.field, self._column = field, column
        self._header = subpath if column == "header" else None
        self._path = subpath.split(".") if subpath and self._header is None else []
        self._decoded: str | None = None
        if self._header is not None:
            named = {header.name for header in settings.headers}
            self._decoded = f"{HEADER}{self._header}" if self._header in named else None
            return
        declared = decoder_type(settings.key_decode if column == "key" else settings.value_decode)
        # JSON as it stands in the document: a schema may give a number another text. Only behind a transform the column
        # has what the document has not; a mapper's values may have columns, whatever the decoder is.
        touched = settings.transform is not None and settings.transform.touches((column, *self._path))
        if declared.needs_schema or (declared.has_columns and declared.has_fields) or touched:
            self._decoded = KEY_DECODED if column == "key" else VALUE_DECODED
        self._json = declared.is_json or bool(self._path)

    @property
    def decoded(self) -> str | None:
        """The decoded column that it reads; None: it reads bytes."""
        return self._decoded

    def __call__(self, batch: pa.RecordBatch) -> Found:
        if self._decoded in batch.schema.names:
            return self._typed(batch.column(self._decoded))
        if self._header is not None:
            return Found(last_header(batch, self._header), {})
        data = batch.column(self._column)
        return self._of_json(data) if self._json else Found(data, {})

    def _typed(self, column: pa.Array) -> Found:
        field = pa.field("value", column.type)
        for name in self._path:
            if not pa.types.is_struct(column.type) or column.type.get_field_index(name) < 0:
                return Found(pa.nulls(len(column), pa.string()), {})
            field, column = column.type.field(name), pc.struct_field(column, name)
        if pa.types.is_nested(column.type):
            what = f"a value of type {column.type}"
            valid = column.is_valid().to_pylist()
            return Found(
                pa.nulls(len(column), pa.string()), {row: what for row, is_present in enumerate(valid) if is_present}
            )
        # Avro's decoder says of 16 bytes only in the field's metadata that they are a UUID.
        is_uuid = field.metadata is not None and plain(field).type == pa.uuid()
        return Found(uuids(column).cast(pa.string()) if is_uuid else column, {})

    def _of_json(self, data: pa.Array) -> Found:
        texts: list[str | None] = []
        wrong: dict[int, str] = {}
        for row, document in enumerate(data.to_pylist()):
            text = None
            try:
                text = None if document is None else text_at(document, self._path)
            except NoPlaceError as error:
                wrong[row] = str(error)
            except ValueError:
                wrong[row] = "no JSON"
            texts.append(text)
        encoded = [None if text is None else text.encode("utf-8", "surrogatepass") for text in texts]
        return Found(pa.array(encoded, pa.binary()), wrong)


def as_texts(values: pa.Array) -> tuple[pa.Array, list[str | None]]:
    """The indices of each row's text (null for null), and the texts; a text is None if the bytes are no UTF-8.

    Numbers, times and so on as Arrow writes them; dates and timestamps outside the years 1 to 9999 as their numbers.
    """
    kind = values.type
    if kind == pa.uuid():
        values = uuids(values).cast(pa.string())
    elif pa.types.is_fixed_size_binary(kind):
        values = values.cast(pa.binary())
    elif pa.types.is_date(kind) or pa.types.is_timestamp(kind):
        # Arrow has no text of other years: two of them could have the same.
        values = pc.if_else(pa.array(in_iso_years(values)), values.cast(pa.string()), units(values).cast(pa.string()))
    elif not pa.types.is_binary(kind) and not pa.types.is_large_binary(kind):
        values = values.cast(pa.string())
    encoded = values.dictionary_encode()
    texts: list[str | None] = []
    for value in encoded.dictionary.to_pylist():
        try:
            texts.append(value.decode("utf-8", "surrogatepass") if isinstance(value, bytes) else value)
        except UnicodeDecodeError:
            texts.append(None)
    return encoded.indices, texts
