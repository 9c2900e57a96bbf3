"""`decode` of `source.key`, `source.value` and `source.headers`: bytes become typed columns, or are only checked."""

from collections.abc import Collection, Mapping, Sequence
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from kafka_archiver.messages.errors import ConfigError
from kafka_archiver.messages.foreign_text import foreign
from kafka_archiver.model.decoders import decoder_type
from kafka_archiver.model.layouts.registry import form_of
from kafka_archiver.model.layouts.tokens import Field
from kafka_archiver.model.plan import TopicSchemas
from kafka_archiver.model.schemas import Schema
from kafka_archiver.model.settings import Decode as Name
from kafka_archiver.model.settings import Settings
from kafka_archiver.records.decode.base import Decoded, Decoder, DecoderInput
from kafka_archiver.records.decode.decoders import decoder
from kafka_archiver.records.decode.frames import schema_id
from kafka_archiver.records.formats import get_format
from kafka_archiver.records.formats.base import Target
from kafka_archiver.records.formats.shared.columns import HEADER, schema_of
from kafka_archiver.records.pipeline.base import Marks
from kafka_archiver.records.pipeline.headers import SchemaIds, last_header
from kafka_archiver.records.pipeline.refusals import RequireJson
from kafka_archiver.records.pipeline.transform.base import BatchOrigin, Fields
from kafka_archiver.records.pipeline.transform.chain import chain_of

# Characters of a decoder's reason.
_REASON = 600


class ColumnDecoding(NamedTuple):
    """The decoding of the keys, the values or a header (`headers.<name>`) of a topic.

    `by_id`: which decoder a schema id needs, if there are several. `ids`: if a header may have the schema's id.
    """

    column: str
    name: Name
    decoders: Sequence[Decoder]
    by_id: Mapping[int, int]
    ids: SchemaIds | None = None

    @property
    def added(self) -> str:
        """The column of a batch that has what was decoded."""
        return self.column if self.column.startswith(HEADER) else f"{self.column}_decoded"


def decodings(
    settings: Settings, topic: str, decoded: Sequence[TopicSchemas], schemas: Mapping[str, Schema]
) -> list[ColumnDecoding]:
    """Return the decodings of a topic's records, as a plan says.

    :param decoded: the plan's schemas. :param schemas: their texts by fingerprint.
    :raises ConfigError: this release has no such decoder, or the decoder cannot read a schema.
    """
    names: dict[str, Name] = {"key": settings.key_decode, "value": settings.value_decode}
    names |= {HEADER + header.name: header.decode for header in settings.headers}
    own: dict[str, TopicSchemas] = {of_topic.column: of_topic for of_topic in decoded if of_topic.topic == topic}
    return [
        _named(column, name, own.get(column), schemas, settings)
        for column, name in names.items()
        if _has_stage(name) or column in own or column.startswith(HEADER)
    ]


def _has_stage(name: Name) -> bool:
    """Return True if a decoder has work without a schema of the plan, be it to say that it needs one."""
    return decoder_type(name).has_columns or decoder_type(name).needs_schema


def _named(
    column: str, name: Name, own: TopicSchemas | None, schemas: Mapping[str, Schema], settings: Settings
) -> ColumnDecoding:
    try:
        return _decoding(column, name, own, schemas, settings)
    except ConfigError as error:
        # A schema of the registry may have any names.
        raise ConfigError(f"source.{column}: {foreign(str(error), 2000)}") from None


def _decoding(
    column: str, name: Name, own: TopicSchemas | None, schemas: Mapping[str, Schema], settings: Settings
) -> ColumnDecoding:
    # Reasons are in logs and in Airflow's database, in plain text.
    shows_values = settings.encryption is None
    if own is None:
        plain_decoder = decoder(name, DecoderInput(None, column=column), shows_values)
        return ColumnDecoding(column, name, [plain_decoder], {})
    decoders: list[Decoder] = []
    by_id: dict[int, int] = {}
    for number, target in enumerate(own.written):
        writers = {w.id: schemas[w.fingerprint] for w in own.writers if w.written_as == target and w.id is not None}
        unknown = settings.unknown.get(column)
        of = DecoderInput(schemas[target], writers, own.framed, column, own.message, unknown, settings.json_rules)
        decoders.append(decoder(name, of, shows_values))
        by_id.update(dict.fromkeys(writers, number))
    return ColumnDecoding(column, name, decoders, by_id, SchemaIds.of(own))


