"""Reads blocks of plain Kafka records column by column: fastavro makes a dictionary of each, at several times the CPU.

Where a record begins, only the one before it tells. But each begins with the same bytes, the topic and the partition:
places with these bytes are taken for beginnings, all are decoded at once, and then each has to end where the next one
begins. If it does not, or anything else is unusual, the caller reads the blocks with fastavro, which also says what is
wrong with them.
"""

import re
from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from kafka_archiver.records.avro.cursor import BadDatumError, Cursor, Datum
from kafka_archiver.records.avro.nested import Array, AvroRecord, Union
from kafka_archiver.records.avro.nodes import AvroNode, AvroText, Integer, Null
from kafka_archiver.records.formats.base import HEADERS, RECORD


def _integer(kind: pa.DataType) -> Integer:
    limit = 1 << (kind.bit_width - 1)
    return Integer(kind, (-limit, limit - 1))


_BYTES = Union(pa.binary(), [(Null(pa.binary()), None), (AvroText(pa.binary()), 0)], is_struct=False)
_HEADER = AvroRecord(HEADERS.value_type, [("key", AvroText(pa.string()), 0), ("value", _BYTES, 1)], {})
# Behind the topic and the partition.
_FIELDS: dict[str, AvroNode] = {
    "offset": _integer(pa.int64()),
    "timestamp": _integer(pa.int64()),
    "timestamp_type": _integer(pa.int32()),
    "key": _BYTES,
    "value": _BYTES,
    "headers": Array(HEADERS, _HEADER),
}


def plain_records(blocks: Sequence[bytes], counts: Sequence[int]) -> pa.RecordBatch | None:
    """Return the records of decompressed blocks as `RECORD`; None: fastavro has to read them.

    :param counts: the number of records of each block.
    """
    data, first = b"".join(blocks), Datum(blocks[0] if blocks else b"")
    try:
        topic, partition = first.sized().decode(), first.long()
    except (BadDatumError, UnicodeDecodeError):
        return None
    prefix = data[: len(blocks[0]) - first.left()]
    starts = np.array([match.start() for match in re.finditer(re.escape(prefix), data)], np.int64)
    edges = np.cumsum([0, *map(len, blocks)])
    if (np.diff(np.searchsorted(starts, edges)) != counts).any() or starts[0]:
        return None
    ends = np.append(starts[1:], len(data))
    at = Cursor.between(np.frombuffer(data, np.uint8), starts + len(prefix), ends)
    columns = [node.column(at) for node in _FIELDS.values()]
    if at.bad.any() or at.left().any():
        return None
    shared = [pa.repeat(pa.scalar(topic), len(at)), pa.repeat(pa.scalar(partition, pa.int32()), len(at))]
    return pa.RecordBatch.from_arrays([*shared, *columns], schema=RECORD)
