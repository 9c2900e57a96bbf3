"""Sets of offsets inside a chunk, stored as small as possible. Pure.

A compacted topic, or a topic with transactions of one record, may lack every second offset. For a million offsets that
is half a million ranges, or 125 kB of bits.
"""

import base64
import binascii
from typing import TYPE_CHECKING, Annotated, TypeAlias

from pydantic import AfterValidator

from kafka_archiver.values.documents import Value
from kafka_archiver.values.ranges import Range

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    Rows: TypeAlias = npt.NDArray[np.int64]


def _base64(text: str) -> str:
    try:
        base64.b64decode(text, validate=True)
    except binascii.Error as error:
        raise ValueError(f"not base64: {error}") from error
    return text


def _proper(pair: tuple[int, int]) -> Range:
    start, end = pair
    if not 0 <= start < end < 1 << 63:
        raise ValueError(f"an offset range needs 0 <= start < end < 2^63, got [{start}, {end})")
    return Range(start, end)


OffsetRange = Annotated[tuple[int, int], AfterValidator(_proper)]


class Bitmap(Value):
    """A bit for each offset of a chunk, the most significant first; the last byte is filled with zeros. Base64."""

    bitmap: Annotated[str, AfterValidator(_base64)]


# Few ranges: sorted, not touching. Many: bits. The form depends on the set alone.
Gaps: TypeAlias = tuple[OffsetRange, ...] | Bitmap


def pack(start: int, end: int, rows: "Rows") -> Gaps:
    """The offsets of sorted ranges that do not touch.

    :param start, end: the chunk's offsets.
    :param rows: int64, shape (n, 2): `start, end` of each range, inside the chunk.
    """
    import numpy as np

    if len(rows) <= max(16, (end - start) // 256):
        return tuple(Range(*row) for row in rows.tolist())
    # +1 where a range begins and -1 where it ends: their running sum is the bit.
    steps = np.zeros(end - start + 1, np.int8)
    steps[rows[:, 0] - start] = 1
    steps[rows[:, 1] - start] = -1
    bits = np.packbits(np.cumsum(steps[:-1], dtype=np.int8).view(np.uint8))
    return Bitmap(bitmap=base64.b64encode(bits.tobytes()).decode())


def unpack(start: int, end: int, gaps: Gaps) -> "Rows":
    """The inverse of `pack`.

    :raises ValueError: the bits are not those of a chunk of this length.
    """
    import numpy as np

    if not isinstance(gaps, Bitmap):
        return np.array(gaps, np.int64).reshape(-1, 2)
    data = np.frombuffer(base64.b64decode(gaps.bitmap), np.uint8)
    bits = np.unpackbits(data)
    if len(data) != -(-(end - start) // 8) or bits[end - start :].any():
        raise ValueError(f"{len(data)} bytes are not a bitmap of {end - start} offsets")
    edges = np.flatnonzero(np.diff(bits[: end - start].view(np.int8), prepend=0, append=0))
    return (edges + start).reshape(-1, 2)


def count(rows: "Rows") -> int:
    """The number of offsets in the ranges."""
    return int((rows[:, 1] - rows[:, 0]).sum())


def outside(rows: "Rows", present: Range) -> "tuple[Rows, Rows]":
    """The ranges' offsets inside `present`, and those outside."""
    import numpy as np

    def cut(low: int, high: int) -> "Rows":
        kept = np.clip(rows, low, high)
        return kept[kept[:, 0] < kept[:, 1]]

    top = int(rows.max(initial=0))
    if not present.size:
        return rows[:0], rows
    return cut(present.start, present.end), np.concatenate(
        [cut(0, present.start), cut(present.end, max(top, present.end))]
    )


def beside(rows: "Rows", known: "Rows") -> int:
    """Return the number of offsets of the ranges in none of the known ones; both are sorted and have none twice."""
    import numpy as np

    lengths = np.concatenate([[0], np.cumsum(known[:, 1] - known[:, 0])])

    def below(offsets: "npt.NDArray[np.int64]") -> int:
        """Return the number of known offsets below these, all together."""
        ranges = np.searchsorted(known[:, 0], offsets, "right")
        behind = np.maximum(np.concatenate([[0], known[:, 1]])[ranges] - offsets, 0)
        return int((lengths[ranges] - behind).sum())

    return count(rows) - (below(rows[:, 1]) - below(rows[:, 0]))


def merged(*parts: "Rows") -> "Rows":
    """The union of disjoint sets of offsets, as sorted ranges that do not touch."""
    import numpy as np

    rows = np.concatenate(parts)
    rows = rows[np.argsort(rows[:, 0])]
    begins = np.ones(len(rows), bool)
    begins[1:] = rows[1:, 0] > rows[:-1, 1]
    ends = np.append(begins[1:], True)[: len(rows)]
    return np.column_stack((rows[begins, 0], rows[ends, 1]))
