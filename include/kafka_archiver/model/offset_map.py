"""The offset map of a restore: at which offset of the target each restored record of the source stands. Pure.

A run is `[source start, count, target start]`: records that follow each other in both logs. A compacted topic, or one
with transactions of one record, may lack every second offset: then a bitmap takes the place of many runs, so that a
million offsets of the source never need more than about 250 kB.
"""

from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Annotated, Literal, NamedTuple, Self, TypeAlias

from pydantic import AfterValidator, Field

from kafka_archiver.model.restore import SourcePartition
from kafka_archiver.values.documents import Document, Value
from kafka_archiver.values.gaps import Bitmap, pack, unpack
from kafka_archiver.values.ranges import TopicPartition

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    Offsets: TypeAlias = npt.NDArray[np.int64]
    Runs: TypeAlias = npt.NDArray[np.int64]

Offset = Annotated[int, Field(ge=0)]
# Runs are packed for each stretch of so many offsets of the source.
_WINDOW = 1 << 20
CSV_COLUMNS = (
    "source_topic", "source_partition", "source_generation", "source_start", "count",
    "target_topic", "target_partition", "target_start",
)  # fmt: skip


class Run(NamedTuple):
    """Records that follow each other without a gap in the source and in the target."""

    source: int
    length: int
    target: int


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


class LogMap(Value):
    """The map from one log of the source to one partition of the target.

    `end`: the target offset behind the last record that the restore wrote to the partition, or at which it would have
    begun.
    """

    topic: str
    partition: Offset
    generation: Offset = 0
    target_topic: str
    target_partition: Offset
    end: Offset
    runs: Annotated[tuple[Piece, ...], AfterValidator(_ascending)] = ()

    @property
    def source(self) -> SourcePartition:
        """The log of the source."""
        return SourcePartition(topic=self.topic, partition=self.partition, generation=self.generation)

    @property
    def target(self) -> TopicPartition:
        """The partition of the target."""
        return TopicPartition(self.target_topic, self.target_partition)

    @property
    def plain_runs(self) -> Iterator[Run]:
        """Its runs, also those that are packed."""
        for piece in self.runs:
            if isinstance(piece, Scattered):
                yield from map(_run, piece.rows)
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


class OffsetMap(Document):
    """The offset map of one restore: for each log of the source and each partition of the target that has its records.

    `plan_digest`: of the restore's plan. `cluster_id`: the target's.
    """

    document: Literal["kafka-archiver/offset-map"] = "kafka-archiver/offset-map"
    version: Literal[1] = 1
    archive: str
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

    def csv_rows(self) -> Iterator[tuple[str | int, ...]]:
        """The rows of its CSV, in the order of `CSV_COLUMNS`: one for each run."""
        for log in self.logs:
            for run in log.plain_runs:
                yield (
                    log.topic, log.partition, log.generation, run.source, run.length,
                    log.target_topic, log.target_partition, run.target,
                )  # fmt: skip


class RunRecorder:
    """Collects the runs of one log's map while its records are written or read back, in order.

    It keeps at most one window of runs unpacked.
    """

    def __init__(self) -> None:
        self._packed: list[Piece] = []
        # Rows of a run each: source, length, target. Only the last run of all may still grow.
        self._ended: list[Runs] = []
        self._last: Run | None = None

    def extend(self, sources: "Offsets", targets: "Offsets") -> None:
        """Add the records of a batch: their source offsets and their target offsets.

        :raises ValueError: they do not stand behind the last ones, or behind each other, in both logs.
        """
        import numpy as np

        if not len(sources):
            return
        source_steps, target_steps = np.diff(sources), np.diff(targets)
        if len(back := np.flatnonzero((source_steps < 1) | (target_steps < 1))):
            row = int(back[0])
            before = Run(int(sources[row]), 1, int(targets[row]))
            raise _step_back(before, int(sources[row + 1]), int(targets[row + 1]))
        starts = np.concatenate([[0], np.flatnonzero((source_steps != 1) | (target_steps != 1)) + 1])
        lengths = np.diff(np.append(starts, len(sources)))
        self._add(np.column_stack((sources[starts], lengths, targets[starts])))

    def add(self, source: int, target: int, length: int = 1) -> None:
        """Add records that follow each other without a gap. Raises as `extend`."""
        import numpy as np

        self._add(np.array([(source, length, target)], np.int64))

    def _add(self, rows: "Runs") -> None:
        import numpy as np

        first, last = Run(*rows[0].tolist()), self._last
        if last:
            if first.source < last.source + last.length or first.target < last.target + last.length:
                raise _step_back(last, first.source, first.target)
            if first.source - last.source == first.target - last.target == last.length:
                rows[0] = last._replace(length=last.length + first.length)
            else:
                self._ended.append(np.array([last], np.int64))
        if len(rows) > 1:
            self._ended.append(rows[:-1])
        self._last = Run(*rows[-1].tolist())
        self._pack(self._last.source // _WINDOW)

    def _pack(self, window: int) -> None:
        """Pack the runs that begin before a window."""
        import numpy as np

        if not self._ended or self._ended[0][0, 0] // _WINDOW >= window:
            return
        ended = np.concatenate(self._ended)
        complete = int(np.searchsorted(ended[:, 0], window * _WINDOW))
        self._packed += _pieces(ended[:complete])
        self._ended = [ended[complete:]] if complete < len(ended) else []

    @property
    def runs(self) -> tuple[Piece, ...]:
        """The runs so far, packed."""
        import numpy as np

        last = [] if self._last is None else [np.array([self._last], np.int64)]
        rows = [*self._ended, *last]
        return (*self._packed, *(_pieces(np.concatenate(rows)) if rows else ()))

    @classmethod
    def after(cls, runs: Iterable[Piece]) -> Self:
        """Return a recorder that goes on behind these runs."""
        recorder = cls()
        for piece in runs:
            recorder._add(piece.rows if isinstance(piece, Scattered) else _one_row(piece))
        return recorder


def _step_back(before: Run, source: int, target: int) -> ValueError:
    return ValueError(
        f"the record at source offset {source} stands at {target}, and the one before it, at "
        f"{before.source + before.length - 1}, stands at {before.target + before.length - 1}"
    )


def _one_row(piece: tuple[int, int, int]) -> "Runs":
    import numpy as np

    return np.array([piece], np.int64)


def _pieces(rows: "Runs") -> Iterator[Piece]:
    """Pack the runs of each window that follow each other in the target."""
    import numpy as np

    follows = rows[1:, 2] == rows[:-1, 2] + rows[:-1, 1]
    same_window = rows[1:, 0] // _WINDOW == rows[:-1, 0] // _WINDOW
    begins = np.concatenate([[0], np.flatnonzero(~(follows & same_window)) + 1]).tolist()
    for begin, end in zip(begins, [*begins[1:], len(rows)], strict=True):
        yield from _packed(rows[begin:end])


def _packed(rows: "Runs") -> Iterator[Piece]:
    """Pack runs without gaps in the target, if a bitmap is shorter. The last run, which may be long, stays a run."""
    import numpy as np

    scattered = rows[:-1]
    if len(scattered):
        ranges = np.column_stack((scattered[:, 0], scattered[:, 0] + scattered[:, 1]))
        start, end = int(ranges[0, 0]), int(ranges[-1, 1])
        bits = pack(start, end, ranges)
        if isinstance(bits, Bitmap):
            yield Scattered(start=start, end=end, target=int(rows[0, 2]), offsets=bits)
        else:
            yield from map(_run, scattered)
    yield _run(rows[-1])


def _run(row: "Offsets") -> Run:
    return Run(*row.tolist())
