"""JSON lines: one record a line."""

from __future__ import annotations

from collections.abc import Iterator
from io import BytesIO
from typing import TYPE_CHECKING, BinaryIO

from kafka_archiver.messages.errors import ConfigError
from kafka_archiver.records.formats.shared.codecs import StreamFormat, extensions
from kafka_archiver.values.documents import unwritten
from kafka_archiver.values.yaml_values import YamlValue

if TYPE_CHECKING:
    import pyarrow as pa

    from kafka_archiver.model.settings import Settings
    from kafka_archiver.records.formats.base import Encoder, Fitting, Sought, Target


class LineOptions(YamlValue):
    """`index`: the object has an index beside it, and parts that are decompressed alone. Only with `codec: zstd`."""

    index: bool = unwritten(False)


class JsonLines(StreamFormat):
    """The format `jsonl`."""

    name = "jsonl"
    encoding = 4
    extensions = extensions(".jsonl")
    typed = frozenset({"value", "both"})
    options = LineOptions

    def encoder(self, target: Target) -> Encoder:
        if _has_index(target.settings):
            from kafka_archiver.records.formats.shared.blocks import BlockEncoder

            return BlockEncoder(target, checksums=True)
        from kafka_archiver.records.formats.jsonl.objects import lines_of
        from kafka_archiver.records.formats.shared.compress import StreamEncoder

        return StreamEncoder(target, lines_of(target))

    def stage(self, settings: Settings) -> Fitting | None:
        """With `content: value`, every value becomes one line. Decoded values need no such stage."""
        if settings.content != "value":
            return None
        from kafka_archiver.records.formats.jsonl.values import one_line_each

        return one_line_each

    def read(self, source: BinaryIO, target: Target) -> Iterator[pa.RecordBatch]:
        from kafka_archiver.records.formats.jsonl.reader import read_records

        return read_records(source, target)

    def require(self, settings: Settings) -> None:
        """Refuse an index with another codec than zstd. Raises ConfigError."""
        if _has_index(settings) and settings.codec != "zstd":
            raise ConfigError(
                f"store.options.index: lines have an index with `codec: zstd`, found codec {settings.codec}; "
                "`format: block_gzip` is that for gzip"
            )

    def read_from(
        self, source: BinaryIO, target: Target, sought: Sought
    ) -> tuple[int, Iterator[pa.RecordBatch]] | None:
        """Read from the part that has the offset: one range request for each part. None without an index."""
        if not _has_index(target.settings):
            return None
        from kafka_archiver.records.formats.jsonl.reader import read_records
        from kafka_archiver.records.formats.shared.index import read_from

        return read_from(source, target, sought, lambda part: read_records(BytesIO(part), target))

    def read_alone(self, source: BinaryIO, target: Target) -> tuple[pa.Schema, Iterator[pa.RecordBatch]]:
        from kafka_archiver.records.formats.jsonl.reader import read_lines

        return read_lines(source, target)


def _has_index(settings: Settings) -> bool:
    return bool(settings.options.get("index"))
