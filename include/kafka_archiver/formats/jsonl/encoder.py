"""JSON lines: one record a line."""

from kafka_archiver.formats.jsonl.records import record_lines
from kafka_archiver.formats.jsonl.values import value_lines
from kafka_archiver.formats.shared.stream import Pieces
from kafka_archiver.plan import Content

WRITERS: dict[Content, Pieces] = {
    "value": lambda batch, _: [value_lines(batch)],
    "record": lambda batch, target: map(b"".join, record_lines(batch, target)),
}
