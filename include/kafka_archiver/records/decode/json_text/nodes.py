"""The column of each part of a JSON document: the type that msgspec takes for it, and the way from its values to an
array.
"""

import re
from collections.abc import Sequence
from datetime import UTC, datetime
from decimal import Decimal
from itertools import chain
from operator import attrgetter
from types import SimpleNamespace
from typing import Any, Optional, Protocol

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from kafka_archiver.messages.foreign_text import record_value

_NULL = b"null"
_NUMBER = re.compile(r"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?")
_ZONE = r"(?:Z|[+-][0-9]{2}(?::?[0-9]{2})?)$"
_NINE_DIGITS = r"(:[0-9]{2}\.[0-9]{6})[0-9]+"
# Doubles below it have every integer.
_EXACT = 1 << 53
_NUMBER_STARTS = frozenset(b"-0123456789")


class JsonNode(Protocol):
    """One type of column."""

    @property
    def kind(self) -> pa.DataType:
        """The Arrow type."""

    @property
    def python(self) -> Any:
        """The type that msgspec reads: it refuses what is of another type."""

    def array(self, values: Sequence[Any]) -> pa.Array:
        """The column. None is null.

        :raises ValueError: a value does not fit the column.
        """


def _array(values: Sequence[Any], kind: pa.DataType) -> pa.Array:
    try:
        return pa.array(values, kind)
    except (OverflowError, pa.ArrowInvalid) as error:
        raise ValueError(f"a value does not fit {kind}: {record_value(str(error))}") from None


def _cast(array: pa.Array, kind: pa.DataType) -> pa.Array:
    try:
        return array.cast(kind)
    except pa.ArrowInvalid as error:
        raise ValueError(f"a value does not fit {kind}: {record_value(str(error))}") from None


class ArrowValues:
    """A type that msgspec and Arrow take as it is."""

    def __init__(self, kind: pa.DataType, python: Any) -> None:
        self.kind, self.python = kind, Optional[python]  # noqa: UP045 (`python` is a value)

    def array(self, values: Sequence[Any]) -> pa.Array:
        array = _array(values, self.kind)
        if pa.types.is_floating(self.kind) and pc.any(pc.is_inf(array)).as_py():
            # JSON has no infinity.
            raise ValueError(f"a value does not fit {self.kind}")
        return array


class Integers:
    """Whole numbers, also written 1.0 or 1e2, as JSON Schema has them."""

    def __init__(self, kind: pa.DataType) -> None:
        self.kind, self.python = kind, int | float | None

    def array(self, values: Sequence[Any]) -> pa.Array:
        if float in map(type, values):
            values = [_whole(value) if isinstance(value, float) else value for value in values]
        return _array(values, self.kind)


def _whole(value: float) -> int:
    if not value.is_integer():
        raise ValueError(f"found {record_value(str(value))}, expected an integer")
    if abs(value) >= _EXACT:
        raise ValueError(
            f"found {record_value(str(value))}; an integer of at least 2^53 is exact only without a point or exponent"
        )
    return int(value)


class JsonTexts:
    """Any JSON, as it is written."""

    kind, python = pa.string(), msgspec.Raw

    def array(self, values: Sequence[Any]) -> pa.Array:
        texts = [None if value is None or (text := bytes(value)) == _NULL else text for value in values]
        return _array(texts, pa.binary()).cast(pa.string())


class Digits:
    """A number, as its digits are written."""

    kind, python = pa.string(), msgspec.Raw

    def array(self, values: Sequence[Any]) -> pa.Array:
        texts = JsonTexts().array(values)
        for value in values:
            if value is not None and (text := bytes(value))[0] not in _NUMBER_STARTS and text != _NULL:
                raise ValueError(f"found {_short(text.decode())}, expected a number")
        return texts


class JsonDecimals:
    """A number, or a string of one, that a decimal holds exactly."""

    python = msgspec.Raw

    def __init__(self, kind: pa.DataType) -> None:
        self.kind = kind

    def array(self, values: Sequence[Any]) -> pa.Array:
        texts = JsonTexts().array(values).to_pylist()
        return _array([None if text is None else self._decimal(text) for text in texts], self.kind)

    def _decimal(self, text: str) -> Any:
        digits = text[1:-1] if text.startswith('"') else text
        if not _NUMBER.fullmatch(digits):
            raise ValueError(f"found {_short(text)}, expected a number")
        try:
            number = Decimal(digits)
        except ArithmeticError:
            raise ValueError(f"found {_short(text)}, expected a number that fits {self.kind}") from None
        if not number:
            # Arrow makes room for all zeros of the exponent.
            return Decimal(0)
        # Arrow refuses what loses digits, but after it has made room for all zeros of the exponent.
        if not -self.kind.precision <= number.adjusted() <= self.kind.precision:
            raise ValueError(f"found {_short(text)}, expected a number that fits {self.kind}")
        return number


