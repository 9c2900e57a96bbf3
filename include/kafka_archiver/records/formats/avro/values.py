"""Values as fastavro reads them without logical types, as Arrow takes them."""

from decimal import Context, Decimal
from uuid import UUID

import pyarrow as pa

from kafka_archiver.records.formats.shared.back import Back

# More digits than a decimal of 256 bits has.
_EXACT = Context(prec=80)


def leaf(kind: pa.DataType) -> Back | None:
    """The function that makes a value of the type; None if the value needs no change."""
    if kind == pa.uuid():
        return lambda text: UUID(text).bytes
    if pa.types.is_uint64(kind):
        return _number
    if pa.types.is_decimal(kind):
        return lambda data: Decimal(_number(data)).scaleb(-kind.scale, _EXACT)
    return None


def _number(data: bytes) -> int:
    return int.from_bytes(data, "big", signed=True)
