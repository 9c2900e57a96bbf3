"""The questions that planning asks Spark about a plan's SQL: the columns that it sees of each topic's records."""

from collections.abc import Mapping, Sequence

import pyarrow as pa
from pydantic import Field, JsonValue

from kafka_archiver.messages.errors import ConfigError
from kafka_archiver.model.decoders import decoder_type
from kafka_archiver.model.plan import TopicSchemas
from kafka_archiver.model.schemas import Schema
from kafka_archiver.model.settings import Settings
from kafka_archiver.model.transforms import Sql
from kafka_archiver.records.formats.base import HEADERS
from kafka_archiver.records.pipeline.decode import decodings
from kafka_archiver.records.pipeline.transform.spark_types import ForSpark, spelt
from kafka_archiver.values.documents import Value

# What Spark sees of a record, besides key, value and headers. The first two name the record.
KAFKAS: Mapping[str, JsonValue] = {
    "_chunk": "long", "_offset": "long", "topic": "string", "partition": "integer", "offset": "long",
    "timestamp": "timestamp", "timestamp_type": "integer",
}  # fmt: skip


class SqlQuestion(Value):
    """`topics`: by name, the types of the columns as Spark's JSON. `parses_json`: values are JSON without a schema.

    `path`: folders where Python finds the function.
    """

    sql: Sql
    topics: dict[str, dict[str, JsonValue]]
    parses_json: bool
    path: tuple[str, ...] = ()


class SqlAnswer(Value):
    """The versions of Spark and Java; by topic what the SQL makes and a function's `literals`; or what is wrong."""

    spark: str = ""
    java: str = ""
    made: dict[str, str] = Field(default={})
    literals: dict[str, str] = Field(default={})
    error: str = ""


def fields_for(
    settings: Settings, topic: str, decoded: Sequence[TopicSchemas], schemas: Mapping[str, Schema]
) -> dict[str, ForSpark]:
    """The columns of key, value and headers that Spark gets of a topic's records.

    :raises ConfigError: records of the topic have several types.
    """
    by_column = {decoding.column: decoding for decoding in decodings(settings, topic, decoded, schemas)}
    several = next(
        (s for s in decoded if s.topic == topic and s.column in ("key", "value") and len(s.written) > 1), None
    )
    if several:
        raise ConfigError(
            f"transform: the {several.column}s of topic {topic} are written with {len(several.written)} schemas, and "
            "Spark's SQL needs one: set `schema_evolution: BACKWARD`, or a `schema` of your own"
        )
    fields = {
        c: by_column[c].decoders[0].field if c in by_column else pa.field(c, pa.binary()) for c in ("key", "value")
    }
    fields["headers"] = pa.field("headers", HEADERS)
    return {name: ForSpark(field.with_name(name)) for name, field in fields.items()}


def columns_for(fields: Mapping[str, ForSpark]) -> dict[str, JsonValue]:
    """All columns that Spark gets, as its JSON."""
    return {**KAFKAS, **{name: spelt(column.field.type) for name, column in fields.items()}}


def parses_json(settings: Settings, topic: str, decoded: Sequence[TopicSchemas]) -> bool:
    """Return True if values are JSON without a schema, of which SQL has the fields as text."""
    return decoder_type(settings.value_decode).is_json and not any(
        (s.topic, s.column) == (topic, "value") for s in decoded
    )
