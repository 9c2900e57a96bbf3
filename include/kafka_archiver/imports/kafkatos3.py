"""kafkatos3.cfg, an ini file; a key is `section.key` here."""

import re
from typing import Any

from kafka_archiver.config.source import GROUP, is_topic
from kafka_archiver.imports.base import Draft, Imported, Keys, archive_name, bucket_url, without_empty, words
from kafka_archiver.imports.connect import RULE
from kafka_archiver.imports.s3_access import access

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


def _topics(keys: Keys) -> dict[str, Any]:
    """Return the topics; a pattern if the list has regular expressions, which librdkafka alone understands."""
    key = "consumer.topic_whitelist"
    names = words(keys.get(key))
    if all(map(is_topic, names)):
        keys.kept(key, "source.topics")
        return {"topics": names}
    odd = [name for name in names if not is_topic(name) and not name.startswith("^")]
    by_library = keys.get("consumer.consumer_class") == "KafkaConfluentConsumer"
    if odd or not by_library:
        keys.decide(
            key,
            "only KafkaConfluentConsumer reads regular expressions, those that begin with ^; "
            f"{', '.join(odd) or ', '.join(names)} would be a topic's own name: say what is meant",
        )
        return {"topics": names}
    # librdkafka's are of a part of the name; ours are of the whole.
    patterns = [
        re.escape(name) if is_topic(name) else f"{name}.*" if re.match(r"\^.*[^$]$", name) else name for name in names
    ]
    keys.differs(key, "source.pattern, a regular expression for whole names: check it with `airflow archive plan`")
    return {"pattern": "|".join(patterns)}


def _folder(keys: Keys) -> str:
    """Return where keys begin: the uploader takes `<working_directory>/tos3` out of the path of a file."""
    key = "main.working_directory"
    directory = keys.get(key)
    if not directory.endswith("/"):
        return "kafkatos3"
    keys.kept(key, "store.url: it ends with /, so that the whole path is in its keys")
    return f"kafkatos3{directory}tos3"


def draft(keys: Keys) -> Imported:
    """Return the archive of a configuration."""
    group = keys.get("consumer.kafka_consumer_group")
    keys.kept("consumer.kafka_consumer_group", f"the archive's name, and source.start: {RULE}")
    keys.by_hand("consumer.kafka_bootstrap", "bootstrap.servers in the Airflow connection kafka_default (type kafka)")
    topics = _topics(keys)
    keys.note("kept", "s3.topic_whitelist", "nothing: kafkatos3 does not read it")
    keys.kept("s3.s3_bucket_name", "store.url (below kafkatos3/, as its own files)")
    folder = _folder(keys)
    keys.table("differs", _DIFFERS)
    keys.remark(
        "by_hand",
        "kafkatos3 commits offsets when a record is in a local file. Before you stop it for good, let it compress and "
        "upload all files below working_directory: what is left there is in no bucket, and the archive starts "
        "behind it",
    )
    keys.remark(
        "differs",
        "a name has the first offset of a chunk, <topic>-<partition>_<first>, and neither the last one nor the day, "
        "which are not known when its upload begins",
    )
    start = {"start": f"{GROUP}{group}"} if group else {}
    content = {
        "archive": archive_name(group or "kafkatos3"),
        "source": {**topics, **start},
        "store": {
            "url": bucket_url(keys.get("s3.s3_bucket_name"), folder),
            **access(keys, {"access_key": "s3.s3_access_key", "secret_key": "s3.s3_secret_key"}),
            "layout": {"path": "{topic}/{partition}"},
            "name": "{topic}-{partition}_{start}",
            "format": "mak",
            "content": "record",
            "codec": "gzip",
            "options": {"version": 1},
        },
    }
    return Imported(TOOL, (Draft(without_empty(content)),), keys.notes(TOOL))
