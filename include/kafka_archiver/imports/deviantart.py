"""DeviantArt's S3 sink connector (block-GZIP)."""

import re

from kafka_archiver.imports import connect
from kafka_archiver.imports.base import Draft, Imported, Keys, archive_name, bucket_url, without_empty
from kafka_archiver.imports.s3_access import access
from kafka_archiver.imports.smt import transforms_of

TOOL = "DeviantArt S3 sink"
CLASS = "com.deviantart.kafka_connect_s3.S3SinkConnector"
_LEAST = 64 << 10
_ACCESS = {"endpoint": "s3.endpoint", "path_style": "s3.path_style"}


def _converters(keys: Keys) -> None:
    """Say of the converters whether the lines are the same: the connector writes what Java's toString gives."""
    for key in keys.starting("key.converter"):
        keys.differs(key, "keys are in no file, as before")
    name = keys.get("value.converter")
    if not name or name.endswith("storage.StringConverter"):
        keys.kept("value.converter", "format: block_gzip stores the bytes of the values as lines")
    else:
        keys.decide(
            "value.converter",
            "the connector writes the text that Java makes of the converted value ({a=1}); here a line has the value's "
            "bytes",
        )
    for key in keys.starting("value.converter."):
        keys.differs(key, "see value.converter")
    if "value.converter" not in keys:
        keys.remark(
            "decide",
            f"{connect.NO_CONVERTER}. With StringConverter lines are the same; with another one they are Java's text "
            "of a value",
        )


def draft(keys: Keys) -> Imported:
    """Return the archive of a connector's keys."""
    keys.kept("connector.class", TOOL)
    policies = without_empty({"bad_record": connect.bad_records(keys)})
    _converters(keys)
    transforms = transforms_of(keys, columns=False, inside="", keyed=False)
    source = connect.source(keys, {})
    prefix = keys.get("s3.prefix")
    if prefix.startswith("/") or "//" in prefix:
        keys.decide("s3.prefix", "store.url; its keys have empty folders, and here they have none")
    size = keys.number("compressed_block_size", "store.options is left out: 67108864", most=1 << 30)
    keys.kept("s3.bucket", "store.url")
    keys.kept("s3.prefix", "store.url")
    if size and size < _LEAST:
        keys.decide("compressed_block_size", f"store.options.block_bytes: {_LEAST}, which is the least")
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
    keys.remark(
        "differs",
        "the index is beside each object, with the same fields: <name>.gz.index.json (theirs: <name>.index.json)",
    )
    store = {
        "url": bucket_url(keys.get("s3.bucket"), re.sub("/+", "/", prefix)),
        **access(keys, _ACCESS),
        "layout": "deviantart",
        "format": "block_gzip",
        "options": {"block_bytes": max(size, _LEAST)} if size else {},
    }
    content = {
        "archive": archive_name(keys.get("name")),
        "source": source,
        "timestamp": {"from": "wallclock"},
        "transform": transforms.section,
        "store": without_empty(store),
        "policies": policies,
    }
    return Imported(TOOL, (Draft(without_empty(content)),), keys.notes(TOOL))
