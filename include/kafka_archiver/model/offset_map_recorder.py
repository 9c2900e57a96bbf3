"""Record the offset map of a restore while its records are written or read back: the runs, packed as they end. Pure."""

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Self

from kafka_archiver.model.offset_map import Piece, Run, Scattered
from kafka_archiver.values.gaps import Bitmap, pack

if TYPE_CHECKING:
    from kafka_archiver.model.offset_map import Offsets, Runs

# Runs are packed for each stretch of so many offsets of the source.
_WINDOW = 1 << 20


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
            yield from map(Run.of_row, scattered)
    yield Run.of_row(rows[-1])
