"""The key and the encoder of a new object: for archived records, or for dead letters."""

from collections.abc import Callable
from typing import NamedTuple

from kafka_archiver.formats import dead_letter
from kafka_archiver.formats.base import SCHEMAS, Encoder, Target
from kafka_archiver.formats.registry import extension_of, get_format
from kafka_archiver.keys import Place, object_key
from kafka_archiver.plan import Chunk
from kafka_archiver.writer.result import WriteJob


class Opened(NamedTuple):
    """A new object: its key, and its encoder."""

    key: str
    encoder: Encoder


# Opens the object of a path.
Open = Callable[[str], Opened]


def archived(chunk: Chunk, job: WriteJob) -> Open:
    """The objects of archived records, in the archive's format."""
    settings = job.settings
    chosen, schema = get_format(settings.format), SCHEMAS[settings.content]
    extension = extension_of(settings)

    def open_(path: str) -> Opened:
        key = object_key(_place(chunk, job), path, extension)
        target = Target(topic=chunk.topic, partition=chunk.partition, key=key, settings=settings, schema=schema)
        return Opened(key, chosen.encoder(target))

    return open_


def dead_letters(chunk: Chunk, job: WriteJob) -> Open:
    """The objects of dead letters: the same format in all archives."""

    def open_(path: str) -> Opened:
        key = object_key(_place(chunk, job), path, dead_letter.EXTENSION, dead_letter=True)
        return Opened(key, dead_letter.encoder(chunk.topic, chunk.partition, key))

    return open_


def _place(chunk: Chunk, job: WriteJob) -> Place:
    return Place(chunk.topic, chunk.partition, chunk.start, chunk.generation, job.revision)
