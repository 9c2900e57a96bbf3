"""Open one object by its plan: its bytes are unsealed, decoded, and compared with its entry in the manifest."""

import io
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, BinaryIO, Protocol, cast

import pyarrow as pa

from kafka_archiver.messages.errors import IntegrityError
from kafka_archiver.model.adopted import AdoptedObject
from kafka_archiver.model.data_keys import DataKey
from kafka_archiver.model.object_keys import SEALED, is_dead_letter
from kafka_archiver.records.formats import dead_letter, get_format
from kafka_archiver.records.formats.base import PLACE, JoinsValues, Target
from kafka_archiver.records.formats.shared.records import kafkas
from kafka_archiver.records.reading.files import PIECE, CopyFile, Fetch, LimitedReads, ObjectCopy, ObjectFile, RangeFile

if TYPE_CHECKING:
    from kafka_archiver.encryption.opened import OpenedObject

# The data key of an id.
FindKey = Callable[[str], DataKey]
# Bytes that a decoder gets at once.
_READ = 1 << 20


class Promised(Protocol):
    """An object as a manifest has it: `ObjectEntry`, or `DeadLetters` of a plan."""

    @property
    def key(self) -> str: ...
    @property
    def rows(self) -> int: ...
    @property
    def bytes(self) -> int: ...
    @property
    def checksum(self) -> str: ...


def open_object(
    item: Promised,
    target: Target,
    fetch: Fetch,
    find_key: FindKey,
    piece: int = PIECE,
    most: int | None = None,
    is_compared: bool = False,
) -> Iterator[pa.RecordBatch]:
    """Read all records of an object, in order: batches of the target's schema or, of `VALUE`, of the column `value`.

    The last batch is given before the whole checksum is compared: use the batches only once the iterator has ended, or
    give a `fetch` of `Copies`, which are compared before.

    :param target: the object as it was written. Of dead letters: topic, partition and key; the batches are of `RECORD`
        and `UNREAD`.
    :param find_key: finds the data key of an encrypted object.
    :param piece: bytes that are fetched at once.
    :param most: bytes that a decoder of dead letters gets at once: it bounds a batch.
    :param is_compared: whether `fetch` is of `Copies`: then the checksum is not compared a second time.
    :raises IntegrityError: the object is not the one that the manifest promises; the message names the object.
    """
    whole = ObjectFile(item.key, fetch, item.bytes, piece)
    rows = 0
    with naming(item):
        content: io.RawIOBase = unsealed(item, whole.range, find_key) if item.key.endswith(SEALED) else whole
        source: io.IOBase = LimitedReads(content, most) if most else io.BufferedReader(content, _READ)
        if is_compared and content is whole and isinstance(fetch, ObjectCopy):
            source = CopyFile(fetch)
        for batch in _decoded(cast(BinaryIO, source), target):
            _require_place(batch, target)
            rows += batch.num_rows
            yield batch
    checksum = item.checksum if is_compared else whole.checksum()
    if checksum != item.checksum or (rows != item.rows and not joins_values(target)):
        raise IntegrityError(
            f"{item.key}: expected {item.rows} rows with checksum {item.checksum}, found {rows} with "
            f"{checksum}: the object is damaged, or another one"
        )


def open_adopted(item: AdoptedObject, fetch: Fetch) -> Iterator[pa.RecordBatch]:
    """Read all records of an object that another tool wrote, in order: the file's columns and `merge.OFFSET`, if the
    records have their offsets.

    :param fetch: of `Copies`, which compare the object with its checksum first.
    :raises IntegrityError: the object has not the rows that it had when it was adopted.
    """
    # Imported late: executors need not have all of its libraries.
    from kafka_archiver.records.reading.foreign import foreign_format
    from kafka_archiver.records.reading.foreign.base import foreign_target

    target = foreign_target(item.topic, item.partition, item.key, item.format, item.codec)
    source = io.BufferedReader(ObjectFile(item.key, fetch, item.bytes), _READ)
    rows = 0
    with naming(item):
        for batch in foreign_format(item.format).read(cast(BinaryIO, source), target, item.has_offsets):
            rows += batch.num_rows
            yield batch
    if rows != item.rows:
        raise IntegrityError(f"{item.key}: expected {item.rows} rows, found {rows}")


def joins_values(target: Target) -> bool:
    """Return True if an object may be read with another number of rows than it was written with."""
    own = get_format(target.settings.format)
    return not is_dead_letter(target.key) and isinstance(own, JoinsValues) and own.joins_values(target.settings)


@contextmanager
def naming(item: Promised) -> Iterator[None]:
    """Name the object in each IntegrityError: decoders do not know it."""
    try:
        yield
    except IntegrityError as error:
        raise error if item.key in str(error) else IntegrityError(f"{item.key}: {error}") from error


def missing(name: str) -> IntegrityError:
    """Return the error for an object that does not exist. :param name: its URL."""
    return IntegrityError(f"{name} does not exist, and the manifest of its run promises it")


def open_content(item: Promised, fetch: Fetch, find_key: FindKey) -> RangeFile:
    """Open the content of an object, to read ranges of it. Nothing is compared with the manifest.

    :raises IntegrityError: when reading: an encrypted object is damaged, or another one.
    """
    if not item.key.endswith(SEALED):
        return RangeFile(fetch, item.bytes)
    content = unsealed(item, fetch, find_key)
    return RangeFile(content.range, content.size)


def unsealed(item: Promised, fetch: Fetch, find_key: FindKey) -> "OpenedObject":
    """Return the content of an encrypted object as a file."""
    # Imported late: without encryption, executors need not have the library.
    from kafka_archiver.encryption.opened import OpenedObject

    return OpenedObject(fetch, item.bytes, find_key, item.key, item.key)


def _decoded(source: BinaryIO, target: Target) -> Iterator[pa.RecordBatch]:
    if is_dead_letter(target.key):
        return dead_letter.read(source, target.key)
    return get_format(target.settings.format).read(source, target)


def _require_place(batch: pa.RecordBatch, target: Target) -> None:
    for field in batch.schema:
        if batch.num_rows and (name := kafkas(field)) in PLACE:
            expected = getattr(target, name)
            if batch.column(field.name).unique().to_pylist() != [expected]:
                raise IntegrityError(f"{target.key} has records of another {name} than {expected}")
