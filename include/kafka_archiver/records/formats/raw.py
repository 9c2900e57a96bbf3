"""Bytes: the values as they are, one after the other.

Kept: the bytes of each value. Lost: key, headers, offset and time, and where a value ends, unless `framing` or a
separator that is in no value tells. Without framing a null value is an empty one (`policies.null_value: skip` leaves
null values out). `store.chunk_records: 1` writes one object a record.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated, BinaryIO, Literal, Self

from pydantic import Field, model_validator

from kafka_archiver.records.formats.shared.codecs import ValuesFormat, extensions
from kafka_archiver.values.yaml_values import YamlValue

if TYPE_CHECKING:
    import pyarrow as pa

    from kafka_archiver.model.settings import Settings
    from kafka_archiver.records.formats.base import Encoder, Target


class BytesOptions(YamlValue):
    """The framing of values in a file.

    `separator`: follows each value, also if the value contains it. `framing: length`: before each value its length, as
    in Kafka's protocol: 4 bytes, big-endian, -1 for null. `extension`: of the file, before that of the codec.
    """

    separator: Annotated[str, Field(max_length=16)] = ""
    framing: Literal["none", "length"] = "none"
    extension: Annotated[str, Field(pattern=r"^(\.[A-Za-z0-9_-]+)+$", max_length=32)] = ".bin"

    @model_validator(mode="after")
    def _one_way(self) -> Self:
        if self.separator and self.framing != "none":
            raise ValueError("expected a separator or framing, found both: leave one of them out")
        return self


def _options(settings: Settings) -> BytesOptions:
    return BytesOptions.model_validate(settings.options)


class BytesFormat(ValuesFormat):
    """The format `bytes`."""

    name = "bytes"
    extensions = extensions("")
    options = BytesOptions

    def encoder(self, target: Target) -> Encoder:
        from kafka_archiver.records.formats.shared.compress import StreamEncoder
        from kafka_archiver.records.formats.shared.joined import framed, values_and

        options = _options(target.settings)
        if options.framing == "length":
            return StreamEncoder(target, lambda batch, _: [framed(batch)])
        separator = options.separator.encode()
        return StreamEncoder(target, lambda batch, _: [values_and(separator, batch)])

    def joins_values(self, settings: Settings) -> bool:
        """Return True unless each value has its length: a value may contain the separator."""
        return _options(settings).framing != "length"

    def read(self, source: BinaryIO, target: Target) -> Iterator[pa.RecordBatch]:
        """Read the values: with neither framing nor separator, all of them as one value."""
        from kafka_archiver.records.formats.shared.decompress import decompressed
        from kafka_archiver.records.formats.shared.joined import split, unframed, values_of

        options, pieces = _options(target.settings), decompressed(target.settings.codec, source)
        if options.framing == "length":
            yield from unframed(pieces, target.key)
        elif options.separator:
            yield from split(pieces, options.separator.encode(), target.key)
        else:
            yield values_of([b"".join(pieces)])
