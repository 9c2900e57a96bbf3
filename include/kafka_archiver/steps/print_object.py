"""The records of one object as JSON lines, by the reader of its format and the columns that the file has."""

import io
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import BinaryIO, cast

import pyarrow as pa

from kafka_archiver.audit.content import Pieces
from kafka_archiver.encryption.opened import Fetch, FindKey, Opened
from kafka_archiver.errors import ConfigError
from kafka_archiver.formats import extension_of, get_format, names, resolve
from kafka_archiver.formats.avro.reader import read_records
from kafka_archiver.formats.base import PLACE, SCHEMAS, VALUE, Target
from kafka_archiver.formats.jsonl.objects import object_lines
from kafka_archiver.formats.jsonl.reader import whole_lines
from kafka_archiver.formats.shared.decompress import decompressed
from kafka_archiver.formats.shared.records import kafkas
from kafka_archiver.keys import SEALED
from kafka_archiver.plan import Content, Settings
from kafka_archiver.steps.own_columns import of_avro, of_csv, of_parquet
from kafka_archiver.store import Store


def settings_of(name: str) -> Settings:
    """The settings of an object, by the extension of its name; the content is not known by it.

    :raises ConfigError: no format has this extension.
    """
    known = {
        extension_of(found): found
        for format_name in names()
        for codec in get_format(format_name).extensions
        for found in [resolve(Settings(format=format_name, codec=codec, content=_content(format_name)))]
    }
    # `.mak.gz` also ends in `.gz`.
    longest = max((extension for extension in known if name.endswith(extension)), key=len, default=None)
    if longest is None:
        raise ConfigError(f"{name}: expected a name that ends in {' | '.join(sorted(known))}")
    return known[longest]


def _content(format_name: str) -> Content:
    """What its files have, if the files do not say it."""
    return "record" if "record" in get_format(format_name).contents else "value"


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
    return cast(BinaryIO, io.BufferedReader(Opened(fetch, size, find_key, name, key), 1 << 20))


def from_store(store: Store, key: str, find_key: FindKey | None = None) -> BinaryIO:
    """An object of a store, read piece by piece. `find_key`: for an encrypted one.

    :raises ConfigError: there is no such object.
    """
    stat = store.head(key)
    if stat is None:
        raise ConfigError(f"{store.url}/{key} does not exist")

    def fetch(start: int, length: int) -> bytes:
        return store.read(key, start, length) or b""

    whole = cast(BinaryIO, io.BufferedReader(Pieces(stat.size, fetch), 1 << 20))
    if find_key is None or not key.endswith(SEALED):
        return whole

    def piece(start: int, length: int) -> bytes:
        whole.seek(start)
        return whole.read(length)

    return _opened(piece, stat.size, find_key, f"{store.url}/{key}", key)


def lines(name: str, source: BinaryIO, values: bool = False) -> Iterator[bytes]:
    """Each record as a line of JSON, as `format: jsonl` writes it; what has the values alone, as they are.

    :param values: of a CSV file with the column `value` alone, each value as it is.
    :raises IntegrityError: the object is damaged.
    :raises ConfigError: the file does not have what is wanted.
    """
    settings = settings_of(name.removesuffix(SEALED))
    if settings.format in ("jsonl", "block_gzip"):
        pieces = decompressed(settings.codec, source, several=settings.format == "block_gzip")
        yield from whole_lines(pieces, name)
        return
    schema, batches = _read(name, source, settings, values)
    for batch in batches:
        if schema.equals(VALUE):
            yield from ((b"null" if v is None else v) + b"\n" for v in batch.column("value").to_pylist())
        elif batch.num_rows:
            # One value per object.
            place = {kafka: batch.column(f.name)[0].as_py() for f in schema if (kafka := kafkas(f)) in PLACE}
            target = _target(name, settings, schema)
            own = replace(target, topic=place.get("topic", ""), partition=place.get("partition", 0))
            for some in object_lines(batch, own):
                yield from bytes(some).splitlines(keepends=True)


def _read(name: str, source: BinaryIO, settings: Settings, values: bool) -> tuple[pa.Schema, Iterator[pa.RecordBatch]]:
    """The columns of a file, and its records."""
    schema: pa.Schema = SCHEMAS[settings.content]
    datum = None
    if settings.format == "parquet":
        schema = of_parquet(source, name)
    elif settings.format == "avro":
        schema, datum = of_avro(source, name)
    elif settings.format == "csv":
        schema, options = of_csv(source, settings.codec, name)
        settings = settings.model_copy(update={"options": {**settings.options, **options}})
        schema = VALUE if values and schema.names == ["value"] else schema
    if values and not schema.equals(VALUE):
        raise ConfigError(f"{name} has the columns {', '.join(schema.names)}: print it without `--content value`")
    source.seek(0)
    target = _target(name, settings, schema)
    return schema, read_records(source, target, datum) if datum else get_format(settings.format).read(source, target)


def _target(name: str, settings: Settings, schema: pa.Schema) -> Target:
    return Target(topic="", partition=0, key=name, settings=settings, schema=schema)
