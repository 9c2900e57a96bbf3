"""Parquet files."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated, BinaryIO, Literal

from pydantic import Field

from kafka_archiver.records.formats.shared.codecs import OwnFormat
from kafka_archiver.values.documents import unwritten
from kafka_archiver.values.yaml_values import YamlValue

if TYPE_CHECKING:
    import pyarrow as pa

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


class Parquet(OwnFormat):
    """The format `parquet`."""

    name = "parquet"
    encoding = 4
    extensions = dict.fromkeys(("none", "snappy", "gzip", "zstd", "lz4", "brotli"), ".parquet")
    default_codec = "zstd"
    contents = frozenset({"record"})
    typed = frozenset({"value", "both"})
    options = ParquetOptions
    libraries = dict.fromkeys(extensions, ("pyarrow",))

    def encoder(self, target: Target) -> Encoder:
        from kafka_archiver.records.formats.parquet.encoder import ParquetEncoder

        return ParquetEncoder(target)

    def read(self, source: BinaryIO, target: Target) -> Iterator[pa.RecordBatch]:
        from kafka_archiver.records.formats.parquet.reader import read_records

        return read_records(source, target)

    def read_from(
        self, source: BinaryIO, target: Target, sought: Sought
    ) -> tuple[int, Iterator[pa.RecordBatch]] | None:
        """Read from the row group that has the offset: the footer, and then one row group after the other."""
        from kafka_archiver.records.formats.parquet.reader import read_from

        return read_from(source, target, sought)

    def read_alone(self, source: BinaryIO, target: Target) -> tuple[pa.Schema, Iterator[pa.RecordBatch]]:
        from kafka_archiver.records.formats.parquet.reader import read_alone

        return read_alone(source, target)
