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
    size = keys.number("compressed_block_size", "store.options is left out: 67108864", most=1 << 30)
    keys.kept("s3.bucket", "store.url")
    keys.kept("s3.prefix", "store.url")
    keys.kept("compressed_block_size", "store.options.block_bytes")
    keys.differs("local.buffer.dir", "only what exceeds `spark.memory_bytes` is on disk, in Spark's local directory")
    keys.remark(
        "differs",
        "timestamp.from: wallclock: the folder is the day of the plan (UTC), so a retry files each record in the same "
        "place; in the connector it was the day of the upload by its worker's clock and time zone (`store.layout: "
        "{name: deviantart, timezone: …}`). Leave `timestamp` out, and records are filed by their own days",
    )
    keys.remark(
        "by_hand",
        "the connector kept its position in the bucket (last_chunk_index.<topic>-<partition>.txt), and Kafka Connect "
        "committed it afterwards. After a crash the group may be behind the bucket: then the archive has some records "
        "of the last files again",
    )
    keys.remark("differs", "the index is beside each object, with the same fields: <object>.index.json")
    store = {
        "url": bucket_url(keys.get("s3.bucket"), keys.get("s3.prefix")),
        **access(keys, _ACCESS),
        "layout": "deviantart",
        "format": "block_gzip",
        "options": {"block_bytes": max(size, 64 << 10)} if size else {},
    }
    content = {
        "archive": archive_name(keys.get("name")),
        "source": found,
        "timestamp": {"from": "wallclock"},
        "store": without_empty(store),
        "policies": policies,
    }
    return Imported(TOOL, (Draft(without_empty(content)),), keys.notes(TOOL))
