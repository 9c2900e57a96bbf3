"""Read objects that other tools wrote, by what the files say of themselves."""

from kafka_archiver.records.reading.foreign.base import OFFSET, Facts, Foreign
from kafka_archiver.records.reading.foreign.registry import foreign_format

__all__ = ["OFFSET", "Facts", "Foreign", "foreign_format"]
