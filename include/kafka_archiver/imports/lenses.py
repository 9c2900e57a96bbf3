"""Lenses' S3 sink connector: its keys, and one archive for each of its statements."""

from typing import Any

from kafka_archiver.imports import connect
from kafka_archiver.imports.base import (
    Draft,
    Imported,
    Keys,
    Note,
    archive_name,
    bucket_url,
    chunk_records,
    without_empty,
)
from kafka_archiver.imports.kcql import Statement, parse
from kafka_archiver.imports.lenses_layout import layout_of, needs, padding_of
from kafka_archiver.imports.s3 import access

TOOL = "Lenses S3 sink"
CLASS = "S3SinkConnector of io.lenses or com.datamountaineer"
KCQL = "connect.s3.kcql"
_FORMATS: dict[str, dict[str, Any]] = {
    "AVRO": {"format": "avro"},
    "PARQUET": {"format": "parquet"},
    "JSON": {"format": "jsonl"},
    "TEXT": {"format": "text"},
    "CSV": {"format": "csv", "options": {"header": False}},
    "CSV_WITHHEADERS": {"format": "csv"},
    "BYTES": {"format": "bytes", "chunk_records": 1},
}
_ROTATION = "rotation is decided by the plan: an object ends with its chunk"
_OPTIONS = {
    "WITH_FLUSH_SIZE": _ROTATION,
    "WITH_FLUSH_INTERVAL": f"`schedule` says when runs start; {_ROTATION}",
    "flush.size": _ROTATION,
    "flush.interval": f"`schedule` says when runs start; {_ROTATION}",
}
_DIFFERS = {
    "connect.s3.exactly.once.enable": "every archive is exactly once, by plans and the ledger",
    "connect.s3.indexes.*": "the ledger (_ledger/) is in the place of the index files",
    "connect.s3.seek.max.files": "nothing is listed: the ledger knows every object",
    "connect.s3.local.tmp.directory": "parts are uploaded as they fill; only what exceeds `spark.memory_bytes` "
    "is on disk",
    "connect.s3.max.retries": "each request is retried with backoff, then the task by Airflow (`retries`)",
    "connect.s3.retry.interval": "each request is retried with backoff, then the task by Airflow",
    "connect.s3.http.*": "the client's own retries and timeouts",
    "connect.s3.pool.max.connections": "a task has as many connections as it needs",
    "connect.s3.write.mode": "parts are uploaded as they fill",
    "connect.s3.schema.change.detector": "a schema that changes is another object of the same chunk (+s<n>)",
    "connect.s3.latest.schema.optimization.enabled": "see `schema_evolution`",
    "connect.s3.disable.flush.count": "an object always ends with its chunk",
    "connect.s3.log.metrics": "status, manifests and the audit have the figures",
    "connect.progress.enabled": "the logs of the task and Spark's UI show the progress",
}
_LACKS = {
    "connect.s3.compression.level": "each codec has one level, because the bytes must be the same at every attempt",
    "connect.s3.delete.mode": "nothing is deleted but what is a leftover",
    "connect.s3.source.*": "a key of the source connector; restore is another command",
    "connect.s3.location": "a key of the sink for consumer groups' offsets",
    "schema.enable": "no key of the sink",
}
_ACCESS = {
    "region": "connect.s3.aws.region",
    "endpoint": "connect.s3.custom.endpoint",
    "path_style": "connect.s3.path.style.access",
    "access_key": "connect.s3.aws.access.key",
    "secret_key": "connect.s3.aws.secret.key",
}
_OLDER = {
    "aws.region": "connect.s3.aws.region",
    "aws.access.key": "connect.s3.aws.access.key",
    "aws.secret.key": "connect.s3.aws.secret.key",
    "aws.auth.mode": "connect.s3.aws.auth.mode",
    "aws.custom.endpoint": "connect.s3.custom.endpoint",
    "aws.vhost.bucket": "connect.s3.vhost.bucket",
}


def draft(keys: Keys) -> Imported:
    """The archives of a connector's statements.

    :raises ConfigError: a statement cannot be read.
    """
    statements = parse(keys.get(KCQL))
    keys.kept("connector.class", TOOL)
    keys.kept(KCQL, "one archive for each statement")
    columns = {column: _assumed(keys, column, statements) for column in ("key", "value")}
    policies = without_empty({"bad_record": connect.bad_records(keys) or _errors(keys), "null_value": _nulls(keys)})
    source = connect.source(keys, columns)
    shared = {"aws": _aws(keys), "codec": _codec(keys)}
    padding = keys.get("connect.s3.padding.strategy"), keys.get("connect.s3.padding.length")
    keys.kept("connect.s3.padding.length", "store.layout.zero_pad, if there is a strategy")
    keys.kept("connect.s3.padding.strategy", "store.layout.zero_pad: zeros in front")
    keys.table("differs", _DIFFERS)
    keys.table("lacks", _LACKS)
    drafts = []
    for number, statement in enumerate(statements, start=1):
        content, notes = _archive(statement, columns["value"].decode, padding, source)
        name = archive_name(keys.get("name") or "imported") + (f"-{number}" if len(statements) > 1 else "")
        content["store"] = without_empty({**content["store"], **shared})
        content = {"archive": name, **content, "policies": policies}
        drafts.append(Draft(without_empty(content), tuple(notes)))
    return Imported(TOOL, tuple(drafts), keys.notes(TOOL))


