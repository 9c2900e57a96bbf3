"""Aiven's S3 sink connector."""

from typing import Any

from kafka_archiver.imports import connect
from kafka_archiver.imports.aiven_template import TemplateKeys, place_of
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
    words,
)
from kafka_archiver.imports.confluent_format import same_text
from kafka_archiver.imports.joda import NO_ZONE, zone_of
from kafka_archiver.imports.s3_access import access
from kafka_archiver.imports.smt import transforms_of
from kafka_archiver.model.settings import CHUNK_RECORDS

TOOL = "Aiven S3 sink"
CLASS = "io.aiven.kafka.connect.s3.AivenKafkaConnectS3SinkConnector"
_OLDER = {
    "aws_access_key_id": "aws.access.key.id",
    "aws_secret_access_key": "aws.secret.access.key",
    "aws_s3_bucket": "aws.s3.bucket.name",
    "aws_s3_endpoint": "aws.s3.endpoint",
    "aws_s3_region": "aws.s3.region",
    "aws_s3_prefix": "aws.s3.prefix",
    "output_compression": "file.compression.type",
    "output_fields": "format.output.fields",
    "aws.credential.provider": "aws.credentials.provider",
}
_ACCESS = {
    "region": "aws.s3.region",
    "endpoint": "aws.s3.endpoint",
    "access_key": "aws.access.key.id",
    "secret_key": "aws.secret.access.key",
    "provider": "aws.credentials.provider",
    "provider_options": "aws.sts.",
}
_DIFFERS = {
    "aws.s3.backoff.*": "each request is retried with exponential backoff and jitter, then the task by Airflow",
    "kafka.retry.backoff.ms": "a failed task is retried by Airflow (`retries`)",
    "offset.flush.interval.ms": "`schedule` says when runs start; a file ends with the plan's chunk",
    "aws.s3.path_style": "boto3 decides; `store.aws.addressing_style` is path or virtual",
}
_PREFIX, _TEMPLATE = "aws.s3.prefix", "file.name.template"
# The extension that the connector's default names have.
_ENDINGS = {"gzip": ".gz", "snappy": ".snappy", "zstd": ".zst"}


def draft(keys: Keys) -> Imported:
    """The archive of a connector's keys."""
    for old, new in _OLDER.items():
        keys.rename(old, new)
        keys.kept(old, f"no effect beside {new}, its present name")
    keys.kept("connector.class", TOOL)
    value = connect.converter(keys, "value")
    codec = _codec(keys)
    form, value = _format(keys, value)
    key = connect.converter(keys, "key", used="key" in form.get("metadata", ()))
    has_columns = value.decode in connect.FRAMED and form["format"] not in ("text", "csv") and "content" not in form
    transforms = transforms_of(keys, has_columns, value.inside, keyed=form.get("content") == "record")
    policies = {"bad_record": connect.bad_records(keys), "null_value": "skip" if transforms.skips_null else None}
    source = connect.source(keys, {"key": key, "value": value})
    place = _place(keys, codec)
    keys.kept("aws.s3.bucket.name", "store.url")
    if not keys.get("aws.s3.bucket.name"):
        keys.remark("decide", "the file has no aws.s3.bucket.name, which the connector needs: write store.url by hand")
    chunk = keys.number("file.max.records", f"store.chunk_records is left out: {CHUNK_RECORDS}", 0, 100_000_000)
    keys.differs("file.max.records", "store.chunk_records, if it is not 0: an object has the records of one chunk")
    if chunk and chunk < FEW:
        keys.remark("by_hand", small(chunk))
    store = {
        "url": bucket_url(keys.get("aws.s3.bucket.name")) if keys.get("aws.s3.bucket.name") else None,
        **access(keys, _ACCESS),
        "layout": place.layout,
        "name": place.name,
        **_encryption(keys),
        **form,
        "codec": codec,
        "chunk_records": chunk or None,
        "part_bytes": part_bytes(keys, "aws.s3.part.size.bytes"),
    }
    schedule = schedule_of(keys.number("offset.flush.interval.ms", "`schedule` is left out: hourly"))
    content = {
        "archive": archive_name(keys.get("name")),
        "schedule": schedule,
        "source": source,
        "timestamp": place.timestamp,
        "transform": transforms.section,
        "store": without_empty(store),
        "policies": without_empty(policies),
    }
    keys.table("differs", _DIFFERS)
    return Imported(TOOL, (Draft(without_empty(content)),), keys.notes(TOOL))


def _codec(keys: Keys) -> str:
    key = "file.compression.type"
    codec = keys.get(key, "gzip").lower()
    if codec == "snappy":
        keys.decide(
            key, "store.codec: snappy is the framing format; theirs is that of snappy-java, which others cannot read"
        )
    keys.kept(key, f"store.codec: {codec}")
    return codec


