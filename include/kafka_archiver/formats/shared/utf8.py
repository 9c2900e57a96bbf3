"""Which bytes are text."""

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from kafka_archiver.columns import Int64s


def is_binary(kind: pa.DataType) -> bool:
    """Whether values are bytes."""
    return bool(pa.types.is_binary(kind) or pa.types.is_large_binary(kind) or pa.types.is_fixed_size_binary(kind))


def not_utf8(values: pa.Array) -> Int64s:
    """The places of the values that are not UTF-8. Only an array that has one becomes Python objects."""
    try:
        values.cast(pa.large_string())
    except pa.ArrowInvalid:
        pass
    else:
        return np.empty(0, np.int64)
    found = []
    for place, value in enumerate(values.to_pylist()):
        try:
            if value is not None:
                value.decode()
        except UnicodeDecodeError:
            found.append(place)
    return np.array(found, np.int64)


def utf8_and_others(values: pa.Array) -> tuple[pa.Array, pa.Array]:
    """The values that are UTF-8, and the others, as large_binary; null in the places of the rest."""
    values = values.cast(pa.large_binary())
    bad = not_utf8(values)
    if not len(bad):
        return values, pa.nulls(len(values), pa.large_binary())
    mask = np.zeros(len(values), bool)
    mask[bad] = True
    return pc.if_else(pa.array(mask), None, values), pc.if_else(pa.array(mask), values, None)
