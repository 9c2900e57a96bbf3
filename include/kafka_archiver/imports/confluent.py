"""Confluent's S3 sink connector."""

from typing import Any

from kafka_archiver.imports import connect
from kafka_archiver.imports.base import (
    FEW,
    Draft,
    Imported,
    Keys,
    archive_name,
    bucket_url,
    part_bytes,
    schedule_of,
    small,
    without_empty,
)
from kafka_archiver.imports.confluent_format import FORMATS, format_of
from kafka_archiver.imports.confluent_layout import layout_of
from kafka_archiver.imports.s3_access import access, requests
from kafka_archiver.imports.smt import Transforms, transforms_of
from kafka_archiver.model.settings import CHUNK_RECORDS

TOOL = "Confluent S3 sink"
CLASS = "io.confluent.connect.s3.S3SinkConnector"
_ROTATION = (
    "rotation is decided by the plan: an object ends with its chunk, so time-based layouts are exactly once, too"
)
_DIFFERS = {
    "storage.class": "the store is S3 or what speaks its protocol",
    "rotate.interval.ms": _ROTATION,
    "s3.part.retries": "each request is retried with exponential backoff and jitter, then the task by Airflow",
    "s3.retry.backoff.ms": "see `s3.part.retries`",
    "s3.send.digest": "every part has a checksum, and every object is compared with the manifest",
    "enable.conditional.writes": "the ledger's documents are create-only; objects have the same bytes at every attempt",
    "schema.cache.size": "schemas are resolved once, when a run is planned",
    "s3.elastic.buffer.*": "memory has a fixed limit for a task: `spark.memory_bytes`",
    "partitioner.max.open.files": "`store.max_paths` limits the paths of a chunk; memory does not depend on them",
    "shutdown.timeout.ms": "a killed task leaves nothing visible; its uploads are removed by the next",
    "max.files.scan.limit": "nothing is listed: the ledger knows every object",
}
_BY_HAND = {
    "sts.*": "into the extra of the Airflow connection aws_default: role_arn, assume_role_kwargs: {ExternalId, …}",
    "partition.field.format.path": "store.layout: {fields: […], style: values} if it is false",
    "s3.object.tagging.key.value.pairs": "into `store.tags`",
}
_KEPT = {
    "schema.generator.class": "no effect with S3, here as there",
    "hive.*": "no effect with S3, here as there",
    "partition.field": "no effect: the key is partition.field.name",
    "report.null.values.to.dlq": "no effect with this policy for null values",
    "max.write.duration.ms": "no effect on what is stored",
    "rotate.file.on.partition.change": "no effect on what is stored",
}
_LACKS = {
    "connect.meta.data": "Connect's own schema metadata are not stored; the schema is the writer's",
    "enhanced.avro.schema.support": "a decoded schema keeps its names, documentation and enums anyway",
    "allow.optional.map.keys": "a map's key is never null in our formats",
    "s3.wan.mode": "no S3 transfer acceleration",
    "s3.proxy.*": "give the proxy to the workers' environment (HTTPS_PROXY)",
    "s3.http.send.expect.continue": "the client decides",
    "s3.compression.level": "each codec has one level, because the bytes must be the same at every attempt",
    "tombstone.encoded.partition": "no effect without behavior.on.null.values: write",
    "json.decimal.format": "decimals are numbers in JSON lines",
    "s3.object.behavior.on.tagging.error": "a request that fails is retried; no object is without its tags",
}


def draft(keys: Keys) -> Imported:
    """The archive of a connector's keys."""
    keys.kept("connector.class", TOOL)
    value = _assumed(keys, connect.converter(keys, "value"))
    form = format_of(keys, value)
    if form["format"] == "bytes" and value.decode in connect.TYPED:
        keys.remark("differs", f"values are not decoded ({value.decode}): the format bytes stores them as they are")
        value = connect.DecodeChoice("bytes", is_declared=True)
    columns = {"key": connect.converter(keys, "key", used="key" in form.get("metadata", ())), "value": value}
    has_columns = value.decode in connect.FRAMED and form["format"] != "bytes" and "content" not in form
    keyed = bool({"key", "headers"} & set(form.get("metadata", ()))) or form.get("content") == "record"
    nulls = null_values(keys)
    transforms = transforms_of(keys, has_columns, value.inside, keyed, skips_null=nulls == "skip")
    policies = without_empty(
        {"bad_record": connect.bad_records(keys), "null_value": "skip" if transforms.skips_null else nulls}
    )
    source = connect.source(keys, columns)
    filed = layout_of(keys, value.inside, transforms.times)
    store = {
        "url": url_of(keys, "s3.bucket.name", "topics.dir", "topics"),
        **access(keys, _ACCESS),
        "layout": filed.layout,
        "name": filed.name,
        **requests(keys),
        **form,
        "rename": {name: name for name in filed.fields if has_columns and "." not in name},
        "chunk_records": chunk_of(keys),
        "part_bytes": part_bytes(keys, "s3.part.size", "; memory does not depend on it"),
    }
    content = {
        "archive": archive_name(keys.get("name")),
        "schedule": schedule(keys),
        "source": source,
        "timestamp": time_of(keys, filed.timestamp, transforms),
        "transform": transforms.section,
        "store": without_empty(store),
        "schema_evolution": _evolution(keys, value.decode),
        "policies": policies,
    }
    note_affix(keys)
    keys.table("by_hand", _BY_HAND)
    keys.table("differs", _DIFFERS)
    keys.table("kept", _KEPT)
    keys.table("lacks", _LACKS)
    return Imported(TOOL, (Draft(without_empty(content)),), keys.notes(TOOL))


