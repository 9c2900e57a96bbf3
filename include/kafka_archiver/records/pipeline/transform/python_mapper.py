"""The base of mappers of records and mappers of batches."""

import asyncio
import inspect
from collections.abc import Callable, Coroutine, Mapping
from functools import cached_property
from typing import Any

import pyarrow as pa

from kafka_archiver.model.transforms import Mapper as Told
from kafka_archiver.records.formats.base import HEADERS
from kafka_archiver.records.formats.shared.columns import KEY, VALUE_DECODED
from kafka_archiver.records.pipeline.transform.base import BatchOrigin, Fields
from kafka_archiver.records.pipeline.transform.code import load
from kafka_archiver.records.pipeline.transform.python_values import PythonColumn

# What a record keeps, whatever a mapper returns.
STAYS = ("offset", "timestamp", "timestamp_type")


class Outputs:
    """`inputs`: the columns of a batch that a mapper gets as `key`, `value` and `headers`; `names`: those that it
    makes; `columns`: their types.

    :param made_field: the field of the values that it returns; None: as they were.
    """

    def __init__(self, before: Fields, made_field: pa.Field | None) -> None:
        key, value = before.key or pa.field("key", pa.binary()), before.value or pa.field("value", pa.binary())
        self.inputs = {
            "key": "key" if before.key is None else KEY,
            "value": "value" if before.value is None else VALUE_DECODED,
            "headers": "headers",
        }
        self.names = {**self.inputs, **({"value": VALUE_DECODED} if made_field is not None else {})}
        self.columns = {
            "key": PythonColumn(key.with_name("key")),
            "value": PythonColumn((made_field if made_field is not None else value).with_name("value")),
            "headers": PythonColumn(pa.field("headers", HEADERS)),
        }

    def replaced(self, batch: pa.RecordBatch, columns: Mapping[str, pa.Array]) -> pa.RecordBatch:
        """The batch with other keys, values or headers."""
        for name, array in columns.items():
            called = self.names[name]
            place = batch.schema.get_field_index(called)
            batch = batch.append_column(called, array) if place < 0 else batch.set_column(place, called, array)
        return batch


def is_async(function: Any) -> bool:
    """Return True if a function, or an object that is called, is `async`."""
    called = function if inspect.isroutine(function) else type(function).__call__
    return inspect.iscoroutinefunction(called) or inspect.isasyncgenfunction(called)


class PythonMapper:
    """A transform by a Python function. :param made: the field of the values that it returns; None: as they were."""

    _outputs: Outputs

    def __init__(self, mapper: Told, place: BatchOrigin, made_field: pa.Field | None) -> None:
        self._mapper, self._place, self._values_field = mapper, place, made_field
        self._loop: asyncio.Runner | None = None

    def fields(self, before: Fields) -> Fields:
        self._outputs = Outputs(before, self._values_field)
        return before._replace(value=self._values_field) if self._values_field is not None else before

    @cached_property
    def _function(self) -> Callable[..., Any]:
        return load(self._mapper)

    def _run(self, awaited: Coroutine[Any, Any, Any]) -> Any:
        """The result of a coroutine."""
        if self._loop is None:
            self._loop = asyncio.Runner()
        return self._loop.run(awaited)
