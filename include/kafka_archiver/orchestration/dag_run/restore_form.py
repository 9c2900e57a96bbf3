"""The trigger form of the DAG that restores an archive, and the request that it makes.

`airflow archive restore` starts a run with the same keys.
"""

import base64
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Literal, NamedTuple, TypeAlias

from airflow.sdk import Param

from kafka_archiver.messages.errors import ConfigError
from kafka_archiver.model.restore import (
    Inexact,
    RestoreLimits,
    RestoreOptions,
    RestoreSelection,
    SelectedHeader,
)
from kafka_archiver.model.restore_request import RestoreRequest, require_name
from kafka_archiver.orchestration.dag_run.params import utc
from kafka_archiver.values.intervals import MS_PER_HOUR, to_ms

_TEXT, _NUMBER = {"type": ["null", "string"]}, {"type": ["null", "integer"], "minimum": 0}
_LIST = {"type": ["null", "array"], "items": {"type": "string"}}
_FLAG = {"type": "boolean"}
_HOUR = {"type": ["null", "string"], "format": "date-time"}
# Of Kafka.
_TOPIC = re.compile(r"[A-Za-z0-9._-]{1,249}")
_CHANGES: tuple[Inexact, ...] = ("values_only", "rows", "lost", "timestamps", "headers")


Kind: TypeAlias = Literal["flag", "choice", "several", "lines", "numbers", "number", "time", "text"]
_DANGEROUS = frozenset({"append", "replace_groups", "allow"})


class FormField(NamedTuple):
    """One parameter. `schema`: JSON Schema of its values. `text`: its description."""

    key: str
    default: Any
    schema: Mapping[str, Any]
    title: str
    text: str
    section: str

    @property
    def kind(self) -> Kind:
        """The kind of field on a page for the values that the parameter takes."""
        types, items = self.schema["type"], self.schema.get("items", {})
        if types == "boolean":
            return "flag"
        if "array" in types:
            return "several" if "enum" in items else "numbers" if items.get("type") == "integer" else "lines"
        if "enum" in self.schema:
            return "choice"
        return "number" if "integer" in types else "time" if self.schema.get("format") == "date-time" else "text"

    @property
    def options(self) -> Sequence[str]:
        """The choices, if it has some."""
        return list(self.schema.get("enum") or self.schema.get("items", {}).get("enum") or ())

    @property
    def dangerous(self) -> bool:
        """True if it lets the restore write what is not exact, or over what others have."""
        return self.key in _DANGEROUS


FIELDS: tuple[FormField, ...] = tuple(FormField(*field) for field in (
    ("restore", None, _TEXT, "Name", "Of this restore in the ledger. The same name goes on with a restore that has "
     "failed. Without: the time of this run.", "Target"),
    ("to", None, _TEXT, "Kafka connection", "The cluster that is written. Without: the archive's own.", "Target"),
    ("topics", None, _LIST, "Topics", "Of the archive; names, or patterns for whole names. Without: all.", "Target"),
    ("rename", None, _LIST, "Rename", "One in a line: `orders=orders_restored`, or a pattern and its replacement: "
     r"`(.*)=\1_restored`.", "Target"),
    ("create", False, _FLAG, "Create topics", "Create topics that do not exist, with the partitions and settings of "
     "the source if the archive's plans have them.", "Target"),
    ("append", False, _FLAG, "Append", "Also into topics with records; nobody else may write to them meanwhile.",
     "Target"),
    ("partitioner", "same", {"type": "string", "enum": ["same", "murmur2", "crc32"]}, "Partitions", "same: the "
     "source's. murmur2, crc32: by the key, as Java's producer and librdkafka do.", "Target"),
    ("partitions", None, {"type": ["null", "array"], "items": {"type": "integer"}}, "Partitions of the source",
     "Without: all.", "Selection"),
    ("from", None, _HOUR, "From hour", "The first hour in which records are filed.", "Selection"),
    ("until", None, _HOUR, "Until hour", "The end of the last hour, not included.", "Selection"),
    ("start", None, _NUMBER, "From offset", "The first offset of each partition.", "Selection"),
    ("end", None, _NUMBER, "Until offset", "The end of the offsets, not included.", "Selection"),
    ("as_of", None, _HOUR, "As of", "Only records with a timestamp before this time.", "Selection"),
    ("keys", None, _LIST, "Keys", "Only records with one of these keys, one in a line; `base64:…` for bytes.",
     "Selection"),
    ("headers", None, _LIST, "Headers", "Only records with all of these headers: `name` or `name=value`.", "Selection"),
    ("generation", None, _NUMBER, "Generation", "Of topics that were made anew.", "Selection"),
    ("dead_letters", "with", {"type": "string", "enum": ["with", "without", "only"]}, "Dead letters", "They are whole "
     "records.", "Selection"),
    ("allow", None, {"type": ["null", "array"], "items": {"type": "string", "enum": list(_CHANGES)},
     "examples": list(_CHANGES)}, "Allow", "What need not be exact: see docs/howto/restore.md.", "Limits"),
    ("bytes_per_second", None, _NUMBER, "Bytes a second", "At most, of the whole restore.", "Limits"),
    ("records_per_second", None, _NUMBER, "Records a second", "At most, of the whole restore.", "Limits"),
    ("registry", None, _TEXT, "Schema registry", "The http connection of the target's registry: the archive's schemas "
     "are registered there. Without: the records' bytes stay, and no schema is registered.", "Schemas"),
    ("schema_ids", "same", {"type": "string", "enum": ["same", "new"]}, "Schema ids", "same: those that the records "
     "have (mode IMPORT of empty subjects). new: the registry's, which the records get.", "Schemas"),
    ("groups", None, _LIST, "Consumer groups", "Patterns for whole names: put these groups behind the last restored "
     "record that each had read.", "Groups"),
    ("groups_from", None, _TEXT, "Offsets of groups from", "The Kafka connection of the source, if it still runs. "
     "Without: the last snapshot in the archive's plans.", "Groups"),
    ("replace_groups", False, _FLAG, "Replace offsets of groups", "Also of groups that have other offsets in the "
     "target.", "Groups"),
))  # fmt: skip
KEYS = frozenset(field.key for field in FIELDS)


