"""The managed S3 sink of Confluent Cloud."""

from typing import Any

from kafka_archiver.imports import connect
from kafka_archiver.imports.base import Draft, Imported, Keys, archive_name, part_bytes, without_empty
from kafka_archiver.imports.confluent import chunk_of, note_affix, null_values, schedule, time_of, url_of
from kafka_archiver.imports.confluent_format import extensions, same_text, stored_beside
from kafka_archiver.imports.joda import NO_ZONE, locale_of, pattern_of, zone_of
from kafka_archiver.imports.s3_access import access, requests
from kafka_archiver.imports.smt import transforms_of

TOOL = "Confluent Cloud S3 sink"
CLASS = "S3_SINK"
_DECODED = {"AVRO": "avro", "JSON_SR": "json_schema", "PROTOBUF": "protobuf", "JSON": "json", "BYTES": "bytes",
            "STRING": "string"}  # fmt: skip
_FORMATS = {"AVRO": "avro", "JSON": "jsonl", "PARQUET": "parquet", "BYTES": "bytes"}
# The key of earlier releases, for what is read and what is written.
_BOTH = "data.format"
_CODEC = "compression.codec"
_DAY = "'year'=YYYY/'month'=MM/'day'=dd"
# The path and the length of each interval.
_INTERVALS = {"HOURLY": (f"{_DAY}/'hour'=HH", "3600000ms"), "DAILY": (_DAY, "86400000ms")}
_ACCESS = {
    "region": "s3.region",
    "endpoint": "store.url",
    "access_key": "aws.access.key.id",
    "secret_key": "aws.secret.access.key",
}
_BY_HAND = {
    "kafka.api.*": "into the Airflow connection kafka_default (type kafka)",
    "kafka.auth.mode": "the Airflow connection kafka_default has a key of its own",
    "kafka.service.account.id": "the Airflow connection kafka_default has a key of its own",
    "kafka.endpoint": "bootstrap.servers in the Airflow connection kafka_default (type kafka)",
    "kafka.region": "see the Airflow connection kafka_default",
    "schema.context.name": "a context of the registry is part of the address in schema_registry_default",
    "authentication.method": "into the Airflow connection aws_default (type aws)",
    "provider.integration.id": "role_arn into the extra of the Airflow connection aws_default (type aws)",
    "sts.*": "role_arn, assume_role_kwargs into the extra of the Airflow connection aws_default (type aws)",
    "subject.name.strategy": "`source.value.subject`, if it is not TopicNameStrategy",
    "value.subject.name.strategy": "`source.value.subject`, if it is not TopicNameStrategy",
    "key.subject.name.strategy": "`source.key.subject`, if it is not TopicNameStrategy",
}
_DIFFERS = {
    "rotate.interval.ms": "rotation is decided by the plan: an object ends with its chunk",
    "max.poll.*": "a run reads the offsets of its plan, and polls for nothing",
    "s3.wan.mode": "no S3 transfer acceleration",
    "s3.path.style.access*": "boto3 decides; `store.aws.addressing_style` is path or virtual",
    "s3.compression.level": "each codec has one level, because the bytes must be the same at every attempt",
    "auto.restart.on.user.error": "a failed task is retried by Airflow (`retries`)",
    "input.key.format": "keys are bytes, unless they are stored",
    "output.keys.format": "keys are in the same object as the values",
    "output.headers.format": "headers are in the same object as the values",
    "tombstone.encoded.partition": "no effect without behavior.on.null.values: write",
    "errors.deadletterqueue.topic.name": "policies.bad_record: dead_letter; they are objects below _dead_letter/",
    "value.converter.*": "the decoder has no such option",
    "csfle.onFailure": "see csfle.enabled",
    "connector.egress.whitelist": "the network of the workers decides",
    "connect.meta.data": "Connect's own schema metadata are not stored",
    "enhanced.avro.schema.support": "a decoded schema keeps its names, documentation and enums anyway",
    "schema.cache.size": "schemas are resolved once, when a run is planned",
    "json.decimal.format": "decimals are text in JSON lines",
    "consumer.override.*": "see the Kafka connection",
}


def draft(keys: Keys) -> Imported:
    """The archive of a connector's keys."""
    keys.kept("connector.class", TOOL)
    if keys.get("csfle.enabled").lower() == "true":
        keys.decide("csfle.enabled", "fields that are encrypted in Kafka are stored as they are: nothing decrypts them")
    keys.kept("csfle.enabled", "nothing: no field is encrypted")
    value = _decoded(keys)
    form = _format(keys, value)
    if form["format"] == "bytes":
        value = connect.DecodeChoice("bytes", is_declared=True)
    has_columns = value.decode in connect.FRAMED and form["format"] != "bytes" and "content" not in form
    keyed = bool(form.get("metadata")) or form.get("content") == "record"
    nulls = null_values(keys)
    transforms = transforms_of(keys, has_columns, "", keyed, skips_null=nulls == "skip")
    layout, timestamp = _layout(keys)
    store = {
        "url": url_of(keys, "s3.bucket.name", "topics.dir", "topics"),
        **access(keys, _ACCESS),
        "layout": layout,
        **requests(keys),
        **form,
        "chunk_records": chunk_of(keys),
        "part_bytes": part_bytes(keys, "s3.part.size"),
    }
    # Its group is connect-lcc-…, by the connector's id, which is not in its configuration.
    source = connect.source(keys, {"value": value}, group_prefix="")
    evolution = keys.get("schema.compatibility", "NONE").upper()
    keys.kept("schema.compatibility", "schema_evolution")
    content = {
        "archive": archive_name(keys.get("name")),
        "schedule": schedule(keys),
        "source": source,
        "timestamp": time_of(keys, timestamp, transforms),
        "transform": transforms.section,
        "store": without_empty(store),
        "schema_evolution": evolution if evolution != "NONE" and value.decode in connect.FRAMED else None,
        # Its dead letter queue is there without a key.
        "policies": without_empty(
            {"bad_record": "dead_letter", "null_value": "skip" if transforms.skips_null else nulls}
        ),
    }
    keys.remark("differs", "policies.bad_record: dead_letter, because the connector has a dead letter queue by itself")
    keys.kept("errors.tolerance", "policies.bad_record: dead_letter")
    note_affix(keys)
    keys.table("by_hand", _BY_HAND)
    keys.table("differs", _DIFFERS)
    return Imported(TOOL, (Draft(without_empty(content)),), keys.notes(TOOL))


