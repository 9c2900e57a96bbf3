"""Reads objects with gzip and zlib of the standard library, zstandard, orjson, fastavro and pyarrow.

This package shares no code with the formats' encoders and readers, so it does not share their mistakes.
"""

from kafka_archiver.audit.readers import avro, jsonl, parquet
from kafka_archiver.audit.readers.base import Reader

READERS = {
    "avro": Reader(records=avro.records, values=avro.values),
    "jsonl": Reader(records=jsonl.records, values=jsonl.lines),
    "parquet": Reader(records=parquet.records, values=parquet.values),
}
