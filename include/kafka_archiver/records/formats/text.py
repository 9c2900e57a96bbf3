"""Text: one value a line.

Kept: the bytes of each value. Lost: the difference between null and empty, both an empty line (`policies.null_value:
skip` leaves null values out), key, headers, offset and time. A value that contains the separator is a bad record.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated, BinaryIO

from pydantic import Field

from kafka_archiver.records.formats.shared.codecs import ValuesFormat, extensions
from kafka_archiver.values.yaml_values import YamlValue

if TYPE_CHECKING:
    import pyarrow as pa

    from kafka_archiver.model.settings import Settings
    from kafka_archiver.records.formats.base import Encoder, Fitting, Target


class TextOptions(YamlValue):
    """`separator`: ends each value, the last one too."""

    separator: Annotated[str, Field(min_length=1, max_length=16)] = "\n"


def _separator(settings: Settings) -> bytes:
    return TextOptions.model_validate(settings.options).separator.encode()


class TextFormat(ValuesFormat):
    """The format `text`."""

    name = "text"
    extensions = extensions(".txt")
    options = TextOptions

    def encoder(self, target: Target) -> Encoder:
        from kafka_archiver.records.formats.shared.compress import StreamEncoder
        from kafka_archiver.records.formats.shared.joined import values_and

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
