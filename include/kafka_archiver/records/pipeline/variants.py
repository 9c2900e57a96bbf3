"""Records that are filed by schema: those of each schema go through stages of their own, to objects of their own.

A variant is a combination of a key's schema and a value's schema that the plan names. Most runs have one variant.
"""

from collections.abc import Iterator, Mapping, Sequence
from math import prod
from types import MappingProxyType
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from kafka_archiver.messages.errors import ConfigError
from kafka_archiver.messages.foreign_text import foreign
from kafka_archiver.model.layouts.registry import form_of
from kafka_archiver.model.plan import Chunk, TopicSchemas
from kafka_archiver.model.schemas import Schema
from kafka_archiver.model.settings import Settings
from kafka_archiver.records.decode.frames import schema_ids
from kafka_archiver.records.pipeline.base import Marks, Stage, rows_where
from kafka_archiver.records.pipeline.decode import ColumnDecoding, columns_of, decodings, storable
from kafka_archiver.records.pipeline.filing.paths import Paths
from kafka_archiver.records.pipeline.headers import SchemaIds
from kafka_archiver.records.pipeline.refusals import Aside
from kafka_archiver.records.pipeline.runner import Counts, Runner
from kafka_archiver.records.pipeline.stages import stages_of
from kafka_archiver.records.pipeline.transform.base import BatchOrigin
from kafka_archiver.values.columns import Int64s, column

# The variant of the main schemas. It also has records without a schema: nulls, and what is no frame.
MAIN = 0
_LETTERS = {"key": "k", "value": "s"}


class Divided(NamedTuple):
    """A divided batch: the rows to archive of each variant, and the reason by rejected offset."""

    kept: Sequence[tuple[int, pa.RecordBatch]]
    rejected: Mapping[int, str]


class Variants:
    """Divides the records of a topic by their schemas, and runs the stages. `counts`: what became of all of them.

    :param decoded: the plan's schemas. :param schemas: their texts by fingerprint.
    :param keys: the secret keys of transforms by name.
    :param chunk: whose records they are, for their paths; None: paths do not matter, only who has none.
    :param most: the most paths of the chunk. :param aside: why, by offset, for records that are rejected unread.
    :raises ConfigError: as `decodings` and `storable`, of the main variant.
    """

    def __init__(
        self,
        settings: Settings,
        topic: str,
        decoded: Sequence[TopicSchemas],
        schemas: Mapping[str, Schema],
        chunk: Chunk | None = None,
        keys: Mapping[str, str] = MappingProxyType({}),
        most: int | None = None,
        aside: Mapping[int, str] = MappingProxyType({}),
    ) -> None:
        self._settings, self._topic, self._aside = settings, topic, aside
        chunk = chunk or Chunk(topic=topic, partition=0, generation=0, start=0, end=1)
        self._place = BatchOrigin(topic, chunk.partition, keys)
        self.paths = Paths(form_of(settings), chunk, settings, most)
        self._division = _Division(settings, topic, decoded, schemas)
        self._columns: dict[int, pa.Schema] = {}
        self._runners: dict[int, Runner] = {}
        self.counts = Counts()
        self._open(MAIN)

    def run(self, batch: pa.RecordBatch) -> Divided:
        """Run the stages on a batch that is not empty, with strictly increasing offsets.

        :raises IntegrityError: as `Runner.run`.
        """
        kept: list[tuple[int, pa.RecordBatch]] = []
        rejected: dict[int, str] = {}
        for variant, rows in self._divide(batch):
            passed = self._runner(variant).run(rows)
            rejected |= passed.rejected
            if passed.kept.num_rows:
                kept.append((variant, passed.kept))
        return Divided(kept, rejected)

    def columns(self, variant: int) -> pa.Schema:
        """The columns of a variant's objects. The variant has kept rows."""
        return self._columns[variant]

    def suffix(self, variant: int) -> str:
        """Return the suffix of its objects' names for schemas that are not the main ones: `+s7`."""
        return self._division.suffix(variant)

    def _divide(self, batch: pa.RecordBatch) -> Iterator[tuple[int, pa.RecordBatch]]:
        """The records of each variant that the batch has."""
        variants = self._division.variants(batch)
        if variants is None:
            yield MAIN, batch
            return
        for variant in np.unique(variants).tolist():
            mask = variants == variant
            yield variant, batch if mask.all() else rows_where(batch, mask)

    def _runner(self, variant: int) -> Runner:
        if variant not in self._runners:
            try:
                self._open(variant)
            except ConfigError as error:
                # Only a record of this schema needs it, so only then a policy decides.
                refused = RejectAll(f"no columns can be made of the record's schema: {foreign(str(error), 2000)}")
                stages: list[Stage] = [*([Aside(self._aside)] if self._aside else []), refused]
                self._runners[variant] = Runner(stages, self.counts)
        return self._runners[variant]

    def _open(self, variant: int) -> None:
        decoded = self._division.decodings(variant)
        self._columns[variant] = storable(self._settings, self._topic, decoded)
        stages = stages_of(self._settings, decoded, self._place, self.paths, self._aside)
        self._runners[variant] = Runner(stages, self.counts)


