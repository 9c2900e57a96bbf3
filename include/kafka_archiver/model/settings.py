"""The settings of a plan: everything that affects a key or a byte. Pure."""

from typing import Annotated, Any, Literal, Self, get_args

from pydantic import AfterValidator, Field, JsonValue

from kafka_archiver.messages.policies import NullValue
from kafka_archiver.model.decoders import decoder_type
from kafka_archiver.model.object_keys import SEALED
from kafka_archiver.model.schemas import Unknown
from kafka_archiver.model.transforms import Transform
from kafka_archiver.values.documents import Value, unwritten

# The choices of settings, for both the YAML and the plan.
Isolation = Literal["read_committed", "read_uncommitted"]
Content = Literal["value", "record", "both"]
# Columns of Kafka that `content: value` can have beside the decoded ones, in the order of the objects' columns.
Metadata = Literal["topic", "partition", "offset", "timestamp", "timestamp_type", "key", "headers"]
METADATA: tuple[Metadata, ...] = get_args(Metadata)
# Offsets of a chunk, if the YAML (`store.chunk_records`) says nothing.
CHUNK_RECORDS = 1_000_000
# The name of a decoder (`model.decoders`). A plan may name one that an installed distribution adds.
Decode = str
# How the schema that a run writes is chosen among the versions of a subject.
Evolution = Literal["NONE", "BACKWARD", "FORWARD", "FULL"]
# Text by name, in one order, so that equal documents have equal bytes: policies and what they say, for example.
Choices = Annotated[dict[str, str], AfterValidator(lambda names: dict(sorted(names.items())))]


class Header(Value):
    """A header whose value is decoded. `name`: its key."""

    name: str
    decode: Decode


TimeSource = Literal["record", "wallclock", "value", "key", "header", "sql"]
TimeUnit = Literal["s", "ms", "us", "ns"]
# For a record whose time is missing or cannot be read. bad_record: the policy `bad_record` decides; record: Kafka's
# timestamp; null: none, the layout decides; skip: it is filtered.
NoTime = Literal["bad_record", "record", "null", "skip"]


class EventTime(Value):
    """The time that files a record. `field`: a field of the value or the key, a header's name, or SQL.

    `patterns`: of text, in their order; `iso` is ISO 8601. `timezone`: of text without an offset. `zone_data`, `names`:
    of the zone and the locale, frozen. `at`: with `wallclock`, the plan's time in milliseconds since 1970, frozen.
    """

    source: TimeSource = "record"
    field: str = ""
    unit: TimeUnit | None = None
    patterns: tuple[str, ...] = ()
    timezone: str = "UTC"
    zone_data: str = ""
    locale: str = "en"
    names: dict[str, tuple[str, ...]] = Field(default={})
    missing: NoTime = "bad_record"
    at: int | None = None

    @property
    def is_known_to_kafka(self) -> bool:
        """Return True if Kafka's time index knows it."""
        return self.source == "record"


