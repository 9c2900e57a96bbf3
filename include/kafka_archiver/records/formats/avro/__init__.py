"""Avro object container files."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, BinaryIO

from kafka_archiver.records.formats.shared.codecs import OwnFormat
from kafka_archiver.values.documents import unwritten
from kafka_archiver.values.yaml_values import YamlValue

if TYPE_CHECKING:
    import pyarrow as pa

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


class Avro(OwnFormat):
    """The format `avro`."""

    name = "avro"
    encoding = 4
    extensions = dict.fromkeys(_MAKERS, ".avro")
    default_codec = "zstd"
    contents = frozenset({"record"})
    typed = frozenset({"value", "both"})
    options = AvroOptions
    libraries = {codec: (*makers, "orjson", "pyarrow") for codec, makers in _MAKERS.items()}  # noqa: RUF012

    def encoder(self, target: Target) -> Encoder:
        from kafka_archiver.records.formats.avro.encoder import AvroEncoder, IndexedAvroEncoder

        return IndexedAvroEncoder(target) if target.settings.options.get("index") else AvroEncoder(target)

    def read(self, source: BinaryIO, target: Target) -> Iterator[pa.RecordBatch]:
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
        from kafka_archiver.records.formats.avro.reader import read_alone

        return read_alone(source, target)
