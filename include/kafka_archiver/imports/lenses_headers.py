"""Headers that Lenses' transforms insert to file by time, as parts of a time in our paths. Pure."""

from collections.abc import Iterable, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any, NamedTuple
from zoneinfo import ZoneInfo

from kafka_archiver.imports.base import Keys, whole, without_empty, words
from kafka_archiver.imports.java_times import pattern_of
from kafka_archiver.imports.smt import LENSES_HEADERS
from kafka_archiver.messages.errors import ConfigError

_PARTS = {
    "date": "yyyy-MM-dd",
    "year": "yyyy",
    "month": "MM",
    "day": "dd",
    "hour": "HH",
    "minute": "mm",
    "second": "ss",
}
# InsertWallclockDateTimePart shows numbers without zeros in front.
_BARE = {"YEAR": "yyyy", "MONTH": "M", "DAY": "d", "HOUR": "H", "MINUTE": "m", "SECOND": "s"}
_SECONDS = {"hours": 3600, "minutes": 60, "seconds": 1}
_UNITS = {"seconds": "s", "milliseconds": "ms", "microseconds": "us", "nanoseconds": "ns"}
_KINDS = (
    "TimestampConverter",
    *(f"Insert{rolling}Wallclock" for rolling in ("", "Rolling")),
    "InsertWallclockDateTimePart",
    *(
        f"Insert{rolling}{of}Headers"
        for rolling in ("", "Rolling")
        for of in ("RecordTimestamp", "FieldTimestamp", "Wallclock")
    ),
)
# They may add headers, and what these are is not in the file, or not of a time.
_ADDS_HEADERS = ("InsertHeader", "HeaderFrom", "RenameHeader", "InsertSourcePartitionOrOffsetValue")
_HARMLESS = ("org.apache.kafka.connect.transforms.", "io.confluent.connect.transforms.", "io.debezium.transforms.")


class HeaderClock(NamedTuple):
    """The time that a header shows. `timestamp`: the section of the YAML; `window`: seconds, 0 for none."""

    timestamp: Mapping[str, Any]
    zone: str = "UTC"
    locale: str = "en"
    window: int = 0


class InsertedHeader(NamedTuple):
    """An inserted header: its pattern by our letters, and its clock."""

    pattern: str
    clock: HeaderClock


class InsertedHeaders(NamedTuple):
    """`shown`: the headers of times by their names; `other_transforms`: the transforms that may add other headers."""

    shown: Mapping[str, InsertedHeader] = {}
    other_transforms: tuple[str, ...] = ()

    def columns(self, used: Iterable[str]) -> set[str]:
        """Return where the times of these headers come from: record, wallclock, key, value."""
        return {self.shown[name].clock.timestamp["from"] for name in used if name in self.shown}


def headers_of(keys: Keys, used: Iterable[str], inside: Mapping[str, str]) -> InsertedHeaders:
    """Return the headers that the transforms insert. Each key of such a transform gets a note.

    :param used: the headers after PARTITIONBY.
    :param inside: what stands before the path of a field of `key` and `value`.
    """
    shown: dict[str, InsertedHeader] = {}
    inserting: list[str] = []
    changed = ""
    for name in words(keys.get("transforms")):
        prefix = f"transforms.{name}."
        path = keys.get(f"{prefix}type")
        kind = path.rpartition(".")[2].partition("$")[0]
        if not path.startswith(LENSES_HEADERS) or kind in _ADDS_HEADERS:
            if kind in _ADDS_HEADERS or not path.startswith(_HARMLESS):
                inserting.append(name)
            changed = changed or (name if path.endswith("$Value") or not path.startswith(_HARMLESS) else "")
            continue
        try:
            inserted = _inserted(keys, prefix, kind, inside)
            if changed and any(header.clock.timestamp["from"] in ("value", "key") for header in inserted.values()):
                raise ValueError(
                    f"its field is what {changed} before it leaves, and `timestamp` reads the record in Kafka"
                )
        except ValueError as error:
            inserting.append(name)
            keys.note_section(prefix, "decide", f"the header has no equal here: {error}")
            continue
        shown |= inserted
        if set(inserted) & set(used):
            keys.note_section(prefix, "kept", "store.layout has the parts of the time in the place of the headers")
        else:
            keys.note_section(
                prefix, "differs", "PARTITIONBY does not use its headers; headers are stored as Kafka has them"
            )
    return InsertedHeaders(shown, tuple(inserting))


