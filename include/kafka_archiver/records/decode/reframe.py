"""Gives framed bytes other schema ids: those that their schemas have in another registry. Pure."""

from collections.abc import Mapping

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from kafka_archiver.records.decode.frames import NO_FRAME, SIZE, schema_id, schema_ids
from kafka_archiver.records.vectors import bounds, indices, slices
from kafka_archiver.values.columns import Int64s

# Of a header with a schema's id: byte 0 and the id, or byte 1 and a GUID, which is the same in every registry.
_BY_ID, _BY_GUID, _GUID = b"\0", b"\1", 17


def reframe(data: bytes, ids: Mapping[int, int]) -> bytes:
    """Return framed bytes with the new id of their schema.

    :param ids: the new ids by the old ones.
    :raises ValueError: the frame is missing, truncated, or has an unknown id.
    """
    number = schema_id(data)
    if number is None:
        raise ValueError(NO_FRAME)
    return b"\0" + _new_id(number, ids).to_bytes(4) + data[SIZE:]


def reframe_header(data: bytes, ids: Mapping[int, int]) -> bytes:
    """Return the value of a header with a schema's id, with the new one. A GUID stays. Raises as `reframe`."""
    if data[:1] == _BY_GUID and len(data) >= _GUID:
        return data
    if data[:1] != _BY_ID or len(data) < SIZE:
        raise ValueError("the header has no schema id: expected byte 0 and an id in four bytes, or byte 1 and a GUID")
    return reframe(data, ids)


def _new_id(number: int, ids: Mapping[int, int]) -> int:
    if number not in ids:
        known = ", ".join(map(str, sorted(ids)[:20])) or "none"
        raise ValueError(f"schema id {number} is not one of the archive's schemas ({known})")
    return ids[number]


def reframed(data: pa.Array, ids: Mapping[int, int]) -> tuple[pa.Array, dict[int, str]]:
    """Return a column with the new ids, and why, by row, for rows that `reframe` refuses. Null stays null.

    :param data: binary or large_binary.
    """
    numbers = schema_ids(data)
    present = data.is_valid().to_numpy(zero_copy_only=False)
    reasons: dict[int, str] = {}
    prefixes: dict[int, bytes] = {}
    for number in np.unique(numbers[present]).tolist():
        try:
            prefixes[number] = _prefix(number, ids)
        except ValueError as error:
            reasons |= dict.fromkeys(np.flatnonzero(present & (numbers == number)).tolist(), str(error))
    if reasons or not prefixes:
        return data, reasons
    return _with_prefixes(data, numbers, prefixes), {}


def _prefix(number: int, ids: Mapping[int, int]) -> bytes:
    if number < 0:
        raise ValueError(NO_FRAME)
    return b"\0" + _new_id(number, ids).to_bytes(4)


def _with_prefixes(data: pa.Array, numbers: Int64s, prefixes: Mapping[int, bytes]) -> pa.Array:
    order = {number: place for place, number in enumerate(prefixes)}
    which = np.array([order.get(number, -1) for number in numbers.tolist()], np.int64)
    wide = pa.large_binary()
    whole, starts, ends = bounds(data)
    bodies = slices(whole, np.minimum(starts + SIZE, ends), ends)
    # Null where the prefix is null, as `data` is.
    before = pa.array(list(prefixes.values()), wide).take(indices(which))
    return pc.binary_join_element_wise(before, bodies, pa.scalar(b"", wide)).cast(data.type)


class Reframer:
    """Gives the records of a topic the new ids of their schemas: before the data, or in a header.

    :param ids: by column (`key`, `value`) that has schemas, the new ids by the old ones.
    """

    def __init__(self, ids: Mapping[str, Mapping[int, int]]) -> None:
        self._ids = ids

    def records(self, batch: pa.RecordBatch) -> tuple[pa.RecordBatch, dict[int, str]]:
        """Return the records with the new ids, and why, by row, for those whose frame is not known.

        :param batch: with the columns `key`, `value` and `headers`.
        """
        reasons: dict[int, str] = {}
        for column, ids in self._ids.items():
            batch, beside, wrong = _with_headers(batch, f"__{column}_schema_id", ids)
            reasons |= {row: f"{column}: {reason}" for row, reason in wrong.items()}
            data = batch.column(column)
            framed = pc.if_else(pa.array(beside), pa.scalar(None, data.type), data)
            changed, wrong = reframed(framed, ids)
            reasons |= {row: f"{column}: {reason}" for row, reason in wrong.items()}
            place = batch.schema.get_field_index(column)
            batch = batch.set_column(place, batch.schema.field(place), pc.coalesce(changed, data))
        return batch, reasons


def _with_headers(
    batch: pa.RecordBatch, name: str, ids: Mapping[int, int]
) -> tuple[pa.RecordBatch, "np.ndarray[tuple[int], np.dtype[np.bool_]]", dict[int, str]]:
    """Return the records with new ids in the headers of a name, which records have one, and why for those refused."""
    headers = batch.column("headers")
    items = headers.flatten()
    has_name = pc.equal(items.field("key"), name).to_numpy(zero_copy_only=False)
    parents = pc.list_parent_indices(headers).to_numpy()
    beside = np.zeros(batch.num_rows, np.bool_)
    beside[parents[has_name]] = True
    if not beside.any():
        return batch, beside, {}
    values, reasons = items.field("value").to_pylist(), {}
    for place in np.flatnonzero(has_name).tolist():
        try:
            values[place] = reframe_header(values[place] or b"", ids)
        except ValueError as error:
            reasons[int(parents[place])] = str(error)
    value_type = headers.type.value_type
    changed = pa.StructArray.from_arrays(
        [items.field("key"), pa.array(values, value_type.field("value").type)], fields=list(value_type)
    )
    # From the first item on: a slice of a batch has others before it.
    lengths = pc.list_value_length(headers).fill_null(0).to_numpy(zero_copy_only=False)
    offsets = pa.array(np.concatenate([[0], np.cumsum(lengths)]), pa.int32())
    lists = pa.ListArray.from_arrays(offsets, changed, type=headers.type, mask=headers.is_null())
    place = batch.schema.get_field_index("headers")
    return batch.set_column(place, batch.schema.field(place), lists), beside, reasons
