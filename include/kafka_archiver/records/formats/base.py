"""The interface of a file format: an encoder and a reader together."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, NamedTuple, Protocol, runtime_checkable

import pyarrow as pa

from kafka_archiver.model.settings import Content, Settings
from kafka_archiver.values.documents import Value

Buffer = bytes | bytearray | memoryview

# The columns that Kafka readers give to the writer, and that `Format.read` returns for `content: record`.
# timestamp: milliseconds since 1970, -1 when Kafka has none; timestamp_type: 0 create time, 1 append time.
# headers: null and empty mean the same (Kafka knows no difference); `Format.read` never returns null.
HEADERS = pa.list_(pa.struct([pa.field("key", pa.string(), nullable=False), pa.field("value", pa.binary())]))
RECORD = pa.schema(
    [
        pa.field("topic", pa.string(), nullable=False),
        pa.field("partition", pa.int32(), nullable=False),
        pa.field("offset", pa.int64(), nullable=False),
        pa.field("timestamp", pa.int64(), nullable=False),
        pa.field("timestamp_type", pa.int32(), nullable=False),
        pa.field("key", pa.binary()),
        pa.field("value", pa.binary()),
        pa.field("headers", HEADERS),
    ]
)
# An additional column of batches with records that could not be read completely. `column` names the column that holds
# a placeholder (empty headers, timestamp -1), `reason` says why. Null for a complete record.
UNREAD = pa.field("unread", pa.struct([pa.field("column", pa.string()), pa.field("reason", pa.string())]))
# The columns that an encoder of `content: value` needs.
VALUE = pa.schema([RECORD.field("offset"), RECORD.field("timestamp"), RECORD.field("value")])
# The schema of each content, if nothing is decoded. `shared.columns.schema_of` has those of decoded records.
SCHEMAS: Mapping[Content, pa.Schema] = {"value": VALUE, "record": RECORD}
# Columns with one value per object: the target has them, batches do not.
PLACE = ("topic", "partition")
# The other columns of a record.
COLUMNS = [name for name in RECORD.names if name not in PLACE]


def is_typed(schema: pa.Schema) -> bool:
    """Return True if the columns are those of decoded records."""
    return not (schema.equals(VALUE) or schema.equals(RECORD))


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """The object that an encoder writes: everything besides the records that may influence its bytes.

    `settings`: the plan's settings; `settings.options` are complete.
    `schema`: the object's columns in their order: `VALUE`, `RECORD`, or what `shared.columns.schema_of` gives. The
    first batch cannot define it: an object may have no records, and batches may have variants of its types (for example
    large_binary).
    """

    topic: str
    partition: int
    key: str
    settings: Settings
    schema: pa.Schema


class Rejections(Protocol):
    """Takes the records that a format cannot hold."""

    def reject(self, reasons: Mapping[int, str]) -> None:
        """Leave these records out; `reasons` has the reason by offset."""


# Changes a batch so that the format can hold it, and rejects the records that the format cannot hold.
Fitting = Callable[[pa.RecordBatch, Rejections], pa.RecordBatch]


class Encoder(Protocol):
    """Takes the record batches of one object and returns its bytes as they become ready.

    The bytes depend on the records alone, never on how the records were cut into batches.
    Batches have the columns of the target's schema except `PLACE`, or large variants of their types. An encoder keeps
    no reference to a batch after `write`: a small slice would keep the buffers of the whole batch in memory.
    """

    @property
    def pending(self) -> int:
        """Bytes of memory that the encoder holds until more records come, or the end."""

    def write(self, batch: pa.RecordBatch) -> Iterable[Buffer]:
        """Take records; return the bytes that are ready. The buffers belong to the caller then.

        An encoder refuses no record that has passed the format's stage.
        """

    def spill(self, directory: Path, /) -> int:  # noqa: ARG002 - others need it
        """Move waiting rows to a temporary file in `directory`; return the bytes of memory that this freed.

        An encoder that streams holds almost nothing: it inherits this, which moves nothing. The bytes of the object
        stay the same. The file has no name, so it disappears with the process, also after a kill.

        :raises OSError: the directory is full or missing; memory still holds the rows.
        """
        return 0

    def finish(self) -> Iterable[Buffer]:
        """Return the rest of the object. No `write` may follow."""


@runtime_checkable
class HasSidecar(Protocol):
    """An encoder whose object has a sidecar: a second object beside it, without records of its own.

    The writer uploads the sidecar with its object, and the manifest names both.
    """

    @property
    def sidecar_extension(self) -> str:
        """Appended to the object's key, for example `.index.json`."""

    def sidecar(self) -> bytes:
        """The sidecar's bytes, after `finish`. Like the object's bytes, they depend on the records alone."""