def _inserted(keys: Keys, prefix: str, kind: str, inside: Mapping[str, str]) -> dict[str, InsertedHeader]:
    """Return the headers of one transform.

    :raises ValueError: says what has no equal here.
    """

    def get(key: str, default: str = "") -> str:
        return keys.get(f"{prefix}{key}") or default

    if kind not in _KINDS:
        raise ValueError(f"{kind} is not known")
    if keys.get(f"{prefix}predicate"):
        raise ValueError("it has a predicate, and a layout is for all records")
    clock = HeaderClock(_source(get, kind, inside), get("timezone", "UTC"), get("locale", "en"), _window(get, kind))
    if kind in ("InsertWallclock", "InsertRollingWallclock"):
        if get("value.type", "format").lower() != "format" or not get("format"):
            raise ValueError("its value is a number or the whole time; give `format`")
        return {get("header.name"): InsertedHeader(pattern_of(get("format")), clock)}
    if kind == "InsertWallclockDateTimePart":
        part = get("date.time.part").upper()
        if part not in _BARE:
            raise ValueError(f"date.time.part: expected {', '.join(_BARE).lower()}; found {part.lower()!r}")
        return {get("header.name"): InsertedHeader(_BARE[part], clock)}
    if kind == "TimestampConverter":
        if get("target.type") != "string" or not get("format.to.pattern"):
            raise ValueError("expected target.type=string and format.to.pattern")
        return {get("header.name"): InsertedHeader(pattern_of(get("format.to.pattern")), clock)}
    lead = get("header.prefix.name")
    return {
        f"{lead}{part}": InsertedHeader(pattern_of(get(f"{part}.format", usual)), clock)
        for part, usual in _PARTS.items()
    }


def _source(get: Any, kind: str, inside: Mapping[str, str]) -> dict[str, Any]:
    """Return the section `timestamp`.

    :raises ValueError: says what has no equal here.
    """
    if "Wallclock" in kind:
        return {"from": "wallclock"}
    if "Record" in kind:
        return {"from": "record"}
    head, *fields = get("field", "_value").split(".")
    if head == "_timestamp":
        return {"from": "record"}
    column, path = (head[1:], fields) if head in ("_value", "_key") else ("value", [head, *fields])
    if not path:
        raise ValueError(f"the whole {column} is the time; `timestamp.path` is a field")
    # TimestampConverter reads text without an offset as UTC, the others in their own time zone.
    zone = "UTC" if kind == "TimestampConverter" else get("timezone", "UTC")
    patterns = words(get("format.from.pattern"))
    section = {
        "from": column,
        "path": inside.get(column, "") + ".".join(path),
        "patterns": patterns,
        "timezone": zone if patterns and zone != "UTC" else "",
        "unit": "" if patterns else _UNITS.get(get("unix.precision", "milliseconds"), "ms"),
    }
    return without_empty(section)


def _window(get: Any, kind: str) -> int:
    """Return the seconds of the rolling window; 0 if there is none.

    :raises ValueError: the transform would refuse it.
    """
    if kind != "TimestampConverter" and "Rolling" not in kind:
        return 0
    name = get("rolling.window.type", "none" if kind == "TimestampConverter" else "minutes").lower()
    if name == "none":
        return 0
    size = whole(get("rolling.window.size", "15"))
    if name not in _SECONDS or size is None:
        raise ValueError(f"expected a window of so many hours, minutes or seconds; found {size} {name}")
    return size * _SECONDS[name]


def options_of(headers: Iterable[InsertedHeader]) -> dict[str, Any]:
    """Return the options of the layout with these headers in one path: `timezone`, `locale`, `every`.

    :raises ConfigError: a layout has one clock, and theirs are several, or their windows have no equal.
    """
    shown = list(headers)
    clock = shown[0].clock
    if any(header.clock != clock for header in shown):
        raise ConfigError("expected headers of one time in PARTITIONBY; found several clocks, and a layout has one")
    patterns = "".join(header.pattern for header in shown)
    return without_empty(
        {
            "timezone": clock.zone if clock.zone != "UTC" else "",
            "locale": clock.locale if any(run in patterns for run in ("MMM", "E", "a", "G")) else "",
            "every": _every(clock) if clock.window else "",
        }
    )


def _every(clock: HeaderClock) -> str:
    """Return `every` for a window. Theirs are windows of UTC, ours of the local time.

    :raises ConfigError: the two are not the same in this zone.
    """
    if any(offset % clock.window for offset in _offsets(clock.zone)):
        raise ConfigError(
            f"windows of {clock.window} s are counted in UTC, and `store.layout.every` counts the time of {clock.zone}"
        )
    return next(
        f"{clock.window // size}{unit}" for unit, size in (("h", 3600), ("m", 60), ("s", 1)) if clock.window % size == 0
    )


def _offsets(zone: str) -> set[int]:
    """Return the zone's offsets of this century, in seconds; none of a zone that the loader will refuse."""
    try:
        location = ZoneInfo(zone)
    except (ValueError, OSError, KeyError):
        return set()
    moments = (datetime(year, month, 1, tzinfo=UTC) for year in range(2000, 2038) for month in range(1, 13))
    return {int((moment.astimezone(location).utcoffset() or timedelta()).total_seconds()) for moment in moments}
