"""The interface of a transform, and the decoded columns of a record."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import NamedTuple, Protocol

import pyarrow as pa

from kafka_archiver.records.formats.shared.columns import HEADER, KEY, VALUE_DECODED
from kafka_archiver.records.pipeline.base import Marks


class Fields(NamedTuple):
    """The decoded columns: those of the key and the value, None if these are bytes; headers by `headers.<name>`."""

    key: pa.Field | None = None
    value: pa.Field | None = None
    headers: Mapping[str, pa.Field] = MappingProxyType({})

    def root(self, names: tuple[str, ...]) -> tuple[pa.Field | None, str, tuple[str, ...]]:
        """Return the root of a path: the decoded column, its name in a batch, and the names of the path below it."""
        if names[0] == "headers" and len(names) > 1:
            column = HEADER + names[1]
            return self.headers.get(column), column, names[2:]
        if names[0] == "key":
            return self.key, KEY, names[1:]
        return self.value if names[0] == "value" else None, VALUE_DECODED, names[1:]

    def having(self, column: str, field: pa.Field) -> "Fields":
        """With another field for a column of a batch."""
        if column == KEY:
            return self._replace(key=field)
        if column == VALUE_DECODED:
            return self._replace(value=field)
        return self._replace(headers={**self.headers, column: field})


class BatchOrigin(NamedTuple):
    """Where the batches of a chain come from, and the secret keys by name, which no log may show."""

    topic: str = ""
    partition: int = 0
    keys: Mapping[str, str] = MappingProxyType({})

    def __repr__(self) -> str:
        return f"BatchOrigin({self.topic}[{self.partition}])"


NOWHERE = BatchOrigin()


class Transforming(Protocol):
    """A transform of a plan: a stage that also says which types its columns have."""

    def fields(self, before: Fields) -> Fields:
        """The decoded columns that it leaves.

        :raises ConfigError: it cannot work on these columns.
        """

    def __call__(self, batch: pa.RecordBatch, marks: Marks, /) -> pa.RecordBatch:
        """Transform a batch. `fields` was called before."""
