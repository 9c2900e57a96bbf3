"""Avro object container files."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, BinaryIO, ClassVar

from kafka_archiver.documents import Value
from kafka_archiver.formats.shared.makers import MAKERS

if TYPE_CHECKING:
    import pyarrow as pa

    from kafka_archiver.formats.base import Encoder, Target
    from kafka_archiver.plan import Content, Settings


class Avro:
    """The format `avro`."""

    name = "avro"
    extensions: ClassVar[Mapping[str, str]] = dict.fromkeys(("none", "gzip", "zstd"), ".avro")
    default_codec = "zstd"
    contents: ClassVar[frozenset[Content]] = frozenset({"record"})
    typed: ClassVar[frozenset[Content]] = frozenset({"value", "both"})
    options = Value
    makers: ClassVar[Mapping[str, tuple[str, ...]]] = MAKERS
    known: ClassVar[Mapping[str, str]] = {
        "gzip-record": "07bf776095b5b815d4604ba1f99ae4e6",
        "gzip-typed": "fd6d4e0bdaa1d1e74017bf641f8bae2c",
        "none-record": "4e12be970b5111fab805cc885dfc872d",
        "none-typed": "0de68d8b50e5b520ac183c8e41f688b0",
        "zstd-record": "0d7c2b1274288e9862e28299d99bbb65",
        "zstd-typed": "253ff7b687a9160ae09f2717577bc705",
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
