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
from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated, BinaryIO, Literal

from pydantic import AfterValidator, Field

from kafka_archiver.records.formats.shared.codecs import StreamFormat, extensions
from kafka_archiver.values.yaml_values import YamlValue

if TYPE_CHECKING:
    import pyarrow as pa

    from kafka_archiver.model.settings import Settings
    from kafka_archiver.records.formats.base import Encoder, Fitting, Target

_NUMBER = re.compile(r"[-+]?(\d.*|\.\d.*|nan|inf|infinity)|true|false", re.IGNORECASE)


def _no_value(text: str) -> str:
    if _NUMBER.fullmatch(text) or not text.isprintable() or set(text) & set(",;|\"'"):
        raise ValueError(r"expected a text that is no value of a column, for example NULL or \N")
    return text


class CsvOptions(YamlValue):
    """`null`: the unquoted text of a null."""

    header: bool = True
    delimiter: Literal[",", ";", "|", "\t", "\x01", "\x1f"] = ","
    quote: Literal['"', "'"] = '"'
    null: Annotated[str, Field(max_length=16), AfterValidator(_no_value)] = ""


class Csv(StreamFormat):
    """The format `csv`."""

    name = "csv"
    encoding = 4
    extensions = extensions(".csv")
    typed = frozenset({"value", "both"})
    options = CsvOptions

    def encoder(self, target: Target) -> Encoder:
        from kafka_archiver.records.formats.csv.rows import Rows
        from kafka_archiver.records.formats.shared.compress import StreamEncoder

        rows = Rows(target, CsvOptions.model_validate(target.settings.options))
        return StreamEncoder(target, rows.of, rows.header)

    def stage(self, settings: Settings) -> Fitting | None:
        """With `content: value`, every value is text. Decoded values need no such stage."""
        if settings.content != "value":
            return None
        from kafka_archiver.records.formats.csv.cells import text_only

        return text_only

    def read(self, source: BinaryIO, target: Target) -> Iterator[pa.RecordBatch]:
        from kafka_archiver.records.formats.csv.reader import read_records

        return read_records(source, target, CsvOptions.model_validate(target.settings.options))

    def read_alone(self, source: BinaryIO, target: Target) -> tuple[pa.Schema, Iterator[pa.RecordBatch]]:
        """The columns of the header, as text unless they are those of `content: record`, and the records."""
        from kafka_archiver.records.formats.csv.reader import read_alone

        return read_alone(source, target)