def _format(keys: Keys, value: connect.DecodeChoice) -> tuple[dict[str, Any], connect.DecodeChoice]:
    """Return what `store` says of the format, and how the values are decoded for it."""
    kind = keys.get("format.output.type", "csv").lower()
    fields = words(keys.get("format.output.fields", "value"))
    envelope = keys.flag("format.output.envelope", True)
    alone = fields == ["value"]
    encoding = keys.get("format.output.fields.value.encoding", "base64").lower()
    raw = connect.DecodeChoice("bytes", is_declared=value.is_declared)
    if kind == "csv":
        _converted(keys, value, "bytes")
        if alone and encoding == "none":
            keys.kept("format.output.type", "store.format: text, a value in each line")
            section = {"format": "text"}
        elif alone:
            _say(
                keys, "format.output.type", "store.format: text, a value in each line; the connector wrote base64 of it"
            )
            section = {"format": "text"}
        else:
            listed = ",".join(fields)
            _say(keys, "format.output.type", "store.format: csv with the columns of Kafka's records and a header; the "
                 f"connector wrote {listed} without a header, keys and values in base64")  # fmt: skip
            section = {"format": "csv", "content": "record"}
        _kept_format(keys)
        return section, raw
    if kind not in ("json", "jsonl", "parquet", "avro"):
        keys.decide("format.output.type", "expected csv, json, jsonl, parquet or avro; jsonl stands in its place")
    form = kind if kind in ("parquet", "avro") else "jsonl"
    section = {"format": form}
    if kind == "json":
        _say(keys, "format.output.type", "store.format: jsonl, a document in each line; the connector wrote an array")
    if alone and not envelope:
        if not value.is_declared:
            _converted(keys, value, "json" if form == "jsonl" else "avro")
            value = connect.DecodeChoice("json" if form == "jsonl" else "avro", is_declared=False)
        same_text(keys, form, value)
        if form in ("parquet", "avro") and value.decode not in connect.FRAMED:
            section["content"] = "record"
    else:
        listed = ",".join(fields)
        _say(keys, "format.output.fields", f"store.content: record, all of Kafka; the connector wrote {listed} as "
             "fields of one object, with the value within it and ISO times")  # fmt: skip
        section["content"] = "record"
        value = raw
    _kept_format(keys)
    return section, value


def _say(keys: Keys, key: str, text: str) -> None:
    """Note what a person decides, also if it comes from a default."""
    keys.decide(key, text) if key in keys else keys.remark("decide", f"by default: {text}")


def _kept_format(keys: Keys) -> None:
    for key in ("format.output.type", "format.output.fields", "format.output.envelope"):
        keys.kept(key, "store.format and store.content")
    keys.kept("format.output.fields.value.encoding", "store.format; other formats than csv have none")


def _converted(keys: Keys, value: connect.DecodeChoice, expected: str) -> None:
    if not value.is_declared:
        keys.remark(
            "decide" if expected != "bytes" else "differs",
            f"{connect.NO_CONVERTER}. Assumed: source.value.decode: {expected}",
        )


def _place(keys: Keys, codec: str) -> TemplateKeys:
    """Return where the objects are: by the prefix of older releases, or by the template of the name."""
    old = _PREFIX in keys
    if old:
        template = keys.get(_PREFIX) + "{{topic}}-{{partition}}-{{start_offset:padding=true}}" + _ENDINGS.get(codec, "")
        keys.kept(_TEMPLATE, f"no effect with {_PREFIX}")
    else:
        default = "{{topic}}-{{partition}}-{{start_offset}}" + _ENDINGS.get(codec, "")
        template = keys.get(_TEMPLATE, default)
    source, zone = ("timestamp.source", "timestamp.timezone") if old else (
        "file.name.timestamp.source", "file.name.timestamp.timezone"
    )  # fmt: skip
    # Releases since 2025 take a key of older ones for the newer one, if that is missing.
    moved = {} if old else {new: new.removeprefix("file.name.") for new in (source, zone) if new not in keys}
    name, known = zone_of(keys.get(zone) or keys.get(moved.get(zone, "")) or "UTC")
    when = keys.get(source) or keys.get(moved.get(source, "")) or "wallclock"
    place = place_of(template, name, when.lower() == "event")
    for new, key in moved.items():
        if key in keys and place.timestamp and keys.get(key) not in ("UTC", "Z", "wallclock"):
            keys.decide(key, f"taken for {new}, as releases since 2025 take it; earlier ones do not, and show UTC and "
                        "the time of the work")  # fmt: skip
    if not known and place.timestamp:
        keys.decide(zone, NO_ZONE)
    _times(keys, place, source, zone)
    if place.wrong:
        _say(keys, _PREFIX if old else _TEMPLATE, place.wrong)
    keys.kept(_PREFIX, "store.layout.path and store.name")
    keys.kept(_TEMPLATE, "store.layout.path and store.name")
    keys.kept("file.prefix.template", "no effect in the sink")
    if place.timestamp.get("from") == "wallclock":
        keys.remark(
            "differs",
            "timestamp.from: wallclock is the plan's time, so that a retry files each record in the same place",
        )
    keys.remark("differs", f"objects end with the extension of store.format and store.codec; theirs are {template}")
    return place


def _times(keys: Keys, place: TemplateKeys, source: str, zone: str) -> None:
    """Note the keys of times that have no note yet. `source`, `zone`: those that count."""
    for end, counts, target in (("source", source, "timestamp.from"), ("timezone", zone, "store.layout.timezone")):
        for key in (f"timestamp.{end}", f"file.name.timestamp.{end}"):
            if not place.timestamp:
                shown = "see the template" if place.wrong else "no effect: the objects' names have no time"
            elif key == counts:
                shown = target
            elif counts in keys:
                shown = f"no effect beside {counts}"
            else:
                shown = f"no effect: {counts} counts, by its default"
            keys.kept(key, shown)


def _encryption(keys: Keys) -> dict[str, Any]:
    key = "aws.s3.sse.algorithm"
    algorithm = keys.get(key)
    encryption = {"AES256": "sse-s3", "aws:kms": "sse-kms"}.get(algorithm)
    if algorithm and not encryption:
        keys.decide(key, "expected AES256 or aws:kms; objects are stored without encryption by S3's request")
    keys.kept(key, "store.encryption")
    return {"encryption": encryption} if encryption else {}
