"""Whether values are what `source.value.decode` says they are."""

from collections.abc import Iterable

import msgspec
import orjson
import pyarrow as pa

from kafka_archiver.errors import BadRecordError
from kafka_archiver.formats.base import Target

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

    :raises BadRecordError: `value_decode` is json, and a value is not one JSON document (a null value is none).
    """
    if target.value_decode == "json":
        values = batch.column("value").to_pylist()
        refuse(batch, target, (i for i, v in enumerate(values) if v is not None and not is_json(v)), _NOT_JSON)


def refuse(batch: pa.RecordBatch, target: Target, rows: Iterable[int], reason: str) -> None:
    """Raise BadRecordError for these rows, if there are any."""
    if bad := list(rows):
        offsets = batch.column("offset").take(pa.array(bad, pa.int64())).to_pylist()
        raise BadRecordError(target.topic, target.partition, dict.fromkeys(offsets, reason))
