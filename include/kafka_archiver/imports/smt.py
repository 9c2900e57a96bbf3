"""Kafka Connect's single message transforms as `transform.steps`, as far as a step does the same."""

from typing import Any, NamedTuple

from kafka_archiver.imports.base import Keys, words

_KEYS = "keys are stored as Kafka has them"
_PLACE = "topics keep their names; `store.layout` and `store.name` say where objects are"
_BY_TIME = "no header is needed to file by time: `store.layout: {path: 'date={yyyy-MM-dd}/hour={HH}'}`"
_SQL = "by hand, in Spark SQL: "
# Those that have no step: what to do instead.
_OTHERS = {
    "Cast": _SQL + "`transform.select: ['* EXCEPT (a)', 'CAST(value.a AS int) AS a']`",
    "ExtractField": _SQL + "`transform.select: [value.a.*]`, or `[value.a]`",
    "HoistField": _SQL + "`transform.select: [struct(value.*) AS a]`",
    "InsertField": "`store.metadata` adds Kafka's columns; in SQL a text: `transform.select: ['*', \"'x' AS a\"]`",
    "ReplaceField": _SQL + "`transform.select: [value.a, value.b AS c]`, the fields that stay",
    "TimestampConverter": _SQL + "`transform.select` with `timestamp_millis`, `date_format` and so on",
    "RegexRouter": _PLACE,
    "TimestampRouter": _PLACE,
    "MessageTimestampRouter": _PLACE,
    "ExtractTopic": _PLACE,
    "TombstoneHandler": "`policies.null_value: skip` leaves tombstones out; `archive`, the default, stores them",
    "Drop": "by hand: a `transform.mapper` that returns `record.replace(value=None)`",
    "InsertRecordTimestampHeaders": _BY_TIME,
    "InsertRollingRecordTimestampHeaders": _BY_TIME,
    "InsertWallclockHeaders": _BY_TIME + " with `timestamp: {from: wallclock}`",
    "InsertRollingWallclockHeaders": _BY_TIME + " with `timestamp: {from: wallclock}`",
    "InsertFieldTimestampHeaders": _BY_TIME + " with `timestamp: {from: value, path: …}`",
    "InsertRollingFieldTimestampHeaders": _BY_TIME + " with `timestamp: {from: value, path: …}`",
    "SetSchemaMetadata": "the schema is the writer's, with its own name and version",
    "ValueToKey": _KEYS,
    "DropHeaders": "`store.metadata` without headers stores none; a `transform.mapper` drops some",
    "InsertHeader": "headers are stored as Kafka has them; a `transform.mapper` adds some",
    "HeaderFrom": "headers are stored as Kafka has them; a `transform.mapper` changes them",
    "Filter": "by hand: what its predicate says, in `transform.where`",
}
# They change which fields a value has, so a later transform may not mean the fields of the record.
_RESHAPE = ("ExtractField", "HoistField")
_NO_COLUMNS = (
    "steps work on decoded columns: give `source.value` a `schema`, store columns, not `content: record`, and add to "
    "`transform.steps`: "
)


class Found(NamedTuple):
    """`steps` of `transform`, and whether tombstones are left out."""

    steps: list[dict[str, Any]]
    skips_null: bool


def steps_of(keys: Keys, columns: bool, inside: str) -> Found:
    """The steps for the transforms of a connector. Each of their keys gets a note.

    :param columns: whether the archive has columns of the values.
    :param inside: what stands before the path of a field.
    """
    steps: list[dict[str, Any]] = []
    names = words(keys.get("transforms"))
    skips = False
    unclear = ""
    for name in names:
        prefix = f"transforms.{name}."
        path = keys.get(f"{prefix}type")
        kind, _, of = path.rpartition(".")[2].partition("$")
        made = _steps(keys, prefix, kind, inside) if of == "Value" else []
        if kind == "Filter" and _of_tombstones(keys, prefix):
            skips = True
            _note(keys, prefix, "kept", "policies.null_value: skip; the account counts each of them")
        elif keys.get(f"{prefix}predicate"):
            _note(keys, prefix, "lacks", "a step is for all records; say it with its predicate in Spark SQL by hand")
            unclear = unclear or name * bool(made)
        elif made and unclear:
            _note(keys, prefix, "lacks", f"by hand, because {unclear} before it has no equivalent: {_shown(made)}")
        elif made and not columns:
            _note(keys, prefix, "by_hand", _NO_COLUMNS + _shown(made))
        elif made:
            steps += made
            kind_of_note = "differs" if kind == "MaskField" else "kept"
            _note(keys, prefix, kind_of_note, _said(kind, made))
        else:
            why = (
                _KEYS
                if of == "Key"
                else _OTHERS.get(kind, "no code of this class runs here; `transform.mapper` may do it")
            )
            _note(keys, prefix, "lacks", why)
            if of != "Key" and (kind in _RESHAPE or kind not in _OTHERS or keys.get(f"{prefix}renames")):
                unclear = unclear or name
    if names:
        keys.note("kept" if steps else "lacks", "transforms", "transform.steps: see each" if steps else "see each")
    return Found(steps, skips)


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
    found: list[dict[str, Any]] = [{"drop": [_path(field, inside) for field in dropped]}] if dropped else []
    return found + ([{"rename": {_path(old, inside): new for old, _, new in pairs}}] if pairs else [])


def _path(field: str, inside: str) -> str:
    return f"value.{inside}" + (f"`{field}`" if "." in field else field)


def _of_tombstones(keys: Keys, prefix: str) -> bool:
    """Whether a filter leaves out what has no value, and nothing else."""
    predicate = keys.get(f"{prefix}predicate")
    found = keys.get(f"predicates.{predicate}.type").rpartition(".")[2]
    if found != "RecordIsTombstone" or keys.flag(f"{prefix}negate", False):
        return False
    for key in keys.starting(f"predicates.{predicate}."):
        keys.kept(key, "policies.null_value: skip")
    return True


def _note(keys: Keys, prefix: str, kind: Any, text: str) -> None:
    """The text at the transform's class; the other keys refer to it."""
    keys.note(kind, f"{prefix}type", text)
    for key in keys.starting(prefix):
        if key != f"{prefix}type":
            keys.note(kind, key, f"see {prefix}type")


def _shown(steps: list[dict[str, Any]]) -> str:
    return str(steps)[1:-1].replace("'", "")


def _said(kind: str, steps: list[dict[str, Any]]) -> str:
    if kind == "MaskField":
        return "transform.steps: mask: each character of a text becomes *, and other values null; theirs are empty or 0"
    return f"transform.steps: {_shown(steps)}"
