"""The ready-made transforms: mask, hash, drop, rename and flatten, of decoded columns."""

from collections.abc import Iterable, Iterator, Mapping

import pyarrow as pa

from kafka_archiver.messages.errors import ConfigError
from kafka_archiver.model.transforms import Drop, Flatten, Hash, Mask, Rename, StepType, segments_of
from kafka_archiver.records.pipeline.base import Marks
from kafka_archiver.records.pipeline.transform.base import Fields
from kafka_archiver.records.pipeline.transform.hashes import Digests
from kafka_archiver.records.pipeline.transform.paths import Change, Changed, Convert, change, of_items, struct_of

Names = tuple[str, ...]
Keys = Mapping[str, str]
# The path of a changed field, what errors begin with, and what becomes of the field.
FieldEdit = tuple[Names, str, Change]


class Edit:
    """A transform that changes fields, one after the other."""

    def __init__(self, edits: Iterable[FieldEdit]) -> None:
        self._edits = tuple(edits)
        self._columns: dict[str, list[Convert]] = {}

    def fields(self, before: Fields) -> Fields:
        self._columns = {}
        for names, prefix, how in self._edits:
            field, column, below = before.root(names)
            if field is None:
                raise _undecoded(prefix, names[: 1 + (names[0] == "headers")])
            after, convert = change(field, below, how, prefix)
            before = before.having(column, after)
            self._columns.setdefault(column, []).append(convert)
        return before

    def __call__(self, batch: pa.RecordBatch, marks: Marks) -> pa.RecordBatch:  # noqa: ARG002 - it leaves none out
        for column, conversions in self._columns.items():
            # An object may need no column of the key.
            if (place := batch.schema.get_field_index(column)) < 0:
                continue
            array = batch.column(place)
            for convert in conversions:
                array = convert(array)
            batch = batch.set_column(place, column, array)
        return batch


def edit_of(step: StepType, path: str, how: Change) -> FieldEdit:
    """Return the edit of one field. `path`: as the YAML has it."""
    return segments_of(path), f"transform.steps: {step.step} {path}", how


def mask(step: Mask, _: Keys) -> Edit:
    """Return the step `mask`."""
    masks: Change = lambda field: _masked(field, step)  # noqa: E731
    how = masks if step.rules == 1 else of_items(masks)
    return Edit(edit_of(step, path, how) for path in step.fields)


def keyed_hash(step: Hash, keys: Keys) -> Edit:
    """Return the step `hash`."""
    digests = Digests(step, keys)

    def hashed(path: str) -> FieldEdit:
        names, prefix, how = edit_of(step, path, digests.change(f"transform.steps: {step.step} {path}"))
        return names, prefix, how if step.rules == 1 else of_items(how)

    return Edit(map(hashed, step.fields))


def drop(step: Drop, _: Keys) -> Edit:
    """Return the step `drop`."""
    return Edit(edit_of(step, path, lambda _: None) for path in step.fields)


def rename(step: Rename, _: Keys) -> Edit:
    """Return the step `rename`."""

    def edits() -> Iterator[FieldEdit]:
        # First to names that nothing has: two fields may change their names with each other.
        for number, path in enumerate(step.names):
            yield edit_of(step, path, _renamed(f"\0{number}"))
        for number, (path, name) in enumerate(step.names.items()):
            names, prefix, how = edit_of(step, path, _renamed(name))
            yield (*names[:-1], f"\0{number}"), prefix, how

    return Edit(edits())


def flatten(step: Flatten, _: Keys) -> Edit:
    """Return the step `flatten`."""
    prefix = f"transform.steps: {step.step}"
    return Edit([(("value",), prefix, lambda field: _flat(field, step.separator, prefix))])


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
