"""CSV: one row a record, by RFC 4180 with a line feed at the ends of lines.

Text is always quoted, numbers, times and nulls never. So `""` is an empty string, and an unquoted nothing is null.

`content: record`: topic, partition, offset, timestamp (milliseconds since 1970, -1 for none), timestamp_type, key,
value, headers (JSON, as in JSON lines), key_base64, value_base64. Keys and values that are not UTF-8 are in the
base64 columns. Nothing is lost.
`content: value`: the column `value`. A value that is not UTF-8 is a bad record. A null value is an empty line, which
some readers skip: `store.options.null` gives it a text.
Decoded values: the object's columns; bytes as base64, nested values as JSON, instants in UTC. A date or timestamp
outside the years 1 to 9999 is its number. Lost: the types.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Annotated, BinaryIO, ClassVar, Literal

from pydantic import AfterValidator, Field

from kafka_archiver.records.formats.shared.codecs import extensions, libraries_by_codec
from kafka_archiver.values.documents import Value

if TYPE_CHECKING:
    import pyarrow as pa

    from kafka_archiver.model.plan import Content, Settings
    from kafka_archiver.records.formats.base import Encoder, Fitting, Target

_NUMBER = re.compile(r"[-+]?(\d.*|\.\d.*|nan|inf|infinity)|true|false", re.IGNORECASE)


def _no_value(text: str) -> str:
    if _NUMBER.fullmatch(text) or not text.isprintable() or set(text) & set(",;|\"'"):
        raise ValueError(r"expected a text that is no value of a column, for example NULL or \N")
    return text


class CsvOptions(Value):
    """`null`: the unquoted text of a null."""

    header: bool = True
    delimiter: Literal[",", ";", "|", "\t", "\x01", "\x1f"] = ","
    quote: Literal['"', "'"] = '"'
    null: Annotated[str, Field(max_length=16), AfterValidator(_no_value)] = ""


class Csv:
    """The format `csv`."""

    name = "csv"
    encoding = 4
    extensions: ClassVar[Mapping[str, str]] = extensions(".csv")
    default_codec = "gzip"
    contents: ClassVar[frozenset[Content]] = frozenset({"value", "record"})
    typed: ClassVar[frozenset[Content]] = frozenset({"value", "both"})
    options = CsvOptions
    libraries: ClassVar[Mapping[str, tuple[str, ...]]] = libraries_by_codec("orjson", "pyarrow")
    known: ClassVar[Mapping[str, str]] = {
        "brotli-both": "8d0b7dd29f8058a01f8217511857d886",
        "brotli-record": "ec32d273d5b1d0e15daa8c20ddaf9395",
        "brotli-value": "02e562286689aefb4a1800699b84393e",
        "bzip2-both": "3a55b16ebd102cd2b34b41cae3695265",
        "bzip2-record": "c3d8c761abd5014db88861facfeca4de",
        "bzip2-value": "a01b5a3238feefbdd9888a548a76d52d",
        "deflate-both": "060ae2340814ef3114200ede4a72af0b",
        "deflate-record": "9a70b342acd2d2db8117156bba88252e",
        "deflate-value": "40871cd26e8997ff70a809392dfe1d90",
        "gzip-both": "465f2eff32212e8bab4c3843b87eaf7d",
        "gzip-record": "ebc42a682a6f3f2fcde5d430ebb0b70f",
        "gzip-value": "de19d23e53ba8945220eaaea49a32b44",
        "lz4-both": "6537a978e149692bcca454f543057bf6",
        "lz4-record": "bb7eb37686a7d4d41c386ac665dbecaf",
        "lz4-value": "c93392bdde7636062dd7b61ebef863ba",
        "none-both": "ea20fd00c6050c7ef456eee11aea2c08",
        "none-record": "ef1997b8ebe91dee8c22817ba1a4aa19",
        "none-value": "e93bd238c62cb1859f9fc372265e2e45",
        "snappy-both": "d1ad60ec45ecfb0ef345b7cc9e613820",
        "snappy-record": "b04b464ee00d327b09ce0c4cf64d90a6",
        "snappy-value": "45d69b628305c57c83ed5df517db0344",
        "zstd-both": "d3faeae9e9e5d30f7736f6e952a2b119",
        "zstd-record": "ea2a88913e618df867db04e74defa6fe",
        "zstd-value": "bc2fabd0b0de5900575f426de0350177",
    }

    def encoder(self, target: Target) -> Encoder:
        """A new encoder."""
        from kafka_archiver.records.formats.csv.rows import Rows
        from kafka_archiver.records.formats.shared.stream import StreamEncoder

        rows = Rows(target, CsvOptions.model_validate(target.settings.options))
        return StreamEncoder(target, rows.of, rows.header)

    def stage(self, settings: Settings) -> Fitting | None:
        """With `content: value`, every value is text. Decoded values need no such stage."""
        if settings.content != "value":
            return None
        from kafka_archiver.records.formats.csv.cells import text_only

        return text_only

    def read(self, source: BinaryIO, target: Target) -> Iterator[pa.RecordBatch]:
        """Read the records."""
        from kafka_archiver.records.formats.csv.reader import read_records

        return read_records(source, target, CsvOptions.model_validate(target.settings.options))

    def read_alone(self, source: BinaryIO, target: Target) -> tuple[pa.Schema, Iterator[pa.RecordBatch]]:
        """The columns of the header, as text unless they are those of `content: record`, and the records."""
        from kafka_archiver.records.formats.csv.reader import read_alone

        return read_alone(source, target)
