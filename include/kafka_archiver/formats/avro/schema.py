"""The schema of Avro objects."""

from typing import Any

_NULLABLE = ["null", "bytes"]
_HEADER = {
    "type": "record",
    "name": "Header",
    "fields": [{"name": "key", "type": "string"}, {"name": "value", "type": _NULLABLE}],
}


def _record(timestamp: Any) -> dict[str, Any]:
    return {
        "type": "record",
        "name": "Record",
        "namespace": "kafka_archiver",
        "doc": "A Kafka record. timestamp: milliseconds since 1970, -1 for none. timestamp_type: 0 create, 1 append.",
        "fields": [
            {"name": "topic", "type": "string"},
            {"name": "partition", "type": "int"},
            {"name": "offset", "type": "long"},
            {"name": "timestamp", "type": timestamp},
            {"name": "timestamp_type", "type": "int"},
            {"name": "key", "type": _NULLABLE},
            {"name": "value", "type": _NULLABLE},
            {"name": "headers", "type": {"type": "array", "items": _HEADER}},
        ],
    }


SCHEMA = _record({"type": "long", "logicalType": "timestamp-millis"})
# The same bytes, read without making a datetime of the timestamp: none is beyond the year 9999.
PLAIN = _record("long")
