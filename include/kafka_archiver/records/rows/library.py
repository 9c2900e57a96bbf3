"""The C interface of rows.c: the one place that knows its types."""

from ctypes import POINTER, Structure, c_int, c_int64, c_void_p
from enum import IntEnum
from types import SimpleNamespace
from typing import Any, ClassVar

import numpy as np

from kafka_archiver.records.native.load import Binary, functions, load

# `enum kind`, in its order.
Kind = IntEnum(
    "Kind",
    "NOTHING BOOLEAN INTEGER INTEGER_AS_REAL REAL TEXT FIXED DECIMAL UUID SYMBOL RECORD LIST MAP OPTIONAL UNION "
    "REFUSED",
    start=0,
)
# `struct node`, and `struct count`.
NODE = np.dtype(
    [(name, np.int32) for name in ("kind", "width")]
    + [(name, np.int64) for name in ("size", "low", "high")]
    + [(name, np.int32) for name in ("first", "parts", "place", "places")]
    + [(name, np.int64) for name in ("most_rows", "most_used")]
    + [(name, np.uint64) for name in ("present", "data", "bytes")]
)
# `MOST_NAMES`.
MOST_NAMES = 256
COUNT = np.dtype([(name, np.int64) for name in ("rows", "used", "nulls")])


class Program(Structure):
    """`struct program`."""

    _fields_: ClassVar = [(name, c_void_p) for name in ("nodes", "parts", "counts", "names", "name_ends")]


_FUNCTIONS: dict[str, tuple[Any, ...]] = {
    "read": (c_int64, *[c_void_p] * 3, c_int64, c_int, POINTER(Program), c_int64, c_void_p, c_void_p),
    "frames": (None, c_void_p, c_void_p, c_void_p, c_int64, c_void_p),
}


def _open() -> SimpleNamespace:
    return functions(load(__package__, "rows.c"), "rows_", _FUNCTIONS)


_binary = Binary(_open)
library, why_not = _binary.library, _binary.why_not