def restore_params() -> dict[str, Param]:
    """Return the parameters of a DAG that restores, in the order of the form."""
    return {
        field.key: Param(
            field.default, **field.schema, title=field.title, description=field.text, section=field.section
        )
        for field in FIELDS
    }


def restore_request(params: Mapping[str, Any], known_topics: Sequence[str], default: str) -> RestoreRequest:
    """Return the request of a run.

    :param known_topics: those that the archive has.
    :param default: the name of the restore if the run gives none.
    :raises ConfigError: a parameter is wrong.
    """
    name = params.get("restore") or default
    require_name(name)
    topics = selected_topics(params.get("topics"), known_topics)
    rename = dict(_renamed(topics, params.get("rename") or ()))
    _require_targets({topic: rename.get(topic, topic) for topic in topics})
    bounds = {key: params.get(key) for key in ("bytes_per_second", "records_per_second")}
    return RestoreRequest(
        restore=name,
        selection=RestoreSelection(
            topics=topics,
            partitions=tuple(sorted({_number("partitions", n) for n in params.get("partitions") or ()})),
            generation=None if params.get("generation") is None else _number("generation", params["generation"]),
            hours=_hours(params.get("from"), params.get("until")),
            offsets=_offsets(params.get("start"), params.get("end")),
            as_of=None if not params.get("as_of") else to_ms(_time("as_of", params["as_of"])),
            keys=tuple(map(_key, params.get("keys") or ())),
            headers=tuple(map(_header, params.get("headers") or ())),
            dead_letters=params.get("dead_letters") or "with",
        ),
        rename=rename,
        partitioner=params.get("partitioner") or "same",
        options=RestoreOptions(allow=allowed(params), append=bool(params.get("append"))),
        limits=RestoreLimits(**{key: limit for key, limit in bounds.items() if limit}),
    )


def allowed(params: Mapping[str, Any]) -> tuple[Inexact, ...]:
    """Return what a run allows, each once, in one order.

    :raises ConfigError: there is no such change.
    """
    asked = params.get("allow") or ()
    if unknown := sorted(set(asked) - set(_CHANGES)):
        raise ConfigError(f"allow: expected {', '.join(_CHANGES)}; found {', '.join(unknown)}")
    return tuple(change for change in _CHANGES if change in asked)


def selected_topics(asked: Sequence[str] | None, known: Sequence[str]) -> tuple[str, ...]:
    """Return the topics of names and patterns.

    :raises ConfigError: one of them selects none.
    """
    if not asked:
        return tuple(sorted(known))
    topics = set[str]()
    for pattern in asked:
        expression = _expression("topics", pattern)
        matching = {name for name in known if name == pattern or expression.fullmatch(name)}
        if not matching:
            raise ConfigError(f"topics: the archive has no topic {pattern!r}; it has {', '.join(sorted(known))}")
        topics |= matching
    return tuple(sorted(topics))


