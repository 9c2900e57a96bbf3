"""Kafka Connect's single message transforms as `transform`, as far as it does the same."""

import re
from typing import Any, NamedTuple

from kafka_archiver.imports.base import Keys, words
from kafka_archiver.imports.smt_sql import Columns, quoted

CONNECT = "org.apache.kafka.connect.transforms."
# They add headers, and change nothing else.
LENSES_HEADERS = "io.lenses.connect.smt.header."
_KEYS = "keys are stored as Kafka has them; as far as they decide paths or columns, say it by hand"
_NO_KEYS = "no effect on what is stored: keys and headers are not"
_TOPICS = (
    "topics keep their names here, in paths and in names of objects. (Confluent's sink fails at records whose topic a "
    "transform has changed)"
)
_BY_TIME = "no header is needed to file by time: `store.layout: {path: 'date={yyyy-MM-dd}/hour={HH}'}`"
_SQL = "by hand, in Spark SQL: "
# Those without an equal, by the last part of their class: what to do instead.
_OTHERS = {
    "Cast": _SQL + "`transform.select: ['* EXCEPT (a)', 'CAST(value.a AS int) AS a']`",
    "ExtractField": _SQL + "`transform.select: [value.a.*]`, or `[value.a]`",
    "HoistField": _SQL + "`transform.select: [struct(value.*) AS a]`",
    "InsertField": "`store.metadata` adds Kafka's columns; in SQL a text: `transform.select: ['*', \"'x' AS a\"]`",
    "ReplaceField": _SQL + "`transform.select: [value.a, value.b AS c]`, the fields that stay",
    "TimestampConverter": _SQL + "`transform.select` with `timestamp_millis`, `date_format` and so on",
    "RegexRouter": _TOPICS,
    "TimestampRouter": _TOPICS,
    "MessageTimestampRouter": _TOPICS,
    "ExtractTopic": _TOPICS,
    "TombstoneHandler": "`policies.null_value: skip` leaves tombstones out; `archive`, the default, stores them",
    "Drop": "by hand: a `transform.mapper` that returns `record.replace(value=None)`",
    "InsertRecordTimestampHeaders": _BY_TIME,
    "InsertRollingRecordTimestampHeaders": _BY_TIME,
    "InsertWallclockHeaders": _BY_TIME + " with `timestamp: {from: wallclock}`",
    "InsertRollingWallclockHeaders": _BY_TIME + " with `timestamp: {from: wallclock}`",
    "InsertFieldTimestampHeaders": _BY_TIME + " with `timestamp: {from: value, path: …}`",
    "InsertRollingFieldTimestampHeaders": _BY_TIME + " with `timestamp: {from: value, path: …}`",
    "HeaderFrom": "headers are stored as Kafka has them; a `transform.mapper` changes them",
    "Filter": "by hand: what its predicate says, in `transform.where`",
}
# They change keys or headers alone, or only the name of a schema.
_OF_KEYS = ("ValueToKey", "DropHeaders", "InsertHeader")
_OF_SCHEMAS = ("SetSchemaMetadata",)
# Their classes hide values; one that has no equal here must not be left out.
_HIDES = re.compile(r"mask|hash|crypt|cipher|redact|token|anonym|obfusc|scrub|sensitive|pii", re.IGNORECASE)
# They change which fields a value has, so a later transform may not mean the fields of the record.
_RESHAPE = ("ExtractField", "HoistField")
_NO_COLUMNS = (
    "steps work on decoded columns: give `source.value` a `schema`, and store columns, not `content: record`; the plan "
    "is refused until then. "
)


class Transforms(NamedTuple):
    """The section `transform`, whether tombstones are left out, and whether fields of values are others.

    `times`: the fields into which a transform of all records puts Kafka's timestamp.
    """

    section: dict[str, Any]
    skips_null: bool
    reshapes: bool
    times: frozenset[str]


