"""Confluent's S3 sink connector."""

import re
from typing import Any

from kafka_archiver.imports import connect
from kafka_archiver.imports.base import (
    FEW,
    Draft,
    Imported,
    Keys,
    archive_name,
    bucket_url,
    schedule_of,
    small,
    without_empty,
)
from kafka_archiver.imports.confluent_layout import layout_of
from kafka_archiver.imports.s3 import access, requests
from kafka_archiver.imports.smt import steps_of

TOOL = "Confluent S3 sink"
CLASS = "io.confluent.connect.s3.S3SinkConnector"
_FORMATS = {
    "io.confluent.connect.s3.format.avro.AvroFormat": "avro",
    "io.confluent.connect.s3.format.json.JsonFormat": "jsonl",
    "io.confluent.connect.s3.format.parquet.ParquetFormat": "parquet",
    "io.confluent.connect.s3.format.bytearray.ByteArrayFormat": "bytes",
}
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
}
_LACKS = {
    "connect.meta.data": "Connect's own schema metadata are not stored; the schema is the writer's",
    "enhanced.avro.schema.support": "a decoded schema keeps its names, documentation and enums anyway",
    "allow.optional.map.keys": "a map's key is never null in our formats",
    "s3.wan.mode": "no S3 transfer acceleration",
    "s3.proxy.*": "give the proxy to the workers' environment (HTTPS_PROXY)",
    "s3.http.send.expect.continue": "the client decides",
    "s3.compression.level": "each codec has one level, because the bytes must be the same at every attempt",
    "keys.format.class": "keys are in the same object as the values",
    "headers.format.class": "headers are in the same object as the values",
    "tombstone.encoded.partition": "a null value has no field: `missing` of the layout decides its place",
    "json.decimal.format": "decimals are numbers in JSON lines",
    "s3.schema.partition.affix.type": "objects of another schema have +s<n> in their names",
    "s3.object.behavior.on.tagging.error": "a request that fails is retried; no object is without its tags",
}


def draft(keys: Keys) -> Imported:
    """The archive of a connector's keys."""
    keys.kept("connector.class", TOOL)
    value = _assumed(keys, connect.converter(keys, "value"))
    form = _format(keys, value.decode)
    if form["format"] == "bytes" and value.decode in connect.TYPED:
        keys.remark("differs", f"values are not decoded ({value.decode}): the format bytes stores them as they are")
        value = connect.Decoded("bytes", given=True)
    columns = {"key": connect.converter(keys, "key", used="key" in form.get("metadata", ())), "value": value}
    columns_stored = value.decode in connect.FRAMED and form["format"] != "bytes" and "content" not in form
    steps, skips_null = steps_of(keys, columns_stored, value.inside)
    nulls = _null_values(keys)
    policies = without_empty({"bad_record": connect.bad_records(keys), "null_value": "skip" if skips_null else nulls})
    source = connect.source(keys, columns)
    layout, timestamp = layout_of(keys, value.inside)
    keys.kept("s3.bucket.name", "store.url")
    keys.kept("topics.dir", "store.url")
    part = keys.number("s3.part.size", "store.part_bytes is left out: 8388608", most=1 << 30)
    store = {
        "url": bucket_url(keys.get("s3.bucket.name"), keys.get("topics.dir", "topics")),
        **access(keys, _ACCESS),
        "layout": layout,
        **requests(keys),
        **form,
        "chunk_records": _chunk(keys),
        "part_bytes": part and max(part, 5 << 20),
    }
    keys.kept("s3.part.size", "store.part_bytes (at least 5 MiB); memory does not depend on it")
    content = {
        "archive": archive_name(keys.get("name")),
        "schedule": _schedule(keys),
        "source": source,
        "timestamp": timestamp,
        "transform": {"steps": steps} if steps else None,
        "store": without_empty(store),
        "schema_evolution": _evolution(keys, value.decode),
        "policies": policies,
    }
    if timestamp.get("from") == "value" and any("rename" in step or "flatten" in step for step in steps):
        keys.remark(
            "by_hand", "timestamp.path is of the record before `transform`: correct it if a step made the field"
        )
    keys.table("by_hand", _BY_HAND)
    keys.table("differs", _DIFFERS)
    keys.table("lacks", _LACKS)
    return Imported(TOOL, (Draft(without_empty(content)),), keys.notes(TOOL))


_ACCESS = {
    "region": "s3.region",
    "endpoint": "store.url",
    "path_style": "s3.path.style.access.enabled",
    "access_key": "aws.access.key.id",
    "secret_key": "aws.secret.access.key",
    "provider": "s3.credentials.provider.class",
    "provider_options": "s3.credentials.provider.",
}


