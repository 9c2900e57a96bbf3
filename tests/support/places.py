"""All keys of an archive's YAML and their types, from the pydantic model, so that no new key is forgotten."""

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from kafka_archiver.config import Archive

# Mappings whose keys and values are no other program's.
OURS = {"store.layout", "store.rename", "store.tags", "store.encryption.sse-kms.context"}


class Place(NamedTuple):
    """A key with its sections. `kinds`: the values that it takes: section, sections, mapping, list, text, plain."""

    path: tuple[str, ...]
    kinds: frozenset[str]

    @property
    def key(self) -> str:
        return ".".join(self.path)


def places() -> list[Place]:
    """Every key of an archive's YAML, with the keys of sections. A mapping has properties."""
    schema = Archive.model_json_schema(by_alias=True)
    return list(_below(schema, schema["$defs"], ()))


def mappings() -> list[str]:
    """Return the keys of an archive on S3 that take a mapping of another program, which may have secrets."""
    other_keys = {*OURS, "store.connection"}
    return [place.key for place in places() if "mapping" in place.kinds and place.key not in other_keys]


def with_value(yaml: Mapping[str, Any], path: tuple[str, ...], value: Any) -> dict[str, Any]:
    """The same YAML with another value for one key."""
    first, *deeper = path
    below = yaml.get(first)
    return {
        **yaml,
        first: with_value(below if isinstance(below, dict) else {}, tuple(deeper), value) if deeper else value,
    }


def _below(schema: Mapping[str, Any], defs: Mapping[str, Any], path: tuple[str, ...]) -> Iterator[Place]:
    for name, field in schema["properties"].items():
        choices = list(_choices(field, defs))
        yield Place((*path, name), frozenset(map(_kind, choices)))
        for choice in choices:
            if "properties" in choice:
                yield from _below(choice, defs, (*path, name))


def _choices(field: Mapping[str, Any], defs: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    if "$ref" in field:
        yield from _choices(defs[field["$ref"].rsplit("/", 1)[1]], defs)
    elif several := field.get("anyOf") or field.get("oneOf"):
        for choice in several:
            yield from _choices(choice, defs)
    else:
        yield field


def _kind(choice: Mapping[str, Any]) -> str:
    if choice.get("type") == "object":
        if isinstance(below := choice.get("additionalProperties"), dict) and "$ref" in below:
            return "sections"
        return "section" if "properties" in choice else "mapping"
    if choice.get("type") == "array":
        return "list"
    plain = {"enum", "const", "format"} & set(choice)
    return "text" if choice.get("type") == "string" and not plain else "plain"
