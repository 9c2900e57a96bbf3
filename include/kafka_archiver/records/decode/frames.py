"""Confluent's wire format: byte 0, the schema's id in four bytes, then the encoded data."""

import numpy as np
import pyarrow as pa

from kafka_archiver.records.decode.base import Decoded, Read, ReadsInside, renumbered
from kafka_archiver.records.rows.library import library
from kafka_archiver.records.vectors import ByteArray, bounds, indices, slices
from kafka_archiver.values.columns import Int64s

SIZE = 5
NO_FRAME = "the bytes do not start with the registry's frame: byte 0, then a schema id in four bytes"
_NONE = -1


def schema_id(data: bytes) -> int | None:
    """The schema id of framed bytes; None if the bytes do not look framed."""
    return int.from_bytes(data[1:SIZE]) if data[:1] == b"\0" and len(data) >= SIZE else None


class Framed:
    """A decoder of framed bytes: each row with what reads its writer's schema.

    :param reads: by the registry's id, what reads the bytes, or the reason why nothing can.
    """

    def __init__(self, field: pa.Field, reads: dict[int, Read | str]) -> None:
        self.field, self._reads = field, reads

    def decode(self, data: pa.Array) -> Decoded:
        whole, starts, ends = bounds(data)
        frame_ids = _ids(whole, starts, ends)
        starts = np.minimum(starts + SIZE, ends)
        if len(data) and not data.null_count and (frame_ids == frame_ids[0]).all():
            only: object = self._read(int(frame_ids[0]))
            if isinstance(only, ReadsInside):
                return only.read(whole, starts, ends)
        bodies = slices(whole, starts, ends)
        present = np.flatnonzero(data.is_valid().to_numpy(zero_copy_only=False))
        column, reasons, unnamed, places = [], {}, {}, np.full(len(data), _NONE, np.int64)
        done = 0
        for number in np.unique(frame_ids[present]).tolist():
            rows = present[frame_ids[present] == number]
            read = self._read(number)
            if isinstance(read, str):
                reasons.update(dict.fromkeys(rows.tolist(), read))
                continue
            decoded = read(bodies if len(rows) == len(data) else bodies.take(indices(rows)))
            if len(rows) == len(data):
                return decoded
            column.append(decoded.column)
            reasons.update(renumbered(decoded.reasons, rows))
            unnamed.update(renumbered(decoded.unnamed, rows))
            places[rows] = np.arange(done, done + len(rows))
            done += len(rows)
        if not column:
            return Decoded(pa.nulls(len(data), self.field.type), reasons)
        return Decoded(pa.concat_arrays(column).take(indices(places)), reasons, unnamed)

    def _read(self, number: int) -> Read | str:
        if number == _NONE:
            return NO_FRAME
        known = ", ".join(map(str, sorted(self._reads))) or "none"
        return self._reads.get(number, f"schema id {number} is not one of the schemas of the plan ({known})")


class Unframed:
    """A decoder of bytes without frames, of one schema."""

    def __init__(self, field: pa.Field, read: Read) -> None:
        self.field, self._read = field, read

    def decode(self, data: pa.Array) -> Decoded:
        if not data.null_count:
            return self._read(data)
        present = np.flatnonzero(data.is_valid().to_numpy(zero_copy_only=False))
        decoded = self._read(data.take(indices(present)))
        places = np.full(len(data), _NONE, np.int64)
        places[present] = np.arange(len(present))
        reasons, unnamed = renumbered(decoded.reasons, present), renumbered(decoded.unnamed, present)
        return Decoded(decoded.column.take(indices(places)), reasons, unnamed)


def schema_ids(data: pa.Array) -> Int64s:
    """The schema id of each row; -1 without a frame."""
    return _ids(*bounds(data))


def _ids(whole: ByteArray, starts: Int64s, ends: Int64s) -> Int64s:
    if functions := library():
        in_c = np.empty(len(starts), np.int64)
        functions.frames(*(array.ctypes.data for array in (whole, starts, ends)), len(starts), in_c.ctypes.data)
        return in_c
    schema_ids = np.full(len(starts), _NONE, np.int64)
    rows = np.flatnonzero(ends - starts >= SIZE)
    frame = whole[starts[rows, None] + np.arange(SIZE)]
    numbers = np.ascontiguousarray(frame[:, 1:]).view(">u4").ravel().astype(np.int64)
    schema_ids[rows] = np.where(frame[:, 0] == 0, numbers, _NONE)
    return schema_ids
