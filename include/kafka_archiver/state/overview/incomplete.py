"""The incomplete hours of the last days, from their proofs. Nothing is read if there can be none."""

from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import groupby

from kafka_archiver.ledger.ledger import Ledger
from kafka_archiver.messages.advice import fill, last_hours
from kafka_archiver.messages.errors import DocumentError
from kafka_archiver.model.findings import Finding, ok, warning
from kafka_archiver.model.loss_causes import explained_by
from kafka_archiver.model.object_keys import hour_document
from kafka_archiver.model.progress import Progress
from kafka_archiver.model.reasons import split_reason
from kafka_archiver.model.stretches import Stretch, stretch_of
from kafka_archiver.state.coverage import ProofHead, ProofHeads
from kafka_archiver.state.status.standing import Standing, accepted_losses
from kafka_archiver.values.documents import UtcTime, Value
from kafka_archiver.values.intervals import hour_start, to_hour

# Closed hours that are looked at: what happened on a Friday evening is still there on Monday.
RECENT = 72
# Groups of hours that a message names.
_NAMED = 3


class IncompleteHour(Value):
    """An hour that is closed and incomplete, and the reason. `fillable`: it lacks only what Kafka may still have.

    `lost_by`: it lacks only what runs up to this one, by its number, have recorded as lost; 0: it lacks more, or nobody
    knows. `accepted`: a person has accepted that.
    """

    hour_start: UtcTime
    reason: str
    fillable: bool = False
    lost_by: int = 0
    accepted: bool = False


def incomplete_hours(ledger: Ledger, settled: Progress) -> tuple[IncompleteHour, ...]:
    """Read the incomplete ones of the last closed hours, oldest first. One small request for each that may be one."""
    if settled.closed_until is None:
        return ()
    end, heads = to_hour(settled.closed_until), ProofHeads()
    unsure_until = to_hour(settled.unsure_until) if settled.unsure_until else 0
    whole_from = to_hour(settled.whole_from) if settled.whole_from else 0
    maybe_unsure_until = to_hour(settled.unsure.until) if settled.unsure else 0
    # A lost object may be of any hour.
    last = end if settled.lost else min(end, max(maybe_unsure_until, whole_from))

    def look(hour: int) -> IncompleteHour | None:
        try:
            head = heads.read(ledger.store, hour_document(ledger.archive, hour), "")
        except DocumentError as error:
            return IncompleteHour(hour_start=hour_start(hour), reason=str(error))
        verdict = head or stretch_of(settled.stretches, hour)
        if verdict is None or verdict.status != "incomplete":
            return None
        is_lost = hour < unsure_until or (head is not None and head.lost_rows > 0)
        return IncompleteHour(
            hour_start=hour_start(hour),
            reason=verdict.reason or "",
            fillable=not is_lost and hour < whole_from,
            lost_by=_lost_by(settled, hour, verdict) if hour >= whole_from else 0,
        )

    with ThreadPoolExecutor(8) as pool:
        return tuple(filter(None, pool.map(look, range(max(end - RECENT, 0), last))))


def _lost_by(settled: Progress, hour: int, verdict: ProofHead | Stretch) -> int:
    """Return the last run that recorded as lost what an incomplete hour lacks; 0: that is not all that it lacks."""
    head = verdict if isinstance(verdict, ProofHead) else None
    if head and head.former_gone:
        return 0
    # The proof does not say which run lost its objects: the last loss of all, or the last run that changed the proof.
    has_lost_rows = head is not None and head.lost_rows > 0
    return explained_by(settled.causes, hour, min(verdict.number, settled.lost_by) if has_lost_rows else 0)


def with_acceptance(
    ledger: Ledger, hours: Iterable[IncompleteHour], settled: Progress, standing: Standing
) -> tuple[IncompleteHour, ...]:
    """Return the hours with whether somebody has accepted the losses behind them."""
    hours = tuple(hours)
    numbers = {hour.lost_by for hour in hours if hour.lost_by}
    accepted = max(accepted_losses(ledger, settled.lost_by, numbers, standing), default=0) if numbers else 0
    return tuple(hour.model_copy(update={"accepted": 0 < hour.lost_by <= accepted}) for hour in hours)


def of_hours(archive: str, hours: Iterable[IncompleteHour]) -> Iterable[Finding]:
    """Yield the warning that names those of these hours that nobody has accepted."""
    hours = [hour for hour in hours if not hour.accepted]
    if not hours:
        return
    named = [split_reason(archive, hour.reason).action for hour in hours]
    actions = [fill(archive)] if any(hour.fillable for hour in hours) else []
    actions += [action for action in dict.fromkeys(named) if action and action != fill(archive)]
    yield warning("incomplete hours", _names(archive, hours), *(actions or [last_hours(archive, RECENT)]))


def of_accepted_hours(archive: str, hours: Iterable[IncompleteHour]) -> Iterable[Finding]:
    """Yield what names the hours of which somebody has accepted the losses behind them."""
    if accepted := [hour for hour in hours if hour.accepted]:
        yield ok("incomplete hours", f"{_names(archive, accepted)}. Accepted with the loss")


def _names(archive: str, hours: Sequence[IncompleteHour]) -> str:
    """Return a sentence that names these hours."""
    groups = [list(group) for _, group in groupby(enumerate(hours), lambda at: (_since(at[1]) - at[0], at[1].reason))]
    named = [_named(archive, [hour for _, hour in group]) for group in groups]
    more = f"; and {len(named) - _NAMED} more" if len(named) > _NAMED else ""
    are = "is" if len(hours) == 1 else "are"
    return f"{len(hours)} of the last {RECENT} closed hours {are} incomplete: {'; '.join(named[-_NAMED:])}{more}"


def _since(hour: IncompleteHour) -> int:
    return to_hour(hour.hour_start)


def _named(archive: str, hours: Sequence[IncompleteHour]) -> str:
    end, lack = hour_start(_since(hours[-1]) + 1), split_reason(archive, hours[0].reason).lack
    return f"{hours[0].hour_start:%Y-%m-%d %H:%M} to {end:%Y-%m-%d %H:%M} UTC ({lack})"
