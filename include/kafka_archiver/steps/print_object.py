"""The records of one object as JSON lines, by the reader of its format."""

import io
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO, cast

from kafka_archiver.audit.content import Pieces
from kafka_archiver.errors import ConfigError
from kafka_archiver.formats import extension_of, get_format, names, resolve
from kafka_archiver.formats.base import SCHEMAS, Target
from kafka_archiver.formats.jsonl.objects import object_lines
from kafka_archiver.plan import Content, Settings
from kafka_archiver.store import Store


def settings_of(name: str, content: Content) -> Settings:
    """The settings of an object, by the extension of its name.

    :raises ConfigError: no format has this extension, or the format does not have this content.
    """
    known = {
        extension_of(_resolved(format_name, codec)): (format_name, codec)
        for format_name in names()
        for codec in get_format(format_name).extensions
    }
    # `.mak.gz` also ends in `.gz`.
    longest = max((extension for extension in known if name.endswith(extension)), key=len, default=None)
    if longest is None:
        raise ConfigError(f"{name}: expected a name that ends in {' | '.join(sorted(known))}")
    format_name, codec = known[longest]
    return _resolved(format_name, codec, content)


def _resolved(format_name: str, codec: str, content: Content | None = None) -> Settings:
    own = content or min(get_format(format_name).contents)
    return resolve(Settings(format=format_name, codec=codec, content=own))


def from_file(path: Path) -> BinaryIO:
    """A local file. Raises ConfigError if it cannot be opened."""
    try:
        return path.open("rb")
    except OSError as error:
        raise ConfigError(
            f"{path} cannot be opened: {error.strerror}; expected a file, or an object's s3:// URL"
        ) from None


def from_store(store: Store, key: str) -> BinaryIO:
    """An object of a store, read piece by piece.

    :raises ConfigError: there is no such object.
    """
    stat = store.head(key)
    if stat is None:
        raise ConfigError(f"{store.url}/{key} does not exist")

    def fetch(start: int, length: int) -> bytes:
        return store.read(key, start, length) or b""

    return cast(BinaryIO, io.BufferedReader(Pieces(stat.size, fetch), 1 << 20))


def lines(name: str, source: BinaryIO, content: Content) -> Iterator[bytes]:
    """Each record as a line of `format: jsonl` with the same content.

    :raises IntegrityError: the object is damaged, or has another content.
    """
    settings = settings_of(name, content)
    # The readers need no topic and partition: `content: record` has them, `content: value` does not.
    target = Target(topic="", partition=0, key=name, settings=settings, schema=SCHEMAS[content])
    for batch in get_format(settings.format).read(source, target):
        if content == "value":
            yield from ((b"null" if v is None else v) + b"\n" for v in batch.column("value").to_pylist())
        elif batch.num_rows:
            place = {field: batch.column(field)[0].as_py() for field in ("topic", "partition")}
            own = Target(**place, key=name, settings=settings, schema=target.schema)
            for some in object_lines(batch, own):
                yield from bytes(some).splitlines(keepends=True)
