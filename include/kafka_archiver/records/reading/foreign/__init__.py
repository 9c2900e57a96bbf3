"""Read objects that other tools wrote, by what the files say of themselves."""

from kafka_archiver.records.reading.foreign.base import Facts, Foreign
from kafka_archiver.records.reading.foreign.registry import foreign_format

__all__ = ["Facts", "Foreign", "foreign_format"]
