"""Reads objects with the standard library, zstandard, orjson, fastavro and pyarrow.

This package shares no code with the formats' encoders and readers, so it does not share their mistakes.
"""

from kafka_archiver.audit.readers import avro, block_gzip, csv, jsonl, mak, parquet, raw
from kafka_archiver.audit.readers.base import FormatReader

READERS = {
    "avro": FormatReader(records=avro.records, values=avro.values),
    "block_gzip": FormatReader(records=jsonl.records, values=jsonl.lines, sidecar=block_gzip.index),
    "bytes": FormatReader(values=raw.values),
    "csv": FormatReader(records=csv.records, values=csv.rows),
    "jsonl": FormatReader(records=jsonl.records, values=jsonl.lines),
    "mak": FormatReader(records=mak.records),
    "parquet": FormatReader(records=parquet.records, values=parquet.values),
    "text": FormatReader(values=raw.lines),
}
