"""Zooz' kafka-s3-connector: environment variables, from a file of `NAME=value`."""

import re
from typing import Any

from kafka_archiver.config.source import GROUP
from kafka_archiver.imports.base import (
    Draft,
    Imported,
    Keys,
    archive_name,
    bucket_url,
    schedule_of,
    without_empty,
)
from kafka_archiver.imports.connect import RULE
from kafka_archiver.imports.s3_access import access

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


# The names in its application.conf, which system properties (-Dapp.id=…) have, too.
_CONF = {
    "app.id": "APP_ID",
    "app.flush_interval_min": "FLUSH_INTERVAL_MINUTES",
    "app.flush_interval_ms": "FLUSH_INTERVAL_MS",
    "app.max_flush_retries": "MAX_FLUSH_RETRIES",
    "app.buffers_local_dir": "BUFFERS_LOCAL_DIR",
    "app.number_of_flush_workers": "NUMBER_OF_FLUSH_WORKERS",
    "app.flush_timeout_seconds": "FLUSH_TIMEOUT_SECONDS",
    "app.compress_type": "COMPRESSION_TYPE",
    "app.use_cache": "USE_CACHE",
    "app.buffer_size_bytes": "BUFFER_SIZE_BYTES",
    "app.microbatch_interval_ms": "MICROBATCH_INTERVAL_MS",
    "app.process_loop_timeout_seconds": "PROCESS_LOOP_TIMEOUT_SECS",
    "app.shutdown_abort_timeout_seconds": "SHUTDOWN_ABORT_TIMEOUT_SECS",
    "app.skip_corrupted_messages": "SKIP_CORRUPTED_MESSAGES",
    "kafka.host": "KAFKA_HOST",
    "kafka.topic": "SOURCE_KAFKA_TOPIC",
    "kafka.healthy_lag": "HEALTHY_KAFKA_LAG",
    "kafka.max_poll_records": "max_poll_records",
    "kafka.default_startpoint": "DEFAULT_KAFKA_STARTPOINT",
    "s3.bucket": "S3_BUCKET_NAME",
    "s3.access_key": "S3_ACCESS_KEY",
    "s3.secret_key": "S3_SECRET_KEY",
    "s3.upload_threads_per_file": "S3_UPLOAD_THREADS_PER_FILE",
    "s3.multipart_threshold_mb": "S3_MULTIPART_THRESHOLD_MB",
    "s3.root_path": "S3_ROOT_PATH",
    "s3.pattern_path": "S3_PATTERN_PATH",
    "s3.extension": "S3_EXTENSTION",
    "s3.region": "S3_REGION",
    "s3._endpoint": "S3_ENDPOINT",
    "loading-module": "LOADING_MODULE",
    "play.server.http.port": "PORT",
    "play.http.secret.key": "PLAY_SECRET_KEY",
}
_CODECS = ("GZIP", "BZIP2", "SNAPPY", "LZ4")
_PATTERN = "date=%s/hour=%s"
_PARTS = ("{yyyy-MM-dd}", "{HH}")


def is_of(keys: Keys) -> bool:
    """Return True if the keys are the service's."""
    return ("SOURCE_KAFKA_TOPIC" in keys and "S3_BUCKET_NAME" in keys) or (
        "kafka.topic" in keys and "s3.bucket" in keys
    )


def draft(keys: Keys) -> Imported:
    """Return the archive of the service's variables."""
    for name, variable in _CONF.items():
        keys.rename(name, variable)
    group = keys.get("APP_ID") or _APP
    topic = keys.get("SOURCE_KAFKA_TOPIC")
    keys.kept("APP_ID", f"the archive's name, the folder below the root path, and source.start: {RULE}")
    if "APP_ID" not in keys:
        keys.remark("kept", f"no APP_ID, so the service's group was {_APP}. source.start: {RULE}")
    keys.kept("SOURCE_KAFKA_TOPIC", "source.topics")
    keys.by_hand("KAFKA_HOST", "bootstrap.servers in the Airflow connection kafka_default (type kafka)")
    keys.differs("DEFAULT_KAFKA_STARTPOINT", "a partition without an offset starts at its first record")
    minutes = keys.number("FLUSH_INTERVAL_MINUTES", "schedule: every 15 minutes, which is its default")
    schedule = schedule_of((minutes or 15) * 60_000)
    keys.differs("FLUSH_INTERVAL_MINUTES", f"schedule: {schedule or 'hourly'}; a file ends with the plan's chunk")
    skips = keys.flag("SKIP_CORRUPTED_MESSAGES", False)
    keys.kept("SKIP_CORRUPTED_MESSAGES", "policies.bad_record")
    mapper = _mapper(keys)
    store = _store(keys, group, topic)
    keys.table("differs", _DIFFERS)
    content = {
        "archive": archive_name(group),
        "schedule": schedule,
        "source": {"topics": [topic], "start": f"{GROUP}{group}"},
        "transform": {"mapper": mapper} if mapper else {},
        "store": store,
        "policies": {"bad_record": "skip"} if skips else {},
    }
    return Imported(TOOL, (Draft(without_empty(content)),), keys.notes(TOOL))