def transforms_of(keys: Keys, columns: bool, inside: str, keyed: bool, skips_null: bool = False) -> Transforms:
    """Return `transform` for the transforms of a connector. Each of their keys gets a note.

    :param columns: whether the archive has columns of the values.
    :param inside: what stands before the path of a field.
    :param keyed: whether keys or headers are stored.
    :param skips_null: whether the connector leaves records without a value out, also those that a transform makes.
    """
    chain = _Chain(keys, columns, inside, keyed, skips_null)
    chain.read()
    select = chain.columns.select()
    section: dict[str, Any] = {}
    if chain.where:
        section["where"] = " AND ".join(chain.where)
    if select:
        section["select"] = select
    if chain.hidden:
        # A function that does not exist: the plan is refused until a person has written it, or removed it.
        section["mapper"] = chain.hidden
    if chain.steps:
        section["steps"] = chain.steps
    renamed = any("rename" in step or "flatten" in step for step in chain.steps)
    return Transforms(section, chain.skips_null, renamed or bool(select) or bool(chain.hidden), frozenset(chain.times))


class _Chain:
    """Reads the transforms of a connector in their order."""

    def __init__(self, keys: Keys, columns: bool, inside: str, keyed: bool, skips_null: bool) -> None:
        self._keys, self._has_columns, self._inside, self._keyed = keys, columns, inside, keyed
        self._skips_made_nulls = skips_null
        self._unclear = ""
        self._routed = False
        self._headed = False
        self.times: set[str] = set()
        self._touched: set[str] = set()
        self.columns = Columns()
        self.steps: list[dict[str, Any]] = []
        self.where: list[str] = []
        self.hidden = ""
        self.skips_null = False

    def read(self) -> None:
        """Read all of them."""
        names = words(self._keys.get("transforms"))
        for name in names:
            self._read_step(name)
            self._needed(f"transforms.{name}.")
        if names:
            done = self.steps or self.where or self.columns.select()
            self._keys.note("kept" if done else "lacks", "transforms", "transform: see each" if done else "see each")

    def _read_step(self, name: str) -> None:
        prefix = f"transforms.{name}."
        path = self._keys.get(f"{prefix}type")
        kind, _, of = path.rpartition(".")[2].partition("$")
        own = path.startswith(CONNECT)
        if not path:
            self._keys.remark("decide", f"the file has no {prefix}type, and `transforms` names {name}")
            return
        if own and kind == "Filter":
            self._filter(prefix)
        elif path.startswith(LENSES_HEADERS):
            self._keys.note_section(prefix, "decide", _OTHERS.get(kind, _BY_TIME))
        elif of == "Key" or (own and kind in _OF_KEYS):
            self._headed = self._headed or "Header" in kind
            self._keys.note_section(prefix, "decide" if self._keyed else "kept", _KEYS if self._keyed else _NO_KEYS)
        elif own and kind in _OF_SCHEMAS:
            self._keys.note_section(prefix, "differs", "the schema is the writer's, with its own name and version")
        elif own and kind == "RegexRouter" and self._keeps_topics(prefix):
            self._keys.note_section(prefix, "kept", "no effect: it changes none of these topics")
        else:
            self._value(prefix, name, kind if own or kind in _OTHERS else path, own, of)

    def _value(self, prefix: str, name: str, kind: str, own: bool, of: str) -> None:
        """Read a transform of values."""
        steps = _steps(self._keys, prefix, kind, self._inside) if own and of == "Value" else []
        conditional = bool(self._keys.get(f"{prefix}predicate"))
        hides = bool(steps and kind in ("MaskField", "ReplaceField") and not all("rename" in step for step in steps))
        if own and kind == "InsertField" and of == "Value" and not conditional and not self._unclear:
            self.times |= {self._keys.get(f"{prefix}timestamp.field").rstrip("!?")} - {""}
        if conditional and hides:
            hiding = [step for step in steps if "rename" not in step]
            self.steps += hiding
            self._keys.note_section(
                prefix, "decide", f"for all records, because a step has no predicate: {_shown(hiding)}"
            )
        elif conditional:
            self._keys.note_section(
                prefix, "decide", "a step is for all records; say it with its predicate in Spark SQL by hand"
            )
            self._hide(prefix, name, kind)
            self._unclear = self._unclear or name * bool(steps)
        elif steps and self._unclear:
            text = f"by hand, because {self._unclear} before it has no equivalent: {_shown(steps)}"
            self._keys.note_section(prefix, "decide", text)
            if hides:
                self._hide(prefix, name, "mask")
        elif steps and not self._has_columns:
            self._keys.note_section(prefix, "decide", f"{_NO_COLUMNS}transform.steps: {_shown(steps)}")
            self.steps += steps
        elif steps:
            self.steps += steps
            self._touched |= _names(steps)
            self._keys.note_section(prefix, "differs" if kind == "MaskField" else "kept", _note_of(kind, steps))
        elif own and of == "Value" and self._has_columns and not self._unclear and self._as_sql(prefix, kind):
            pass
        else:
            self._other(prefix, name, kind, own)

    def _other(self, prefix: str, name: str, kind: str, own: bool) -> None:
        """Note a transform without an equal."""
        text = _OTHERS.get(kind, "no code of this class runs here; `transform.mapper` may do it")
        renames = self._keys.get(f"{prefix}renames")
        self._keys.note_section(prefix, "decide", text)
        if kind == "ReplaceField" and own:
            # Only the fields that it names are stored there.
            self._hide(prefix, name, "mask")
        else:
            self._hide(prefix, name, kind)
        self._headed = self._headed or "Header" in kind
        if not own or kind in _RESHAPE or kind not in _OTHERS or renames:
            self._unclear = self._unclear or name

    def _hide(self, prefix: str, name: str, kind: str) -> None:
        """Refuse the YAML until a person has replaced a transform that hides values."""
        if _HIDES.search(kind) and not self.hidden:
            self.hidden = "imported_transforms:hide_" + re.sub(r"[^A-Za-z0-9_]", "_", name)
            self._keys.remark(
                "decide",
                f"{prefix[:-1]} hides values, which would be stored as they are: write `transform.mapper`, its "
                f"function {self.hidden} does not exist yet, and the plan is refused without it",
            )

    def _as_sql(self, prefix: str, kind: str) -> bool:
        """Add what a transform does to `transform.select`; False if it cannot be said so."""
        get = self._keys.get
        note = ""
        if kind == "InsertField":
            note = self._inserted(prefix)
        elif kind == "Cast":
            note = self.columns.cast(words(get(f"{prefix}spec")), self._touched)
        elif kind == "ReplaceField" and not self.steps:
            renames = dict(pair.partition(":")[::2] for pair in words(get(f"{prefix}renames")))
            included = words(get(f"{prefix}include") or get(f"{prefix}whitelist"))
            dropped = words(get(f"{prefix}exclude") or get(f"{prefix}blacklist"))
            note = self.columns.only([name for name in included if name not in dropped], renames)
        elif kind == "ExtractField" and not self.steps:
            field = get(f"{prefix}field")
            note = self.columns.extract(field)
            if note and self._skips_made_nulls:
                self.where.append(f"value.{quoted(field)} IS NOT NULL")
        elif kind == "HoistField" and not self.steps:
            note = self.columns.hoist(get(f"{prefix}field"))
        if note:
            self._keys.note_section(prefix, "differs", note)
        return bool(note)

    def _inserted(self, prefix: str) -> str:
        get = self._keys.get
        added = {}
        for column in ("topic", "partition", "offset", "timestamp"):
            if field := get(f"{prefix}{column}.field").rstrip("!?"):
                added[field] = column
        if (field := get(f"{prefix}static.field").rstrip("!?")) and f"{prefix}static.value" in self._keys:
            added[field] = _literal(get(f"{prefix}static.value"))
        if self._routed and "topic" in added.values():
            return ""
        return self.columns.insert(added, self._touched)

    def _filter(self, prefix: str) -> None:
        """Read Kafka's Filter, which leaves out what its predicate is true for."""
        keys = self._keys
        predicate = keys.get(f"{prefix}predicate")
        of = f"predicates.{predicate}."
        kind = keys.get(f"{of}type").removeprefix(f"{CONNECT}predicates.")
        negated = keys.flag(f"{prefix}negate", False)
        condition = ""
        if kind == "RecordIsTombstone" and not negated and not self._reshaped():
            self.skips_null = True
            self._keys.note_section(prefix, "kept", "policies.null_value: skip; the account counts each of them")
            self._predicate(of, "policies.null_value: skip")
            return
        if self._unclear:
            pass
        elif kind == "HasHeaderKey" and keys.get(f"{of}name") and not self._headed:
            condition = f"coalesce(exists(headers, h -> h.key = {_literal(keys.get(f'{of}name'))}), false)"
        elif kind == "TopicNameMatches" and keys.get(f"{of}pattern") and not self._routed:
            # Java's and Spark's regular expressions are the same ones; `matches` is of the whole name.
            condition = f"topic RLIKE {_literal('^(?:' + keys.get(f'{of}pattern') + ')$')}"
        if condition:
            self.where.append(condition if negated else f"NOT ({condition})")
            self._keys.note_section(
                prefix, "kept", f"transform.where: {self.where[-1]}; the account counts what it leaves out"
            )
            self._predicate(of, "transform.where")
        else:
            self._keys.note_section(prefix, "decide", _OTHERS["Filter"])

    def _reshaped(self) -> bool:
        return bool(self._unclear or self.columns.select())

    def _needed(self, prefix: str) -> None:
        """Refer from the predicate of a transform to the transform, unless it has a note of its own."""
        if predicate := self._keys.get(f"{prefix}predicate"):
            self._predicate(f"predicates.{predicate}.", f"see {prefix}type")

    def _predicate(self, prefix: str, text: str) -> None:
        for key in self._keys.starting(prefix):
            self._keys.kept(key, text)
        self._keys.kept("predicates", "see the transforms that have them")

    def _keeps_topics(self, prefix: str) -> bool:
        """Return True if a router matches none of the topics, or gives each its own name."""
        topics = words(self._keys.get("topics"))
        replacement = re.sub(r"\$(\d)", r"\\\1", self._keys.get(f"{prefix}replacement"))
        try:
            regex = re.compile(self._keys.get(f"{prefix}regex"))
            kept = bool(topics) and all(
                not (match := regex.fullmatch(topic)) or match.expand(replacement) == topic for topic in topics
            )
        except (re.error, IndexError):
            kept = False
        self._routed = self._routed or not kept
        return kept and "topics.regex" not in self._keys


