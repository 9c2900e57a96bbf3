"""What a file format is: an encoder and a reader together."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, Protocol

import pyarrow as pa

from kafka_archiver.documents import Value
from kafka_archiver.plan import Content, Settings

Buffer = bytes | bytearray | memoryview

# What the readers of Kafka hand to the writer, and every format of `content: record` gives back.
# timestamp: milliseconds since 1970, -1 when Kafka has none; timestamp_type: 0 create time, 1 append time.
# headers: null and empty mean the same (Kafka knows no difference); what is read back is never null.
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
# Beside them, where a reader could not read something: null for a record that it has whole; else which column stands in
# for what Kafka has (no headers, no timestamp), and why.
UNREAD = pa.field("unread", pa.struct([pa.field("column", pa.string()), pa.field("reason", pa.string())]))
# The columns that an encoder of `content: value` needs.
VALUE = pa.schema([RECORD.field("offset"), RECORD.field("timestamp"), RECORD.field("value")])
# The schema of each content.
SCHEMAS: Mapping[Content, pa.Schema] = {"value": VALUE, "record": RECORD}
# The columns that the target says of all records of an object, so batches lack them.
PLACE = ("topic", "partition")
# What remains of a record beside them.
COLUMNS = [name for name in RECORD.names if name not in PLACE]


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """What an encoder is told of the object it writes: all that may influence bytes besides the records.

    `settings`: those of the plan, with what the format declares in `settings.options`.
    `schema`: the object's columns in their order, `RECORD` or typed ones. It is said here, not by the first batch: an
    object without records has it too, and batches may come in other variants of its types, cut as they like.
    """

    topic: str
    partition: int
    key: str
    settings: Settings
    schema: pa.Schema


class Rejections(Protocol):
    """Takes the records that a format cannot hold."""

    def reject(self, reasons: Mapping[int, str]) -> None:
        """Leave these records out, and why: by offset."""


# Makes of a batch what a format can hold, and rejects the records of which it cannot.
Fitting = Callable[[pa.RecordBatch, Rejections], pa.RecordBatch]


class Encoder(Protocol):
    """Record batches of one object in, its bytes out, as they get ready.

    The bytes in all depend on the records in all, never on how they were cut into batches.
    Batches have the columns of the target's schema but `PLACE`; large variants of their types are welcome. They are
    read before `write` returns and never kept: a small slice does not pin the buffers it was cut from.
    """

    @property
    def pending(self) -> int:
        """Bytes of memory that are held back until more records or the end come."""

    def write(self, batch: pa.RecordBatch) -> Iterable[Buffer]:
        """Take records; return what is ready to be stored. Buffers are the caller's from then on.

        It takes every record that has passed the format's stage.
        """

    def spill(self, directory: Path, /) -> int:
        """Move held rows to a temporary file in `directory`; return how many bytes of memory that freed.

        An encoder that streams holds next to nothing and returns 0. The bytes of the object stay the same.
        The file has no name and is gone when the encoder is, also after a kill.

        :raises OSError: the directory is full or missing; the rows are still held.
        """

    def finish(self) -> Iterable[Buffer]:
        """The rest of the object. Nothing may be written after it."""


class Format(Protocol):
    """One file format. Instances are stateless."""

    @property
    def name(self) -> str:
        """Its name in the YAML."""

    @property
    def extensions(self) -> Mapping[str, str]:
        """The codecs it has, each with the object's extension, for example {"gzip": ".jsonl.gz"}."""

    @property
    def default_codec(self) -> str:
        """The one it writes when the YAML names none."""

    @property
    def contents(self) -> frozenset[Content]:
        """The contents it can store."""

    @property
    def options(self) -> type[Value]:
        """What `store.options` may say besides: a model of its own, each field with a default; `Value` has none.

        Its encoder finds them in `settings.options` of the target, checked and complete.
        """

    @property
    def known(self) -> Mapping[str, str]:
        """MD5s of what `known_bytes` has it encode, by codec and content, for example "gzip-record".

        They are of this `ENCODING`. Empty: the format answers for itself.
        """

    @property
    def makers(self) -> Mapping[str, tuple[str, ...]]:
        """The libraries that make its bytes, by codec, the likeliest cause of other bytes first."""

    def stage(self, settings: Settings) -> Fitting | None:
        """What records have to pass before they are encoded; None when it can hold all of them as they are."""

    def encoder(self, target: Target) -> Encoder:
        """A new encoder."""

    def read(self, source: BinaryIO, target: Target) -> Iterator[pa.RecordBatch]:
        """The records back: batches of the target's schema or, for `content: value`, of its column `value` alone.

        :param source: seekable, for formats that need it (Parquet).
        :raises IntegrityError: these are not the whole bytes of such an object.
        """
