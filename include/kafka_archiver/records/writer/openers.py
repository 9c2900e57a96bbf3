"""The key and the encoder of a new object: for archived records, or for dead letters."""

from collections.abc import Callable, Iterable
from typing import NamedTuple

import pyarrow as pa

from kafka_archiver.model.layouts.registry import form_of
from kafka_archiver.model.object_keys import ObjectName, object_key
from kafka_archiver.model.plan import Chunk
from kafka_archiver.model.settings import sealed_extension
from kafka_archiver.records.formats import dead_letter
from kafka_archiver.records.formats.base import SCHEMAS, Buffer, Encoder, Target, is_typed
from kafka_archiver.records.formats.registry import extension_of, get_format
from kafka_archiver.records.formats.shared.columns import shaped
from kafka_archiver.records.pipeline.variants import Variants
from kafka_archiver.records.writer.result import WriteJob


class NewObject(NamedTuple):
    """A new object: its key, and its encoder."""

    key: str
    encoder: Encoder


# Opens the object of a path and a variant.
OpenObjectOf = Callable[[str, int], NewObject]


class Shaping:
    """An encoder for batches as the stages leave them: it gives the columns of the object's schema to another one."""

    def __init__(self, encoder: Encoder, schema: pa.Schema) -> None:
        self._encoder, self._schema = encoder, schema
        self.spill, self.finish = encoder.spill, encoder.finish

    @property
    def pending(self) -> int:
        return self._encoder.pending

    def write(self, batch: pa.RecordBatch) -> Iterable[Buffer]:
        return self._encoder.write(shaped(batch, self._schema))


def archived(chunk: Chunk, job: WriteJob, variants: Variants) -> OpenObjectOf:
    """The objects of archived records, in the archive's format."""
    settings = job.settings
    chosen, extension, form = get_format(settings.format), extension_of(settings), form_of(settings)

    def open_(path: str, variant: int) -> NewObject:
        columns = variants.columns(variant)
        typed = columns if is_typed(columns) else None
        schema = typed or SCHEMAS[settings.content]
        key = form.key(_place(chunk, job), path, extension, variants.suffix(variant))
        target = Target(topic=chunk.topic, partition=chunk.partition, key=key, settings=settings, schema=schema)
        encoder = chosen.encoder(target)
        return NewObject(key, Shaping(encoder, typed) if typed else encoder)

    return open_


def dead_letters(chunk: Chunk, job: WriteJob) -> OpenObjectOf:
    """The objects of dead letters: the same format in all archives."""

    def open_(path: str, variant: int) -> NewObject:  # noqa: ARG001 - dead letters have one schema
        key = object_key(
            _place(chunk, job), path, dead_letter.EXTENSION + sealed_extension(job.settings), dead_letter=True
        )
        return NewObject(key, dead_letter.encoder(chunk.topic, chunk.partition, key))

    return open_


def _place(chunk: Chunk, job: WriteJob) -> ObjectName:
    return ObjectName(chunk.topic, chunk.partition, chunk.start, chunk.generation, job.revision)
