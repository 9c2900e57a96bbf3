"""The layouts by name: those of this package, and those of installed distributions (entry points of the group below).

Install such a distribution on the Spark executors too. It cannot replace a layout of this package.
"""

import json
from collections.abc import Iterable, Mapping
from dataclasses import replace
from functools import lru_cache
from typing import Any

from pydantic import ValidationError

from kafka_archiver.messages.entry_points import Registry
from kafka_archiver.messages.errors import ConfigError, DocumentError, error_in_words
from kafka_archiver.messages.yaml_faults import fault_lines
from kafka_archiver.model.decoders import decoder_type
from kafka_archiver.model.layouts.base import Layout
from kafka_archiver.model.layouts.confluent import CONFLUENT
from kafka_archiver.model.layouts.fields import FIELDS, PATH
from kafka_archiver.model.layouts.form import PathForm
from kafka_archiver.model.layouts.hourly import DAILY, HOURLY, parse_hour_path
from kafka_archiver.model.layouts.lenses import LENSES
from kafka_archiver.model.layouts.offsets import OFFSETS, TOPIC_PARTITION
from kafka_archiver.model.layouts.s3_connectors import DEVIANTART, ZOOZ
from kafka_archiver.model.layouts.template import parsed
from kafka_archiver.model.layouts.tokens import Field
from kafka_archiver.model.object_keys import DEAD_LETTER, ObjectName, is_dead_letter, topic_prefix
from kafka_archiver.model.settings import Settings
from kafka_archiver.values.documents import Value

_OWN: tuple[Layout, ...] = (
    HOURLY, DAILY, TOPIC_PARTITION, OFFSETS, PATH, FIELDS, *CONFLUENT, ZOOZ, *LENSES, DEVIANTART,
)  # fmt: skip
LAYOUTS: dict[str, Layout] = {layout.name: layout for layout in _OWN}
_REGISTRY = Registry("kafka_archiver.layouts", "store.layout", LAYOUTS)
# A mapping in the YAML with one of these keys needs no `name`.
_IMPLIED = ("path", "fields", "offsets")
# What a plan adds to the options.
FROZEN = ("zone_data", "names")


def names() -> tuple[str, ...]:
    """The names of all layouts."""
    return _REGISTRY.names()


def get_layout(name: str) -> Layout:
    """The layout of that name.

    :raises ConfigError: there is none, or it cannot be loaded.
    """
    if name in LAYOUTS:
        return LAYOUTS[name]
    loaded, place = _REGISTRY.load(name)
    try:
        layout: Layout = loaded() if isinstance(loaded, type) else loaded
    except Exception as error:
        raise ConfigError(f"store.layout: {name!r} ({place}) cannot be loaded: {error_in_words(error)}") from error
    if missing := [part for part in ("name", "options", "form") if not hasattr(layout, part)]:
        raise ConfigError(f"store.layout: {name!r} ({place}) is no layout: it has no `{missing[0]}`")
    return layout


def named(layout: str | Mapping[str, Any]) -> tuple[str, dict[str, Any]]:
    """The name and the options of `store.layout`.

    :raises ConfigError: the mapping names no layout.
    """
    if isinstance(layout, str):
        return layout, {}
    options = dict(layout)
    implied = [key for key in _IMPLIED if key in options]
    name = options.pop("name", None) or (implied[0] if len(implied) == 1 else None)
    if not isinstance(name, str):
        raise ConfigError(f"store.layout: expected `name` (a layout), or one of the keys {', '.join(_IMPLIED)}")
    for key in FROZEN:
        if key in options:
            raise ConfigError(f"store.layout.{key} is what the archiver adds to its plans; remove it")
    return name, options


def options_of(name: str, values: Mapping[str, Any]) -> Value:
    """The checked options of a layout.

    :raises ConfigError: an option does not exist or is wrong.
    """
    model = get_layout(name).options
    try:
        return model.model_validate(dict(values))
    except ValidationError as error:
        has = ", ".join(f.alias or n for n, f in model.model_fields.items() if n not in FROZEN) or "none"
        lines = fault_lines(
            error, lambda where: f"`{where}` is not an option: layout {name} has {has}", ("store", "layout")
        )
        raise ConfigError("; ".join(lines)) from None


def form_of(settings: Settings) -> PathForm:
    """The form of the keys of a plan's objects.

    :raises ConfigError: this release has no such layout, or two objects could have one key.
    """
    return _form(settings.layout, json.dumps(settings.layout_options, sort_keys=True), settings.name)


