"""Lines: JSON, text, or bytes with line breaks. Each line is a value."""

from collections.abc import Iterator
from typing import BinaryIO

import orjson
import pyarrow as pa

from kafka_archiver.messages.errors import IntegrityError
from kafka_archiver.records.formats.base import Target
from kafka_archiver.records.formats.jsonl.reader import read_lines
from kafka_archiver.records.reading.foreign.base import OFFSET, Coordinates, Facts, envelope, facts_of, joined


class Lines:
    """Lines; those of Lenses' envelope have their offsets."""

    def facts(self, source: BinaryIO, target: Target) -> Facts:
        """Count the lines, and read their envelopes if the first one has one."""
        rows, head = 0, None
        _, batches = read_lines(source, target, several=True)
        parts: list[Facts] = []
        for batch in batches:
            values = batch.column("value")
            if not rows and batch.num_rows:
                head = _envelope(values[0].as_py())
            rows += batch.num_rows
            if head:
                parts.append(facts_of(batch.num_rows, self._coordinates(values, target), None))
        if not head:
            return Facts(rows)
        return joined(parts, (head[2], head[3]))

    def read(self, source: BinaryIO, target: Target, has_offsets: bool) -> Iterator[pa.RecordBatch]:
        """Yield the lines as they are, in the column `value`."""
        _, batches = read_lines(source, target, several=True)
        for batch in batches:
            if has_offsets:
                offsets = [offset for offset, _ in self._coordinates(batch.column("value"), target)]
                batch = batch.append_column(OFFSET, pa.array(offsets, OFFSET.type))
            yield batch

    def _coordinates(self, values: pa.Array, target: Target) -> Iterator[Coordinates]:
        for line in values.to_pylist():
            record = _envelope(line)
            if record is None:
                raise IntegrityError(f"{target.key}: a line has no offset in its envelope, and the first line has one")
            yield record[0], record[1]


def _envelope(line: bytes | None) -> tuple[int, int | None, str, int] | None:
    try:
        return envelope(orjson.loads(line or b""))
    except orjson.JSONDecodeError:
        return None
