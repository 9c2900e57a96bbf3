"""Reads objects with gzip and zlib of the standard library, zstandard, orjson, fastavro and pyarrow.

This package shares no code with the formats' encoders and readers, so it does not share their mistakes.
"""

from kafka_archiver.audit.readers import avro, block_gzip, jsonl, mak, parquet
from kafka_archiver.audit.readers.base import Reader

READERS = {
    "avro": Reader(records=avro.records),
    "block_gzip": Reader(records=jsonl.records, values=jsonl.lines, sidecar=block_gzip.index),
    "jsonl": Reader(records=jsonl.records, values=jsonl.lines),
    "mak": Reader(records=mak.records),
    "parquet": Reader(records=parquet.records),
}
