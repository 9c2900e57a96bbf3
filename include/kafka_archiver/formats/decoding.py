"""Whether values are what `source.value.decode` and `source.max_value_bytes` say they are."""

from collections.abc import Mapping

import msgspec
import orjson
import pyarrow as pa
import pyarrow.compute as pc

from kafka_archiver.errors import BadRecordError
from kafka_archiver.formats.base import Target
from kafka_archiver.formats.vectors import int64s

_VALIDATE = msgspec.json.Decoder(msgspec.Raw).decode
_NOT_JSON = (
    "`source.value.decode` is json, but the value is not one JSON document; "
    "set `decode: bytes`, or correct its producer"
)


def is_json(value: bytes) -> bool:
    """Whether it is exactly one JSON document (RFC 8259) in UTF-8."""
    try:
        # msgspec checks the grammar without building objects, nine times as fast as orjson; it looks at no UTF-8.
        value.decode()
        _VALIDATE(value)
    except (UnicodeDecodeError, msgspec.DecodeError):
        return False
    except RecursionError:
        # How deep msgspec gets depends on the caller's stack. orjson's limit of 1024 is a fixed one.
        try:
            orjson.loads(value)
        except orjson.JSONDecodeError:
            return False
    return True


def check_values(batch: pa.RecordBatch, target: Target) -> None:
    """Every encoder's first step.

    :raises BadRecordError: a value is longer than `max_value_bytes`, or `value_decode` is json and it is not one JSON
        document (a null value is none, and has no length).
    """
    bad = _too_large(batch, target.max_value_bytes) if target.max_value_bytes is not None else {}
    if target.value_decode == "json":
        values = enumerate(batch.column("value").to_pylist())
        bad |= {i: _NOT_JSON for i, v in values if v is not None and i not in bad and not is_json(v)}
    refuse(batch, target, bad)


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
