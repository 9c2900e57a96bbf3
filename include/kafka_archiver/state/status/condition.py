"""The present findings about an archive: the same answer for `status`, `doctor` and any page.

It uses the planner's own functions (look, policies), so it shows exactly what would stop the next run.
"""

import shlex
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from functools import cached_property

from kafka_archiver.context.archive_context import Context
from kafka_archiver.context.line import Line, read_line
from kafka_archiver.messages.actions import command
from kafka_archiver.messages.advice import meanings, once, run_now, validate
from kafka_archiver.messages.errors import PolicyError, TransientError
from kafka_archiver.model.findings import Finding, problem, warning
from kafka_archiver.model.marks import Mark
from kafka_archiver.model.plan import PartitionPlan
from kafka_archiver.model.progress import Progress
from kafka_archiver.planning.beginnings import beginnings_or_errors, policy_errors
from kafka_archiver.planning.handover import check_handover, live_members_message
from kafka_archiver.planning.partition_state import Beginning, Known, PartitionState
from kafka_archiver.planning.survey import (
    TRIES,
    OvertakenError,
    refuse_hidden_topics,
    survey_once,
    unsettled_partition_plans,
)
from kafka_archiver.state.status.damage import of_audit
from kafka_archiver.state.status.facts import Facts
from kafka_archiver.state.status.running import of_runs
from kafka_archiver.state.status.standing import Standing, of_records, run_at_place, split_accepted
from kafka_archiver.state.status.unread import of_unread_topics
from kafka_archiver.values.documents import isoformat
from kafka_archiver.values.ranges import Range, TopicPartition

# Brokers end a transaction after a quarter of an hour, where nobody has told them otherwise.
TOO_LONG = timedelta(hours=1)


@dataclass(frozen=True)
class Observed:
    """An archive in the ledger and the brokers. `expected`: the progress once everything planned is settled."""

    line: Line
    expected: Progress
    partitions: list[PartitionState]

    @cached_property
    def known(self) -> Known:
        """The coverage of settled and planned runs, by partition."""
        return {p.name: p for p in self.expected.partitions}

    @cached_property
    def settled(self) -> Known:
        """The coverage of settled runs, by partition."""
        return {p.name: p for p in self.line.settled.partitions}

    @cached_property
    def planned(self) -> Mapping[TopicPartition, list[PartitionPlan]]:
        """The plans of each partition in runs that are not settled, in the order of the line."""
        return unsettled_partition_plans(self.line)

    @cached_property
    def forward(self) -> Mapping[TopicPartition, list[PartitionPlan]]:
        """The same of runs that move the group."""
        return unsettled_partition_plans(self.line, forward=True)


def observe(context: Context) -> Observed:
    """Ask the ledger and the brokers as a planner does, but without waiting for open transactions.

    :raises TransientError: runs were faster at every try, or the brokers do not answer.
    """
    source = context.archive.source.model_copy(update={"settle": 0.0})
    at_once = replace(context, archive=context.archive.model_copy(update={"source": source}))
    left = TRIES
    while True:
        line = read_line(context)
        expected = line.expected(context.ledger)
        try:
            return Observed(line, expected, survey_once(at_once, line, expected).states)
        except OvertakenError:
            left -= 1
            if not left:
                raise


def condition(context: Context, observed: Observed, facts: Facts) -> Standing:
    """Return all findings, problems first, and what somebody has accepted."""
    of_ledger = without_brokers(context, observed.line, facts, lag_of(context, observed))
    unread = split_accepted(context.ledger, of_unread_topics(context, observed.line))
    findings = [*of_brokers(context, observed), *of_ledger.open, *unread.open]
    by_severity = sorted(findings, key=lambda finding: finding.severity != "problem")
    return Standing(tuple(by_severity), (*of_ledger.accepted, *unread.accepted))


def without_brokers(context: Context, line: Line, facts: Facts, lag: int | None = None) -> Standing:
    """Return what the ledger and Airflow alone show.

    :param lag: the number of offsets that wait; None: unknown.
    """
    archive = context.archive.archive
    return split_accepted(
        context.ledger,
        (
            *of_audit(context.ledger, line.settled.settled, facts.audit_paused),
            *of_records(archive, line.settled, run_at_place(context.ledger)),
            *of_runs(archive, facts, line, lag, context.clock()),
        ),
    )


