"""JSON lines: one record a line, plain, gzip or zstd."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, BinaryIO, ClassVar

from kafka_archiver.documents import Value
from kafka_archiver.formats.shared.makers import MAKERS

if TYPE_CHECKING:
    import pyarrow as pa

    from kafka_archiver.formats.base import Encoder, Fitting, Target
    from kafka_archiver.plan import Content, Settings


class JsonLines:
    """The format `jsonl`."""

    name = "jsonl"
    extensions: ClassVar[Mapping[str, str]] = {"none": ".jsonl", "gzip": ".jsonl.gz", "zstd": ".jsonl.zst"}
    default_codec = "gzip"
    contents: ClassVar[frozenset[Content]] = frozenset({"value", "record"})
    typed: ClassVar[frozenset[Content]] = frozenset({"value", "both"})
    options = Value
    makers: ClassVar[Mapping[str, tuple[str, ...]]] = MAKERS
    known: ClassVar[Mapping[str, str]] = {
        "gzip-record": "08d1592b87216bd9e0c06f3c26d69a20",
        "gzip-typed": "cba650ddbd7a04f1d123eac37b016a39",
        "gzip-value": "245475733a3efef2f7674a24d5e0ee24",
        "none-record": "a0ad13b444a43a7eda0118297e673a61",
        "none-typed": "ed45f17d1144de412d1f755982835ce3",
        "none-value": "df7257d995756f2713d5e1173e14ff61",
        "zstd-record": "64caa9a46a467a3b94314ec5ea6a8c8c",
        "zstd-typed": "6b5742a20663e9670e737af099e941ad",
        "zstd-value": "30c56b3531de5a732f7a28b43f2b904a",
    }

    def encoder(self, target: Target) -> Encoder:
        """A new encoder."""
        from kafka_archiver.formats.jsonl.encoder import LineEncoder, lines_of

        return LineEncoder(target, lines_of(target))

    def stage(self, settings: Settings) -> Fitting | None:
        """With `content: value`, every value becomes one line. Decoded values need no such stage."""
        if settings.content != "value":
            return None
        from kafka_archiver.formats.jsonl.values import one_line_each

        return one_line_each

    def read(self, source: BinaryIO, target: Target) -> Iterator[pa.RecordBatch]:
        """Read the records."""
        from kafka_archiver.formats.jsonl.reader import read_records

        return read_records(source, target)