def _decoded(keys: Keys) -> connect.DecodeChoice:
    key = _BOTH if _BOTH in keys and "input.data.format" not in keys else "input.data.format"
    decode = _DECODED.get(keys.get(key).upper())
    if decode is None:
        text = f"expected one of {', '.join(_DECODED)}; the values are taken as bytes"
        keys.decide(key, text) if key in keys else keys.remark("decide", f"the file has no {key}: {text}")
        return connect.DecodeChoice("bytes", is_declared=True)
    keys.kept(key, f"source.value.decode: {decode}")
    return connect.DecodeChoice(decode, is_declared=True)


def _format(keys: Keys, value: connect.DecodeChoice) -> dict[str, Any]:
    key = _BOTH if _BOTH in keys and "output.data.format" not in keys else "output.data.format"
    form = _FORMATS.get(keys.get(key).upper())
    if form is None:
        text = f"expected one of {', '.join(_FORMATS)}; jsonl stands in its place"
        keys.decide(key, text) if key in keys else keys.remark("decide", f"the file has no {key}: {text}")
        form = "jsonl"
    keys.kept(key, f"store.format: {form}")
    codec = _codec(keys, form)
    section = {"format": form, "codec": codec}
    if form == "bytes":
        separator = keys.raw("format.bytearray.separator", "\n")
        section |= {"options": {"separator": separator}}  # type: ignore[dict-item] # a section
    keys.kept("format.bytearray.separator", "store.options" if form == "bytes" else "no effect with this format")
    section |= stored_beside(keys, form, value.decode)
    extensions(keys, form, codec)
    same_text(keys, form, value)
    return section


def _codec(keys: Keys, form: str) -> str:
    """Return `store.codec`, by the key for all formats or by that of the format."""
    own = {"avro": "avro.codec", "parquet": "parquet.codec"}.get(form, "s3.compression.type")
    key = next((name for name in (_CODEC, own) if name in keys), "")
    # `JSON - gzip`, or the codec alone.
    codec = keys.get(key, "none").rpartition("-")[2].strip().lower()
    codec = {"null": "none", "uncompressed": "none", "": "none"}.get(codec, codec)
    keys.kept(key, f"store.codec: {codec}")
    keys.kept(own, f"no effect beside {key}")
    for other in ("avro.codec", "parquet.codec", "s3.compression.type"):
        keys.kept(other, f"no effect with this format: {own} is its codec")
    if form == "parquet" and not key:
        keys.remark("decide", f"the file has neither {_CODEC} nor {own}, and Parquet's default is not documented: "
                    "store.codec: none")  # fmt: skip
    return codec


def _layout(keys: Keys) -> tuple[Any, dict[str, Any]]:
    key = "time.interval"
    interval = keys.get(key, "HOURLY").upper()
    if interval not in _INTERVALS:
        keys.decide(key, f"expected one of {', '.join(_INTERVALS)}; HOURLY is taken")
        interval = "HOURLY"
    keys.kept(key, "store.layout")
    path, every = _INTERVALS[interval]
    zone, known = zone_of(keys.get("timezone") or "UTC")
    if not known:
        keys.decide("timezone", NO_ZONE)
    keys.kept("timezone", "store.layout.timezone")
    if written := keys.get("path.format"):
        try:
            path = pattern_of(written, "/", zone)
        except ValueError as error:
            keys.decide("path.format", str(error))
            path = written
    keys.kept("path.format", "store.layout.path_format")
    locale, check = locale_of(path, keys.get("locale") or "en")
    if check:
        keys.decide("locale", check)
    keys.kept("locale", "store.layout.locale" if locale else "nothing: the paths have no names, or the English ones")
    layout: dict[str, Any] = {"name": "confluent_time", "timezone": zone, "path_format": path, "every": every}
    layout |= {"locale": locale, "file_delimiter": keys.get("file.delim")}
    layout["directory_delimiter"] = keys.get("directory.delim")
    layout["zero_pad"] = keys.number("filename.offset.zero.pad.width", "store.layout.zero_pad is left out: 10", 0, 40)
    for name in ("file.delim", "directory.delim", "filename.offset.zero.pad.width"):
        keys.kept(name, "store.layout")
    field = keys.get("timestamp.field")
    keys.kept("timestamp.field", "timestamp.path")
    for name in ("partitioner.class", "partition.field.name"):
        if keys.get(name):
            keys.decide(name, "the managed connector files by time alone, as far as is documented")
    if field:
        return without_empty(layout), {"from": "value", "path": field}
    keys.remark("kept", "no timestamp.field: timestamp.from: record, Kafka's own")
    return without_empty(layout), {"from": "record"}
