"""The readers of other tools' files, by the names that adopted objects have in the ledger."""

from collections.abc import Iterator, Mapping
from typing import BinaryIO

import pyarrow as pa

from kafka_archiver.messages.errors import IntegrityError
from kafka_archiver.records.formats.base import VALUE, Target
from kafka_archiver.records.formats.mak.reader import read_records as read_mak
from kafka_archiver.records.reading.foreign.base import OFFSET, Facts, Foreign, facts_of, joined
from kafka_archiver.records.reading.foreign.columns import Avro, Parquet
from kafka_archiver.records.reading.foreign.lines import Lines


class Mak:
    """MAK files of kafkatos3: every record has its offset."""

    def facts(self, source: BinaryIO, target: Target) -> Facts:
        """Read all records."""
        parts: list[Facts] = []
        place = None
        for batch in filter(len, read_mak(source, target)):
            place = place or (batch.column("topic")[0].as_py(), batch.column("partition")[0].as_py())
            known = ((offset, None) for offset in batch.column("offset").to_pylist())
            parts.append(facts_of(batch.num_rows, known, None))
        return joined(parts, place) if parts else Facts(0)

    def read(self, source: BinaryIO, target: Target, has_offsets: bool) -> Iterator[pa.RecordBatch]:
        """Yield the records with the columns of `RECORD`."""
        for batch in read_mak(source, target):
            yield batch.append_column(OFFSET, batch.column("offset")) if has_offsets else batch


class Joined:
    """Values without anything between them: the whole file is given as one value."""

    def facts(self, source: BinaryIO, target: Target) -> Facts:  # noqa: ARG002 - any bytes are such a file
        """Count one."""
        return Facts(1)

    def read(self, source: BinaryIO, target: Target, has_offsets: bool) -> Iterator[pa.RecordBatch]:  # noqa: ARG002
        """Yield the file."""
        yield pa.RecordBatch.from_arrays(
            [pa.array([source.read()], pa.binary())], schema=pa.schema([VALUE.field("value")])
        )


_FORMATS: Mapping[str, Foreign] = {
    "avro": Avro(),
    "joined": Joined(),
    "lines": Lines(),
    "mak": Mak(),
    "parquet": Parquet(),
}


def foreign_format(name: str) -> Foreign:
    """Return the reader of adopted objects of this form.

    :raises IntegrityError: this release has none.
    """
    if name not in _FORMATS:
        raise IntegrityError(f"adopted objects of the form {name!r}: expected {' | '.join(_FORMATS)}")
    return _FORMATS[name]
