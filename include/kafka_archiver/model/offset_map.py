"""The offset map of a restore: at which offset of the target each restored record of the source stands. Pure.

A run is `[source start, count, target start]`: records that follow each other in both logs. A compacted topic, or one
with transactions of one record, may lack every second offset: then a bitmap takes the place of many runs, so that a
million offsets of the source never need more than about 250 kB.
"""

from bisect import bisect_right
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Annotated, Literal, NamedTuple, Self, TypeAlias

from pydantic import AfterValidator

from kafka_archiver.model.plan import Offset
from kafka_archiver.model.restore import SourcePartition
from kafka_archiver.values.documents import ArchiveDocument, PartitionValue, Value
from kafka_archiver.values.gaps import Bitmap, unpack
from kafka_archiver.values.ranges import TopicPartition

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    Offsets: TypeAlias = npt.NDArray[np.int64]
    Runs: TypeAlias = npt.NDArray[np.int64]


class Run(NamedTuple):
    """Records that follow each other without a gap in the source and in the target."""

    source: int
    length: int
    target: int

    @classmethod
    def of_row(cls, row: "Offsets") -> Self:
        return cls(*row.tolist())


def _proper(run: tuple[int, int, int]) -> Run:
    source, length, target = run
    if source < 0 or length < 1 or target < 0:
        raise ValueError(f"a run needs a source start >= 0, a count >= 1 and a target start >= 0, got {list(run)}")
    return Run(source, length, target)


class Scattered(Value):
    """Records with many gaps between their source offsets, and none between their target offsets.

    `start`, `end`: of the source. `offsets`: a bit for each of them, set for a restored record. `target`: where the
    first one stands.
    """

    start: Offset
    end: Offset
    target: Offset
    offsets: Bitmap

    @property
    def ranges(self) -> "Offsets":
        """The source offsets, as rows of `start, end`."""
        return unpack(self.start, self.end, self.offsets)

    @property
    def rows(self) -> "Runs":
        """The same records as runs: source, length and target in each row."""
        import numpy as np

        ranges = self.ranges
        lengths = ranges[:, 1] - ranges[:, 0]
        return np.column_stack((ranges[:, 0], lengths, self.target + np.cumsum(lengths) - lengths))

    def target_of(self, offset: int) -> int:
        """The target offset of the first record at or behind a source offset below `end`."""
        before = self.ranges.clip(max=offset)
        return self.target + int((before[:, 1] - before[:, 0]).sum())


Piece: TypeAlias = Annotated[tuple[int, int, int], AfterValidator(_proper)] | Scattered


def _bounds(piece: Piece) -> tuple[int, int]:
    if isinstance(piece, Scattered):
        return piece.start, piece.end
    source, count, _ = piece
    return source, source + count


def _targets(piece: Piece) -> tuple[int, int]:
    if isinstance(piece, Scattered):
        return piece.target, piece.target_of(piece.end)
    _, count, target = piece
    return target, target + count


def _ascending(pieces: tuple[Piece, ...]) -> tuple[Piece, ...]:
    source = target = 0
    for piece in pieces:
        start, source_end = _bounds(piece)
        first, target_end = _targets(piece)
        if start < source or first < target:
            raise ValueError(f"the run that begins at source offset {start} overlaps the one before it")
        source, target = source_end, target_end
    return pieces


class LogMap(PartitionValue):
    """The map from one log of the source to one partition of the target.

    `end`: the target offset behind the last record that the restore wrote to the partition, or at which it would have
    begun.
    """

    generation: Offset = 0
    target_topic: str
    target_partition: Offset
    end: Offset
    runs: Annotated[tuple[Piece, ...], AfterValidator(_ascending)] = ()

    @property
    def source(self) -> SourcePartition:
        return SourcePartition(topic=self.topic, partition=self.partition, generation=self.generation)

    @property
    def target(self) -> TopicPartition:
        return TopicPartition(self.target_topic, self.target_partition)

    @property
    def plain_runs(self) -> Iterator[Run]:
        """Its runs, also those that are packed."""
        for piece in self.runs:
            if isinstance(piece, Scattered):
                yield from map(Run.of_row, piece.rows)
            else:
                yield Run(*piece)

    @property
    def count(self) -> int:
        """The number of restored records."""
        return sum(run.length for run in self.plain_runs)

    @property
    def first(self) -> int | None:
        """The source offset of the first restored record; None if none was restored."""
        return _bounds(self.runs[0])[0] if self.runs else None

    @property
    def behind(self) -> int | None:
        """The source offset behind the last restored record; None if none was restored."""
        return _bounds(self.runs[-1])[1] if self.runs else None

    def translate(self, offset: int) -> int:
        """The target offset of the first restored record at or behind a source offset; `end` if there is none."""
        place = bisect_right(self.runs, offset, key=lambda piece: _bounds(piece)[0]) - 1
        if place >= 0:
            piece = self.runs[place]
            if offset < _bounds(piece)[1]:
                if isinstance(piece, Scattered):
                    return piece.target_of(offset)
                source, _, target = piece
                return target + offset - source
        return _targets(self.runs[place + 1])[0] if place + 1 < len(self.runs) else self.end


class OffsetMap(ArchiveDocument):
    """The offset map of one restore: for each log of the source and each partition of the target that has its records.

    `plan_digest`: of the restore's plan. `cluster_id`: the target's.
    """

    document: Literal["kafka-archiver/offset-map"] = "kafka-archiver/offset-map"
    restore: str
    plan_digest: str
    cluster_id: str
    logs: tuple[LogMap, ...]

    def translate(self, offsets: Mapping[SourcePartition, int]) -> dict[TopicPartition, int]:
        """The target offsets of a reader that has read each log of the source up to an offset.

        A partition of the target may have records of several logs: the reader goes on at the first record that it has
        not read, and reads some of the other logs' a second time. A log without an offset counts as not read, unless
        no log of the partition has one: then the partition is not in the result.
        """
        targets: dict[TopicPartition, list[LogMap]] = {}
        for log in self.logs:
            targets.setdefault(log.target, []).append(log)
        return {
            target: min(log.translate(offsets.get(log.source, 0)) for log in logs)
            for target, logs in targets.items()
            if any(log.source in offsets for log in logs)
        }