def _renamed(topics: Sequence[str], rules: Sequence[str]) -> Iterator[tuple[str, str]]:
    """Yield the new name of each topic that a rule renames; the first rule that matches counts.

    :raises ConfigError: a rule is none, or renames no topic.
    """
    pairs = []
    for rule in rules:
        old, separator, new = rule.partition("=")
        if not separator or not old or not new:
            raise ConfigError(f"rename: expected FROM=TO, as in orders=orders_restored, found {rule!r}")
        expression = _expression("rename", old)
        if not any(topic == old or expression.fullmatch(topic) for topic in topics):
            raise ConfigError(f"rename: {rule!r} renames none of the restored topics: {', '.join(topics)}")
        pairs.append((old, new, expression))
    for topic in topics:
        for old, new, expression in pairs:
            if topic == old:
                yield topic, new
                break
            if match := expression.fullmatch(topic):
                yield topic, _expanded(match, new)
                break


def _require_targets(names: Mapping[str, str]) -> None:
    """Check the names of target topics, by those of the source.

    :raises ConfigError: Kafka has no such name, or two topics would be written to the same one.
    """
    for topic, name in names.items():
        if not _TOPIC.fullmatch(name) or name in (".", ".."):
            raise ConfigError(
                f"rename: {topic} would become {name[:100]!r}, which is not the name of a topic; expected letters, "
                "digits, '.', '_' and '-', up to 249"
            )
        if rivals := [other for other, target in names.items() if target == name and other != topic]:
            raise ConfigError(
                f"rename: {topic} and {', '.join(rivals)} would both be written to {name}: each topic needs a target "
                r"of its own, as in '(.*)=\1_restored'"
            )


def _number(key: str, number: int) -> int:
    if not 0 <= number < 1 << 63:
        raise ConfigError(f"{key}: expected a number from 0 on, found {number}")
    return number


def _expanded(match: re.Match[str], new: str) -> str:
    try:
        return match.expand(new)
    except (re.error, IndexError) as error:
        raise ConfigError(rf"rename: expected a replacement like \1_restored, found {new!r} ({error})") from None


def _expression(key: str, pattern: str) -> re.Pattern[str]:
    try:
        return re.compile(pattern)
    except re.error as error:
        raise ConfigError(f"{key}: expected a name or a regular expression, found {pattern!r} ({error})") from None


def _hours(first: str | None, end: str | None) -> tuple[int, int] | None:
    if not first and not end:
        return None
    if not first or not end:
        raise ConfigError("expected both `from` and `until`: the first hour, and the end of the last one")
    start, stop = (to_ms(_time(key, text)) for key, text in (("from", first), ("until", end)))
    if start % MS_PER_HOUR or stop % MS_PER_HOUR or stop <= start:
        raise ConfigError(
            f"expected `from` and `until` on full hours, the first before the second; found {first}, {end}"
        )
    return start // MS_PER_HOUR, stop // MS_PER_HOUR


def _offsets(start: int | None, end: int | None) -> tuple[int, int] | None:
    if start is None and end is None:
        return None
    bounds = (start or 0, 2**63 - 1 if end is None else end)
    if not 0 <= bounds[0] < bounds[1] < 2**63:
        raise ConfigError(f"expected `start` from 0 on and before `end`, found the offsets {start} and {end}")
    return bounds


def _time(key: str, text: str) -> Any:
    try:
        return utc(text)
    except ValueError:
        raise ConfigError(f"{key}: expected a time like 2026-11-21T05:00:00Z, found {text!r}") from None


def _key(text: str) -> str:
    """Return a key in base64."""
    if not text.startswith("base64:"):
        return base64.b64encode(_utf8("keys", text, ": give its bytes as base64:…")).decode()
    try:
        return base64.b64encode(base64.b64decode(text.removeprefix("base64:"), validate=True)).decode()
    except ValueError:
        raise ConfigError(f"keys: expected base64 after `base64:`, found {text[:50]!r}") from None


def storable_key(text: str) -> str:
    """Return a key as a conf may have it: PostgreSQL keeps no NUL."""
    if "\0" not in text or text.startswith("base64:"):
        return text
    return f"base64:{base64.b64encode(text.encode()).decode()}"


def _header(text: str) -> SelectedHeader:
    name, separator, value = text.partition("=")
    if not name or "\0" in text:
        raise ConfigError(f"headers: expected NAME or NAME=VALUE without NUL, found {text[:50]!r}")
    _utf8("headers", name)
    return SelectedHeader(name=name, value=base64.b64encode(_utf8("headers", value)).decode() if separator else None)


def _utf8(key: str, text: str, remedy: str = "") -> bytes:
    """Return the bytes of a text; arguments of a command may have others than UTF-8."""
    try:
        return text.encode()
    except UnicodeEncodeError:
        raise ConfigError(f"{key}: {ascii(text)[:50]} is not UTF-8{remedy}") from None


def conf_of(params: Mapping[str, Any]) -> dict[str, Any]:
    """Return the keys of a run's conf that are not empty."""
    return {key: value for key, value in params.items() if key in KEYS and value not in (None, False, "", [], ())}
