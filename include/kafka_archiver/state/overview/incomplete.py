"""The incomplete hours of the last days, from their proofs. Nothing is read if there can be none."""

from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import groupby

from kafka_archiver.ledger.ledger import Ledger
from kafka_archiver.messages.advice import fill, last_hours
from kafka_archiver.messages.errors import DocumentError
from kafka_archiver.model.findings import Finding, warning
from kafka_archiver.model.object_keys import hour_document
from kafka_archiver.model.progress import Progress
from kafka_archiver.model.stretches import stretch_of
from kafka_archiver.state.coverage import ProofHeads
from kafka_archiver.values.documents import UtcTime, Value
from kafka_archiver.values.intervals import hour_start, to_hour

# Closed hours that are looked at: what happened on a Friday evening is still there on Monday.
RECENT = 72
# Groups of hours that a message names.
_NAMED = 3


class IncompleteHour(Value):
    """An hour that is closed and incomplete, and the reason. `fillable`: it lacks only what Kafka may still have."""

    hour_start: UtcTime
    reason: str
    fillable: bool = False


def incomplete_hours(ledger: Ledger, settled: Progress) -> tuple[IncompleteHour, ...]:
    """Read the incomplete ones of the last closed hours, oldest first. One small request for each that may be one."""
    if settled.closed_until is None:
        return ()
    end, heads = to_hour(settled.closed_until), ProofHeads()
    bounds = [settled.unsure.until if settled.unsure else None, settled.whole_from]
    unsure = settled.if_ordered or settled.unsure
    unsure_until = to_hour(unsure.until) if unsure else 0
    whole_from = to_hour(bounds[1]) if bounds[1] else 0
    # A lost object may be of any hour.
    last = end if settled.lost else min(end, max((to_hour(bound) for bound in bounds if bound), default=0))

    def look(hour: int) -> IncompleteHour | None:
        try:
            head = heads.read(ledger.store, hour_document(ledger.archive, hour), "")
        except DocumentError as error:
            return IncompleteHour(hour_start=hour_start(hour), reason=str(error))
        verdict = head or stretch_of(settled.stretches, hour)
        if verdict is None or verdict.status != "incomplete":
            return None
        is_lost = hour < unsure_until or (head is not None and head.lost_rows > 0)
        fillable = not is_lost and hour < whole_from
        return IncompleteHour(hour_start=hour_start(hour), reason=verdict.reason or "", fillable=fillable)

    with ThreadPoolExecutor(8) as pool:
        return tuple(filter(None, pool.map(look, range(max(end - RECENT, 0), last))))


def of_hours(archive: str, hours: Sequence[IncompleteHour]) -> Iterable[Finding]:
    """Yield the warning that names these hours."""
    if not hours:
        return
    groups = [list(group) for _, group in groupby(enumerate(hours), lambda at: (_since(at[1]) - at[0], at[1].reason))]
    named = [_named([hour for _, hour in group]) for group in groups]
    more = f"; and {len(named) - _NAMED} more" if len(named) > _NAMED else ""
    are = "is" if len(hours) == 1 else "are"
    yield warning(
        "incomplete hours",
        f"{len(hours)} of the last {RECENT} closed hours {are} incomplete: {'; '.join(named[-_NAMED:])}{more}",
        *([fill(archive)] if any(hour.fillable for hour in hours) else [last_hours(archive, RECENT)]),
    )


def _since(hour: IncompleteHour) -> int:
    return to_hour(hour.hour_start)


def _named(hours: Sequence[IncompleteHour]) -> str:
    end = hour_start(_since(hours[-1]) + 1)
    return f"{hours[0].hour_start:%Y-%m-%d %H:%M} to {end:%Y-%m-%d %H:%M} UTC ({hours[0].reason})"