def _assumed(keys: Keys, column: str, statements: list[Statement]) -> connect.Decoded:
    """The decoder; JSON if only the worker knows the converter and a path needs fields of this column."""
    by_fields = any(needs(statement, column) for statement in statements)
    found = connect.converter(keys, column, used=by_fields or column == "value")
    if found.given or not by_fields:
        return found
    keys.remark(
        "by_hand",
        f"the file has no {column}.converter, so the connector took its worker's. Assumed, because PARTITIONBY "
        f"has fields "
        f"of the {column}: source.{column}.decode: json; correct it if the {column}s are something else",
    )
    return connect.Decoded("json", given=False)


def _archive(
    statement: Statement, decode: str, padding: tuple[str, str], source: dict[str, Any]
) -> tuple[dict[str, Any], list[Note]]:
    notes: list[Note] = []
    if statement.fields != ("*",):
        text = f"SELECT {', '.join(statement.fields)}: say it as `transform.select` by hand; all fields are stored"
        notes.append(Note("lacks", "", text))
    own = dict(source)
    if statement.topic != "*":
        own.pop("pattern", None)
        own = {"topics": [statement.topic], **{key: value for key, value in own.items() if key != "topics"}}
    made = _FORMATS.get(statement.store_as or "JSON")
    if made is None:
        plain = "BYTES" if statement.store_as.startswith("BYTES") else "JSON"
        made = _FORMATS[plain]
        text = f"STOREAS {statement.store_as}: `{made['format']}` stands in its place, see docs/FORMATS.md"
        notes.append(Note("lacks", "", text))
    store: dict[str, Any] = {"url": bucket_url(statement.bucket, statement.prefix), **made}
    options = dict(statement.options)
    keys_too = options.pop("WITHPARTITIONER", "KeysAndValues").lower() == "keysandvalues"
    keys_too = options.pop("partition.include.keys", str(keys_too)).lower() == "true"
    count = options.pop("WITH_FLUSH_COUNT", "") or options.pop("flush.count", "")
    if count and store["format"] != "bytes":
        store["chunk_records"] = chunk_records(count)
        text = f"flush by count, {count}: store.chunk_records, so many offsets of a partition"
        notes.append(Note("differs", "", text))
    if options.pop("store.envelope", "false").lower() == "true":
        store["content"] = "record"
        notes.append(Note("differs", "", "store.envelope: store.content: record, with our own columns"))
    elif store["format"] in ("avro", "parquet") and decode in ("bytes", "json"):
        store["content"] = "record"
        text = f"store.content: record, because {store['format']} needs columns, and the values are not decoded"
        notes.append(Note("differs", "", text))
    digits = padding_of(options, *padding)
    layout, name = layout_of(statement, keys_too, digits)
    store |= without_empty({"layout": layout, "name": name})
    if digits.right:
        notes.append(Note("lacks", "", "RightPad: zeros behind a number make it another; they are in front"))
    if not statement.partition_by:
        text = "names have no times of the first and last records, which recent versions of the connector add"
        notes.append(Note("differs", "", text))
    options = {name: value for name, value in options.items() if not name.startswith("padding.")}
    for option, value in options.items():
        kind, why = ("differs", _OPTIONS[option]) if option in _OPTIONS else ("lacks", "no such option here")
        notes.append(Note(kind, "", f"{option} = {value}: {why}"))  # type: ignore[arg-type] # one of two kinds
    for path in statement.partition_by:
        if any("." in part for part in path) and path[0] != "_header":
            text = f"PARTITIONBY {'.'.join(path)}: a dot in a field's name means a field within a field here"
            notes.append(Note("lacks", "", text))
    if statement.partition_by:
        notes.append(
            Note(
                "by_hand",
                "",
                "with PARTITIONBY the connector commits the oldest offset that is not flushed: files of other "
                "paths may "
                "already have later records. These are archived too, and so exist in the old file and in the new",
            )
        )
    return {"source": own, "store": store}, notes


def _aws(keys: Keys) -> Any:
    for old, new in _OLDER.items():
        keys.rename(old, new)
    keys.kept("connect.s3.aws.auth.mode", "store.aws")
    if keys.get("connect.s3.vhost.bucket"):
        keys.by_hand(
            "connect.s3.vhost.bucket",
            "store.aws.addressing_style: virtual or path; in the connector its sense is reversed",
        )
    return access(keys, _ACCESS, TOOL).get("aws")


def _codec(keys: Keys) -> str | None:
    key = "connect.s3.compression.codec"
    codec = keys.get(key).lower()
    if key not in keys:
        keys.remark("kept", "no connect.s3.compression.codec: store.codec: none")
        return "none"
    keys.kept(key, "store.codec")
    return {"uncompressed": "none"}.get(codec, codec)


def _errors(keys: Keys) -> str | None:
    key = "connect.s3.error.policy"
    if keys.get(key).upper() == "NOOP":
        keys.differs(key, "policies.bad_record: skip; the account counts each of them")
        return "skip"
    keys.kept(key, "policies.bad_record: fail; what may pass is tried again")
    return None


def _nulls(keys: Keys) -> str | None:
    key = "connect.s3.skip.null.values"
    keys.kept(key, "policies.null_value")
    return "skip" if keys.flag(key, False) else None