def columns_of(settings: Settings, decoded: Sequence[ColumnDecoding], topic: str = "") -> pa.Schema:
    """The columns of a run's objects of one topic, as the last transform leaves them.

    :param decoded: how the topic's records are decoded.
    :raises ConfigError: two columns have one name, nothing is decoded where it must be, or a transform does not fit.
    """
    fields = chain_of(settings, fields_of(decoded), BatchOrigin(topic)).fields
    return schema_of(
        settings.content,
        settings.metadata,
        settings.metadata_prefix,
        fields.key,
        fields.value,
        fields.headers,
        settings.rename,
        form_of(settings).columns,
    )


def fields_of(decoded: Sequence[ColumnDecoding]) -> Fields:
    """The columns that the decoders make."""
    fields = {decoding.column: decoding.decoders[0].field for decoding in decoded}
    return Fields(fields.pop("key", None), fields.pop("value", None), fields)


def storable(settings: Settings, topic: str, decoded: Sequence[ColumnDecoding]) -> pa.Schema:
    """`columns_of`, checked by an encoder of the plan's format.

    :param settings: complete, as a plan has them.
    :raises ConfigError: also if the format or an option does not fit the columns, or a transform takes away a field by
        which records are filed.
    """
    columns = columns_of(settings, decoded, topic)
    sql = settings.transform.sql if settings.transform else None
    if not sql or not sql.makes_values or topic in sql.made:
        # Else Spark was not asked yet what it makes.
        _require_filed(settings, fields_of(decoded), chain_of(settings, fields_of(decoded), BatchOrigin(topic)).fields)
    get_format(settings.format).encoder(Target(topic=topic, partition=0, key="", settings=settings, schema=columns))
    return columns


def _require_filed(settings: Settings, before: Fields, after: Fields) -> None:
    """Layouts see what the transforms leave. A field that no record has would be null in every path."""
    for token in form_of(settings).folders:
        if not isinstance(token, Field) or token.field.startswith("header."):
            continue
        column, *path = token.field.split(".")
        old_field, new_field = (fields.key if column == "key" else fields.value for fields in (before, after))
        by_transform = column == "value" and settings.transform is not None and settings.transform.makes_columns
        if (
            new_field is not None
            and not _has(new_field, path)
            and (by_transform or (old_field is not None and _has(old_field, path)))
        ):
            has = (
                ", ".join(child.name for child in new_field.type)
                if pa.types.is_struct(new_field.type)
                else new_field.type
            )
            raise ConfigError(
                f"store.layout: {token.field} is no field behind `transform`, and records are filed by what that "
                f"leaves; found {has}. Name one of these, or keep the field"
            )


def require_known(settings: Settings, fields: Fields) -> None:
    """Check the fields by which records are filed.

    :param fields: keys and values with a schema of the YAML.
    :raises ConfigError: the schema does not have a field of the layout, or of the time.
    """
    transform = settings.transform
    required = [("store.layout", token.field) for token in form_of(settings).folders if isinstance(token, Field)]
    # What a transform may have made is known behind it.
    required = [(key, name) for key, name in required if not (transform and transform.touches(tuple(name.split("."))))]
    if settings.time.source in ("value", "key"):
        required.append(("timestamp.path", f"{settings.time.source}.{settings.time.field}".removesuffix(".")))
    for key, name in required:
        column, *path = name.split(".")
        field = {"key": fields.key, "value": fields.value}.get(column)
        for part in path:
            if field is None or not pa.types.is_struct(field.type):
                # The text of a JSON document within a column may have more.
                break
            if field.type.get_field_index(part) < 0:
                has = ", ".join(child.name for child in field.type)
                raise ConfigError(
                    f"{key}: `source.{column}.schema` has no field {name}, so no record would have it; expected one of "
                    f"{has}, found {part!r}"
                )
            field = field.type.field(part)


