"""The columns of a CSV file."""

from typing import NamedTuple

import pyarrow as pa

from kafka_archiver.records.formats.base import VALUE
from kafka_archiver.records.formats.csv import cells
from kafka_archiver.records.formats.shared.records import kafkas


class CsvColumn(NamedTuple):
    """A column of the file; `source`: the field of the object's schema."""

    name: str
    source: pa.Field
    cells: cells.Cells


def columns_of(schema: pa.Schema) -> list[CsvColumn]:
    """The columns of an object's schema. Kafka's key and value have two each."""
    if schema.equals(VALUE):
        return [CsvColumn("value", VALUE.field("value"), cells.QUOTED)]
    columns = [CsvColumn(field.name, field, _cells(field)) for field in schema]
    raw = [field for field in schema if kafkas(field) in ("key", "value")]
    return columns + [CsvColumn(f"{field.name}_base64", field, cells.BASE64) for field in raw]


def _cells(field: pa.Field) -> cells.Cells:
    kafka = {"key": cells.QUOTED, "value": cells.QUOTED, "headers": cells.HEADERS}
    return kafka.get(kafkas(field) or "") or cells.cells_of(field.type)