@runtime_checkable
class ReadsAlone(Protocol):
    """A format whose files are read without their plan, for `airflow archive print`.

    Without this, such a reader takes a file for one of `content: record`, or of `content: value` if the format has no
    other, with the default options.
    """

    def read_alone(self, source: BinaryIO, target: "Target") -> tuple[pa.Schema, Iterator[pa.RecordBatch]]:
        """The columns of a file by what it says of itself, and its records: batches of these columns or, of `VALUE`, of
        the column `value` alone, which is printed as it is.

        :param source: seekable.
        :param target: what the file's name tells: key and codec. `settings.content` is the wish of who reads; options
            and `schema` are the defaults.
        :raises IntegrityError: `source` is not a complete object of this format.
        :raises ConfigError: it does not say its columns.
        """


@runtime_checkable
class JoinsValues(Protocol):
    """A format whose files may not tell where a value ends."""

    def joins_values(self, settings: Settings) -> bool:
        """Return True if `read` may give another number of values than were written."""


@runtime_checkable
class HasRequirements(Protocol):
    """A format with options that do not go with every codec or content."""

    def require(self, settings: Settings) -> None:
        """Check settings as a plan freezes them.

        :raises ConfigError: they do not go together.
        """


class Sought(NamedTuple):
    """A place in an object. `row`: the number of the row with the offset, if that is known.

    `rows`: how many the object has. `sidecar`: reads the object's sidecar; None: it has none.
    """

    offset: int
    row: int | None
    rows: int
    sidecar: Callable[[], bytes | None]


@runtime_checkable
class ReadsFrom(Protocol):
    """A format that reads from the middle of an object, with few bytes."""

    def read_from(
        self, source: BinaryIO, target: "Target", sought: Sought
    ) -> tuple[int, Iterator[pa.RecordBatch]] | None:
        """Return the number of the first row that is read, and batches as of `Format.read`, each read when asked for.

        The first batches may have rows before the offset. Returns None if the object does not tell the place.

        :param source: each of its reads is one range request.
        :raises IntegrityError: as `Format.read`.
        """


class Format(Protocol):
    """One file format. Instances are stateless."""

    @property
    def name(self) -> str:
        """The value of `store.format` in the YAML."""

    @property
    def encoding(self) -> int:
        """Increased when the format's bytes change.

        A plan of older code is then refused instead of written differently.
        """

    @property
    def extensions(self) -> Mapping[str, str]:
        """The file extension of each codec, for example {"gzip": ".jsonl.gz"}.

        If the format's options have `extension`, it stands before these: {"none": "", "gzip": ".gz"}.
        """

    @property
    def default_codec(self) -> str:
        """The codec when the YAML names none."""

    @property
    def contents(self) -> frozenset[Content]:
        """The contents that it can store if nothing is decoded."""

    @property
    def typed(self) -> frozenset[Content]:
        """The contents that it can store as columns, if the key or the value is decoded."""

    @property
    def options(self) -> type[Value]:
        """The pydantic model of `store.options`, best a `YamlValue`, each field with a default; `Value` for a format
        without options.

        The encoder finds the options in `target.settings.options`, checked and complete.
        """

    @property
    def known(self) -> Mapping[str, str]:
        """The MD5 of the objects that `known_bytes` encodes, by codec and content, for example "gzip-record", or
        "gzip-both" for all contents that need decoded values.

        They belong to the current `encoding`. Empty: `known_bytes` does not check this format.
        """

    @property
    def libraries(self) -> Mapping[str, tuple[str, ...]]:
        """The libraries that write the bytes, by codec; the likeliest cause of different bytes first."""

    def stage(self, settings: Settings) -> Fitting | None:
        """The stage that prepares or rejects records before the encoder; None if the format can hold every record."""

    def encoder(self, target: Target) -> Encoder:
        """A new encoder."""

    def read(self, source: BinaryIO, target: Target) -> Iterator[pa.RecordBatch]:
        """Read the records: batches of the target's schema or, of `VALUE`, of the column `value` alone.

        :param source: seekable, for formats that need it (Parquet).
        :raises IntegrityError: `source` is not a complete object of this format.
        """