def _mapper(keys: Keys) -> str:
    """Return a function that does not exist, so that a person replaces it: a loader's mapper may hide values."""
    loader = keys.get("LOADING_MODULE")
    if not loader or loader == "com.zooz.kafkas3connector.modules.DefaultLoader":
        keys.kept("LOADING_MODULE", "nothing: no mapper")
        return ""
    keys.decide(
        "LOADING_MODULE",
        "no Scala runs here. `transform.mapper` is refused until it names what the loader's mapper does (Python: a "
        "record to 0..n records), for that may hide values; remove it if the loader has none. A time that it takes "
        "from the value is `timestamp: {from: value, …}`",
    )
    return f"imported_transforms:{re.sub('[^A-Za-z0-9_]', '_', loader.rpartition('.')[2])}"


def _store(keys: Keys, group: str, topic: str) -> dict[str, Any]:
    """Return the section `store`: the same folders and bytes. Names have the topic, unless a folder is called so."""
    root = keys.get("S3_ROOT_PATH").removesuffix("/")
    if root.startswith("/") or "//" in root or root.endswith("/"):
        keys.decide("S3_ROOT_PATH", "store.url; its keys have empty folders, and here they have none")
    keys.kept("S3_BUCKET_NAME", "store.url")
    keys.kept("S3_ROOT_PATH", "store.url")
    app = group.replace("/", "_")
    path = _path(keys)
    filed: dict[str, Any] = {"layout": {"path": path, "missing": "null"}, "name": "{topic}-{partition}_{start}"}
    url = bucket_url(keys.get("S3_BUCKET_NAME"), re.sub("/+", "/", root), app)
    if app == topic and path == _path_of(_PATTERN):
        filed, url = {"layout": "zooz"}, bucket_url(keys.get("S3_BUCKET_NAME"), re.sub("/+", "/", root))
    else:
        keys.remark(
            "differs", "names are <topic>-<partition>_<offset>, theirs <partition>_<offset>: a name has its topic"
        )
    keys.remark("differs", "a name has the first offset of a chunk; theirs has that of the file's first record")
    keys.remark(
        "decide",
        "dates and hours are those of UTC; theirs are of its machine's time zone, which the file does not have: see "
        "`store.layout.timezone`",
    )
    extension = next((text for key in ("S3_EXTENSTION", "S3_EXTENSION") if (text := keys.get(key))), "json")
    for key in ("S3_EXTENSTION", "S3_EXTENSION"):
        keys.kept(key, "store.options.extension")
    codec = keys.get("COMPRESSION_TYPE")
    if codec and codec not in _CODECS:
        keys.decide(
            "COMPRESSION_TYPE", f"expected one of {', '.join(_CODECS)}, or the service does not start; `none` here"
        )
    keys.kept("COMPRESSION_TYPE", "store.codec")
    store = {"url": url, **access(keys, _ACCESS), **filed, "format": "bytes"}
    store |= {"options": {"separator": "\n", "extension": f".{extension}"}}
    return {**store, "codec": codec.lower() if codec in _CODECS else "none"}


def _path(keys: Keys) -> str:
    """Return the folders below the service's own."""
    pattern = keys.get("S3_PATTERN_PATH") or _PATTERN
    if pattern.count("%s") > len(_PARTS) or "%" in pattern.replace("%s", "") or re.search("[{}]", pattern):
        keys.decide("S3_PATTERN_PATH", f"expected two %s, for the date and the hour; {_PATTERN} stands in its place")
        return _path_of(_PATTERN)
    keys.kept("S3_PATTERN_PATH", "store.layout")
    return _path_of(pattern)


def _path_of(pattern: str) -> str:
    for part in _PARTS:
        pattern = pattern.replace("%s", part, 1)
    return pattern
