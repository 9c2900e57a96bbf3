"""What a file format is: an encoder and a reader together."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import BinaryIO, Literal, Protocol

import pyarrow as pa

Content = Literal["value", "record"]
Buffer = bytes | bytearray | memoryview

# What the readers of Kafka hand to the writer, and every format of `content: record` gives back.
# timestamp: milliseconds since 1970, -1 when Kafka has none; timestamp_type: 0 create time, 1 append time.
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
# The columns that an encoder of `content: value` needs.
VALUE = pa.schema([RECORD.field("offset"), RECORD.field("timestamp"), RECORD.field("value")])


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """What an encoder is told of the object it writes: all that may influence bytes besides the records."""

    topic: str
    partition: int
    content: Content
    codec: str
    key: str


class Encoder(Protocol):
    """Record batches of one object in, its bytes out, as they get ready.

    The bytes in all depend on the records in all, never on how they were cut into batches.
    Batches have the columns of `VALUE` or, for `content: record`, of `RECORD` without topic and partition.
    """

    @property
    def pending(self) -> int:
        """Bytes of memory that are held back until more records or the end come."""

    def write(self, batch: pa.RecordBatch) -> Iterable[Buffer]:
        """Take records; return what is ready to be stored. Buffers are the caller's from then on.

        :raises BadRecordError: a record cannot be represented; names its offset and why.
        """

    def finish(self) -> Iterable[Buffer]:
        """The rest of the object."""


class Format(Protocol):
    """One file format. Instances are stateless."""

    @property
    def name(self) -> str:
        """Its name in the YAML."""

    @property
    def extensions(self) -> Mapping[str, str]:
        """The codecs it has, each with the object's extension, for example {"gzip": ".jsonl.gz"}."""

    @property
    def contents(self) -> frozenset[Content]:
        """The contents it can store."""

    def encoder(self, target: Target) -> Encoder:
        """A new encoder."""

    def read(self, source: BinaryIO, target: Target) -> Iterator[pa.RecordBatch]:
        """The records back: batches of `RECORD` or, for `content: value`, of its column `value` alone."""
