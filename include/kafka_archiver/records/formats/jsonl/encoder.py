"""JSON lines: one record a line."""

from kafka_archiver.records.formats.base import VALUE, Target
from kafka_archiver.records.formats.jsonl.objects import object_lines
from kafka_archiver.records.formats.jsonl.values import value_lines
from kafka_archiver.records.formats.shared.stream import Pieces


def lines_of(target: Target) -> Pieces:
    """The function that makes the lines of an object."""
    return (lambda batch, _: [value_lines(batch)]) if target.schema.equals(VALUE) else object_lines