def _assumed(keys: Keys, value: connect.Decoded) -> connect.Decoded:
    """The decoder of the values, also if only the worker knows the converter."""
    if value.given:
        return value
    form = _FORMATS.get(keys.get("format.class"), "")
    decode = {"avro": "avro", "parquet": "avro", "jsonl": "json"}.get(form, "bytes")
    keys.remark(
        "by_hand",
        f"the file has no value.converter, so the connector took its worker's. Assumed: source.value.decode: {decode}; "
        "correct it if the values are something else",
    )
    return connect.Decoded(decode, given=False)


def _format(keys: Keys, decode: str) -> dict[str, Any]:
    form = _FORMATS.get(keys.get("format.class"))
    made: dict[str, Any] = {"format": form or "jsonl"}
    if form is None:
        keys.lacks(
            "format.class", "no format of this class; `jsonl` stands in its place, others are in docs/FORMATS.md"
        )
    else:
        keys.kept("format.class", f"store.format: {form}")
    codecs = {"avro": ("avro.codec", "null"), "parquet": ("parquet.codec", "snappy")}
    key, default = codecs.get(made["format"], ("s3.compression.type", "none"))
    codec = keys.get(key, default).lower()
    made["codec"] = {"null": "none", "uncompressed": "none", "lz4_raw": "lz4"}.get(codec, codec)
    keys.kept(key, f"store.codec: {made['codec']}")
    for other in {"avro.codec", "parquet.codec", "s3.compression.type"} - {key}:
        keys.note("kept", other, "no effect with this format, here as there")
    if form == "bytes":
        made |= _bytes(keys)
    for key in ("format.bytearray.extension", "format.bytearray.separator"):
        keys.kept(key, "store.options" if form == "bytes" else "no effect with this format, here as there")
    wanted = [n for n in ("key", "headers") if keys.flag(f"store.kafka.{n if n == 'headers' else 'keys'}", False)]
    # Only decoded values have columns beside which Kafka's could be.
    columns = decode in connect.TYPED and form != "bytes"
    if form == "bytes":
        for key in ("store.kafka.keys", "store.kafka.headers"):
            keys.lacks(
                key, "the format bytes has values only; jsonl, avro and parquet with store.content: record have all"
            )
    elif wanted and columns:
        made["metadata"] = wanted
    elif wanted or (form in ("avro", "parquet") and not columns):
        made["content"] = "record"
        if not wanted:
            keys.remark(
                "differs", f"store.content: record, because {form} needs columns, and the values are not decoded"
            )
    where = "store.metadata: columns of the same object" if columns else "store.content: record, in the same object"
    for key in ("store.kafka.keys", "store.kafka.headers"):
        keys.differs(key, where if keys.flag(key, False) else "not stored, here as there")
    return made


def _bytes(keys: Keys) -> dict[str, Any]:
    options = {}
    extension = keys.get("format.bytearray.extension")
    if re.fullmatch(r"(\.[A-Za-z0-9_-]+)+", extension):
        options["extension"] = extension
    elif extension:
        keys.lacks("format.bytearray.extension", "expected a dot, letters and digits; .bin stands in its place")
    # Their default is a line break.
    options["separator"] = keys.get("format.bytearray.separator") or "\n"
    return {"options": options}


def _schedule(keys: Keys) -> str | None:
    key = "rotate.schedule.interval.ms"
    found = schedule_of(keys.number(key, "`schedule` is left out: hourly", least=-1))
    keys.differs(key, f"schedule: {found}" if found else f"`schedule` says when runs start (hourly); {_ROTATION}")
    return found


def _chunk(keys: Keys) -> int | None:
    found = keys.number("flush.size", "store.chunk_records is left out: 1000000", most=100_000_000)
    keys.differs(
        "flush.size",
        "store.chunk_records: a chunk is so many offsets of a partition, and an object has a path's records of "
        "one chunk",
    )
    if found and found < FEW:
        keys.remark("by_hand", small(found))
    return found


def _evolution(keys: Keys, decode: str) -> str | None:
    key, found = "schema.compatibility", keys.get("schema.compatibility", "NONE").upper()
    if decode not in connect.FRAMED:
        keys.note("kept", key, "no effect without a schema, here as there")
        return None
    keys.kept(key, f"schema_evolution: {found}")
    return None if found == "NONE" else found


def _null_values(keys: Keys) -> str | None:
    key = "behavior.on.null.values"
    if keys.get(key, "fail").lower() == "ignore":
        keys.kept(key, "policies.null_value: skip; the account counts each of them")
        return "skip"
    keys.differs(key, "policies.null_value: archive; a null value is a record, and no run fails at it")
    return None