def _has(field: pa.Field, path: Sequence[str]) -> bool:
    kind = field.type
    for name in path:
        if not pa.types.is_struct(kind) or kind.get_field_index(name) < 0:
            return False
        kind = kind.field(name).type
    return True


class Decode:
    """Decodes keys, values or a header, and rejects records whose bytes cannot be decoded. Nulls pass.

    :param kept: the columns that objects need. What was decoded is added if it is one of them: as `key_decoded`,
        `value_decoded` or `headers.<name>`; else the bytes are only checked.
    """

    def __init__(self, decoding: ColumnDecoding, kept: Collection[str]) -> None:
        self._column, self._name, self._decoders, self._by_id, self._ids = decoding
        self._header = self._column.removeprefix(HEADER) if self._column.startswith(HEADER) else None
        self._added = decoding.added
        self._keep = self._added in kept

    def __call__(self, batch: pa.RecordBatch, marks: Marks) -> pa.RecordBatch:
        data, unknown = self._bytes(batch)
        decoded = self._decoders[0].decode(data) if len(self._decoders) == 1 else self._by_schema(data)
        if reasons := {**decoded.reasons, **unknown}:
            offsets = batch.column("offset")
            what = self._column if self._header is None else f"header {self._header}"
            prefix = f"`source.{self._column}.decode` is {self._name}, but the {what} cannot be decoded: "
            marks.reject({offsets[row].as_py(): prefix + foreign(reason, _REASON) for row, reason in reasons.items()})
        if not self._keep:
            return batch
        marks.unnamed += len(decoded.unnamed.keys() - reasons.keys())
        return batch.append_column(self._added, decoded.column)

    def _bytes(self, batch: pa.RecordBatch) -> tuple[pa.Array, Mapping[int, str]]:
        """Return the bytes to decode; why, by row, for what cannot be decoded."""
        if self._header is not None:
            return last_header(batch, self._header), {}
        return self._ids.framed(batch) if self._ids else (batch.column(self._column), {})

    def _by_schema(self, data: pa.Array) -> Decoded:
        """Check the rows of each schema with its own decoder. The column is null: there is no common type."""
        ids = [None if datum is None else schema_id(datum) for datum in data.to_pylist()]
        known = ", ".join(map(str, self._by_id))
        unknown = f"schema id {{}} is not one of the schemas of the plan ({known})".format
        reasons = {n: unknown(i) for n, i in enumerate(ids) if i is not None and i not in self._by_id}
        # The first decoder says what is wrong with a row that has no schema id.
        which = np.array([self._by_id.get(-1 if i is None else i, 0) for i in ids])
        which[list(reasons)] = -1
        for number in np.unique(which[which >= 0]).tolist():
            rows = np.flatnonzero(which == number)
            checked = self._decoders[number].decode(data.take(pa.array(rows.tolist(), pa.int64())))
            reasons.update({int(rows[row]): reason for row, reason in checked.reasons.items()})
        return Decoded(pa.nulls(len(data)), reasons)


def decode_stages(
    settings: Settings, decodings: Sequence[ColumnDecoding], kept: Collection[str]
) -> list[Decode | RequireJson]:
    """The stages that decode or check keys, values and headers. `kept`: the columns that objects need."""
    typed = {decoding.column for decoding in decodings}
    names = {"key": settings.key_decode, "value": settings.value_decode}
    checks = [
        RequireJson(column) for column, name in names.items() if decoder_type(name).is_json and column not in typed
    ]
    return [*checks, *(Decode(decoding, kept) for decoding in decodings)]
