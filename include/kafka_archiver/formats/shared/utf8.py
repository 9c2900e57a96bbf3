"""Which bytes are text."""

import numpy as np
import pyarrow as pa

from kafka_archiver.columns import Int64s


def is_binary(kind: pa.DataType) -> bool:
    """Whether values are bytes."""
    return bool(pa.types.is_binary(kind) or pa.types.is_large_binary(kind) or pa.types.is_fixed_size_binary(kind))


def not_utf8(values: pa.Array) -> Int64s:
    """The places of the values that are not UTF-8. Only an array that has one becomes Python objects."""
    try:
        values.cast(pa.large_string())
    except pa.ArrowInvalid:
        return np.array([place for place, value in enumerate(values.to_pylist()) if not _is_utf8(value)], np.int64)
    return np.empty(0, np.int64)


def _is_utf8(value: bytes | None) -> bool:
    try:
        return value is None or value.decode() is not None
    except UnicodeDecodeError:
        return False
