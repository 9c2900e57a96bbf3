"""Read single members of an object, by its index."""

import io
from collections.abc import Callable, Iterator, Sequence
from typing import Any, BinaryIO

import orjson
import pyarrow as pa

from kafka_archiver.messages.errors import IntegrityError
from kafka_archiver.records.formats.base import Target
from kafka_archiver.records.formats.jsonl.reader import read_records


def read_from(
    source: BinaryIO, target: Target, offset: int, sidecar: Callable[[], bytes | None]
) -> tuple[int, Iterator[pa.RecordBatch]] | None:
    """Return the number of the first row of the member with an offset, and the records from there on.

    :raises IntegrityError: the index is none, or not that of the object.
    """
    index = sidecar()
    if index is None:
        return None
    try:
        members: Sequence[dict[str, Any]] = orjson.loads(index)["chunks"]
        first = max((n for n, member in enumerate(members) if member["first_record_offset"] <= offset), default=0)
        if target.settings.transform is not None:
            # Rows of one record may begin in an earlier member.
            while first and members[first]["first_record_offset"] == offset:
                first -= 1
        rows = sum(member["num_records"] for member in members[:first])
    except (ValueError, LookupError, TypeError) as error:
        raise IntegrityError(f"the index of {target.key} is none: {error!r}") from error
    return rows, _records(source, target, members[first:])


def _records(source: BinaryIO, target: Target, members: Sequence[dict[str, Any]]) -> Iterator[pa.RecordBatch]:
    for member in members:
        source.seek(member["byte_offset"])
        data = source.read(member["byte_length"])
        rows = 0
        for batch in read_records(io.BytesIO(data), target):
            rows += batch.num_rows
            yield batch
        if rows != member["num_records"]:
            raise IntegrityError(
                f"{target.key} has {rows} rows in the member at byte {member['byte_offset']}, and its index says "
                f"{member['num_records']}"
            )