def url_of(keys: Keys, bucket: str, folder: str, default: str) -> str | None:
    """Return `store.url`; None, which no YAML may have, if the file names no bucket."""
    keys.kept(bucket, "store.url")
    value = keys.get(folder, default)
    if value.startswith("/") or value.endswith("/") or "//" in value:
        keys.decide(folder, "store.url, without the folders that have no name; the connector's keys had them")
    keys.kept(folder, "store.url")
    if not keys.get(bucket):
        keys.remark("decide", f"the file has no {bucket}, which the connector needs: write store.url by hand")
        return None
    return bucket_url(keys.get(bucket), value)


def time_of(keys: Keys, timestamp: dict[str, Any], transforms: Transforms) -> dict[str, Any]:
    """Return the section `timestamp`, which is of the record before `transform`."""
    if timestamp.get("from") != "value":
        return timestamp
    path = str(timestamp["path"])
    if path in transforms.times:
        keys.remark("kept", f"{path} is Kafka's timestamp, which a transform has put there: timestamp.from: record")
        return {"from": "record"}
    if transforms.reshapes:
        keys.remark(
            "decide", "timestamp.path is of the record before `transform`: correct it if a transform made the field"
        )
    return timestamp


def note_affix(keys: Keys) -> None:
    """Note what becomes of the folder with the schema's name."""
    key = "s3.schema.partition.affix.type"
    if keys.get(key, "NONE").upper() == "NONE":
        keys.kept(key, "nothing: no folder of the schema's name, here as there")
    keys.decide(key, "there is no folder of the schema's name; objects of another schema have +s<n> in their names")


_ACCESS = {
    "region": "s3.region",
    "endpoint": "store.url",
    "path_style": "s3.path.style.access.enabled",
    "access_key": "aws.access.key.id",
    "secret_key": "aws.secret.access.key",
    "provider": "s3.credentials.provider.class",
    "provider_options": "s3.credentials.provider.",
}


def _assumed(keys: Keys, value: connect.DecodeChoice) -> connect.DecodeChoice:
    """The decoder of the values, also if only the worker knows the converter."""
    if value.is_declared:
        return value
    form = FORMATS.get(keys.get("format.class"), "")
    decode = {"avro": "avro", "parquet": "avro", "jsonl": "json"}.get(form, "bytes")
    if form == "bytes":
        # ByteArrayFormat takes what ByteArrayConverter has read, and nothing else.
        return connect.DecodeChoice(decode, is_declared=True)
    keys.remark(
        "decide",
        f"{connect.NO_CONVERTER}. Assumed: source.value.decode: {decode}",
    )
    return connect.DecodeChoice(decode, is_declared=False)


def schedule(keys: Keys) -> str | None:
    """Return `schedule`, if the key is an interval that a schedule can say."""
    key = "rotate.schedule.interval.ms"
    expression = schedule_of(keys.number(key, "`schedule` is left out: hourly", least=-1))
    keys.differs(
        key, f"schedule: {expression}" if expression else f"`schedule` says when runs start (hourly); {_ROTATION}"
    )
    return expression


def chunk_of(keys: Keys) -> int | None:
    """Return `store.chunk_records`."""
    records = keys.number("flush.size", f"store.chunk_records is left out: {CHUNK_RECORDS}", most=100_000_000)
    keys.differs(
        "flush.size",
        "store.chunk_records: a chunk is so many offsets of a partition, and an object has a path's records of "
        "one chunk",
    )
    if records and records < FEW:
        keys.remark("by_hand", small(records))
    return records


def _evolution(keys: Keys, decode: str) -> str | None:
    key, compatibility = "schema.compatibility", keys.get("schema.compatibility", "NONE").upper()
    if decode not in connect.FRAMED:
        keys.note("kept", key, "no effect without a schema, here as there")
        return None
    keys.kept(key, f"schema_evolution: {compatibility}")
    return None if compatibility == "NONE" else compatibility


def null_values(keys: Keys) -> str | None:
    """Return `policies.null_value`, as the connector's behaviour says it."""
    key = "behavior.on.null.values"
    if keys.get(key, "fail").lower() == "ignore":
        keys.kept(key, "policies.null_value: skip; the account counts each of them")
        return "skip"
    if keys.get(key).lower() == "write":
        keys.decide(key, "policies.null_value: archive, beside other records; the connector wrote the keys of null "
                         "values to files below tombstone.encoded.partition")  # fmt: skip
        keys.lacks("tombstone.encoded.partition", f"see {key}")
    keys.differs(key, "policies.null_value: archive; a null value is a record, and no run fails at it")
    return None
