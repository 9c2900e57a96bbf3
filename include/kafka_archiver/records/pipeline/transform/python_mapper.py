"""The base of mappers of records and mappers of batches."""

import asyncio
from collections.abc import Callable, Coroutine
from functools import cached_property
from typing import Any

import pyarrow as pa

from kafka_archiver.model.transforms import Mapper as Told
from kafka_archiver.records.pipeline.transform.base import BatchOrigin, Fields
from kafka_archiver.records.pipeline.transform.code import load
from kafka_archiver.records.pipeline.transform.outputs import Outputs


class PythonMapper:
    """A transform by a Python function. :param made: the field of the values that it returns; None: as they were."""

    _outputs: Outputs

    def __init__(self, mapper: Told, place: BatchOrigin, made_field: pa.Field | None) -> None:
        self._mapper, self._place, self._values_field = mapper, place, made_field
        self._loop: asyncio.Runner | None = None

    def fields(self, before: Fields) -> Fields:
        """See `Transforming`."""
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
