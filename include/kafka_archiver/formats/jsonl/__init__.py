"""JSON lines: one record a line."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, BinaryIO, ClassVar

from kafka_archiver.documents import Value
from kafka_archiver.formats.shared.makers import extensions, makers

if TYPE_CHECKING:
    import pyarrow as pa

    from kafka_archiver.formats.base import Encoder, Fitting, Target
    from kafka_archiver.plan import Content, Settings


class JsonLines:
    """The format `jsonl`."""

    name = "jsonl"
    extensions: ClassVar[Mapping[str, str]] = extensions(".jsonl")
    default_codec = "gzip"
    contents: ClassVar[frozenset[Content]] = frozenset({"value", "record"})
    options = Value
    makers: ClassVar[Mapping[str, tuple[str, ...]]] = makers("orjson", "pyarrow")
    known: ClassVar[Mapping[str, str]] = {
        "brotli-record": "8e3179b734dd3d8e51ce47d6af5b02fc",
        "brotli-value": "fed254b640174a472f9762d981252403",
        "bzip2-record": "c6da4f4af3ab85548f77d1e9e1ce6de4",
        "bzip2-value": "080edd5a180897d8d4ebe9c69d8d72b1",
        "deflate-record": "d2d480c768da94f670b911af3a44b785",
        "deflate-value": "353a51984951149f69339e05a0f28521",
        "gzip-record": "08d1592b87216bd9e0c06f3c26d69a20",
        "gzip-value": "245475733a3efef2f7674a24d5e0ee24",
        "lz4-record": "9f50a65e34e2b34bad11d0f0684dc6d9",
        "lz4-value": "fc1708648deb9e5a08039c6f49c27bfd",
        "none-record": "a0ad13b444a43a7eda0118297e673a61",
        "none-value": "df7257d995756f2713d5e1173e14ff61",
        "snappy-record": "dd5f074cf6c32f2d589782c37f9aedfe",
        "snappy-value": "7a67892b24bee703dde93ed37d2d51c2",
        "zstd-record": "64caa9a46a467a3b94314ec5ea6a8c8c",
        "zstd-value": "30c56b3531de5a732f7a28b43f2b904a",
    }

    def encoder(self, target: Target) -> Encoder:
        """A new encoder."""
        from kafka_archiver.formats.jsonl.encoder import WRITERS
        from kafka_archiver.formats.shared.stream import StreamEncoder

        return StreamEncoder(target, WRITERS[target.settings.content])

    def stage(self, settings: Settings) -> Fitting | None:
        """With `content: value`, every value becomes one line."""
        if settings.content != "value":
            return None
        from kafka_archiver.formats.jsonl.values import one_line_each

        return one_line_each

    def read(self, source: BinaryIO, target: Target) -> Iterator[pa.RecordBatch]:
        """Read the records."""
        from kafka_archiver.formats.jsonl.reader import read_records

        return read_records(source, target)