@lru_cache(maxsize=256)
def _form(layout: str, options: str, name: str) -> PathForm:
    chosen = get_layout(layout)
    try:
        form = chosen.form(options_of(layout, json.loads(options)))
        if name:
            form = _renamed(form, name)
    except ValueError as error:
        raise ConfigError(f"store.layout: {error}") from None
    try:
        form.check()
    except ValueError as error:
        raise ConfigError(f"{'store.name' if name else 'store.layout'}: {error}") from None
    return form


def _renamed(form: PathForm, name: str) -> PathForm:
    try:
        return replace(form, name=parsed(name))
    except ValueError as error:
        raise ConfigError(f"store.name: {error}") from None


def resolve(settings: Settings) -> Settings:
    """The settings with all options of the layout.

    :raises ConfigError: as `form_of`, or a field is not decoded.
    """
    options = options_of(settings.layout, settings.layout_options)
    stored_options = options.model_dump(mode="json", by_alias=True)
    # A plan of `hourly` in UTC keeps its earlier bytes.
    plain = settings.layout == HOURLY.name and options == HOURLY.options()
    resolved = settings.model_copy(update={"layout_options": {} if plain else stored_options})
    fields = [("store.layout", token.field) for token in form_of(resolved).folders if isinstance(token, Field)]
    if settings.time.source in ("value", "key") and settings.time.field:
        fields.append(("timestamp.path", f"{settings.time.source}.{settings.time.field}"))
    for key, field in fields:
        _require_decoded(settings, key, field)
    return resolved


def _require_decoded(settings: Settings, key: str, field: str) -> None:
    column, _, inside = field.partition(".")
    if column == "value" and settings.transform is not None and settings.transform.mapper is not None:
        # What a mapper returns has fields if it has a schema; else its records are filed as those without the field.
        return
    decode = {"value": settings.value_decode, "key": settings.key_decode}.get(column, "json")
    if inside and not decoder_type(decode).has_fields:
        raise ConfigError(
            f"{key}: {field} is a field of the {column}, so it needs `source.{column}.decode: json`, avro, protobuf or "
            f"json_schema; found {decode}"
        )


def prefixes(topics: Iterable[str], *settings: Settings) -> list[str]:
    """The prefixes of all objects of these topics, with dead letters.

    :param settings: of plans that may have written them.
    """
    topic_names = list(topics)
    topic_prefixes = {form_of(setting).prefix(topic) for setting in settings for topic in topic_names}
    topic_prefixes |= {topic_prefix(topic, dead_letter=True) for topic in topic_names}
    return [""] if "" in topic_prefixes else sorted(topic_prefixes)


def counts_hours(settings: Settings) -> bool:
    """Return True if manifests count the rows of each hour. If not, an object's path is its hour."""
    plain = settings.layout == HOURLY.name and not settings.layout_options
    return not plain or settings.time.source != "record"


def place_in(settings: Settings, key: str) -> ObjectName | None:
    """The place of an object of a plan, dead-lettered or not; None for a key of another form."""
    if is_dead_letter(key):
        return plain_place(key)
    return form_of(settings).place(key)


def plain_place(key: str) -> ObjectName | None:
    """The place of an object of the layout `hourly`, or of dead letters, for callers with a key but no plan."""
    inner = key.removeprefix(f"{DEAD_LETTER}/")
    form = form_of(Settings())
    place = form.place(inner)
    if place is None:
        return None
    try:
        parse_hour_path(inner.rpartition("/")[0].removeprefix(form.prefix(place.topic)))
    except ValueError:
        return None
    return place


def hours_by_path(path: str) -> tuple[int | None]:
    """The hour of an object of the layout `hourly`, by its path.

    :raises DocumentError: it is not the path of an hour.
    """
    try:
        return (parse_hour_path(path),)
    except ValueError:
        raise DocumentError(
            f"a manifest has an object in {path!r} without `rows_by_hour`, which is not the path of an hour: a later "
            "release wrote the manifest, or somebody has changed it"
        ) from None


def hours_by_key(settings: Settings, key: str) -> tuple[int, ...]:
    """The hour of an object or of dead letters, by its key; empty if the keys of these settings do not tell it."""
    letter = is_dead_letter(key)
    path = "/".join(key.split("/")[2 if letter else 1 : -1])
    try:
        hour = None if counts_hours(settings) and not letter else parse_hour_path(path)
    except ValueError:
        hour = None
    return () if hour is None else (hour,)
