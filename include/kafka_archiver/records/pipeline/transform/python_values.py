"""Columns as Python values for a mapper, and what it returns as a column: checked, so that nothing is lost."""

from collections.abc import Callable, Mapping, Sequence
from datetime import date, datetime
from typing import Any, NamedTuple
from uuid import UUID

import pyarrow as pa

from kafka_archiver.messages.foreign_text import record_value
from kafka_archiver.records.formats.shared.plain_types import bare, plain, seen_as

Check = Callable[[Any], Any]


class Unreadable(NamedTuple):
    """In the place of a value that Python cannot have, such as a time in the year 20000."""

    why: str


def python(array: pa.Array) -> list[Any]:
    """The values of a column; `Unreadable` for some."""
    try:
        return list(array.to_pylist(maps_as_pydicts="strict"))
    except (pa.ArrowException, ValueError, OverflowError, KeyError) as error:
        if len(array) == 1:
            return [Unreadable(str(error))]
    middle = len(array) // 2
    return python(array.slice(0, middle)) + python(array.slice(middle))


class PythonColumn:
    """Makes a column of Python values.

    :param field: of the column, its type as objects have it.
    """

    def __init__(self, field: pa.Field) -> None:
        self.field = plain(field)
        self._schema = pa.schema([self.field.with_nullable(True)])
        self._bare = bare(self._schema)
        self._check = _check(self.field.type, field.name)

    def converted(self, value: Any) -> Any:
        """The value as Arrow takes it.

        :raises ValueError: the column cannot hold it.
        """
        checked = None if value is None else self._check(value)
        try:
            pa.array([checked], self._bare.field(0).type)
        except (pa.ArrowException, TypeError, ValueError, OverflowError) as error:
            raise ValueError(
                f"{self.field.name} cannot be of type {self.field.type}: {record_value(str(error))}"
            ) from None
        return checked

    def array(self, values: Sequence[Any]) -> pa.Array:
        """The column of values that `converted` returns."""
        column = pa.array(values, self._bare.field(0).type)
        return seen_as(pa.record_batch([column], schema=self._bare), self._schema).column(0)

    def many(self, values: Sequence[Any]) -> pa.Array | None:
        """The column of values, at once; None if one of them does not fit: `converted` says which."""
        try:
            return self.array([None if value is None else self._check(value) for value in values])
        except (pa.ArrowException, TypeError, ValueError, OverflowError):
            return None


def _same(value: Any) -> Any:
    return value


def _check(kind: pa.DataType, name: str) -> Check:
    """Return the function that checks and converts values that are not None."""
    if pa.types.is_struct(kind):
        return _struct(kind, name)
    if pa.types.is_map(kind):
        item = _within(kind.item_field, name)
        return lambda value: [(key, item(item_value)) for key, item_value in dict(value).items()]
    if pa.types.is_list(kind):
        item = _within(kind.value_field, f"{name}[]")
        return lambda value: [item(item_value) for item_value in _list(value, name)]
    if kind == pa.uuid():
        return _uuid
    if pa.types.is_boolean(kind) or pa.types.is_integer(kind) or pa.types.is_floating(kind):
        return _number(kind, name)
    if pa.types.is_date(kind) or pa.types.is_timestamp(kind):
        return _moment(kind, name)
    if pa.types.is_binary(kind):
        return lambda value: _bytes(value, name)
    return _same


def _uuid(value: Any) -> bytes:
    """Return the 16 bytes of a UUID, of its text, or of these bytes: a mapper gets a UUID of Avro as bytes."""
    return (UUID(bytes=bytes(value)) if isinstance(value, bytes | bytearray) else UUID(str(value))).bytes


def _number(kind: pa.DataType, name: str) -> Check:
    truth, whole = pa.types.is_boolean(kind), pa.types.is_integer(kind)

    def check(value: Any) -> Any:
        # Arrow would take True for 1, and within a struct 1.5 for 1.
        if isinstance(value, bool) is not truth or (whole and not isinstance(value, int)):
            raise ValueError(f"{name} is of type {kind}, found {type(value).__name__}")
        return value

    return check


def _moment(kind: pa.DataType, name: str) -> Check:
    day = pa.types.is_date(kind)
    finest = 1 if day else {"s": 1_000_000, "ms": 1000}.get(kind.unit, 1)

    def check(value: Any) -> Any:
        # Arrow would cut off what the type has no place for.
        wrong = isinstance(value, datetime) is day or not isinstance(value, date)
        if wrong or getattr(value, "microsecond", 0) % finest:
            raise ValueError(f"{name} is of type {kind}, found {type(value).__name__} {record_value(str(value))}")
        return value

    return check


def _bytes(value: Any, name: str) -> bytes:
    if not isinstance(value, bytes | bytearray | memoryview):
        raise ValueError(f"{name} is of bytes, found {type(value).__name__}; encode text: text.encode()")
    return bytes(value)


def _list(value: Any, name: str) -> Sequence[Any]:
    if not isinstance(value, list | tuple):
        raise ValueError(f"{name} is a list, found {type(value).__name__}")
    return value


def _within(field: pa.Field, name: str) -> Check:
    check = _check(field.type, name)

    def checked(value: Any) -> Any:
        if value is None:
            if not field.nullable:
                raise ValueError(f"{name} must not be null")
            return None
        return check(value)

    return checked


def _struct(kind: pa.DataType, name: str) -> Check:
    children = {child.name: _within(child, f"{name}.{child.name}") for child in kind}

    def check(value: Any) -> Any:
        if not isinstance(value, Mapping):
            raise ValueError(f"{name} is a mapping of fields, found {type(value).__name__}")
        if more := value.keys() - children.keys():
            raise ValueError(
                f"{name} has no field {record_value(repr(min(map(str, more))))}; it has {', '.join(children)}"
            )
        return {field: value_of(value.get(field)) for field, value_of in children.items()}

    return check
