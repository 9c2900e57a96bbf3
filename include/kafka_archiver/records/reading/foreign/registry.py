"""The readers of other tools' files, by the names that adopted objects have in the ledger."""

from collections.abc import Iterator, Mapping
from typing import BinaryIO

import orjson
import pyarrow as pa

from kafka_archiver.messages.errors import IntegrityError
from kafka_archiver.records.formats.base import VALUE, Target
from kafka_archiver.records.formats.jsonl.reader import read_lines
from kafka_archiver.records.formats.mak.reader import read_records as read_mak
from kafka_archiver.records.reading.foreign.base import Enveloped, Facts, Foreign, Known, envelope_of
from kafka_archiver.records.reading.foreign.columns import Avro, Parquet
from kafka_archiver.records.reading.merge import OFFSET


class Lines:
    """Lines; those of Lenses' envelope have their offsets."""

    def facts(self, source: BinaryIO, target: Target, envelope: bool) -> Facts:
        """Count the lines, and read their envelopes if the first one has one."""
        rows, is_envelope, known = 0, envelope, Known()
        _, batches = read_lines(source, target, several=True)
        for batch in batches:
            values = batch.column("value")
            if not rows and batch.num_rows:
                is_envelope = is_envelope and _envelope(values[0].as_py()) is not None
            rows += batch.num_rows
            if is_envelope:
                known.add(self._envelopes(values, target))
        return known.facts() if is_envelope else Facts(rows)

    def read(self, source: BinaryIO, target: Target, has_offsets: bool) -> Iterator[pa.RecordBatch]:
        """Yield the lines as they are, in the column `value`."""
        _, batches = read_lines(source, target, several=True)
        for batch in batches:
            if has_offsets:
                offsets = [record[0] for record in self._envelopes(batch.column("value"), target)]
                batch = batch.append_column(OFFSET, pa.array(offsets, OFFSET.type))
            yield batch

    def _envelopes(self, values: pa.Array, target: Target) -> list[Enveloped]:
        records = [_envelope(line) for line in values.to_pylist()]
        if None in records:
            raise IntegrityError(f"{target.key}: a line has no offset in its envelope, and the first line has one")
        return [record for record in records if record]


def _envelope(line: bytes | None) -> Enveloped | None:
    try:
        return envelope_of(orjson.loads(line or b""))
    except orjson.JSONDecodeError:
        return None


class Mak:
    """MAK files of kafkatos3: every record has its offset."""

    def facts(self, source: BinaryIO, target: Target, envelope: bool) -> Facts:  # noqa: ARG002 - none has one
        known = Known()
        for batch in filter(len, read_mak(source, target)):
            topic, partition = batch.column("topic")[0].as_py(), batch.column("partition")[0].as_py()
            known.add([(offset, None, topic, partition) for offset in batch.column("offset").to_pylist()])
        return known.facts()

    def read(self, source: BinaryIO, target: Target, has_offsets: bool) -> Iterator[pa.RecordBatch]:
        """Yield the records with the columns of `RECORD`."""
        for batch in read_mak(source, target):
            yield batch.append_column(OFFSET, batch.column("offset")) if has_offsets else batch


class Joined:
    """Values without anything between them: the whole file is given as one value."""

    def facts(self, source: BinaryIO, target: Target, envelope: bool) -> Facts:  # noqa: ARG002 - any bytes are one
        return Facts(1)

    def read(self, source: BinaryIO, target: Target, has_offsets: bool) -> Iterator[pa.RecordBatch]:  # noqa: ARG002
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