def _steps(keys: Keys, prefix: str, kind: str, inside: str) -> list[dict[str, Any]]:
    """The steps that do what a transform of values does; none if there are none."""
    if kind == "MaskField":
        return [{"mask": [_path(field, inside) for field in words(keys.get(f"{prefix}fields"))]}]
    if kind == "Flatten":
        return [{"flatten": {"separator": keys.get(f"{prefix}delimiter") or "."}}]
    if kind != "ReplaceField" or keys.get(f"{prefix}include") or keys.get(f"{prefix}whitelist"):
        return []
    dropped = words(keys.get(f"{prefix}exclude") or keys.get(f"{prefix}blacklist"))
    pairs = [pair.partition(":") for pair in words(keys.get(f"{prefix}renames"))]
    steps: list[dict[str, Any]] = [{"drop": [_path(field, inside) for field in dropped]}] if dropped else []
    return steps + ([{"rename": {_path(old, inside): new for old, _, new in pairs}}] if pairs else [])


def _names(steps: list[dict[str, Any]]) -> set[str]:
    """Return the names of the value's fields that steps change; `*` stands for all."""
    names: set[str] = set()
    for step in steps:
        [(kind, settings)] = step.items()
        if kind == "flatten":
            names.add("*")
        else:
            paths = [*settings, *settings.values()] if isinstance(settings, dict) else settings
            names |= {path.removeprefix("value.").strip("`") for path in paths}
    return names


def _path(field: str, inside: str) -> str:
    return f"value.{inside}" + (f"`{field}`" if "." in field else field)


def _literal(text: str) -> str:
    """Return a text as Spark SQL has it."""
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"


def _shown(steps: list[dict[str, Any]]) -> str:
    return str(steps)[1:-1].replace("'", "")


def _note_of(kind: str, steps: list[dict[str, Any]]) -> str:
    if kind == "MaskField":
        return "transform.steps: mask: each character of a text becomes *, and other values null; theirs are empty or 0"
    return f"transform.steps: {_shown(steps)}"
