"""Which losses explain that an hour is incomplete, and whether a person can accept them by name. Pure."""

from collections.abc import Iterable, Sequence

from kafka_archiver.values.documents import UtcTime, Value
from kafka_archiver.values.intervals import to_hour

# Causes of one progress. Of more, the first two become one, which takes the acceptance of the later.
MOST_CAUSES = 16


class LossCause(Value):
    """Hours before `until` may lack records that are gone.

    `lost_by`: the run, by its number, that recorded them as lost: whoever accepts the losses up to that run accepts
    these. None: nobody can accept them by name, as nobody knows what there was.
    """

    until: UtcTime
    lost_by: int | None = None

    @property
    def is_recorded(self) -> bool:
        """True if a person can accept it."""
        return self.lost_by is not None


def fewest_causes(causes: Iterable[LossCause]) -> tuple[LossCause, ...]:
    """Return the causes that tell for each hour the last one that concerns it: by run, the later ones end earlier."""
    kept: list[LossCause] = []
    for cause in sorted(causes, key=_by_run):
        kept = [*(earlier for earlier in kept if earlier.until > cause.until), cause]
    while len(kept) > MOST_CAUSES:
        first, second, *others = kept
        kept = [second.model_copy(update={"until": first.until}), *others]
    return tuple(kept)


def explained_by(causes: Sequence[LossCause], hour: int, lost_rows_by: int = 0) -> int:
    """Return the run up to which all losses must be accepted, so that nothing else makes an incomplete hour incomplete.

    0: no loss concerns the hour, or one that nobody can accept.

    :param lost_rows_by: the run by which objects of this hour were recorded as lost, or a later one; 0: none was.
    """
    concerning = [cause for cause in causes if hour < to_hour(cause.until)]
    runs = [cause.lost_by for cause in concerning if cause.lost_by is not None]
    return max([*runs, lost_rows_by]) if len(runs) == len(concerning) else 0


def _by_run(cause: LossCause) -> tuple[bool, int, UtcTime]:
    return not cause.is_recorded, cause.lost_by or 0, cause.until
