"""Transactions that nobody ends: what is behind them may not be read, and no hour closes. Pure."""

from collections.abc import Iterable, Iterator
from datetime import datetime, timedelta

from kafka_archiver.messages.actions import command
from kafka_archiver.model.findings import Finding, problem
from kafka_archiver.model.marks import Mark
from kafka_archiver.planning.partition_state import PartitionState
from kafka_archiver.values.documents import isoformat
from kafka_archiver.values.ranges import TopicPartition

# Brokers end a transaction after a quarter of an hour, where nobody has told them otherwise.
TOO_LONG = timedelta(hours=1)


def of_transactions(partitions: Iterable[PartitionState], marks: Iterable[Mark], moment: datetime) -> Iterator[Finding]:
    """Yield the transactions that were open when a planner looked, longer ago than they should be, and still are.

    :param marks: what planners saw, and no run has yet.
    """
    open_offsets: dict[TopicPartition, list[tuple[int, datetime]]] = {}
    for mark in marks:
        for topic, partition, _, offset in mark.high:
            open_offsets.setdefault(TopicPartition(topic, partition), []).append((offset, mark.as_of))
    for state in partitions:
        waiting = [as_of for offset, as_of in open_offsets.get(state.name, ()) if state.log_end < offset <= state.high]
        if waiting and moment - min(waiting) > TOO_LONG:
            yield _held_back(state, min(waiting))


def _held_back(state: PartitionState, since: datetime) -> Finding:
    name = state.name
    return problem(
        "open transaction",
        f"a transaction that was open at {isoformat(since)} still holds back {state.high - state.log_end:,} offsets of "
        f"{name} from {state.log_end} on: no run may read them, no hour closes, and retention may be faster. Brokers "
        "should end one after `transaction.timeout.ms`; one that has no producer any more hangs for ever",
        command(state.tools.describe_producers(*name)),
        command(state.tools.abort_transaction(*name, state.log_end)),
    )
