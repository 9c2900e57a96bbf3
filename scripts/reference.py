"""The reference of the YAML's keys: docs/reference.md, made of the models in `config/` and their sentences.

`python -m scripts.reference` writes it; a test compares.
"""

import typing
from collections.abc import Iterator
from datetime import datetime, timedelta
from typing import Any, Literal

from annotated_types import Ge, Gt, Le
from pydantic.fields import FieldInfo
from pydantic_core import PydanticUndefined

from kafka_archiver.config.archive import Archive
from kafka_archiver.config.section import Section
from kafka_archiver.config.sentences import SENTENCES, UNITS
from kafka_archiver.values.intervals import spelt
from scripts.stack.paths import ROOT

PAGE = ROOT / "docs" / "reference.md"
_HEAD = """# Reference of the YAML's keys

Made by `make docs` from the code. Spans are like `90m`, `2h`, `1d`. One of
`source.topics` and `source.pattern` is required.
"""
# Sections that are described elsewhere on the page.
_SAME = ("source.key", "source.headers")
_TYPES: dict[Any, str] = {
    str: "text",
    int: "integer",
    float: "number",
    bool: "true, false",
    tuple: "list",
    dict: "mapping",
    timedelta: "span",
    datetime: "time",
}


def keys(section: type[Section] = Archive, above: str = "") -> Iterator[tuple[str, FieldInfo]]:
    """Yield each key with its field; a section's own row comes before its keys."""
    for name, field in section.model_fields.items():
        key = above + (field.alias or name)
        yield key, field
        below = next((b for b in _branches(field.annotation) if isinstance(b, type) and issubclass(b, Section)), None)
        if below and key not in _SAME:
            yield from keys(below, f"{key}.")


def rows() -> Iterator[tuple[str, FieldInfo]]:
    """Return the keys that have a row: all but the sections at the top, which are headings."""
    names = [key for key, _ in keys()]
    headings = {key for key in names if "." not in key and any(name.startswith(f"{key}.") for name in names)}
    # The keys without a section come first.
    return iter(sorted((row for row in keys() if row[0] not in headings), key=lambda row: "." in row[0]))


def page() -> str:
    """Return the page."""
    lines, heading = [_HEAD], None
    for key, field in rows():
        section = key.partition(".")[0] if "." in key else "The archive"
        if section != heading:
            lines.append(f"{'' if heading is None else chr(10)}## {section}\n")
            heading = section
        kind = "; ".join(filter(None, [_type(key, field), _default(field)]))
        lines.append(f"- `{key}`{f' ({kind})' if kind != 'text' else ''}: {SENTENCES[key]}")
    return "\n".join(lines) + "\n"


def _branches(annotation: Any) -> Iterator[Any]:
    """Yield the types of a union, without `Annotated`; a `Literal` stays whole."""
    origin = typing.get_origin(annotation)
    if origin is typing.Annotated:
        yield from _branches(annotation.__origin__)
    elif origin is None or origin in (tuple, list, dict, Literal):
        yield annotation
    else:
        for branch in typing.get_args(annotation):
            yield from _branches(branch)


def _type(key: str, field: FieldInfo) -> str:
    names: list[str] = []
    for branch in _branches(field.annotation):
        kind = typing.get_origin(branch) or branch
        if kind is Literal:
            names += [str(choice).lower() if choice is True else str(choice) for choice in typing.get_args(branch)]
        elif kind is not type(None):
            is_section = isinstance(kind, type) and issubclass(kind, Section)
            names.append("mapping" if is_section else _TYPES.get(kind, getattr(kind, "__name__", "").lower()))
    unit = UNITS.get(key) or next((unit for unit in ("bytes", "seconds") if key.endswith(f"_{unit}")), "")
    return ", ".join(filter(None, [*dict.fromkeys(names), unit, _bounds(field)]))


def _bounds(field: FieldInfo) -> str:
    metadata = [*field.metadata]
    for branch in typing.get_args(field.annotation):
        inner = typing.get_args(branch)[1:] if typing.get_origin(branch) is typing.Annotated else ()
        metadata += [data for info in inner for data in getattr(info, "metadata", ())]
    least = next((_number(data.ge) for data in metadata if isinstance(data, Ge)), "")
    # Above zero: these are whole numbers.
    least = least or next((_number(int(str(data.gt)) + 1) for data in metadata if isinstance(data, Gt)), "")
    most = next((_number(data.le) for data in metadata if isinstance(data, Le)), "")
    if least and most:
        return f"{least} to {most}"
    return f"at least {least}" if least else ""


def _number(value: Any) -> str:
    return f"{value:,}"


def _default(field: FieldInfo) -> str:
    value = field.default
    if value is PydanticUndefined:
        return "required"
    if isinstance(value, timedelta):
        return f"default `{spelt(value)}`"
    if value in (None, "", (), {}) or isinstance(value, Section):
        return ""
    return f"default `{str(value).lower() if isinstance(value, bool) else value}`"


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
