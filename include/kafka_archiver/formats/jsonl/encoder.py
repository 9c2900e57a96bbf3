"""JSON lines: one record a line."""

from kafka_archiver.formats.base import Target, is_typed
from kafka_archiver.formats.jsonl.records import record_lines
from kafka_archiver.formats.jsonl.typed import typed_lines
from kafka_archiver.formats.jsonl.values import value_lines
from kafka_archiver.formats.shared.stream import Pieces
from kafka_archiver.plan import Content

_WRITERS: dict[Content, Pieces] = {
    "value": lambda batch, _: [value_lines(batch)],
    "record": lambda batch, target: map(b"".join, record_lines(batch, target)),
}


def lines_of(target: Target) -> Pieces:
    """The function that makes the lines of an object."""
    return typed_lines if is_typed(target.schema) else _WRITERS[target.settings.content]
