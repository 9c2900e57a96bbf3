"""MAK files, as kafkatos3 writes them (version 1), and with everything that Kafka had (version 2).

All integers are big-endian. `u64`, `u32`: unsigned; `i64`, `i32`: signed.

| bytes | what |
|---|---|
| 3 | `MAK` (version 1) or `MA2` (version 2) |
| u64 | the offset of the last record; 0 without records |
| u64 | the size of the file, before compression |
| u64, bytes | the length of the JSON text, and the text: `{"topic", "partition", "startoffset", "starttime"}` |
| records | one after the other, to the end of the file |

`startoffset`: the offset of the first record. `starttime`: the timestamp of the first record in seconds since 1970, as
a float; 0 if Kafka has none. (kafkatos3 writes the time at which it began the file; it would differ in every attempt.)

| record, version 1 | record, version 2 | what |
|---|---|---|
| u64, bytes | i64, bytes | the length of the key, and the key. A null key: length 0 in version 1, -1 in version 2 |
| u64, bytes | i64, bytes | the value, like the key |
| u64 | u64 | the offset |
| | i64 | the timestamp: milliseconds since 1970, -1 for none |
| | i32 | the timestamp type: 0 create time, 1 append time |
| | u32 | the number of headers |
| | each: u64, bytes, i64, bytes | a header's key in UTF-8, and its value; a null value has the length -1 |

Version 1 loses timestamps, headers, and the difference between null and empty. It is the default because its readers
exist; they refuse version 2 by its first three bytes.

With a codec, the header is the first gzip member (zstd frame), and the records are the next: the header needs what is
known only at the end.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, BinaryIO, Literal

from kafka_archiver.records.formats.shared.codecs import OwnFormat
from kafka_archiver.values.yaml_values import YamlValue

if TYPE_CHECKING:
    import pyarrow as pa

    from kafka_archiver.model.settings import Settings
    from kafka_archiver.records.formats.base import Encoder, Target


class MakOptions(YamlValue):
    """`version`: 1 is kafkatos3's; 2 keeps timestamps, headers and nulls."""

    version: Literal[1, 2] = 1


def keeps_values_alone(settings: Settings) -> bool:
    """Return True for objects of version 1: no timestamps, no headers, null and empty are the same."""
    return settings.format == Mak.name and MakOptions.model_validate(settings.options).version == 1


class Mak(OwnFormat):
    """The format `mak`. Version 1 leaves out what it has no place for."""

    name = "mak"
    encoding = 4
    extensions = {"none": ".mak", "gzip": ".mak.gz", "zstd": ".mak.zst"}  # noqa: RUF012
    contents = frozenset({"record"})
    options = MakOptions

    def encoder(self, target: Target) -> Encoder:
        from kafka_archiver.records.formats.mak.encoder import MakEncoder

        return MakEncoder(target)

    def read(self, source: BinaryIO, target: Target) -> Iterator[pa.RecordBatch]:
        """Read the records. What version 1 lacks: no timestamp (-1, type 0), no headers, empty for null."""
        from kafka_archiver.records.formats.mak.reader import read_records

        return read_records(source, target)