def columns_by_suffix(
    settings: Settings, topic: str, decoded: Sequence[TopicSchemas], schemas: Mapping[str, Schema]
) -> Iterator[tuple[str, pa.Schema]]:
    """Yield the columns of the objects of each variant, with what their names have for it; first the main one.

    :raises ConfigError: as `decodings`, of the main variant. Another variant that has no columns has no objects either.
    """
    division = _Division(settings, topic, decoded, schemas)
    for variant in range(division.count):
        try:
            columns = columns_of(settings, division.decodings(variant), topic)
        except ConfigError:
            if variant == MAIN:
                raise
        else:
            yield division.suffix(variant), columns


class _Division:
    """Divides the records of a topic by the schemas of a plan, and decodes those of each variant."""

    def __init__(
        self, settings: Settings, topic: str, decoded: Sequence[TopicSchemas], schemas: Mapping[str, Schema]
    ) -> None:
        self._settings, self._topic, self._schemas = settings, topic, schemas
        self._decoded = [of_topic for of_topic in decoded if of_topic.topic == topic]
        self._filing = {of_topic.column: _Filing(of_topic) for of_topic in self._decoded if of_topic.main}

    @property
    def count(self) -> int:
        """The number of variants."""
        return prod(len(filing.schemas) for filing in self._filing.values())

    def variants(self, batch: pa.RecordBatch) -> Int64s | None:
        """Return the variant of each record; None: there is one variant."""
        if not self._filing:
            return None
        variants = np.full(batch.num_rows, MAIN)
        for filing in self._filing.values():
            variants = variants * len(filing.schemas) + filing.places(batch)
        return variants

    def suffix(self, variant: int) -> str:
        """Return what the names of a variant's objects have for its schemas."""
        return "".join(filing.suffix(place) for filing, place in self._places(variant).values())

    def decodings(self, variant: int) -> list[ColumnDecoding]:
        """Return how the records of a variant are decoded. Raises ConfigError as `decodings`."""
        places = self._places(variant)
        own = [places[s.column][0].alone(places[s.column][1]) if s.column in places else s for s in self._decoded]
        return decodings(self._settings, self._topic, own, self._schemas)

    def _places(self, variant: int) -> dict[str, tuple["_Filing", int]]:
        """Return, by column, the place of the variant's schema."""
        places = {}
        for name, filing in reversed(self._filing.items()):
            variant, place = divmod(variant, len(filing.schemas))
            places[name] = filing, place
        return dict(reversed(places.items()))


class _Filing:
    """The filing of a topic's keys or values by schema. `schemas`: fingerprints; the main one is the first."""

    def __init__(self, decoded: TopicSchemas) -> None:
        self._decoded = decoded
        self.schemas = sorted(decoded.written, key=lambda fingerprint: fingerprint != decoded.main)
        places = {fingerprint: place for place, fingerprint in enumerate(self.schemas)}
        self._ids = SchemaIds.of(decoded)
        self._by_id = {writer.id: places[writer.written_as] for writer in decoded.writers}

    def places(self, batch: pa.RecordBatch) -> Int64s:
        """The place of each record's schema in `schemas`; 0 if the plan does not name it."""
        data = self._ids.framed(batch)[0] if self._ids else batch.column(self._decoded.column)
        ids, rows = np.unique(schema_ids(data), return_inverse=True)
        return np.array([self._by_id.get(number, 0) for number in ids.tolist()], np.int64)[rows]

    def suffix(self, place: int) -> str:
        """The schema in the names of objects: its smallest id."""
        if place == MAIN:
            return ""
        ids = [number for number, filed_place in self._by_id.items() if filed_place == place and number is not None]
        return f"+{_LETTERS[self._decoded.column]}{min(ids)}"

    def alone(self, place: int) -> TopicSchemas:
        """The plan's schemas as those of one place see them. The main one names all, for messages about unknown ids."""
        schema = self.schemas[place]
        writers = [writer for writer in self._decoded.writers if place == MAIN or writer.written_as == schema]
        written = tuple(writer.model_copy(update={"written_as": schema}) for writer in writers)
        return self._decoded.model_copy(update={"writers": written, "main": None})


class RejectAll:
    """Rejects all records."""

    def __init__(self, reason: str) -> None:
        self._reason = reason

    def __call__(self, batch: pa.RecordBatch, marks: Marks) -> pa.RecordBatch:
        marks.reject(dict.fromkeys(column(batch, "offset").tolist(), self._reason))
        return batch
