"""Lenses' S3 sink connector: its keys, and one archive for each of its statements."""

import re
from collections.abc import Mapping
from typing import Any

from kafka_archiver.imports import connect
from kafka_archiver.imports.base import Draft, Imported, Keys, archive_name, without_empty
from kafka_archiver.imports.kcql import Statement, parse
from kafka_archiver.imports.lenses_format import has_columns, has_envelope
from kafka_archiver.imports.lenses_headers import headers_of
from kafka_archiver.imports.lenses_layout import needs, needs_fields
from kafka_archiver.imports.lenses_statement import Connector, sections_of
from kafka_archiver.imports.s3_access import access
from kafka_archiver.imports.smt import transforms_of
from kafka_archiver.messages.errors import ConfigError

_ALL = "*"
TOOL = "Lenses S3 sink"
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


def shares_of(
    statements: Mapping[int, Statement], source: Mapping[str, Any]
) -> tuple[dict[int, dict[str, Any]], list[str]]:
    """Return the topics (or the pattern) of each statement by its number, and what a person has to decide.

    :param source: the section, with the topics or the pattern of the connector.
    """
    topics, pattern = list(source.get("topics", [])), source.get("pattern")
    shares: dict[int, dict[str, Any]] = {}
    odd: list[str] = []
    taken: list[str] = []
    for number, statement in statements.items():
        topic = statement.topic
        if topic != _ALL:
            shares[number] = {"topics": [topic]}
            if not pattern and topic not in topics:
                odd.append(f"KCQL, statement {number}: `topics` has no {topic}, so the connector never read it")
        elif pattern:
            lookahead = f"(?!(?:{'|'.join(map(re.escape, taken))})$)" if taken else ""
            shares[number] = {"pattern": f"{lookahead}(?:{pattern})" if lookahead else pattern}
        else:
            shares[number] = {"topics": [name for name in topics if name not in taken]}
        if topic in taken or _ALL in taken:
            odd.append(
                f"KCQL, statement {number}: an earlier one has {topic}, so the connector never used this one: remove it"
            )
        taken.append(topic)
    if unnamed := [name for name in topics if name not in taken and _ALL not in taken]:
        odd.append(
            f"`topics` has {', '.join(unnamed)}, which no statement names: the connector stops at it; no archive has it"
        )
    return shares, odd


def draft(keys: Keys) -> Imported:
    """Return the archives of a connector's statements.

    :raises ConfigError: no archive can be made of any statement.
    """
    is_old = any(old in keys for old in _OLDER)
    _check_class(keys.get("connector.class"))
    parsed = parse(keys.get(KCQL))
    if "connector.class" not in keys and all(":" in statement.topic for statement in parsed.statements.values()):
        _check_class("statements of the source (.source.), FROM bucket:prefix")
    keys.kept("connector.class", TOOL)
    keys.kept(KCQL, "one archive for each statement")
    statements = list(parsed.statements.values())
    by_headers = {
        ".".join(path[1:]) for statement in statements for path in statement.partition_by if path[0] == "_header"
    }
    timed = headers_of(keys, by_headers, {}).columns(by_headers)
    columns = {column: _assumed(keys, column, statements, column in timed) for column in ("key", "value")}
    inside = {column: decoded.inside for column, decoded in columns.items()}
    headers = headers_of(keys, by_headers, inside)
    stored = columns["value"].decode in connect.FRAMED and all(map(has_columns, statements))
    nulls = _nulls(keys)
    keyed = bool(by_headers) or any(needs(statement, "key") or has_envelope(statement) for statement in statements)
    transforms = transforms_of(keys, stored, columns["value"].inside, keyed, nulls == "skip")
    bad_record = connect.bad_records(keys) or _errors(keys)
    policies = without_empty({"bad_record": bad_record, "null_value": "skip" if transforms.skips_null else nulls})
    transform = {"transform": transforms.section}
    source = connect.source(keys, columns)
    aws = _aws(keys)
    keys.number("connect.s3.padding.length", "the connector's default of 12 digits stays", least=-1)
    padding = keys.get("connect.s3.padding.strategy"), keys.get("connect.s3.padding.length")
    keys.kept("connect.s3.padding.length", "store.layout.zero_pad, if there is a strategy")
    keys.kept("connect.s3.padding.strategy", "store.layout.zero_pad: zeros in front")
    keys.table("differs", _DIFFERS)
    keys.table("lacks", _LACKS)
    texts = keys.get("header.converter").endswith(".StringConverter")
    connector = Connector(columns, padding, headers, texts, is_old, _codec(keys))
    shares, odd = shares_of(parsed.statements, source)
    other_keys = {key: value for key, value in source.items() if key not in ("topics", "pattern")}
    for text in odd:
        keys.remark("decide", text)
    drafts, faults = [], list(parsed.faults)
    several = len(statements) + len(parsed.faults) > 1
    for number, statement in parsed.statements.items():
        try:
            content, notes = sections_of(statement, connector, {**shares[number], **other_keys})
        except ConfigError as error:
            faults.append(f"KCQL, statement {number}: {error}")
            continue
        name = archive_name(keys.get("name") or "imported") + (f"-{number}" if several else "")
        store = without_empty({**content.pop("store"), "aws": aws})
        content = {"archive": name, **content, **transform, "store": store, "policies": policies}
        drafts.append(Draft(without_empty(content), notes))
    if not drafts:
        raise ConfigError("\n".join(faults))
    for fault in faults:
        keys.remark("lacks", f"no archive: {fault}")
    return Imported(TOOL, tuple(drafts), keys.notes(TOOL), tuple(faults))


def _check_class(name: str) -> None:
    """Check that it is the sink.

    :raises ConfigError: it reads the bucket, or writes something else.
    """
    if ".source." in name:
        raise ConfigError(
            f"expected the sink; found {name}, which writes from a bucket to Kafka: no archive is made, and this "
            "version restores nothing to a topic"
        )
    if "ConsumerGroups" in name:
        raise ConfigError(f"expected the sink; found {name}, which stores the offsets of groups: no archive is made")


def _assumed(keys: Keys, column: str, statements: list[Statement], timed: bool) -> connect.DecodeChoice:
    """Return the decoder; JSON if only the worker knows the converter and a path needs fields of this column.

    :param timed: whether a time in a path is a field of it.
    """
    by_fields = timed or any(needs(statement, column) for statement in statements)
    decoded = connect.converter(keys, column, used=by_fields or column == "value")
    if column == "value" and not decoded.is_declared:
        keys.remark("decide", connect.NO_CONVERTER)
    if decoded.is_declared or not (timed or any(needs_fields(statement, column) for statement in statements)):
        return decoded
    keys.remark(
        "decide",
        f"the file has no {column}.converter, so the connector took its worker's. Assumed, because PARTITIONBY "
        f"has fields of the {column}: source.{column}.decode: json; correct it if the {column}s are something else",
    )
    return connect.DecodeChoice("json", is_declared=False)


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


def _codec(keys: Keys) -> str:
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
