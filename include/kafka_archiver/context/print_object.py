"""The records of one object as JSON lines, by the reader of its format."""

import io
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import BinaryIO, cast

from kafka_archiver.encryption.opened import Fetch, FindKey, OpenedObject
from kafka_archiver.messages.errors import ConfigError
from kafka_archiver.model.object_keys import SEALED
from kafka_archiver.model.settings import Content, Settings
from kafka_archiver.records.formats import extension_of, get_format, names, resolve
from kafka_archiver.records.formats.base import PLACE, SCHEMAS, VALUE, Buffer, ReadsAlone, Target
from kafka_archiver.records.formats.jsonl.objects import lines_of
from kafka_archiver.records.formats.shared.records import kafkas
from kafka_archiver.records.reading.files import ObjectFile
from kafka_archiver.store import Store


def settings_of(name: str, values: bool = False) -> Settings:
    """The settings of an object, by the extension of its name; the content is not known by it.

    :param values: who reads wants values alone.
    :raises ConfigError: no format has this extension.
    """
    known = {
        extension_of(settings): settings
        for format_name in names()
        for codec in get_format(format_name).extensions
        for settings in [resolve(Settings(format=format_name, codec=codec, content=_content(format_name, values)))]
    }
    # `.mak.gz` also ends in `.gz`.
    longest = max((extension for extension in known if name.endswith(extension)), key=len, default=None)
    if longest is None:
        raise ConfigError(f"{name}: expected a name that ends in {' | '.join(sorted(known))}")
    return known[longest]


def _content(format_name: str, values: bool) -> Content:
    """The content of its files, if the files do not say it."""
    contents = get_format(format_name).contents
    return "record" if "record" in contents and not (values and "value" in contents) else "value"


def from_file(path: Path, find_key: FindKey | None = None) -> BinaryIO:
    """A local file. Raises ConfigError if it cannot be opened. `find_key`: for an encrypted one."""
    try:
        file = path.open("rb")
    except OSError as error:
        raise ConfigError(
            f"{path} cannot be opened: {error.strerror}; expected a file, or an object's s3:// URL"
        ) from None
    if find_key is None or not path.name.endswith(SEALED):
        return file

    def fetch(start: int, length: int) -> bytes:
        file.seek(start)
        return file.read(length)

    return _opened(fetch, path.stat().st_size, find_key, str(path), None)


def _opened(fetch: Fetch, size: int, find_key: FindKey, name: str, key: str | None) -> BinaryIO:
    """The content of an encrypted object."""
    return cast(BinaryIO, io.BufferedReader(OpenedObject(fetch, size, find_key, name, key), 1 << 20))


def from_store(store: Store, key: str, find_key: FindKey | None = None) -> BinaryIO:
    """An object of a store, read piece by piece. `find_key`: for an encrypted one.

    :raises ConfigError: there is no such object.
    """
    stat = store.head(key)
    if stat is None:
        raise ConfigError(f"{store.url}/{key} does not exist")

    name = f"{store.url}/{key}"
    whole = ObjectFile(name, lambda start, length: store.read(key, start, length) or b"", stat.size)
    if find_key is None or not key.endswith(SEALED):
        return cast(BinaryIO, io.BufferedReader(whole, 1 << 20))
    return _opened(whole.range, stat.size, find_key, name, key)


def lines(name: str, source: BinaryIO, values: bool = False) -> Iterator[Buffer]:
    """The records as lines of JSON, as `format: jsonl` writes them, some at a time; values alone, as they are.

    :param values: of a CSV file with the column `value` alone, each value as it is.
    :raises IntegrityError: the object is damaged.
    :raises ConfigError: the file does not have what is wanted.
    """
    settings = settings_of(name.removesuffix(SEALED), values)
    format_ = get_format(settings.format)
    target = Target(topic="", partition=0, key=name, settings=settings, schema=SCHEMAS[settings.content])
    if isinstance(format_, ReadsAlone):
        schema, batches = format_.read_alone(source, target)
    else:
        schema, batches = target.schema, format_.read(source, target)
    if values and not schema.equals(VALUE):
        raise ConfigError(f"{name} has the columns {', '.join(schema.names)}: print it without `--content value`")
    for batch in filter(len, batches):
        # One value per object.
        place = {kafka: batch.column(f.name)[0].as_py() for f in schema if (kafka := kafkas(f)) in PLACE}
        own = replace(target, schema=schema, **place)
        yield from lines_of(own)(batch, own)
