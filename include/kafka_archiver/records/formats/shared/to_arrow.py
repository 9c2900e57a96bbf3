"""Values of a reader's library as Arrow takes them: lists, structs and maps, whatever a format makes of leaves."""

from collections.abc import Callable, Sequence
from typing import Any

import pyarrow as pa

Back = Callable[[Any], Any]
# The function that makes a value of a type that is not nested; None if the value needs no change.
Leaf = Callable[[pa.DataType], Back | None]


def back(kind: pa.DataType, leaf: Leaf, key: Leaf) -> Back | None:
    """The function that makes a value of the type; None if the value needs no change.

    :param key: for the keys of maps. A map is a dictionary, or a list of `key` and `value`.
    """
    child_back: Back | None
    if pa.types.is_map(kind):
        child_back = _pairs(key(kind.key_type) or _same, back(kind.item_type, leaf, key) or _same)
    elif pa.types.is_list(kind) or pa.types.is_large_list(kind):
        child_back = _items(back(kind.value_type, leaf, key))
    elif pa.types.is_struct(kind):
        child_back = record(list(kind), leaf, key)
    else:
        child_back = leaf(kind)
    return child_back and _or_none(child_back)


def record(fields: Sequence[pa.Field], leaf: Leaf, key: Leaf) -> Back | None:
    """The function that changes a dictionary of columns in place."""
    changes = [(f.name, change) for f in fields if (change := back(f.type, leaf, key)) is not None]

    def changed(row: dict[str, Any]) -> dict[str, Any]:
        for name, change in changes:
            row[name] = change(row[name])
        return row

    return changed if changes else None


def _pairs(key: Back, item: Back) -> Back:
    def changed(pairs: Any) -> list[tuple[Any, Any]]:
        pairs = pairs.items() if isinstance(pairs, dict) else [(pair["key"], pair["value"]) for pair in pairs]
        return [(key(name), item(value)) for name, value in pairs]

    return changed


def _items(change: Back | None) -> Back | None:
    return change and (lambda items: [*map(change, items)])


def _or_none(change: Back) -> Back:
    return lambda value: None if value is None else change(value)


def _same(value: Any) -> Any:
    return value
