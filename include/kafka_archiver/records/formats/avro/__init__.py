"""Avro object container files."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, BinaryIO, ClassVar

from kafka_archiver.records.formats.shared.codecs import known_bytes_of
from kafka_archiver.values.documents import unwritten
from kafka_archiver.values.yaml_values import YamlValue

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


class AvroOptions(YamlValue):
    """`index`: the object has an index of its blocks beside it."""

    index: bool = unwritten(False)


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
    known: ClassVar[Mapping[str, str]] = known_bytes_of("avro")

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
