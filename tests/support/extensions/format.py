"""A format: one JSON list a record. With the audit's reader, which shares no code with it."""

import json
from base64 import b64decode, b64encode
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, BinaryIO, ClassVar

import pyarrow as pa

from kafka_archiver.audit.readers.base import FormatReader, RecordCoordinates
from kafka_archiver.model.settings import Content, Settings
from kafka_archiver.records.formats.base import RECORD, Target
from kafka_archiver.values.yaml_values import YamlValue


class Options(YamlValue):
    """`indent`: spaces before each list."""

    indent: int = 0


class Encoder:
    pending = 0

    def __init__(self, target: Target) -> None:
        self._target = target

    def write(self, batch: pa.RecordBatch) -> Iterable[bytes]:
        indent = " " * self._target.settings.options["indent"]
        for row in batch.select(["offset", "timestamp", "value"]).to_pylist():
            value = None if row["value"] is None else b64encode(row["value"]).decode()
            yield f"{indent}{json.dumps([row['offset'], row['timestamp'], value])}\n".encode()

    def spill(self, directory: Path) -> int:
        return 0

    def finish(self) -> Iterable[bytes]:
        return ()


class Lists:
    name = "lists"
    encoding = 1
    extensions: ClassVar[Mapping[str, str]] = {"none": ".lists"}
    default_codec = "none"
    contents: ClassVar[frozenset[Content]] = frozenset({"record"})
    typed: ClassVar[frozenset[Content]] = frozenset()
    options = Options
    known: ClassVar[Mapping[str, str]] = {}
    libraries: ClassVar[Mapping[str, tuple[str, ...]]] = {}

    def stage(self, settings: Settings) -> None:
        """None: it holds every record."""

    def encoder(self, target: Target) -> Encoder:
        return Encoder(target)

    def read(self, source: BinaryIO, target: Target) -> Iterator[pa.RecordBatch]:
        def column(number: int) -> list[Any]:
            return [line[number] for line in lines]

        lines = [json.loads(line) for line in source]
        values = [None if text is None else b64decode(text) for text in column(2)]
        known = {"offset": column(0), "timestamp": column(1), "value": values}
        same = {"topic": target.topic, "partition": target.partition, "timestamp_type": 0, "key": None, "headers": []}
        columns = {**{name: [value] * len(lines) for name, value in same.items()}, **known}
        yield pa.record_batch([pa.array(columns[field.name], field.type) for field in RECORD], schema=RECORD)


def coordinates(file: BinaryIO, settings: Settings) -> Iterator[RecordCoordinates]:
    for line in file:
        offset, timestamp, _ = json.loads(line)
        yield RecordCoordinates(None, None, offset, timestamp)


FORMAT = Lists()
READER = FormatReader(records=coordinates)