class JsonTimes:
    """A date or a time: text, or the number of its units since 1970.

    Text is ISO 8601, in UTC if it has no zone; or as `form` says, a format of strptime. Python's, because Arrow's
    takes February 31 for March 2, and leaves out zones.

    :param rfc3339: the text's letters may be small, and digits of a second behind the sixth are cut off.
    """

    def __init__(self, kind: pa.DataType, form: str = "", rfc3339: bool = False) -> None:
        self.kind, self._form, self._rfc3339 = kind, form, rfc3339
        self.python = str | int | None if pa.types.is_timestamp(kind) else str | None

    def array(self, values: Sequence[Any]) -> pa.Array:
        if int in map(type, values):
            numbers = _array([value if isinstance(value, int) else None for value in values], self.kind)
            if self.kind.unit == "s":
                # Formats have no seconds.
                _cast(numbers, pa.timestamp("ms", "UTC"))
            return pc.coalesce(numbers, self._texts([None if isinstance(value, int) else value for value in values]))
        return self._texts(values)

    def _texts(self, values: Sequence[str | None]) -> pa.Array:
        try:
            return self._formed(values) if self._form else self._cast(pa.array(values, pa.string()))
        except (ValueError, OverflowError):
            first_text = next((value for value in values if value is not None), "")
            raise ValueError(
                f"found {_short(first_text)}, expected {self._form or 'ISO 8601'} as {self.kind}"
            ) from None

    def _cast(self, texts: pa.Array) -> pa.Array:
        if self._rfc3339:
            texts = pc.replace_substring_regex(pc.utf8_upper(texts), _NINE_DIGITS, r"\1")
        if pa.types.is_timestamp(self.kind):
            zoned = pc.match_substring_regex(texts, _ZONE)
            if not pc.all(zoned).as_py():
                texts = pc.if_else(zoned, texts, pc.binary_join_element_wise(texts, "Z", ""))
        return texts.cast(self.kind)

    def _formed(self, values: Sequence[str | None]) -> pa.Array:
        read = datetime.strptime
        moments = [None if value is None else read(value, self._form) for value in values]
        if not pa.types.is_timestamp(self.kind):
            return pa.array([None if moment is None else moment.date() for moment in moments], self.kind)
        # By way of microseconds, which Python has: no digit is cut off without a word.
        times = [moment if moment is None or moment.tzinfo else moment.replace(tzinfo=UTC) for moment in moments]
        return pa.array(times, pa.timestamp("us", "UTC")).cast(self.kind)


class List:
    """An array."""

    def __init__(self, item: JsonNode, field: pa.Field) -> None:
        self.kind, self.item = pa.list_(field), item
        self.python = Optional[list[item.python]]  # type: ignore[name-defined]  # noqa: UP045

    def array(self, values: Sequence[Any]) -> pa.Array:
        present, mask = _present(values)
        items = self.item.array(list(chain.from_iterable(present)))
        return pa.ListArray.from_arrays(_offsets(present), items, self.kind, mask=mask)


class JsonMap:
    """An object with any names."""

    def __init__(self, value: JsonNode, field: pa.Field) -> None:
        self.kind, self.value = pa.map_(pa.string(), field), value
        self.python = Optional[dict[str, value.python]]  # type: ignore[name-defined]  # noqa: UP045

    def array(self, values: Sequence[Any]) -> pa.Array:
        present, mask = _present(values)
        names = pa.array(list(chain.from_iterable(present)), pa.string())
        item_values = self.value.array(list(chain.from_iterable(map(dict.values, present))))
        return pa.MapArray.from_arrays(_offsets(present), names, item_values, self.kind, mask=mask)


class Struct:
    """An object whose names are columns. Other names are left out; of a name that is there twice, the last one counts.

    :param required: if given, an object has these names, and no other names than the columns.
    :raises ValueError: msgspec cannot have a name.
    """

    def __init__(self, parts: Sequence[tuple[pa.Field, JsonNode]], required: frozenset[str] | None = None) -> None:
        self.kind, self.parts, self.required = pa.struct([field for field, _ in parts]), parts, required
        members = [
            (f"f{place}", node.python, msgspec.field(name=field.name, default=_default(field.name, required)))
            for place, (field, node) in enumerate(parts)
        ]
        struct_type = msgspec.defstruct(
            "Object", members, gc=False, eq=False, kw_only=True, forbid_unknown_fields=required is not None
        )
        self.python = struct_type | None
        self._empty = SimpleNamespace(**{f"f{place}": None for place in range(len(parts))})

    def array(self, values: Sequence[Any]) -> pa.Array:
        mask = _mask(values)
        if mask is not None:
            values = [self._empty if value is None else value for value in values]
        columns = []
        for place, (field, node) in enumerate(self.parts):
            try:
                columns.append(node.array(list(map(attrgetter(f"f{place}"), values))))
            except ValueError as error:
                raise ValueError(f"{field.name}: {error}") from None
        return pa.StructArray.from_arrays(columns, fields=list(self.kind), mask=mask)


def _default(name: str, required: frozenset[str] | None) -> Any:
    return msgspec.NODEFAULT if required and name in required else None


def _mask(values: Sequence[Any]) -> pa.Array | None:
    nulls = [value is None for value in values]
    return pa.array(nulls, pa.bool_()) if True in nulls else None


def _present(values: Sequence[Any]) -> tuple[Sequence[Any], pa.Array | None]:
    """The values with something empty for None, and which of them were None."""
    mask = _mask(values)
    return (values, None) if mask is None else ([{} if value is None else value for value in values], mask)


def _offsets(values: Sequence[Any]) -> pa.Array:
    ends = np.zeros(len(values) + 1, np.int64)
    np.cumsum(np.fromiter(map(len, values), np.int64, len(values)), out=ends[1:])
    return pa.array(ends).cast(pa.int32())


def _short(text: str) -> str:
    return record_value(text, 40)
