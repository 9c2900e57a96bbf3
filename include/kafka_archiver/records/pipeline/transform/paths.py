"""Fields of nested columns, by a path. A path goes through structs, and through lists to each item."""

from collections.abc import Callable

import pyarrow as pa

from kafka_archiver.messages.errors import ConfigError

Convert = Callable[[pa.Array], pa.Array]
# A new field, and what makes its arrays of the old field's.
Changed = tuple[pa.Field, Convert]
# What becomes of the field that a path names; None: it is left out.
Change = Callable[[pa.Field], Changed | None]


def change(field: pa.Field, path: tuple[str, ...], how: Change, prefix: str) -> Changed:
    """The field with another one at the end of a path.

    :param prefix: begins the errors: the step and the path.
    :raises ConfigError: the path does not lead to a field, or a struct would have no field left, or two of one name.
    """
    kind = field.type
    if not path:
        changed = how(field)
        if changed is None:
            raise ConfigError(f"{prefix}: this is a whole column; expected a field within it")
        return changed
    if pa.types.is_list(kind) or pa.types.is_large_list(kind):
        item, below = change(kind.value_field, path, how, prefix)
        list_type = pa.list_(item) if pa.types.is_list(kind) else pa.large_list(item)
        return field.with_type(list_type), lambda array: _items(array, list_type, below)
    if not pa.types.is_struct(kind):
        raise ConfigError(f"{prefix}: {field.name} is of type {kind}, which has no field {path[0]!r}")
    place = kind.get_field_index(path[0])
    if place < 0:
        raise ConfigError(f"{prefix}: {field.name} has no field {path[0]!r}; it has {', '.join(f.name for f in kind)}")
    child = kind.field(place)
    changed = how(child) if len(path) == 1 else change(child, path[1:], how, prefix)
    fields = list(kind)
    fields[place : place + 1] = [changed[0]] if changed else []
    names = [f.name for f in fields]
    if len(set(names)) < len(names):
        raise ConfigError(f"{prefix}: {field.name} would have two fields {changed[0].name!r}" if changed else prefix)
    if not fields:
        raise ConfigError(f"{prefix}: {field.name} would have no field left")
    convert = changed and changed[1]

    def converted(array: pa.StructArray) -> pa.StructArray:
        children = [array.field(number) for number in range(kind.num_fields)]
        children[place : place + 1] = [convert(children[place])] if convert else []
        return struct_of(array, children, fields)

    return field.with_type(pa.struct(fields)), converted


def of_items(how: Change) -> Change:
    """Return the change of a field that changes each item of a list, at any depth, and else the field itself."""

    def changed(field: pa.Field) -> Changed | None:
        kind = field.type
        if not (pa.types.is_list(kind) or pa.types.is_large_list(kind)):
            return how(field)
        item = changed(kind.value_field)
        if item is None:
            return None
        after = pa.list_(item[0]) if pa.types.is_list(kind) else pa.large_list(item[0])
        return field.with_type(after), lambda array: _items(array, after, item[1])

    return changed


def struct_of(array: pa.StructArray, children: list[pa.Array], fields: list[pa.Field]) -> pa.StructArray:
    """A struct of other children, null where `array` is null."""
    return pa.StructArray.from_arrays(children, fields=fields, mask=array.is_null() if array.null_count else None)


def _items(array: pa.Array, kind: pa.DataType, below: Convert) -> pa.Array:
    # A slice still has all items of the larger array.
    whole = pa.concat_arrays([array.slice(0, 0), array]) if array.offset else array
    items = below(whole.values)
    return pa.Array.from_buffers(kind, len(whole), whole.buffers()[:2], whole.null_count, whole.offset, [items])
