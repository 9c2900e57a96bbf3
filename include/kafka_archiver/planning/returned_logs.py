"""Logs that were archived before another log of their name: the connection has named another cluster for a while."""

from collections.abc import Iterable, Sequence

from kafka_archiver.context.archive_context import Context
from kafka_archiver.messages.errors import PolicyError
from kafka_archiver.model.plan import Plan
from kafka_archiver.planning.partition_state import Known, PartitionState
from kafka_archiver.values.ranges import TopicPartition
from kafka_archiver.values.threads import each


def refuse_returned_logs(context: Context, last: int, states: Sequence[PartitionState], known: Known) -> None:
    """Refuse to archive a log from its start that an earlier generation has: its hours would have records twice.

    Reads the whole line, but only if a topic has another id than the ledger knows.

    :param last: the number of the last plan.
    :raises PolicyError: a plan of the line has offsets of such a log that Kafka still has.
    """
    ids = {(p.topic, p.topic_id) for p in known.values()}
    topics = {p.topic for p in known.values()}
    changed = {s.name: s for s in states if s.name.topic in topics and (s.name.topic, s.topic_id) not in ids}
    if not changed:
        return

    def reached(number: int) -> list[tuple[TopicPartition, int, str]]:
        plan = context.ledger.planned(number)
        return [*_reached(plan, changed.values())] if plan else []

    ends: dict[TopicPartition, tuple[int, str]] = {}
    for some in each(reached, range(1, last + 1)):
        for name, end, run in some:
            ends[name] = max(ends.get(name, (0, "")), (end, run))
    for name, (end, run) in ends.items():
        if end > changed[name].log_start:
            raise PolicyError(_message(context, changed[name], end, run), kinds=("recreated topic",))


def _reached(plan: Plan, states: Iterable[PartitionState]) -> Iterable[tuple[TopicPartition, int, str]]:
    ids = {state.name: state.topic_id for state in states}
    for planned in plan.partitions:
        if planned.ranges and ids.get(planned.name) == planned.topic_id:
            yield planned.name, planned.ranges[-1][1], plan.run


def _message(context: Context, state: PartitionState, end: int, run: str) -> str:
    archive = context.archive
    return (
        f"{state.name} is the log of topic id {state.topic_id} again, which was archived up to {end} (run {run}) "
        "before another one came between: the Kafka connection has led to another cluster for a while. A new "
        "generation would archive its records a second time, in hours that are complete. Correct the connection if it "
        "is wrong now. To go on with this log, begin another archive with another `store.url` and "
        f"`source.start: group:{archive.group}`: it begins where this archive has left the group on this cluster"
    )
