"""Avro object container files."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, BinaryIO, ClassVar

from kafka_archiver.documents import Value

if TYPE_CHECKING:
    import pyarrow as pa

    from kafka_archiver.formats.base import Encoder, Target
    from kafka_archiver.plan import Content, Settings

# By codec: the libraries that compress. deflate is gzip under Avro's name.
_MAKERS: Mapping[str, tuple[str, ...]] = {
    "none": (),
    "gzip": ("isal",),
    "deflate": ("isal",),
    "zstd": ("zstandard",),
    "snappy": (),
    "bzip2": ("bz2",),
}


class Avro:
    """The format `avro`."""

    name = "avro"
    extensions: ClassVar[Mapping[str, str]] = dict.fromkeys(_MAKERS, ".avro")
    default_codec = "zstd"
    contents: ClassVar[frozenset[Content]] = frozenset({"record"})
    options = Value
    makers: ClassVar[Mapping[str, tuple[str, ...]]] = {
        codec: (*compressor, "orjson", "pyarrow") for codec, compressor in _MAKERS.items()
    }
    known: ClassVar[Mapping[str, str]] = {
        "bzip2-record": "a1104544d42a53c9d9c74b722cc347ce",
        "deflate-record": "07bf776095b5b815d4604ba1f99ae4e6",
        "gzip-record": "07bf776095b5b815d4604ba1f99ae4e6",
        "none-record": "4e12be970b5111fab805cc885dfc872d",
        "snappy-record": "263bb034be9709f699f272d7ec79ce2a",
        "zstd-record": "0d7c2b1274288e9862e28299d99bbb65",
    }

    def encoder(self, target: Target) -> Encoder:
        """A new encoder."""
        from kafka_archiver.formats.avro.encoder import AvroEncoder

        return AvroEncoder(target)

    def stage(self, settings: Settings) -> None:
        """None: Avro can hold every record."""

    def read(self, source: BinaryIO, target: Target) -> Iterator[pa.RecordBatch]:
        """Read the records: one batch a block."""
        from kafka_archiver.formats.avro.reader import read_records

        return read_records(source, target)
