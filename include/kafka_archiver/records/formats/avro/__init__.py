"""Avro object container files."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, BinaryIO, ClassVar

from pydantic import Field

from kafka_archiver.values.documents import Value

if TYPE_CHECKING:
    import pyarrow as pa

    from kafka_archiver.model.plan import Content, Settings
    from kafka_archiver.records.formats.base import Encoder, Sought, Target

# By codec: the libraries that compress. deflate is gzip under Avro's name.
_MAKERS: Mapping[str, tuple[str, ...]] = {
    "none": (),
    "gzip": ("isal",),
    "deflate": ("isal",),
    "zstd": ("zstandard",),
    "snappy": (),
    "bzip2": ("bz2",),
}


class AvroOptions(Value):
    """`index`: the object has an index of its blocks beside it."""

    # Not written if there is none: such a plan keeps its earlier bytes.
    index: bool = Field(default=False, exclude_if=lambda index: not index)


class Avro:
    """The format `avro`."""

    name = "avro"
    encoding = 4
    extensions: ClassVar[Mapping[str, str]] = dict.fromkeys(_MAKERS, ".avro")
    default_codec = "zstd"
    contents: ClassVar[frozenset[Content]] = frozenset({"record"})
    typed: ClassVar[frozenset[Content]] = frozenset({"value", "both"})
    options = AvroOptions
    libraries: ClassVar[Mapping[str, tuple[str, ...]]] = {
        codec: (*compressor, "orjson", "pyarrow") for codec, compressor in _MAKERS.items()
    }
    known: ClassVar[Mapping[str, str]] = {
        "bzip2-both": "2b38dbd7afc7517899e15b48b61d39ba",
        "bzip2-record": "a1104544d42a53c9d9c74b722cc347ce",
        "deflate-both": "7bf7704ef1c3366991d969de4130184e",
        "deflate-record": "9cfa5caf078582611e1a70b362e296fe",
        "gzip-both": "7bf7704ef1c3366991d969de4130184e",
        "gzip-record": "9cfa5caf078582611e1a70b362e296fe",
        "none-both": "0de68d8b50e5b520ac183c8e41f688b0",
        "none-record": "4e12be970b5111fab805cc885dfc872d",
        "snappy-both": "305192d8ce8d8a2ca560c761f9aa00e2",
        "snappy-record": "263bb034be9709f699f272d7ec79ce2a",
        "zstd-both": "253ff7b687a9160ae09f2717577bc705",
        "zstd-record": "0d7c2b1274288e9862e28299d99bbb65",
    }

    def encoder(self, target: Target) -> Encoder:
        """A new encoder."""
        from kafka_archiver.records.formats.avro.encoder import AvroEncoder, IndexedAvroEncoder

        return IndexedAvroEncoder(target) if target.settings.options.get("index") else AvroEncoder(target)

    def stage(self, settings: Settings) -> None:
        """None: Avro can hold every record."""

    def read(self, source: BinaryIO, target: Target) -> Iterator[pa.RecordBatch]:
        """Read the records: one batch a block."""
        from kafka_archiver.records.formats.avro.reader import read_records

        return read_records(source, target)

    def read_from(
        self, source: BinaryIO, target: Target, sought: Sought
    ) -> tuple[int, Iterator[pa.RecordBatch]] | None:
        """Read from the block that has the offset: one range request for each block. None without an index."""
        if not target.settings.options.get("index"):
            return None
        from kafka_archiver.records.formats.avro.reader import read_block
        from kafka_archiver.records.formats.shared.index import read_from

        return read_from(source, target, sought, lambda block: read_block(block, target))

    def read_alone(self, source: BinaryIO, target: Target) -> tuple[pa.Schema, Iterator[pa.RecordBatch]]:
        """The columns of the file's schema, and the records."""
        from kafka_archiver.records.formats.avro.reader import read_alone

        return read_alone(source, target)
