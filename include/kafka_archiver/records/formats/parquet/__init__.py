"""Parquet files."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Annotated, BinaryIO, ClassVar, Literal

from pydantic import Field

from kafka_archiver.records.formats.shared.codecs import known_bytes_of
from kafka_archiver.values.documents import unwritten
from kafka_archiver.values.yaml_values import YamlValue

if TYPE_CHECKING:
    import pyarrow as pa

    from kafka_archiver.model.plan import Content, Settings
    from kafka_archiver.records.formats.base import Encoder, Sought, Target


class ParquetOptions(YamlValue):
    """The layout of a file. Plans do not have options at their defaults.

    `row_group_rows`: a row group ends at so many rows, or earlier at 32 MiB in memory.
    `bloom_filters`: columns; one inside lists and structs is named like `items.price`.
    `readers`: with `spark`, columns of types that Spark cannot read are text.
    """

    row_group_rows: Annotated[int, Field(gt=0)] | None = unwritten(None)
    bloom_filters: tuple[str, ...] = unwritten(())
    readers: Literal["all", "spark"] = unwritten("all")


class Parquet:
    """The format `parquet`."""

    name = "parquet"
    encoding = 4
    extensions: ClassVar[Mapping[str, str]] = dict.fromkeys(
        ("none", "snappy", "gzip", "zstd", "lz4", "brotli"), ".parquet"
    )
    default_codec = "zstd"
    contents: ClassVar[frozenset[Content]] = frozenset({"record"})
    typed: ClassVar[frozenset[Content]] = frozenset({"value", "both"})
    options = ParquetOptions
    libraries: ClassVar[Mapping[str, tuple[str, ...]]] = dict.fromkeys(extensions, ("pyarrow",))
    known: ClassVar[Mapping[str, str]] = known_bytes_of("parquet")

    def encoder(self, target: Target) -> Encoder:
        """A new encoder."""
        from kafka_archiver.records.formats.parquet.encoder import ParquetEncoder

        return ParquetEncoder(target)

    def stage(self, settings: Settings) -> None:
        """None: Parquet can hold every record."""

    def read(self, source: BinaryIO, target: Target) -> Iterator[pa.RecordBatch]:
        """Read the records."""
        from kafka_archiver.records.formats.parquet.reader import read_records

        return read_records(source, target)

    def read_from(
        self, source: BinaryIO, target: Target, sought: Sought
    ) -> tuple[int, Iterator[pa.RecordBatch]] | None:
        """Read from the row group that has the offset: the footer, and then one row group after the other."""
        from kafka_archiver.records.formats.parquet.reader import read_from

        return read_from(source, target, sought)

    def read_alone(self, source: BinaryIO, target: Target) -> tuple[pa.Schema, Iterator[pa.RecordBatch]]:
        """The columns of the file's schema, and the records."""
        from kafka_archiver.records.formats.parquet.reader import read_alone

        return read_alone(source, target)
