"""Whether values are what `source.value.decode` and `source.max_value_bytes` say they are."""

from collections.abc import Mapping

import pyarrow as pa
import pyarrow.compute as pc

from kafka_archiver.errors import BadRecordError
from kafka_archiver.formats.base import Target
from kafka_archiver.formats.json_text import others
from kafka_archiver.formats.vectors import int64s

_NOT_JSON = (
    "`source.value.decode` is json, but the value is not one JSON document; "
    "set `decode: bytes`, or correct its producer"
)


def check_values(batch: pa.RecordBatch, target: Target) -> None:
    """Every encoder's first step.

    :raises BadRecordError: a value is longer than `max_value_bytes`, or `value_decode` is json and it is not one JSON
        document (a null value is none, and has no length).
    """
    bad = _too_large(batch, target.settings.max_value_bytes) if target.settings.max_value_bytes is not None else {}
    if target.settings.value_decode == "json":
        values = batch.column("value")
        wrong = others(values.to_pylist(), _is_utf8(values))
        bad = dict.fromkeys(wrong, _NOT_JSON) | bad
    refuse(batch, target, bad)


def _is_utf8(values: pa.Array) -> bool:
    """Whether all are, seen as a vector."""
    try:
        values.cast(pa.large_string())
    except pa.ArrowInvalid:
        return False
    return True


def _too_large(batch: pa.RecordBatch, limit: int) -> dict[int, str]:
    lengths = pc.binary_length(batch.column("value"))
    rows = pc.indices_nonzero(pc.greater(lengths, int64s([limit], 1)[0]))
    return {
        row: f"the value has {length:,} bytes, and `source.max_value_bytes` was {limit:,} when the run was planned (a "
        "higher limit is for later plans)"
        for row, length in zip(rows.to_pylist(), lengths.take(rows).to_pylist(), strict=True)
    }


def refuse(batch: pa.RecordBatch, target: Target, reasons: Mapping[int, str]) -> None:
    """Raise BadRecordError for these rows, if there are any."""
    if reasons:
        offsets = batch.column("offset").take(pa.array(list(reasons), pa.int64())).to_pylist()
        raise BadRecordError(target.topic, target.partition, dict(zip(offsets, reasons.values(), strict=True)))
