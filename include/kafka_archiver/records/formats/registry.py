"""The formats by name: the formats of this package, and those of installed distributions.

A distribution adds a format with an entry point of the group `kafka_archiver.formats`. The entry point's name is the
format's name in the YAML; its value is a :class:`~kafka_archiver.records.formats.base.Format`. Install the distribution
on the Spark executors too: objects are encoded there. It cannot replace a format of this package.

This module does not import Arrow: planning needs names and options of formats every hour, but no encoder.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from pydantic import JsonValue, ValidationError

from kafka_archiver.messages.entry_points import Registry
from kafka_archiver.messages.errors import ConfigError
from kafka_archiver.messages.yaml_faults import fault_lines
from kafka_archiver.model.settings import Settings, sealed_extension
from kafka_archiver.records.formats.avro import Avro
from kafka_archiver.records.formats.block_gzip import BlockGzip
from kafka_archiver.records.formats.csv import Csv
from kafka_archiver.records.formats.jsonl import JsonLines
from kafka_archiver.records.formats.mak import Mak
from kafka_archiver.records.formats.parquet import Parquet
from kafka_archiver.records.formats.raw import BytesFormat
from kafka_archiver.records.formats.shared.codecs import StreamFormat
from kafka_archiver.records.formats.text import TextFormat

if TYPE_CHECKING:
    from kafka_archiver.records.formats.base import Format

_OWN: dict[str, Format] = {
    f.name: f for f in (JsonLines(), Csv(), TextFormat(), BytesFormat(), Avro(), Parquet(), BlockGzip(), Mak())
}
_REGISTRY = Registry("kafka_archiver.formats", "store.format", dict(sorted(_OWN.items())))


def names() -> tuple[str, ...]:
    """The names of all formats, sorted."""
    return tuple(sorted(_REGISTRY.names()))


def get_format(name: str) -> Format:
    """The format of that name.

    :raises ConfigError: no distribution adds it, two do, or it cannot be loaded.
    """
    return _REGISTRY.get(name)


def resolve(settings: Settings, decoded: bool = False) -> Settings:
    """The settings as a plan freezes them: complete, with the format's defaults.

    :param decoded: the key or the value is decoded to columns.
    :raises ConfigError: the format does not exist, or does not have the codec, the content or an option. The message
        lists the choices.
    """
    format_, name = get_format(settings.format), settings.format
    codec = settings.codec or format_.default_codec
    if codec not in format_.extensions:
        raise ConfigError(f"store.codec: format {name} has {_one_of(format_.extensions)}, found {codec!r}")
    # Bytes that are stored as they are may be decoded too: that checks them.
    contents = format_.typed | (format_.contents - {"value"}) if decoded else format_.contents
    if settings.content not in contents:
        raise ConfigError(_no_content(format_, settings.content, contents))
    if settings.metadata and not (decoded and settings.content == "value"):
        raise ConfigError(
            "store.metadata: it adds columns to a decoded value; set `source.value.decode` and `store.content: value`, "
            "or remove it: `store.content: record` has all of Kafka's columns"
        )
    if settings.rename and not (decoded and settings.content != "record"):
        raise ConfigError(
            "store.rename: it renames columns of a decoded value; set `source.value.decode` and `store.content: value` "
            "or both, or remove it"
        )
    # Other formats compress in their own way.
    rules = settings.codec_rules if isinstance(format_, StreamFormat) else 1
    complete = settings.model_copy(
        update={
            "codec": codec,
            "codec_rules": rules,
            "options": _options(format_, settings),
            "encoding": format_.encoding,
        }
    )
    # A method of `base.HasRequirements`: this module imports no Arrow.
    if require := getattr(format_, "require", None):
        require(complete)
    return complete


def extension_of(settings: Settings) -> str:
    """The file extension of a plan's objects: the format's option `extension`, if it has one, then the codec's, then
    that of encrypted objects.
    """
    own = f"{settings.options.get('extension', '')}{get_format(settings.format).extensions[settings.codec]}"
    return own + sealed_extension(settings)


def _no_content(format_: Format, content: str, contents: Iterable[str]) -> str:
    if content in format_.contents:
        alternatives = _one_of(other for other in names() if content in get_format(other).typed)
        return (
            f"store.format: {format_.name} stores values as they are, found values that are decoded to columns; choose "
            f"{alternatives}, or `source.value.decode: bytes`, or json without a schema"
        )
    if not contents:
        return (
            f"store.content: format {format_.name} has only {_one_of(format_.contents)}, without decoded columns, "
            f"found {content!r}; set `store.content: value` and `source.value.decode: bytes`, or json without a "
            f"schema, or choose a format that has {content!r}: "
            + _one_of(n for n in names() if content in get_format(n).typed | get_format(n).contents)
        )
    advice = (
        "; to store columns, set `source.value.decode` (json needs `schema`, too)" if content in format_.typed else ""
    )
    return f"store.content: format {format_.name} has {_one_of(contents)}, found {content!r}{advice}"


def _options(format_: Format, settings: Settings) -> dict[str, JsonValue]:
    """All options of the format, with the defaults of today: a later default must not change a plan that exists."""
    try:
        return format_.options.model_validate(settings.options).model_dump(mode="json")
    except ValidationError as error:
        has = f"format {format_.name} has {_one_of(format_.options.model_fields) or 'none'}"
        unknown = "`{}` is not an option: {}".format
        lines = fault_lines(error, lambda where: unknown(where, has), ("store", "options"))
        raise ConfigError("; ".join(lines)) from None


def _one_of(choices: Iterable[str]) -> str:
    return " | ".join(sorted(choices))
