"""Lenses' S3 sink connector: its keys, and one archive for each of its statements."""

from typing import Any

from kafka_archiver.imports import connect
from kafka_archiver.imports.base import (
    Draft,
    Imported,
    Keys,
    archive_name,
    without_empty,
)
from kafka_archiver.imports.kcql import Statement, parse
from kafka_archiver.imports.lenses_layout import needs
from kafka_archiver.imports.lenses_statement import has_columns, section_of
from kafka_archiver.imports.s3 import access
from kafka_archiver.imports.smt import steps_of

TOOL = "Lenses S3 sink"
CLASS = "S3SinkConnector of io.lenses or com.datamountaineer"
KCQL = "connect.s3.kcql"
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

    :raises ConfigError: no statement can be read.
    """
    parsed = parse(keys.get(KCQL))
    statements = list(parsed.statements.values())
    keys.kept("connector.class", TOOL)
    keys.kept(KCQL, "one archive for each statement")
    for fault in parsed.faults:
        keys.remark("lacks", f"no archive: {fault}")
    columns = {column: _assumed(keys, column, statements) for column in ("key", "value")}
    stored = columns["value"].decode in connect.FRAMED and all(map(has_columns, statements))
    steps, skips_null = steps_of(keys, stored, columns["value"].inside)
    nulls = _nulls(keys)
    policies = without_empty(
        {
            "bad_record": connect.bad_records(keys) or _errors(keys),
            "null_value": "skip" if skips_null else nulls,
        }
    )
    transform = {"transform": {"steps": steps}} if steps else {}
    source = connect.source(keys, columns)
    shared = {"aws": _aws(keys), "codec": _codec(keys)}
    keys.number("connect.s3.padding.length", "the connector's default of 12 digits stays", least=-1)
    padding = keys.get("connect.s3.padding.strategy"), keys.get("connect.s3.padding.length")
    keys.kept("connect.s3.padding.length", "store.layout.zero_pad, if there is a strategy")
    keys.kept("connect.s3.padding.strategy", "store.layout.zero_pad: zeros in front")
    keys.table("differs", _DIFFERS)
    keys.table("lacks", _LACKS)
    drafts = []
    several = len(statements) + len(parsed.faults) > 1
    for number, statement in parsed.statements.items():
        content, notes = section_of(statement, columns, padding, source)
        name = archive_name(keys.get("name") or "imported") + (f"-{number}" if several else "")
        content["store"] = without_empty({**content["store"], **shared})
        content = {"archive": name, **content, **transform, "policies": policies}
        drafts.append(Draft(without_empty(content), notes))
    return Imported(TOOL, tuple(drafts), keys.notes(TOOL), parsed.faults)


def _assumed(keys: Keys, column: str, statements: list[Statement]) -> connect.Decoded:
    """The decoder; JSON if only the worker knows the converter and a path needs fields of this column."""
    by_fields = any(needs(statement, column) for statement in statements)
    found = connect.converter(keys, column, used=by_fields or column == "value")
    if found.given or not by_fields:
        return found
    keys.remark(
        "by_hand",
        f"the file has no {column}.converter, so the connector took its worker's. Assumed, because PARTITIONBY "
        f"has fields of the {column}: source.{column}.decode: json; correct it if the {column}s are something else",
    )
    return connect.Decoded("json", given=False)


def _aws(keys: Keys) -> Any:
    for old, new in _OLDER.items():
        keys.rename(old, new)
    keys.kept("connect.s3.aws.auth.mode", "store.aws")
    if keys.get("connect.s3.vhost.bucket"):
        keys.by_hand(
            "connect.s3.vhost.bucket",
            "store.aws.addressing_style: virtual or path; in the connector its sense is reversed",
        )
    return access(keys, _ACCESS).get("aws")


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
