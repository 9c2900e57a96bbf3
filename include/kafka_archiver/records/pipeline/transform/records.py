"""`transform.mapper`: a Python function makes 0..n records of each. What it raises rejects the record."""

import asyncio
from collections.abc import AsyncIterable, Iterable, Iterator, Sequence
from copy import deepcopy
from typing import Any

import numpy as np
import pyarrow as pa

from kafka_archiver.mapper import Record
from kafka_archiver.messages.foreign_text import foreign, foreign_beside_values
from kafka_archiver.records.formats.shared.columns import HEADER
from kafka_archiver.records.pipeline.base import Marks
from kafka_archiver.records.pipeline.transform.code import one_line_of
from kafka_archiver.records.pipeline.transform.python_mapper import STAYS, Outputs, PythonMapper, is_async
from kafka_archiver.records.pipeline.transform.python_values import Unreadable, python
from kafka_archiver.records.vectors import numbers
from kafka_archiver.values.columns import column


class Records(PythonMapper):
    """A mapper of records."""

    def __call__(self, batch: pa.RecordBatch, marks: Marks) -> pa.RecordBatch:
        outputs = self._outputs
        offsets = column(batch, "offset")
        results = self._map(list(self._records(batch, outputs)))
        rows: list[int] = []
        records: list[Record] = []
        reasons: dict[int, str] = {}
        for row, result in enumerate(results):
            if isinstance(result, str):
                reasons[int(offsets[row])] = f"the mapper {self._mapper.function} {foreign(result)}"
                continue
            rows += [row] * len(result)
            records += result
        columns, wrong = _columns(outputs, rows, records)
        for row, why in wrong.items():
            reasons[int(offsets[row])] = (
                f"the mapper {self._mapper.function} returned a record that cannot be stored: "
                f"{foreign_beside_values(why)}"
            )
        marks.reject(reasons)
        stays = np.zeros(len(offsets), np.bool_)
        stays[rows] = True
        gone = [offset for offset in offsets[~stays].tolist() if offset not in reasons]
        marks.filter(np.array(gone, np.int64))
        places = numbers(np.array([row for row in rows if row not in wrong], np.int64))
        return outputs.replaced(batch.take(places), columns)

    def _records(self, batch: pa.RecordBatch, outputs: Outputs) -> Iterator[Record | str]:
        """The records of a batch; why, for one that Python cannot have."""
        names = [*STAYS, *outputs.inputs.values()]
        headers = [name for name in batch.schema.names if name.startswith(HEADER)]
        columns = [python(batch.column(name)) for name in (*names, *headers)]
        for values in zip(*columns, strict=True):
            if wrong := next((value for value in values if isinstance(value, Unreadable)), None):
                yield f"cannot have the record: {wrong.why}"
                continue
            offset, timestamp, kind, key, value, listed, *decoded = values
            pairs = tuple((header["key"], header["value"]) for header in listed or ())
            more = {name.removeprefix(HEADER): header for name, header in zip(headers, decoded, strict=True)}
            yield Record(self._place.topic, self._place.partition, offset, timestamp, kind, key, value, pairs, more)

    def _map(self, records: Sequence[Record | str]) -> list[list[Record] | str]:
        """For each record, what the function made of it, or why it is rejected."""
        if not is_async(self._function):
            return [record if isinstance(record, str) else self._call(record) for record in records]
        results: list[list[Record] | str] = self._run(self._all(records))
        return results

    def _call(self, record: Record) -> list[Record] | str:
        try:
            return list(_checked(record, self._function(record)))
        except MemoryError:
            # Whose fault it is shows the record alone, in a process of its own.
            raise
        except (Exception, SystemExit) as error:  # noqa: BLE001 - a policy decides
            return f"raised {one_line_of(error)}"

    async def _all(self, records: Sequence[Record | str]) -> list[list[Record] | str]:
        room = asyncio.Semaphore(self._mapper.concurrency)

        async def mapped(record: Record | str) -> list[Record] | str:
            if isinstance(record, str):
                return record
            async with room:
                return await self._awaited(record)

        return list(await asyncio.gather(*map(mapped, records)))

    async def _awaited(self, record: Record) -> list[Record] | str:
        try:
            result = self._function(record)
            if isinstance(result, AsyncIterable):
                return [row async for item in result for row in _checked(record, _lazily(item))]
            return list(_checked(record, await result))
        except MemoryError:
            raise
        except (Exception, SystemExit, asyncio.CancelledError) as error:  # noqa: BLE001 - a policy decides
            return f"raised {one_line_of(error)}"


def _lazily(item: Any) -> Iterator[Any]:
    yield item


def _checked(record: Record, result: Any) -> Iterator[Record]:
    """The records that a function returned.

    :raises TypeError: it returned something else. ValueError: a record that came from elsewhere.
    """
    if result is None:
        return
    items: Iterable[Any] = [result] if isinstance(result, Record) else result
    if isinstance(items, bytes | str | dict) or not isinstance(items, Iterable):
        raise TypeError(
            f"expected None, a Record (record.replace(value=…)) or an iterable of Records, found {type(items).__name__}"
        )
    lazy = not isinstance(items, list | tuple)
    for item in items:
        if not isinstance(item, Record):
            raise TypeError(f"expected Records (record.replace(value=…)), found {type(item).__name__}")
        if (item.topic, item.partition, item.offset, item.timestamp, item.timestamp_type) != (
            record.topic, record.partition, record.offset, record.timestamp, record.timestamp_type,
        ):  # fmt: skip
            raise ValueError(
                f"expected a record of offset {record.offset} with its place and time, found {item.offset}"
            )
        yield _as_it_is_now(item) if lazy else item


def _as_it_is_now(record: Record) -> Record:
    """The record with values of its own: a function that yields may change them when it goes on."""
    fields = {"key": record.key, "value": record.value, "headers": record.headers}
    own = {name: deepcopy(value) for name, value in fields.items() if isinstance(value, dict | list)}
    return record.replace(**own) if own else record


def _columns(
    outputs: Outputs, rows: Sequence[int], records: Sequence[Record]
) -> tuple[dict[str, pa.Array], dict[int, str]]:
    """The columns of the records, without those of input rows that cannot be stored; why, for these rows."""
    values = {"key": [record.key for record in records], "value": [record.value for record in records]}
    values["headers"] = [_pairs(record.headers) for record in records]
    arrays = {name: outputs.columns[name].many(column_) for name, column_ in values.items()}
    if all(array is not None for array in arrays.values()):
        return {name: array for name, array in arrays.items() if array is not None}, {}
    wrong: dict[int, str] = {}
    for name, column_ in values.items():
        for row, value in zip(rows, column_, strict=True):
            try:
                outputs.columns[name].converted(value)
            except (ValueError, TypeError) as error:
                wrong.setdefault(row, str(error))
    left = [place for place, row in enumerate(rows) if row not in wrong]
    again = {name: outputs.columns[name].many([column_[place] for place in left]) for name, column_ in values.items()}
    return {name: array for name, array in again.items() if array is not None}, wrong


def _pairs(headers: Any) -> Any:
    try:
        return [{"key": key, "value": value} for key, value in headers]
    except (TypeError, ValueError):
        # `PythonColumn.converted` says what is wrong.
        return headers
