"""kafkatos3.cfg, an ini file; a key is `section.key` here."""

from kafka_archiver.config.source import GROUP
from kafka_archiver.imports.base import Draft, Imported, Keys, archive_name, bucket_url, without_empty, words
from kafka_archiver.imports.connect import RULE
from kafka_archiver.imports.s3 import access

TOOL = "kafkatos3"
_WORK = "the plan's chunks are the units of work; Spark's cores decide how many are written at once"
_DIFFERS = {
    "main.log.level": "Airflow and Spark have their own logs",
    "main.working_directory": "nothing is kept on a machine; only what exceeds `spark.memory_bytes` is on disk "
    "for a while",
    "consumer.consumer_processes": _WORK,
    "consumer.consumer_class": "the readers are `source.reader`: native (librdkafka) or spark",
    "consumer.consumer_nice_level": "Spark's settings are in `spark.conf`",
    "consumer.max_age_seconds": "`schedule` says when runs start; a file ends with the plan's chunk",
    "consumer.kafka_auto_offset_reset": "a partition without an offset starts at its first record, so that none "
    "is lost",
    "compression.compression_check_interval": "bytes are compressed as they are written",
    "compression.compressor_workers": _WORK,
    "compression.compression_nice_level": "Spark's settings are in `spark.conf`",
    "s3.s3upload_check_interval": "parts are uploaded as they fill",
    "s3.s3uploader_workers": _WORK,
}


def draft(keys: Keys) -> Imported:
    """The archive of a configuration."""
    group = keys.get("consumer.kafka_consumer_group")
    keys.kept("consumer.kafka_consumer_group", f"the archive's name, and source.start: {RULE}")
    keys.by_hand("consumer.kafka_bootstrap", "bootstrap.servers in the Airflow connection kafka_default (type kafka)")
    keys.kept("consumer.topic_whitelist", "source.topics")
    keys.note("kept", "s3.topic_whitelist", "the same as consumer.topic_whitelist")
    keys.kept("s3.s3_bucket_name", "store.url (below kafkatos3/, as its own files)")
    keys.table("differs", _DIFFERS)
    keys.remark(
        "by_hand",
        "kafkatos3 commits offsets when a record is in a local file. Before you stop it for good, let it compress and "
        "upload all files below working_directory: what is left there is in no bucket, and the archive starts "
        "behind it",
    )
    keys.remark(
        "differs", "the path is <topic>/partition=<n>/ and the name has the first offset; it has no last offset or day"
    )
    made = {"start": f"{GROUP}{group}"} if group else {}
    content = {
        "archive": archive_name(group or "kafkatos3"),
        "source": {"topics": words(keys.get("consumer.topic_whitelist")), **made},
        "store": {
            "url": bucket_url(keys.get("s3.s3_bucket_name"), "kafkatos3"),
            **access(keys, {"access_key": "s3.s3_access_key", "secret_key": "s3.s3_secret_key"}, TOOL),
            "layout": "topic_partition",
            "format": "mak",
            "content": "record",
            "codec": "gzip",
            "options": {"version": 1},
        },
    }
    return Imported(TOOL, (Draft(without_empty(content)),), keys.notes(TOOL))
