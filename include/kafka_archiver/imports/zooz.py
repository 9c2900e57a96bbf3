"""Zooz' kafka-s3-connector: environment variables, from a file of `NAME=value`."""

from kafka_archiver.config.source import GROUP
from kafka_archiver.imports.base import (
    Draft,
    Imported,
    Keys,
    archive_name,
    bucket_url,
    schedule_of,
    without_empty,
    words,
)
from kafka_archiver.imports.connect import RULE
from kafka_archiver.imports.s3 import access

TOOL = "Zooz kafka-s3-connector"
_APP = "s3-connector"
_ACCESS = {
    "region": "S3_REGION",
    "endpoint": "S3_ENDPOINT",
    "access_key": "S3_ACCESS_KEY",
    "secret_key": "S3_SECRET_KEY",
}
_MEMORY = "memory has a fixed limit for a task: `spark.memory_bytes`"
_DIFFERS = {
    "MAX_FLUSH_RETRIES": "each request is retried with backoff, then the task by Airflow (`retries`)",
    "FLUSH_INTERVAL_MS": "`schedule` says when runs start",
    "FLUSH_TIMEOUT_SECONDS": "no upload has a deadline of its own: each request has",
    "BUFFERS_LOCAL_DIR": "only what exceeds `spark.memory_bytes` is on disk, in Spark's local directory",
    "NUMBER_OF_FLUSH_WORKERS": "the plan's chunks are the units of work; Spark's cores decide how many are "
    "written at once",
    "USE_CACHE": _MEMORY,
    "BUFFER_SIZE_BYTES": _MEMORY,
    "MICROBATCH_INTERVAL_MS": "a run reads the offsets of its plan, and polls for nothing",
    "PROCESS_LOOP_TIMEOUT_SECS": "a task is ended by Airflow, and each request has a deadline",
    "SHUTDOWN_ABORT_TIMEOUT_SECS": "a killed task leaves nothing visible",
    "max_poll_records": "the reader takes as much as its buffer holds",
    "HEALTHY_KAFKA_LAG": "`airflow archive status` has the lag; alerts are connections in `alerts`",
    "S3_UPLOAD_THREADS_PER_FILE": "parts are uploaded as they fill",
    "S3_MULTIPART_THRESHOLD_MB": "every object is a multipart upload: `store.part_bytes`",
    "PORT": "Airflow serves the pages",
    "APP_SECRET": "Airflow serves the pages",
    "PLAY_SECRET_KEY": "Airflow serves the pages",
    "APP_IMAGE": "the build of an image",
}


def draft(keys: Keys) -> Imported:
    """The archive of the service's variables."""
    group = keys.get("APP_ID") or _APP
    keys.kept("APP_ID", f"the archive's name, and source.start: {RULE}")
    if "APP_ID" not in keys:
        keys.remark("kept", f"no APP_ID, so the service's group was {_APP}. source.start: {RULE}")
    keys.kept("SOURCE_KAFKA_TOPIC", "source.topics")
    keys.by_hand("KAFKA_HOST", "bootstrap.servers in the Airflow connection kafka_default (type kafka)")
    keys.differs("DEFAULT_KAFKA_STARTPOINT", "a partition without an offset starts at its first record")
    codec = {"": "none", "gzip": "gzip"}.get(keys.get("COMPRESSION_TYPE").lower())
    if codec is None:
        keys.lacks("COMPRESSION_TYPE", "`gzip` stands in its place; other codecs are in docs/FORMATS.md")
    keys.note("kept", "COMPRESSION_TYPE", "store.codec") if codec else None
    minutes = keys.number("FLUSH_INTERVAL_MINUTES", "schedule: every 15 minutes, which is its default")
    schedule = schedule_of((minutes or 15) * 60_000)
    keys.differs("FLUSH_INTERVAL_MINUTES", f"schedule: {schedule or 'hourly'}; a file ends with the plan's chunk")
    pattern = keys.get("S3_PATTERN_PATH")
    if pattern and pattern != "date=%s/hour=%s":
        keys.lacks(
            "S3_PATTERN_PATH", "the layout `zooz` is date=…/hour=…; say yours as `store.layout: {path: …}` by hand"
        )
    keys.note("kept", "S3_PATTERN_PATH", "store.layout: zooz") if pattern in ("", "date=%s/hour=%s") else None
    extension = keys.get("S3_EXTENSTION") or keys.get("S3_EXTENSION") or "json"
    for key in ("S3_EXTENSTION", "S3_EXTENSION"):
        keys.differs(key, f"the extension is the format's: .jsonl (it was .{extension})")
    skips = keys.flag("SKIP_CORRUPTED_MESSAGES", False)
    keys.kept("SKIP_CORRUPTED_MESSAGES", "policies.bad_record")
    loader = keys.get("LOADING_MODULE")
    if loader and not loader.endswith(".DefaultLoader"):
        keys.lacks(
            "LOADING_MODULE",
            "no Scala runs here. A mapper is `transform.mapper` (Python: a record to 0..n records); a time "
            "taken from the "
            "value is `timestamp: {from: value, …}`",
        )
    keys.note("kept", "LOADING_MODULE", "nothing: no mapper") if loader.endswith(".DefaultLoader") else None
    keys.kept("S3_BUCKET_NAME", "store.url")
    keys.kept("S3_ROOT_PATH", "store.url")
    keys.table("differs", _DIFFERS)
    content = {
        "archive": archive_name(group),
        "schedule": schedule,
        "source": {"topics": words(keys.get("SOURCE_KAFKA_TOPIC")), "start": f"{GROUP}{group}"},
        "store": {
            "url": bucket_url(keys.get("S3_BUCKET_NAME"), keys.get("S3_ROOT_PATH")),
            **access(keys, _ACCESS),
            "layout": "zooz",
            "format": "jsonl",
            "codec": codec or "gzip",
        },
        "policies": {"bad_record": "skip"} if skips else {},
    }
    return Imported(TOOL, (Draft(without_empty(content)),), keys.notes(TOOL))
