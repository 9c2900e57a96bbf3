"""JSON lines: one record a line."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from io import BytesIO
from typing import TYPE_CHECKING, BinaryIO, ClassVar

from pydantic import Field

from kafka_archiver.messages.errors import ConfigError
from kafka_archiver.records.formats.shared.codecs import extensions, libraries_by_codec
from kafka_archiver.values.documents import Value

if TYPE_CHECKING:
    import pyarrow as pa

    from kafka_archiver.model.plan import Content, Settings
    from kafka_archiver.records.formats.base import Encoder, Fitting, Sought, Target


class LineOptions(Value):
    """`index`: the object has an index beside it, and parts that are decompressed alone. Only with `codec: zstd`."""

    # Not written if there is none: such a plan keeps its earlier bytes.
    index: bool = Field(default=False, exclude_if=lambda index: not index)


class JsonLines:
    """The format `jsonl`."""

    name = "jsonl"
    encoding = 4
    extensions: ClassVar[Mapping[str, str]] = extensions(".jsonl")
    default_codec = "gzip"
    contents: ClassVar[frozenset[Content]] = frozenset({"value", "record"})
    typed: ClassVar[frozenset[Content]] = frozenset({"value", "both"})
    options = LineOptions
    libraries: ClassVar[Mapping[str, tuple[str, ...]]] = libraries_by_codec("orjson", "pyarrow")
    known: ClassVar[Mapping[str, str]] = {
        "brotli-both": "f192a62a3e3bd688bd53e55aeb5577b1",
        "brotli-record": "8e3179b734dd3d8e51ce47d6af5b02fc",
        "brotli-value": "fed254b640174a472f9762d981252403",
        "bzip2-both": "760f1bebc13122b04f95bc01971a3ae4",
        "bzip2-record": "c6da4f4af3ab85548f77d1e9e1ce6de4",
        "bzip2-value": "080edd5a180897d8d4ebe9c69d8d72b1",
        "deflate-both": "b1954468a7a70b4d4d1fb91e450381f4",
        "deflate-record": "d4154b33ac58ce9011383532df29e294",
        "deflate-value": "104d48d057b1f79c319651b1885544d3",
        "gzip-both": "c40a5f4a2b70b74069aea5b9baee89ee",
        "gzip-record": "ddee4474308b5bf0f072ed2ec16f4c7a",
        "gzip-value": "48f2d87430317b9b6728889072c7b62d",
        "lz4-both": "fdab6ff878cb97f74169f24df033fb3c",
        "lz4-record": "9f50a65e34e2b34bad11d0f0684dc6d9",
        "lz4-value": "fc1708648deb9e5a08039c6f49c27bfd",
        "none-both": "ed45f17d1144de412d1f755982835ce3",
        "none-record": "a0ad13b444a43a7eda0118297e673a61",
        "none-value": "df7257d995756f2713d5e1173e14ff61",
        "snappy-both": "e5bc31d7767ccad730f515536358a5f5",
        "snappy-record": "dd5f074cf6c32f2d589782c37f9aedfe",
        "snappy-value": "7a67892b24bee703dde93ed37d2d51c2",
        "zstd-both": "6b5742a20663e9670e737af099e941ad",
        "zstd-record": "64caa9a46a467a3b94314ec5ea6a8c8c",
        "zstd-value": "30c56b3531de5a732f7a28b43f2b904a",
    }

    def encoder(self, target: Target) -> Encoder:
        """A new encoder."""
        if _has_index(target.settings):
            from kafka_archiver.records.formats.shared.blocks import BlockEncoder

            return BlockEncoder(target, checksums=True)
        from kafka_archiver.records.formats.jsonl.objects import lines_of
        from kafka_archiver.records.formats.shared.stream import StreamEncoder

        return StreamEncoder(target, lines_of(target))

    def stage(self, settings: Settings) -> Fitting | None:
        """With `content: value`, every value becomes one line. Decoded values need no such stage."""
        if settings.content != "value":
            return None
        from kafka_archiver.records.formats.jsonl.values import one_line_each

        return one_line_each

    def read(self, source: BinaryIO, target: Target) -> Iterator[pa.RecordBatch]:
        """Read the records."""
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
        """Each line as it is."""
        from kafka_archiver.records.formats.jsonl.reader import read_lines

        return read_lines(source, target)


def _has_index(settings: Settings) -> bool:
    return bool(settings.options.get("index"))
