"""Parquet files."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, BinaryIO, ClassVar

from kafka_archiver.documents import Value

if TYPE_CHECKING:
    import pyarrow as pa

    from kafka_archiver.formats.base import Encoder, Target
    from kafka_archiver.plan import Content, Settings


class Parquet:
    """The format `parquet`."""

    name = "parquet"
    extensions: ClassVar[Mapping[str, str]] = dict.fromkeys(
        ("none", "snappy", "gzip", "zstd", "lz4", "brotli"), ".parquet"
    )
    default_codec = "zstd"
    contents: ClassVar[frozenset[Content]] = frozenset({"record"})
    options = Value
    makers: ClassVar[Mapping[str, tuple[str, ...]]] = dict.fromkeys(extensions, ("pyarrow",))
    known: ClassVar[Mapping[str, str]] = {
        "brotli-record": "baba3d4a616c0c3674ee1e5cb219c57b",
        "gzip-record": "adf4ca419e85e2731b85110db8920a04",
        "lz4-record": "082c1a254d49163d3291546d4d938311",
        "none-record": "4a1d777778c1492233310806fe185163",
        "snappy-record": "856619394d874dd204d8641f65298f72",
        "zstd-record": "c47f3cce9012d408002cc5f472e68803",
    }

    def encoder(self, target: Target) -> Encoder:
        """A new encoder."""
        from kafka_archiver.formats.parquet.encoder import ParquetEncoder

        return ParquetEncoder(target)

    def stage(self, settings: Settings) -> None:
        """None: Parquet can hold every record."""

    def read(self, source: BinaryIO, target: Target) -> Iterator[pa.RecordBatch]:
        """Read the records."""
        from kafka_archiver.formats.parquet.reader import read_records

        return read_records(source, target)
