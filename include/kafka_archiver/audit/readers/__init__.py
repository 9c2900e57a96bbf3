"""Reads objects with the standard library, zstandard, orjson, fastavro and pyarrow.

This package shares no code with the formats' encoders and readers, so it does not share their mistakes.
"""

from kafka_archiver.audit.readers import avro, block_gzip, csv, jsonl, mak, parquet, raw
from kafka_archiver.audit.readers.base import Reader

READERS = {
    "avro": Reader(records=avro.records, values=avro.values),
    "block_gzip": Reader(records=jsonl.records, values=jsonl.lines, sidecar=block_gzip.index),
    "bytes": Reader(values=raw.values),
    "csv": Reader(records=csv.records, values=csv.rows),
    "jsonl": Reader(records=jsonl.records, values=jsonl.lines),
    "mak": Reader(records=mak.records),
    "parquet": Reader(records=parquet.records, values=parquet.values),
    "text": Reader(values=raw.lines),
}
