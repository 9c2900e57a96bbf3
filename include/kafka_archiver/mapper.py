"""The values that a mapper of `transform.mapper` gets and returns.

from kafka_archiver.mapper import Record

def split_lines(record: Record):
    for line in (record.value or b"").splitlines():
        yield record.replace(value=line)
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

_SAME: Any = object()


@dataclass(frozen=True, slots=True)
class Record:
    """One record.

    `timestamp`: milliseconds since 1970, -1 without one. `timestamp_type`: 0 create, 1 append time. `key` and `value`:
    bytes, or what the decoder makes of them: text, or a mapping of the fields; None for null. `headers`: names and
    bytes, in Kafka's order, repeats too. `decoded_headers`: those of `source.headers`.
    """

    topic: str
    partition: int
    offset: int
    timestamp: int
    timestamp_type: int
    key: Any
    value: Any
    headers: tuple[tuple[str, bytes | None], ...]
    decoded_headers: Mapping[str, Any] = field(default_factory=dict)

    def replace(self, *, key: Any = _SAME, value: Any = _SAME, headers: Any = _SAME) -> "Record":
        """The record with another key, value or other headers. All else stays: it says where the record came from."""
        changes = {"key": key, "value": value, "headers": headers}
        return replace(self, **{name: new for name, new in changes.items() if new is not _SAME})
