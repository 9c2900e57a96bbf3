"""The ready-made transforms: mask, hash, drop, rename and flatten, of decoded columns."""

from collections.abc import Iterator, Mapping
from typing import assert_never

import pyarrow as pa

from kafka_archiver.messages.errors import ConfigError
from kafka_archiver.model.transforms import Drop, Flatten, Hash, Mask, Rename, Step, segments_of
from kafka_archiver.records.pipeline.base import Marks
from kafka_archiver.records.pipeline.transform.base import Fields
from kafka_archiver.records.pipeline.transform.hashes import Digests
from kafka_archiver.records.pipeline.transform.paths import Change, Changed, Convert, change, of_items, struct_of

Names = tuple[str, ...]


class Edit:
    """A ready-made transform. :param keys: the secret keys by name."""

    def __init__(self, step: Step, keys: Mapping[str, str]) -> None:
        self._step, self._keys = step, keys
        self._columns: dict[str, list[Convert]] = {}

    def fields(self, before: Fields) -> Fields:
        """See `Transforming`."""
        self._columns = {}
        for names, prefix, how in self._edits():
            field, column, below = before.root(names)
            if field is None:
                raise _undecoded(prefix, names[: 1 + (names[0] == "headers")])
            after, convert = change(field, below, how, prefix)
            before = before.having(column, after)
            self._columns.setdefault(column, []).append(convert)
        return before

    def __call__(self, batch: pa.RecordBatch, marks: Marks) -> pa.RecordBatch:  # noqa: ARG002 - it leaves none out
        """See `Transforming`."""
        for column, conversions in self._columns.items():
            # An object may need no column of the key.
            if (place := batch.schema.get_field_index(column)) < 0:
                continue
            array = batch.column(place)
            for convert in conversions:
                array = convert(array)
            batch = batch.set_column(place, column, array)
        return batch

    def _edits(self) -> Iterator[tuple[Names, str, Change]]:
        """The path of each changed field, what errors begin with, and what becomes of the field."""
        prefix = f"transform.steps: {self._step.step}"
        match self._step:
            case Mask() as mask:
                for path in mask.fields:
                    masks: Change = lambda field: _masked(field, mask)  # noqa: E731
                    yield segments_of(path), f"{prefix} {path}", masks if mask.rules == 1 else of_items(masks)
            case Hash() as keyed:
                digests = Digests(keyed, self._keys)
                for path in keyed.fields:
                    hashes = digests.change(f"{prefix} {path}")
                    yield segments_of(path), f"{prefix} {path}", hashes if keyed.rules == 1 else of_items(hashes)
            case Drop(fields=paths):
                for path in paths:
                    yield segments_of(path), f"{prefix} {path}", lambda _: None
            case Rename(names=names):
                # First to names that nothing has: two fields may change their names with each other.
                for number, path in enumerate(names):
                    yield segments_of(path), f"{prefix} {path}", _renamed(f"\0{number}")
                for number, (path, name) in enumerate(names.items()):
                    yield (*segments_of(path)[:-1], f"\0{number}"), f"{prefix} {path}", _renamed(name)
            case Flatten(separator=separator):
                yield ("value",), prefix, lambda field: _flat(field, separator, prefix)
            case _:
                assert_never(self._step)


def _undecoded(prefix: str, names: Names) -> ConfigError:
    name = ".".join(names)
    return ConfigError(
        f"{prefix}: the {names[0]} has no decoded columns; set `source.{name}.decode` (json needs `schema`, too)"
        if name in ("key", "value")
        else f"{prefix}: no header is decoded to {name}; set `source.{name}.decode`"
    )


def _masked(field: pa.Field, mask: Mask) -> Changed:
    kind = field.type
    if not (pa.types.is_string(kind) or pa.types.is_large_string(kind)):
        return pa.field(field.name, kind), lambda array: pa.nulls(len(array), kind)

    def masked(text: str | None) -> str | None:
        shown = min(mask.keep, len(text or ""))
        return None if text is None else mask.character * (len(text) - shown) + text[len(text) - shown :]

    # Without metadata: of an enumeration, they are the symbols.
    after = pa.field(field.name, kind, field.nullable)
    return after, lambda array: pa.array(map(masked, array.to_pylist()), kind, size=len(array))


def _renamed(name: str) -> Change:
    return lambda field: (field.with_name(name), lambda array: array)


def _flat(field: pa.Field, separator: str, prefix: str) -> Changed:
    if not pa.types.is_struct(field.type):
        raise ConfigError(f"{prefix}: the value is of type {field.type}; expected a value with fields")
    fields = list(_leaves(field.type, "", separator))
    names = [leaf.name for leaf in fields]
    if len(set(names)) < len(names):
        twice = next(name for name in names if names.count(name) > 1)
        raise ConfigError(f"{prefix}: two columns would be named {twice!r}; choose another `separator`, or rename one")
    return field.with_type(pa.struct(fields)), lambda array: struct_of(array, list(_arrays(array)), fields)


def _leaves(kind: pa.DataType, before: str, separator: str) -> Iterator[pa.Field]:
    for child in kind:
        if pa.types.is_struct(child.type) and child.type.num_fields:
            yield from _leaves(child.type, before + child.name + separator, separator)
        else:
            # Null where a struct above is null.
            yield child.with_name(before + child.name).with_nullable(True)


def _arrays(array: pa.StructArray) -> Iterator[pa.Array]:
    for child in array.flatten():
        if pa.types.is_struct(child.type) and child.type.num_fields:
            yield from _arrays(child)
        else:
            yield child
