"""Block gzip, as DeviantArt's kafka-connect-s3 writes it: lines in gzip members of limited size, and an index.

The object is a plain gzip file to everybody else. Beside it is `<key>.index.json`, with which one range request gives
the record at any offset.
"""

from __future__ import annotations

from collections.abc import Iterator
from io import BytesIO
from typing import TYPE_CHECKING, Annotated, BinaryIO

from pydantic import Field

from kafka_archiver.records.formats.jsonl import JsonLines
from kafka_archiver.records.formats.shared.codecs import OwnFormat
from kafka_archiver.values.yaml_values import YamlValue

if TYPE_CHECKING:
    import pyarrow as pa

    from kafka_archiver.model.settings import Settings
    from kafka_archiver.records.formats.base import Encoder, Fitting, Sought, Target


class BlockGzipOptions(YamlValue):
    """`block_bytes`: the most bytes of a member before compression; a larger record has a member of its own."""

    block_bytes: Annotated[int, Field(ge=64 << 10, le=1 << 30)] = 64 << 20


class BlockGzip(OwnFormat):
    """The format `block_gzip`. The known bytes are of one member: those of `jsonl`."""

    name = "block_gzip"
    encoding = 4
    extensions = {"gzip": ".gz"}  # noqa: RUF012
    options = BlockGzipOptions

    def encoder(self, target: Target) -> Encoder:
        from kafka_archiver.records.formats.shared.blocks import BlockEncoder

        # The peer's index has no checksums: gzip has its own.
        return BlockEncoder(target, checksums=False)

    def stage(self, settings: Settings) -> Fitting | None:
        """Return the stage of `jsonl`: the lines are the same."""
        return JsonLines().stage(settings)

    def read(self, source: BinaryIO, target: Target) -> Iterator[pa.RecordBatch]:
        """Read the records; the index is not needed."""
        from kafka_archiver.records.formats.jsonl.reader import read_records

        return read_records(source, target, several=True)

    def read_from(
        self, source: BinaryIO, target: Target, sought: Sought
    ) -> tuple[int, Iterator[pa.RecordBatch]] | None:
        """Read from the member that has the offset: one range request for each member."""
        from kafka_archiver.records.formats.jsonl.reader import read_records
        from kafka_archiver.records.formats.shared.index import read_from

        return read_from(source, target, sought, lambda part: read_records(BytesIO(part), target))

    def read_alone(self, source: BinaryIO, target: Target) -> tuple[pa.Schema, Iterator[pa.RecordBatch]]:
        from kafka_archiver.records.formats.jsonl.reader import read_lines

        return read_lines(source, target, several=True)