def open_findings(context: Context, facts: Facts) -> tuple[Finding, ...]:
    """Return the findings that wait for a person's decision; without those of the brokers if they do not answer."""
    line = read_line(context)
    findings = without_brokers(context, line, facts).open
    with suppress(TransientError):
        findings += split_accepted(context.ledger, of_unread_topics(context, line)).open
    return tuple(finding for finding in findings if finding.name)


def waits(context: Context, observed: Observed) -> dict[TopicPartition, Range]:
    """Return the offsets of each log that no settled run has; all of a log that is no longer the archived one."""
    begins = beginnings_or_errors(context.archive, observed.partitions, observed.known)
    waiting = {}
    for state in observed.partitions:
        start = max(_position(observed, state, begins[state.name]), state.log_start)
        waiting[state.name] = Range(min(start, state.log_end), state.log_end)
    return waiting


def lag_of(context: Context, observed: Observed) -> int:
    """Return the number of offsets that wait, over all partitions."""
    return sum(waiting.size for waiting in waits(context, observed).values())


def _position(observed: Observed, state: PartitionState, begin: Beginning | PolicyError) -> int:
    """Return the offset up to which a log is archived, in the generation that the next run continues."""
    settled, expected = observed.settled.get(state.name), observed.known.get(state.name)
    if isinstance(begin, PolicyError):
        if begin.policy == "recreated_topic":
            return 0
    elif expected and begin.generation > expected.generation:
        return begin.start
    if settled:
        waiting = observed.planned.get(state.name, [])
        if begun := [p.start for p in waiting if p.generation > settled.generation]:
            return begun[0]
        if settled.next is not None:
            return settled.next
    if first := observed.forward.get(state.name):
        # The first run is planned, and nothing is settled.
        return first[0].start
    if state.committed is None and isinstance(begin, Beginning):
        # Nothing is planned: `source.start` says where the first run begins.
        return begin.start
    return state.committed or 0


def of_brokers(context: Context, observed: Observed) -> Iterator[Finding]:
    """Yield the findings that would stop the next run, or that a policy will decide."""
    archive, partitions, known = context.archive, observed.partitions, observed.known
    if members := context.cluster.members(archive.group):
        yield problem(
            "group in use",
            live_members_message(archive.group, members),
            command(context.cluster.tools.list_members(archive.group)),
        )
    try:
        check_handover(context, partitions, known)
    except PolicyError as error:
        yield problem(
            "handover", error.message, command(context.cluster.tools.list_members(archive.source.old_group or ""))
        )
    try:
        refuse_hidden_topics(context, observed.expected, partitions)
    except PolicyError as error:
        yield problem("topic gone", error.message, command(context.cluster.tools.list_topics()))
    stops = policy_errors(archive, partitions, known)
    choices = {stop.policy: stop.choice for stop in stops}
    for stop in stops:
        actions = stop.actions
        if len(choices) > 1:
            # A run with only one choice would stop at the next policy.
            actions = (once(archive.archive, choices), *(action for action in actions if action.kind != "run"))
        yield problem(_name(stop.policy), _with_choices(stop.message, meanings(actions)), *actions)
    decided = (
        d
        for b in beginnings_or_errors(archive, partitions, known).values()
        if isinstance(b, Beginning)
        for d in b.decided
    )
    for decision in dict.fromkeys(decided):
        applies = f"{decision}; the archive's policies apply this at the next run"
        yield warning(_name(decision.policy), applies, run_now(archive.archive))
    yield from of_transactions(partitions, observed.expected.marks, context.clock())
    yield from _other_cluster(context, observed.line)


def _with_choices(observed: str, means: str) -> str:
    return f"{observed.rstrip('.')}. Choices: {means}" if means else observed


def _other_cluster(context: Context, line: Line) -> Iterator[Finding]:
    last_plan, cluster_id = context.ledger.planned(line.last), context.cluster.cluster_id()
    if not last_plan or last_plan.cluster_id == cluster_id:
        return
    kafka = context.archive.source.kafka
    yield warning(
        "other cluster",
        f"run {last_plan.run} was planned on cluster {last_plan.cluster_id}, but the Kafka connection now leads to "
        f"cluster {cluster_id}, whose offsets mean other records. Correct `bootstrap.servers` in the connection; if "
        "Kafka was moved, give the archive a new name and prefix",
        command(f"airflow connections get {shlex.quote(kafka)}")
        if isinstance(kafka, str)
        else validate(context.archive.archive),
    )


def _name(policy: str) -> str:
    return policy.replace("_", " ")


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
