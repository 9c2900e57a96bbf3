"""The partitioners of Confluent's S3 sink as `store.layout` and `timestamp`."""

from collections.abc import Container
from typing import Any, NamedTuple

from kafka_archiver.imports.base import Keys, without_empty, words
from kafka_archiver.imports.joda import NO_ZONE, braced, locale_of, pattern_of, zone_of

_PACKAGE = "io.confluent.connect.storage.partitioner."
_PARTITIONERS = {
    f"{_PACKAGE}DefaultPartitioner": "confluent_default",
    f"{_PACKAGE}FieldPartitioner": "confluent_field",
    f"{_PACKAGE}TimeBasedPartitioner": "confluent_time",
    f"{_PACKAGE}DailyPartitioner": "confluent_daily",
    f"{_PACKAGE}HourlyPartitioner": "confluent_hourly",
}
# Of github.com/canelmas/kafka-connect-field-and-time-partitioner: fields, then the time.
_FIELD_AND_TIME = "com.canelmas.kafka.connect.FieldAndTimeBasedPartitioner"
_TIMES = ("confluent_time", "confluent_daily", "confluent_hourly", "path")
_EXTRACTORS = {
    f"{_PACKAGE}TimeBasedPartitioner${name}TimestampExtractor": name for name in ("Wallclock", "Record", "RecordField")
}
# Theirs writes these letters for a null.
_NULL = {"missing": "null", "null_name": "null"}
_TEXT_IS = "a number is milliseconds, a text is ISO 8601, without an offset UTC (there: the worker's zone)"


class LayoutKeys(NamedTuple):
    """`store.layout`, `store.name`, the section `timestamp`, and the columns of the value that are also folders."""

    layout: Any
    name: str
    timestamp: dict[str, Any]
    fields: tuple[str, ...] = ()


def layout_of(keys: Keys, inside: str, times: Container[str] = ()) -> LayoutKeys:
    """Return where a connector's partitioner files records. Each of its keys gets a note.

    :param inside: what stands before the path of a field of the value.
    :param times: the fields into which a transform puts Kafka's timestamp.
    """
    class_name = keys.get("partitioner.class", f"{_PACKAGE}DefaultPartitioner")
    layout = "path" if class_name == _FIELD_AND_TIME else _PARTITIONERS.get(class_name)
    _pad(keys)
    for key, option in (("file.delim", "file_delimiter"), ("directory.delim", "directory_delimiter")):
        if key in keys and not keys.get(key):
            keys.decide(
                key, f"it is empty, and store.layout.{option} is its default, because numbers would run together"
            )
        keys.kept(key, f"store.layout.{option}")
    if layout is None:
        keys.decide(
            "partitioner.class",
            "no code of this class runs here, so no layout is chosen: `store.layout: {path: …}` can say any path of "
            "times and fields, and an entry point has a layout of your own",
        )
        for key in ("path.format", "partition.duration.ms", "timezone", "locale", "timestamp.extractor",
                    "timestamp.field", "partition.field.name", "partition.field.format.path"):  # fmt: skip
            keys.by_hand(key, "into `store.layout` or `timestamp`, if the class has this key")
        # No layout has such a name, so the YAML is refused until a person chooses one.
        return LayoutKeys(class_name, "", {})
    keys.kept("partitioner.class", f"store.layout: {layout}")
    by_time = layout in _TIMES
    options: dict[str, Any] = {}
    fields = words(keys.get("partition.field.name")) if layout in ("confluent_field", "path") else []
    if layout == "confluent_field":
        options |= {"fields": [_folder(field, inside) for field in fields], **_NULL}
    keys.kept("partition.field.name", "store.layout" if fields else "no effect with this partitioner")
    if by_time:
        options |= _times(keys, layout)
    for key in ("path.format", "partition.duration.ms"):
        keys.note("kept", key, "store.layout" if layout in ("confluent_time", "path") else "no effect here and there")
    for key in ("timezone", "locale"):
        keys.note("kept", key, "store.layout" if by_time else "no effect with this partitioner")
    timestamp = _timestamp(keys, by_time, inside, times)
    if layout == "path":
        return LayoutKeys(*_fields_and_time(keys, options, fields, inside), timestamp, tuple(fields))
    # The format's own letters are the zone's, the locale's and the delimiters'.
    options |= {"file_delimiter": keys.get("file.delim"), "directory_delimiter": keys.get("directory.delim")}
    options["zero_pad"] = _pad(keys)
    options = without_empty(options)
    return LayoutKeys({"name": layout, **options} if options else layout, "", timestamp, tuple(fields))


def _pad(keys: Keys) -> int | None:
    width = keys.number("filename.offset.zero.pad.width", "store.layout.zero_pad is left out: 10", 0, 40)
    keys.kept("filename.offset.zero.pad.width", "store.layout.zero_pad")
    return width


def _folder(field: str, inside: str) -> Any:
    """Return a folder; theirs has the whole path of a field as its name: address.city=."""
    path = f"value.{inside}{field}"
    return {"field": path, "as": field} if "." in field else path


