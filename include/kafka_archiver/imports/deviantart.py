"""DeviantArt's S3 sink connector (block-GZIP)."""

from kafka_archiver.imports import connect
from kafka_archiver.imports.base import Draft, Imported, Keys, archive_name, bucket_url, without_empty
from kafka_archiver.imports.s3 import access

TOOL = "DeviantArt S3 sink"
CLASS = "com.deviantart.kafka_connect_s3.S3SinkConnector"
_ACCESS = {"endpoint": "s3.endpoint", "path_style": "s3.path_style"}


def draft(keys: Keys) -> Imported:
    """The archive of a connector's keys."""
    keys.kept("connector.class", TOOL)
    policies = without_empty({"bad_record": connect.bad_records(keys)})
    # The format is lines of text, whatever the converter was.
    found = connect.source(keys, {})
    for column in ("key", "value"):
        keys.note("kept", f"{column}.converter", "format: block_gzip stores the bytes of the values as lines")
    size = keys.get("compressed_block_size")
    keys.kept("s3.bucket", "store.url")
    keys.kept("s3.prefix", "store.url")
    keys.kept("compressed_block_size", "store.options.block_bytes")
    keys.differs("local.buffer.dir", "only what exceeds `spark.memory_bytes` is on disk, in Spark's local directory")
    keys.remark("differs", "the date in a path is the record's (UTC); in the connector it was the day of the upload")
    keys.remark("differs", "the index is beside each object, with the same fields: <object>.index.json")
    store = {
        "url": bucket_url(keys.get("s3.bucket"), keys.get("s3.prefix")),
        **access(keys, _ACCESS, TOOL),
        "layout": "deviantart",
        "format": "block_gzip",
        "options": {"block_bytes": int(size)} if size.isdecimal() else {},
    }
    content = {
        "archive": archive_name(keys.get("name")),
        "source": found,
        "store": without_empty(store),
        "policies": policies,
    }
    return Imported(TOOL, (Draft(without_empty(content)),), keys.notes(TOOL))
