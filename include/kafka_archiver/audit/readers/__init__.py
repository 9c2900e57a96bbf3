"""Objects read by others: gzip and zlib of the standard library, zstandard, orjson, fastavro, pyarrow.

They share no code with the formats' encoders and readers, so that one mistake is not made twice.
"""

from kafka_archiver.audit.readers import avro, jsonl, parquet
from kafka_archiver.audit.readers.base import Reader

READERS = {
    "avro": Reader(records=avro.records),
    "jsonl": Reader(records=jsonl.records, values=jsonl.lines),
    "parquet": Reader(records=parquet.records),
}
