"""The type of each key of the YAML, for values that are text in environment variables. Pure."""

import typing
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any, NamedTuple

from pydantic import BaseModel

from kafka_archiver.config.archive import Archive
from kafka_archiver.config.section import Section, unknown_key
from kafka_archiver.model.layouts.registry import LAYOUTS

# Mappings of client properties: a variable's name has `_` for their dots.
_DOTTED = (("source", "kafka"), ("source", "registry"))
# Their names have dots and capitals, which no rule gives back.
_CASED = (("spark", "conf"),)


class ValueTypes(NamedTuple):
    """The keys of a value in the YAML, and the types that it takes, without `Annotated` and unions."""

    keys: tuple[str, ...]
    types: tuple[Any, ...]

    @property
    def is_list(self) -> bool:
        """Return True if it is a list, which may be text with commas."""
        return any(typing.get_origin(type_) is tuple for type_ in self.types)

    @property
    def is_structure(self) -> bool:
        """Return True if it may be a list or a mapping."""
        return any(map(_is_structure, self.types))


def place_of(keys: Sequence[str]) -> ValueTypes:
    """The place of a value.

    :param keys: as in the YAML, or as in the name of a variable: in small letters, and with `_` for `-`.
    :raises ValueError: no archive has these keys.
    """
    kind: Any = Archive
    path: tuple[str, ...] = ()
    for key in keys:
        names, remaining = _below(path, kind)
        if key in names:
            name, kind = names[key]
        elif remaining is not None:
            name, kind = key.replace("_", ".") if path in _DOTTED else key, remaining
        elif names:
            where = ".".join((*path, key))
            raise ValueError(unknown_key(where, [name for name, _ in names.values()]))
        else:
            raise ValueError(f"`{'.'.join(path)}` has no keys with variables of their own; give it as {{…}} in one")
        path = (*path, name)
    return ValueTypes(path, tuple(_branches(kind)))


def wrong_key(where: str) -> str:
    """Return the error for a key that is not there, with the keys beside it."""
    kind: Any = Archive
    path: tuple[str, ...] = ()
    for key in where.split(".")[:-1]:
        names, remaining = _below(path, kind)
        path, kind = (*path, key), names[key][1] if key in names else remaining
    return unknown_key(where, [name for name, _ in _below(path, kind)[0].values()])


def items_of(text: str) -> list[str]:
    """The items of a list that is text with commas."""
    return [item.strip() for item in text.split(",") if item.strip()]


def with_lists(content: Any, variables: Mapping[str, object]) -> Any:
    """The values of a YAML, with a list instead of each text of variables that stands where a list is expected."""
    for where in variables:
        *above, last = where.split(".")
        within = content
        for key in above:
            within = within.get(key) if isinstance(within, dict) else None
        text = within.get(last) if isinstance(within, dict) else None
        # Brackets in a quoted value are a mistake, which pydantic names.
        if isinstance(within, dict) and isinstance(text, str) and not text.startswith("["):
            with suppress(ValueError):
                within[last] = items_of(text) if place_of([*above, last]).is_list else text
    return content


def _below(path: tuple[str, ...], kind: Any) -> tuple[Mapping[str, tuple[str, Any]], Any]:
    """The keys below a key, each with its name in the YAML and its type; and the type of all others, if there are."""
    if path == ("store", "layout"):
        options = [layout.options.model_fields for layout in LAYOUTS.values()]
        return {"name": ("name", str), **{k: (k, f.annotation) for fields in options for k, f in fields.items()}}, None
    branches = list(_branches(kind))
    section = next((b for b in branches if isinstance(b, type) and issubclass(b, Section)), None)
    if section:
        fields = {field.alias or name: field.annotation for name, field in section.model_fields.items()}
        return {name.replace("-", "_"): (name, type_) for name, type_ in fields.items()}, None
    mapping = next((b for b in branches if typing.get_origin(b) is dict and path not in _CASED), None)
    return {}, typing.get_args(mapping)[1] if mapping else None


def _branches(annotation: Any) -> Iterator[Any]:
    if hasattr(annotation, "__metadata__"):
        yield from _branches(annotation.__origin__)
    elif isinstance(annotation, type) or _is_structure(annotation):
        yield annotation
    else:
        for branch in typing.get_args(annotation):
            yield from _branches(branch)


def _is_structure(branch: Any) -> bool:
    return typing.get_origin(branch) in (tuple, list, dict) or (
        isinstance(branch, type) and issubclass(branch, BaseModel)
    )
