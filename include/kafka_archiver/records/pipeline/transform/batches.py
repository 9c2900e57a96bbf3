"""`transform.mapper` with `by: batch`: a Python function takes Arrow batches. What it raises rejects single records."""

from collections.abc import Iterator
from typing import Any

import numpy as np
import pyarrow as pa

from kafka_archiver.messages.foreign_text import foreign
from kafka_archiver.records.formats.shared.columns import HEADER
from kafka_archiver.records.formats.shared.utf8 import broken_texts
from kafka_archiver.records.pipeline.base import Marks
from kafka_archiver.records.pipeline.transform.code import one_line_of
from kafka_archiver.records.pipeline.transform.python_mapper import STAYS, PythonMapper, is_async
from kafka_archiver.records.vectors import numbers
from kafka_archiver.values.columns import column


class Batches(PythonMapper):
    """A mapper of batches.

    The function gets `topic`, `partition`, `offset`, `timestamp`, `timestamp_type`, `key`, `value` and `headers`, and
    decoded headers as `headers.<name>`. It returns a batch or a table, or None for no row. Its column `offset` says for
    each row which record it is of, ascending; `key`, `value` and `headers` may be new, and stay if they are left out.
    """

    def __call__(self, batch: pa.RecordBatch, marks: Marks) -> pa.RecordBatch:
        # It is loaded here, not where an error rejects records.
        _ = self._function
        reasons: dict[int, str] = {}
        pieces = list(self._pieces(batch, reasons))
        done = pa.concat_batches(pieces) if len(pieces) != 1 else pieces[0]
        marks.reject({offset: f"the mapper {self._mapper.function} {foreign(why)}" for offset, why in reasons.items()})
        gone = np.setdiff1d(column(batch, "offset"), column(done, "offset"))
        marks.filter(np.setdiff1d(gone, np.array(list(reasons), np.int64)))
        return done

    def _pieces(self, batch: pa.RecordBatch, reasons: dict[int, str]) -> Iterator[pa.RecordBatch]:
        """The rows of all records; of a batch that fails each half, down to single records."""
        try:
            yield self._map(batch)
            return
        except MemoryError:
            # Whose fault it is shows the record alone, in a process of its own.
            raise
        except (Exception, SystemExit) as error:  # noqa: BLE001 - a policy decides
            if batch.num_rows == 1:
                reasons[int(column(batch, "offset")[0])] = f"raised {one_line_of(error)}"
                yield self._map_nothing(batch)
                return
        middle = batch.num_rows // 2
        yield from self._pieces(batch.slice(0, middle), reasons)
        yield from self._pieces(batch.slice(middle), reasons)

    def _map(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        inputs = self._inputs(batch)
        result = self._function(inputs)
        if is_async(self._function):
            result = self._run(result)
        return self._map_nothing(batch) if result is None else self._rows(batch, inputs, result)

    def _map_nothing(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        empty = batch.slice(0, 0)
        return self._rows(empty, self._inputs(empty), pa.record_batch([numbers(np.array([], np.int64))], ["offset"]))

    def _inputs(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """Return the batch that the function gets."""
        count = batch.num_rows
        columns = {"topic": pa.repeat(self._place.topic, count)}
        columns["partition"] = pa.repeat(pa.scalar(self._place.partition, pa.int32()), count)
        columns |= {name: batch.column(name) for name in STAYS}
        columns |= {name: batch.column(called) for name, called in self._outputs.inputs.items()}
        columns |= {name: batch.column(name) for name in batch.schema.names if name.startswith(HEADER)}
        return pa.RecordBatch.from_pydict(columns)

    def _rows(self, batch: pa.RecordBatch, inputs: pa.RecordBatch, result: Any) -> pa.RecordBatch:
        """The batch with what the function returned.

        :raises TypeError, ValueError: it returned something else.
        """
        if isinstance(result, pa.Table):
            whole = result.combine_chunks().to_batches()
            result = whole[0] if whole else _empty(result.schema)
        if not isinstance(result, pa.RecordBatch):
            raise TypeError(f"expected a RecordBatch, a Table or None, found {type(result).__name__}")
        names = result.schema.names
        if "offset" not in names or result.schema.field("offset").type != pa.int64():
            raise ValueError("expected a column `offset` of 64-bit integers, which says which record a row is of")
        if more := set(names) - set(inputs.schema.names):
            raise ValueError(f"expected the columns {', '.join(inputs.schema.names)}, found {min(more)!r}")
        input_offsets, output_offsets = column(inputs, "offset"), column(result, "offset")
        places = np.searchsorted(input_offsets, output_offsets)
        inside = places < len(input_offsets)
        if (
            result.column("offset").null_count
            or not inside.all()
            or (input_offsets[places[inside]] != output_offsets[inside]).any()
        ):
            raise ValueError("expected only offsets of the given batch")
        if (places[1:] < places[:-1]).any():
            raise ValueError("expected rows in the order of their offsets")
        rows = numbers(places.astype(np.int64))
        taken = inputs.take(rows)
        for name in set(names) - set(self._outputs.names):
            if not taken.column(name).equals(result.column(name)):
                raise ValueError(f"expected the column {name!r} as it was")
        values = (
            {
                name: _cast(result.column(name) if name in names else taken.column(name), output.field)
                for name, output in self._outputs.columns.items()
            }
            if len(rows)
            else {name: pa.nulls(0, output.field.type) for name, output in self._outputs.columns.items()}
        )
        return self._outputs.replaced(batch.take(rows), values)


def _empty(schema: pa.Schema) -> pa.RecordBatch:
    return pa.record_batch([pa.array([], field.type) for field in schema], schema=schema)


def _cast(array: pa.Array, field: pa.Field) -> pa.Array:
    """The column as objects have it.

    :raises ValueError: it has other fields, or a value that the type cannot hold.
    """
    _require_names(array.type, field.type, field.name)
    try:
        converted = array if array.type == field.type else array.cast(field.type)
    except (pa.ArrowException, ValueError) as error:
        raise ValueError(f"{field.name} cannot be of type {field.type}: {error}") from None
    if len(broken_texts(converted)):
        raise ValueError(f"{field.name} has text that is not UTF-8")
    return converted


def _require_names(actual: pa.DataType, declared: pa.DataType, name: str) -> None:
    """A cast would leave fields out without a word."""
    if pa.types.is_struct(actual) and pa.types.is_struct(declared):
        actual_names, expected = [child.name for child in actual], [child.name for child in declared]
        if actual_names != expected:
            raise ValueError(f"{name} has the fields {', '.join(expected)}, found {', '.join(actual_names)}")
    for number in range(min(actual.num_fields, declared.num_fields)):
        child = declared.field(number)
        _require_names(actual.field(number).type, child.type, f"{name}.{child.name}")
