"""Shows what a run of an interval would archive, without archiving it."""

from collections.abc import Sequence

from pydantic import Field

from kafka_archiver.context.archive_context import Context
from kafka_archiver.context.line import Line, read_line
from kafka_archiver.messages.actions import Action
from kafka_archiver.messages.errors import ArchiverError
from kafka_archiver.model.plan import Plan
from kafka_archiver.planning.beginnings import policy_errors
from kafka_archiver.planning.survey import survey
from kafka_archiver.values.documents import Value
from kafka_archiver.values.intervals import Interval
from kafka_archiver.work.plan.interval_plan import Origin, propose


class Preview(Value):
    """The plan that an interval has, or would get now. `chunks`: units of work, and of objects.

    `exists`: the interval has this plan already. `next_run_stops_at`: only then; without a plan, the preview fails.
    `actions`: what lets it go on. `finished_first`: the unfinished runs that a run would finish before its own.
    """

    archive: str
    run: str
    exists: bool
    offsets: int
    chunks: int
    policies_triggered: tuple[str, ...]
    next_run_stops_at: tuple[str, ...]
    actions: tuple[Action, ...] = Field(default=(), exclude=True)
    finished_first: tuple[str, ...]
    plan: Plan


def preview(context: Context, interval: Interval, origin: Origin) -> Preview:
    """Ask the ledger and, where there is no plan yet, the brokers. Writes nothing.

    :raises PolicyError: the brokers' state needs a person's decision.
    """
    existing = context.ledger.current(interval.id)
    plan = existing or propose(context, interval, origin)
    line = read_line(context)
    stops = _errors_of_next_run(context, line) if existing else []
    return Preview(
        archive=context.archive.archive,
        run=plan.run,
        exists=existing is not None,
        offsets=plan.count,
        chunks=sum(1 for _ in plan.chunks()),
        policies_triggered=tuple(decided for p in plan.partitions for decided in p.decided),
        next_run_stops_at=tuple(map(str, stops)),
        actions=tuple(dict.fromkeys(action for stop in stops for action in stop.actions)),
        finished_first=tuple(earlier.run for earlier in line.unfinished if earlier.run != plan.run),
        plan=plan,
    )


def _errors_of_next_run(context: Context, line: Line) -> Sequence[ArchiverError]:
    try:
        expected = line.expected(context.ledger)
        states = survey(context, line, expected).states
    except ArchiverError as error:
        return [error]
    return policy_errors(context.archive, states, {p.name: p for p in expected.partitions})