class Settings(Value):
    """The settings that decide the keys and bytes of a run's objects.

    From the YAML, `codec` may be empty and `options` incomplete: `formats.resolve` adds the format's defaults.
    `layout_options`: the layout's own options; `name`: the template of objects' names, the layout's own if empty.
    `time`: the time by which records are filed.
    `options`: the format's own options; not written if the format declares none.
    `headers`: those that are decoded, in the order of their columns; not written if there are none.
    `unknown`: by column with a JSON Schema (`key`, `value`, `headers.<name>`), what becomes of properties that it does
    not name. Older plans do not have it, and only the columns of the schema's own `properties`.
    `json_rules`: of the columns of a JSON Schema. 1, as in plans without it: an array has the type of its `items` also
    beside `prefixItems`, an object that of `additionalProperties` also beside `patternProperties`. 2: both are JSON.
    `codec_rules`: of zstd in text formats. 1, as in plans without it: level 3. 2: level 2.
    `schema_id_headers`: what may have its schema's id in a header.
    `metadata`: columns of Kafka beside decoded ones; `metadata_prefix` precedes the names of all columns of Kafka. Not
    written if empty.
    `rename`: new names of columns of the decoded value, by their own names.
    `encryption`: `client` if objects are encrypted before they are sent; not written else.
    """

    isolation: Isolation = "read_committed"
    layout: str = "hourly"
    layout_options: dict[str, JsonValue] = unwritten({})
    name: str = unwritten("")
    time: EventTime = unwritten(EventTime())
    format: str = "jsonl"
    content: Content = "value"
    metadata: tuple[Metadata, ...] = unwritten(())
    metadata_prefix: str = unwritten("")
    rename: Choices = unwritten({})
    codec: str = "gzip"
    options: dict[str, JsonValue] = unwritten({})
    value_decode: Decode = "bytes"
    key_decode: Decode = unwritten("bytes")
    headers: tuple[Header, ...] = unwritten(())
    schema_id_headers: tuple[Literal["key", "value"], ...] = unwritten(())
    unknown: dict[str, Unknown] = unwritten({})
    json_rules: Literal[1, 2] = unwritten(1)
    codec_rules: Literal[1, 2] = unwritten(1)
    schema_evolution: Evolution = unwritten("NONE")
    transform: Transform | None = unwritten(None)
    null_value: NullValue = "archive"
    max_value_bytes: Annotated[int, Field(gt=0)] | None = unwritten(None)
    encryption: Literal["client"] | None = unwritten(None)
    chunk_records: Annotated[int, Field(gt=0)] = CHUNK_RECORDS
    part_bytes: Annotated[int, Field(ge=5 << 20)] = 8 << 20
    encoding: int = 4

    def asked(self) -> Self:
        """Without what a plan adds when it knows its schemas and its time: as the YAML gives them."""
        update: dict[str, Any] = {"time": self.time.model_copy(update={"at": None})}
        if self.transform is not None and self.transform.sql is not None:
            update["transform"] = self.transform.model_copy(update={"sql": self.transform.sql.asked()})
        return self.model_copy(update=update)

    def without_spark(self) -> Self:
        """Without transforms if Spark has a part in them: for commands that look at records without Spark."""
        if self.transform is None or self.transform.sql is None:
            return self
        time = EventTime() if self.time.source == "sql" else self.time
        return self.model_copy(update={"transform": None, "time": time})

    @property
    def has_columns(self) -> bool:
        """Return True if keys or values are decoded to columns, whatever schemas there are."""
        by_transform = self.transform is not None and self.transform.makes_columns
        return (
            by_transform
            or bool(self.headers)
            or any(
                decoder_type(name).has_columns or decoder_type(name).needs_schema
                for name in (self.key_decode, self.value_decode)
            )
        )

    @property
    def whole_records(self) -> bool:
        """Return True if objects, transforms, the layout or the time need more than offset, timestamp and value."""
        mapped = self.transform is not None and self.transform.takes_records
        stored = self.content != "value" or bool(self.metadata)
        return mapped or stored or self.needs_key or self.needs_headers

    @property
    def decodes(self) -> bool:
        """True if a decoder may refuse keys or values."""
        return any(decoder_type(name).decodes for name in (self.key_decode, self.value_decode))

    @property
    def needs_key(self) -> bool:
        """Return True if the decoders, the layout or the time need keys."""
        return decoder_type(self.key_decode).decodes or self.files_by("key")

    @property
    def needs_headers(self) -> bool:
        """Return True if the decoders, the layout or the time need headers."""
        return bool(self.headers or self.schema_id_headers) or self.files_by("header")

    def files_by(self, column: Literal["key", "header"]) -> bool:
        """Return True if the layout or the time needs this column."""
        # Perhaps more than the layout needs: any option may name a field.
        return self.time.source == column or _mentions(self.layout_options, column)


def _mentions(options: JsonValue, column: str) -> bool:
    """Return True if a text in the options names a field of the column: key, key.id, {header.x}."""
    if isinstance(options, dict):
        return any(_mentions(value, column) for value in options.values())
    if isinstance(options, list):
        return any(_mentions(value, column) for value in options)
    return isinstance(options, str) and (options.split(".")[0] == column or f"{{{column}" in options)


def sealed_extension(settings: Settings) -> str:
    """The end of the names of encrypted objects; empty if objects are not encrypted."""
    return SEALED if settings.encryption else ""
