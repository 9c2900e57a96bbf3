"""The partitioners of Confluent's S3 sink as `store.layout` and `timestamp`."""

from typing import Any

from kafka_archiver.imports.base import Keys, without_empty, words

_PARTITIONERS = {
    "DefaultPartitioner": "confluent_default",
    "FieldPartitioner": "confluent_field",
    "TimeBasedPartitioner": "confluent_time",
    "DailyPartitioner": "confluent_daily",
    "HourlyPartitioner": "confluent_hourly",
}
_TIMES = ("confluent_time", "confluent_daily", "confluent_hourly")


def layout_of(keys: Keys, inside: str) -> tuple[Any, dict[str, Any]]:
    """The layout, and the section `timestamp`, which is empty if no path has times.

    :param inside: what stands before the path of a field of the value.
    """
    name = keys.get("partitioner.class", "DefaultPartitioner").rpartition(".")[2]
    layout = _PARTITIONERS.get(name)
    if layout is None:
        keys.lacks(
            "partitioner.class",
            "no layout of this class: `store.layout` can say any path of times and fields; write your own by "
            "entry point",
        )
        layout = "confluent_default"
    else:
        keys.kept("partitioner.class", f"store.layout: {layout}")
    options: dict[str, Any] = {}
    by_time = layout in _TIMES
    if layout == "confluent_field":
        options["fields"] = [f"value.{inside}{field}" for field in words(keys.get("partition.field.name"))]
    keys.kept("partition.field.name", "store.layout.fields")
    if layout == "confluent_time":
        options["path_format"] = keys.get("path.format")
        every = keys.number("partition.duration.ms", "store.layout.every: 3600000ms", most=366 * 86_400_000)
        options["every"] = f"{every or 3_600_000}ms"
    if by_time:
        options["timezone"] = keys.get("timezone")
        options["locale"] = keys.get("locale")
    for key in ("path.format", "partition.duration.ms"):
        keys.note("kept", key, "store.layout" if layout == "confluent_time" else "no effect with this partitioner")
    for key in ("timezone", "locale"):
        keys.note("kept", key, "store.layout" if by_time else "no effect with this partitioner")
    for key, option in (("file.delim", "file_delimiter"), ("directory.delim", "directory_delimiter")):
        options[option] = keys.get(key)
        keys.kept(key, f"store.layout.{option}")
    options["zero_pad"] = keys.number("filename.offset.zero.pad.width", "store.layout.zero_pad is left out: 10", 0, 40)
    keys.kept("filename.offset.zero.pad.width", "store.layout.zero_pad")
    options = without_empty(options)
    return ({"name": layout, **options} if options else layout), _timestamp(keys, by_time, inside)


def _timestamp(keys: Keys, by_time: bool, inside: str) -> dict[str, Any]:
    extractor = keys.get("timestamp.extractor", "Wallclock")
    if not by_time:
        for key in ("timestamp.extractor", "timestamp.field"):
            keys.note("kept", key, "no effect with this partitioner")
        return {}
    keys.kept("timestamp.field", "timestamp.path")
    if extractor.endswith("RecordField"):
        keys.kept("timestamp.extractor", "timestamp.from: value (a number is milliseconds, a text is ISO 8601)")
        return {"from": "value", "path": inside + (keys.get("timestamp.field") or "timestamp")}
    if extractor == "Record":
        keys.kept("timestamp.extractor", "timestamp.from: record")
        return {"from": "record"}
    if extractor != "Wallclock":
        keys.lacks("timestamp.extractor", "no code of this class runs here; Kafka's timestamp is taken")
        return {"from": "record"}
    text = "timestamp.from: wallclock, which is the plan's time, so that a retry files each record in the same place"
    keys.differs("timestamp.extractor", text)
    if "timestamp.extractor" not in keys:
        keys.remark("differs", f"the connector's default timestamp.extractor is Wallclock: {text}")
    return {"from": "wallclock"}
