"""The values of headers by name, and the ids of schemas that headers have."""

from collections.abc import Mapping
from typing import Self
from uuid import UUID

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from kafka_archiver.model.plan import TopicSchemas
from kafka_archiver.records.vectors import indices

# Confluent's: a byte, then the schema's GUID (byte 1) or its id (byte 0); for Protobuf, then the message's indexes.
SCHEMA_ID = "__{}_schema_id"
_SIZES = {b"\0": 4, b"\1": 16}


def last_header(batch: pa.RecordBatch, name: str) -> pa.Array:
    """The value (binary) of each record's last header of that name; null without one."""
    headers = batch.column("headers")
    items = headers.flatten()
    matches = pc.indices_nonzero(pc.equal(items.field("key"), name))
    places = np.full(batch.num_rows, -1)
    # Of several, the last one stays.
    places[pc.list_parent_indices(headers).take(matches).to_numpy()] = matches.to_numpy()
    return items.field("value").take(indices(places))


class SchemaIds:
    """The ids of the schemas of keys or values, in headers.

    :param column: `key` or `value`. :param ids: the registry's id by GUID, 16 bytes.
    """

    def __init__(self, column: str, ids: Mapping[bytes, int]) -> None:
        self._column, self._ids = column, ids
        self._name = SCHEMA_ID.format(column)

    @classmethod
    def of(cls, decoded: TopicSchemas) -> Self | None:
        """Return those of a plan; None if its records have their ids before the data."""
        ids = {UUID(w.guid).bytes: w.id for w in decoded.writers if w.guid is not None and w.id is not None}
        return cls(decoded.column, ids) if ids else None

    def framed(self, batch: pa.RecordBatch) -> tuple[pa.Array, dict[int, str]]:
        """The keys or values with the frame of those that have no header; why, by row, for unknown ids.

        A record without the header is as it was.
        """
        data, headers = batch.column(self._column), last_header(batch, self._name)
        if headers.null_count == len(headers):
            return data, {}
        encoded = headers.dictionary_encode()
        frames: list[bytes | None] = []
        reasons: dict[int, str] = {}
        for number, header in enumerate(encoded.dictionary.to_pylist()):
            try:
                frames.append(self._frame(header))
            except ValueError as error:
                frames.append(None)
                reasons[number] = str(error)
        wide = pa.large_binary()
        # A null index is the last frame, which is empty.
        which = encoded.indices.fill_null(len(frames))
        before = pa.array([*frames, b""], wide).take(which)
        unknown = {
            row: reasons[number]
            for row, number in enumerate(which.to_pylist() if reasons else ())
            if number in reasons and data[row].is_valid
        }
        return pc.binary_join_element_wise(before, data.cast(wide), pa.scalar(b"", wide)), unknown

    def _frame(self, header: bytes) -> bytes:
        """The frame that says the same.

        :raises ValueError: the plan does not name the schema.
        """
        size = _SIZES.get(header[:1], 0)
        schema_id, indexes = header[1 : 1 + size], header[1 + size :]
        if not size or len(schema_id) < size:
            raise ValueError(f"the header {self._name} has no schema id: expected byte 1 and a GUID of 16 bytes")
        if size == _SIZES[b"\1"] and schema_id not in self._ids:
            known = ", ".join(str(UUID(bytes=guid)) for guid in self._ids)
            raise ValueError(
                f"the header {self._name} has GUID {UUID(bytes=schema_id)}, which is not one of the schemas of the "
                f"plan ({known})"
            )
        return b"\0" + (self._ids[schema_id].to_bytes(4) if schema_id in self._ids else schema_id) + indexes
