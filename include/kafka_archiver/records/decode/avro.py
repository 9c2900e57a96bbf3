"""The decoder of Avro."""

import numpy as np
import pyarrow as pa

from kafka_archiver.messages.errors import ConfigError
from kafka_archiver.records.avro.compiled import compiled
from kafka_archiver.records.avro.cursor import BadDatumError, Cursor, Datum
from kafka_archiver.records.avro.nodes import AvroNode
from kafka_archiver.records.avro.resolve import MismatchError, resolve
from kafka_archiver.records.avro.schema import parse
from kafka_archiver.records.avro.types import arrow_field
from kafka_archiver.records.decode.base import Decoded, Decoder, DecoderInput, Read, interleaved
from kafka_archiver.records.decode.frames import Framed, Unframed
from kafka_archiver.records.vectors import ByteArray, Mask, bounds, numbers, slices
from kafka_archiver.values.columns import Int64s


def make(of: DecoderInput) -> Decoder:
    """Make the decoder `avro`.

    :raises ConfigError: the schema is not valid, or a type contains itself.
    """
    schema = of.required_schema
    reader = parse(schema)
    field = arrow_field(of.column, reader)
    if not of.framed:
        return Unframed(field, _AvroReading(resolve(reader, reader), field.type))
    reads: dict[int, Read | str] = {}
    for number, writer in of.writers.items():
        try:
            reads[number] = _AvroReading(resolve(parse(writer), reader), field.type)
        except (MismatchError, ConfigError) as error:
            reads[number] = (
                f"schema id {number} ({writer.fingerprint}) cannot be read as the schema that the run writes "
                f"({schema.fingerprint}): {error}"
            )
    return Framed(field, reads)


class _AvroReading:
    """Reads records in C or as vectors, and those that are not what the schema says, or too irregular, one by one."""

    def __init__(self, node: AvroNode, kind: pa.DataType) -> None:
        self._node, self._kind = node, kind
        self._compiled = compiled(node)

    def __call__(self, data: pa.Array) -> Decoded:
        return self.read(*bounds(data))

    def read(self, data: ByteArray, starts: Int64s, ends: Int64s) -> Decoded:
        """Read the records that are between each start and end of some bytes."""
        in_c = self._compiled.read(data, starts, ends) if self._compiled else None
        column, bad = in_c or self._vectors(slices(data, starts, ends))
        [rows] = np.nonzero(bad)
        if not len(rows):
            return Decoded(column, {})
        values, reasons = [], {}
        for number, row in enumerate(rows.tolist()):
            try:
                values.append(self._decode_row(data[starts[row] : ends[row]].tobytes()))
            except (ValueError, ArithmeticError) as error:
                values.append(None)
                reasons[number] = f"the bytes do not fit their Avro schema: {error}"
        return interleaved(column, bad, Decoded(pa.array(values, self._kind), reasons))

    def _vectors(self, data: pa.Array) -> tuple[pa.Array, Mask]:
        """Return the column of the records that are not bad, and which are bad."""
        at = Cursor.of(data)
        column = self._node.column(at)
        at.refuse(at.left() > 0)
        [good] = np.nonzero(~at.bad)
        return column if len(good) == len(column) else column.take(numbers(good)), at.bad

    def _decode_row(self, data: bytes) -> object:
        at = Datum(data)
        value = self._node.value(at)
        if at.left():
            raise BadDatumError(f"{at.left()} bytes follow the record")
        return value