def _fields_and_time(keys: Keys, options: dict[str, Any], fields: list[str], inside: str) -> tuple[Any, str]:
    """Return the layout and the name of canelmas' partitioner: app=x/2026/11/21."""
    older = keys.get("partition.field") if not fields else ""
    hive = keys.flag("partition.field.format.path", True) and not older
    keys.kept("partition.field.format.path", "store.layout.path")
    if older:
        # Without partition.field.name, it is release 1.0.0: the value alone, and an error without it.
        keys.kept("partition.field", "store.layout.path, as release 1.0.0 of the partitioner reads it")
        fields = [older]
    elif not fields:
        keys.remark("decide", "the file has no partition.field.name, which the partitioner needs")
    if keys.get("directory.delim", "/") != "/":
        keys.decide("directory.delim", "store.layout.path has `/` between folders")
    folders = [f"{field}=" * hive + "{value." + f"{inside}{field}" + "}" for field in fields]
    try:
        time = braced(options.pop("path_format", ""))
    except ValueError as error:
        keys.decide("path.format", f"{error}; it is left out of store.layout.path")
        time = ""
    path = "/".join(["{topic}", *folders, *([time] if time else [])])
    delimiter = keys.get("file.delim") or "+"
    pad = _pad(keys)
    start = "{start:" + str(10 if pad is None else max(pad, 1)) + "}"
    name = delimiter.join(("{topic}", "{partition}", start))
    return {"path": path, **without_empty(options), **({} if older else _NULL)}, name


def _times(keys: Keys, layout: str) -> dict[str, Any]:
    """Return the options of a layout with times."""
    options: dict[str, Any] = {}
    zone, known = zone_of(keys.get("timezone"))
    if not known:
        keys.decide("timezone", NO_ZONE)
    elif zone != keys.get("timezone"):
        keys.kept("timezone", f"store.layout.timezone: {zone}, which has had this offset since 1970")
    if "timezone" not in keys:
        keys.remark("decide", "the file has no timezone, without which the connector does not start; UTC is taken")
    options["timezone"] = zone
    pattern = ""
    if layout in ("confluent_time", "path"):
        pattern = options["path_format"] = _pattern(keys, zone)
        options["every"] = _every(keys)
    locale, check = locale_of(pattern, keys.get("locale"))
    options["locale"] = locale
    if check:
        keys.decide("locale", check)
    elif not locale:
        keys.kept("locale", "nothing: the paths have no names, or the English ones")
    return options


def _pattern(keys: Keys, zone: str) -> str:
    written, delimiter = keys.get("path.format"), keys.get("directory.delim") or "/"
    try:
        pattern = pattern_of(written, delimiter, zone)
    except ValueError as error:
        keys.decide("path.format", f"{error}; Joda's C and z have no equal here")
        return written
    if pattern.startswith("/") or "//" in pattern or pattern.endswith("/"):
        keys.decide("path.format", "it makes folders without a name, which no layout has; remove the slashes")
    elif pattern != written:
        keys.kept("path.format", f"store.layout: {pattern}, the same paths")
    return pattern


def _every(keys: Keys) -> str:
    key = "partition.duration.ms"
    duration = keys.number(key, "store.layout.every is left out: the path alone decides", most=366 * 86_400_000)
    if key not in keys:
        keys.remark("decide", f"the file has no {key}, without which the connector does not start; the path decides")
    return f"{duration}ms" if duration else ""


def _timestamp(keys: Keys, by_time: bool, inside: str, times: Container[str]) -> dict[str, Any]:
    key = "timestamp.extractor"
    class_name = keys.get(key, "Wallclock")
    extractor = _EXTRACTORS.get(class_name, class_name)
    if not by_time:
        for name in (key, "timestamp.field"):
            keys.note("kept", name, "no effect with this partitioner")
        return {}
    field = keys.get("timestamp.field") or "timestamp"
    if extractor == "RecordField" and field in times:
        keys.kept(key, f"timestamp.from: record, for {field} is Kafka's timestamp, which a transform has put there")
        keys.kept("timestamp.field", f"see {key}")
        return {"from": "record"}
    if extractor == "RecordField":
        keys.kept("timestamp.field", "timestamp.path")
        keys.decide(
            key,
            f"timestamp.from: value; {_TEXT_IS}: the same if the field is a number, has an offset, or the "
            "worker's zone is UTC",
        )
        return {"from": "value", "path": inside + field}
    keys.kept("timestamp.field", "no effect with this extractor")
    if extractor == "Record":
        keys.kept(key, "timestamp.from: record")
        return {"from": "record"}
    if extractor != "Wallclock":
        keys.decide(key, "no code of this class runs here; Kafka's timestamp is taken")
        return {"from": "record"}
    text = "timestamp.from: wallclock, which is the plan's time, so that a retry files each record in the same place"
    keys.differs(key, text)
    if key not in keys:
        keys.remark("differs", f"the connector's default {key} is Wallclock: {text}")
    return {"from": "wallclock"}
