"""Text: one value a line.

Kept: the bytes of each value. Lost: the difference between null and empty, both an empty line (`policies.null_value:
skip` leaves null values out), key, headers, offset and time. A value that contains the separator is a bad record.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Annotated, BinaryIO, ClassVar

from pydantic import Field

from kafka_archiver.records.formats.shared.codecs import extensions, libraries_by_codec
from kafka_archiver.values.documents import Value

if TYPE_CHECKING:
    import pyarrow as pa

    from kafka_archiver.model.plan import Content, Settings
    from kafka_archiver.records.formats.base import Encoder, Fitting, Target


class TextOptions(Value):
    """`separator`: ends each value, the last one too."""

    separator: Annotated[str, Field(min_length=1, max_length=16)] = "\n"


def _separator(settings: Settings) -> bytes:
    return TextOptions.model_validate(settings.options).separator.encode()


class TextFormat:
    """The format `text`."""

    name = "text"
    encoding = 4
    extensions: ClassVar[Mapping[str, str]] = extensions(".txt")
    default_codec = "gzip"
    contents: ClassVar[frozenset[Content]] = frozenset({"value"})
    typed: ClassVar[frozenset[Content]] = frozenset()
    options = TextOptions
    libraries: ClassVar[Mapping[str, tuple[str, ...]]] = libraries_by_codec("pyarrow")
    known: ClassVar[Mapping[str, str]] = {
        "brotli-value": "fed254b640174a472f9762d981252403",
        "bzip2-value": "080edd5a180897d8d4ebe9c69d8d72b1",
        "deflate-value": "104d48d057b1f79c319651b1885544d3",
        "gzip-value": "48f2d87430317b9b6728889072c7b62d",
        "lz4-value": "fc1708648deb9e5a08039c6f49c27bfd",
        "none-value": "df7257d995756f2713d5e1173e14ff61",
        "snappy-value": "7a67892b24bee703dde93ed37d2d51c2",
        "zstd-value": "30c56b3531de5a732f7a28b43f2b904a",
    }

    def encoder(self, target: Target) -> Encoder:
        """A new encoder."""
        from kafka_archiver.records.formats.shared.joined import values_and
        from kafka_archiver.records.formats.shared.stream import StreamEncoder

        separator = _separator(target.settings)
        return StreamEncoder(target, lambda batch, _: [values_and(separator, batch)])

    def stage(self, settings: Settings) -> Fitting:
        """Rejects values that contain the separator."""
        from kafka_archiver.records.formats.shared.joined import without

        return without(_separator(settings))

    def read(self, source: BinaryIO, target: Target) -> Iterator[pa.RecordBatch]:
        """Read the values; a null value comes back empty."""
        from kafka_archiver.records.formats.shared.decompress import decompressed
        from kafka_archiver.records.formats.shared.joined import split

        return split(decompressed(target.settings.codec, source), _separator(target.settings), target.key)
