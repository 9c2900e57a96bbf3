"""Live: compare the ledger with the brokers' topics and group."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from kafka_archiver.audit.report import error, warning
from kafka_archiver.config import Archive
from kafka_archiver.context.archive_context import Context
from kafka_archiver.context.line import read_line
from kafka_archiver.kafka.cluster import Cluster
from kafka_archiver.ledger.ledger import Ledger
from kafka_archiver.messages.actions import Advice, advise
from kafka_archiver.messages.advice import run_now
from kafka_archiver.messages.policies import POLICIES
from kafka_archiver.model.findings import Finding
from kafka_archiver.model.progress import Progress
from kafka_archiver.planning.beginnings import advice_for_errors, beginnings_or_errors, policy_errors
from kafka_archiver.planning.partition_state import Beginning, Known, PartitionState
from kafka_archiver.planning.survey import survey_once
from kafka_archiver.store import Store
from kafka_archiver.values.ranges import Range

# Warn if the archive's position is within this share of the log from its start: retention will soon pass it.
NEAR = 0.1


def check_live(
    archive: Archive, partitions: Sequence[PartitionState], known: Known, first: Sequence[str] = ()
) -> Iterator[Finding]:
    """Yield what would stop the next run, what its policies would decide, and which offsets retention will soon remove.

    :param known: the progress of settled and planned runs, by partition.
    :param first: kinds of findings that stop every run, for any policy. Each advice to start a run names them.
    """
    stops = policy_errors(archive, list(partitions), known)
    several = len({stop.policy for stop in stops}) > 1
    for stop in stops:
        what_to_do = advice_for_errors(archive, stops) if several else Advice(stop.advice, stop.actions)
        policy = POLICIES[stop.policy]
        yield error(policy.finding, stop.where, stop.message.rstrip("."), policy.expected, after(first, what_to_do))
    for name, situation in beginnings_or_errors(archive, list(partitions), known).items():
        for decided in situation.decided if isinstance(situation, Beginning) else ():
            settles = f"Nothing: the next run applies policies.{decided.policy}: {decided.choice}"
            policy = POLICIES[decided.policy]
            yield warning(policy.finding, str(name), decided.observed, policy.expected, settles)
    first = [*first, *dict.fromkeys(POLICIES[stop.policy].finding for stop in stops)]
    for state in partitions:
        yield from _retention(archive, state, known, first)


def after(first: Sequence[str], what_to_do: Advice) -> Advice:
    """The advice to start a run, after the findings that stop every run."""
    if not first:
        return what_to_do
    kinds = ", ".join(f"`{kind}`" for kind in first)
    instruction = f"{what_to_do.text[0].lower()}{what_to_do.text[1:]}"
    return Advice(f"No run continues before {kinds} is solved. Then: {instruction}", what_to_do.actions)


def _retention(archive: Archive, state: PartitionState, known: Known, first: Sequence[str]) -> Iterator[Finding]:
    before = known.get(state.name)
    position = before.next if before else None
    if position is None or before is None or before.topic_id != state.topic_id:
        return
    waiting = Range(max(position, state.log_start), state.log_end)
    near = position - state.log_start < NEAR * (state.log_end - state.log_start)
    if state.log_start and waiting.size and position >= state.log_start and near:
        yield warning(
            "retention-near",
            f"{state.name} {waiting}",
            f"{waiting.size} offsets that are not archived; retention has reduced the log to "
            f"{Range(state.log_start, state.log_end)}",
            f"the archive more than {position - state.log_start} offsets ahead of the log's start",
            after(first, advise("Start a run now (", run_now(archive.archive), "), or increase the topic's retention")),
        )


def group_busy(archive: Archive, members: Sequence[str]) -> Iterator[Finding]:
    """Consumers in the archive's group: they stop planning."""
    if members:
        what_to_do = "Stop those consumers, or give the archive a group of its own (source.group)"
        actual = f"live members: {', '.join(members[:5])}"
        yield warning("group-busy", archive.group, actual, "no members in the archive's group", what_to_do)


def topics_gone(archive: Archive, progress: Progress, existing: Mapping[str, int]) -> Iterator[Finding]:
    """Archived topics or partitions that do not exist any more.

    :param existing: the existing topics, each with its number of partitions.
    """
    out = "exclude it in source.pattern" if archive.source.pattern else "remove it from source.topics"
    missing = f"Archived data stays. If the topic was deleted for good, {out}; else create it, or grant Describe, again"
    for partition in progress.partitions:
        if partition.partition >= existing.get(partition.topic, 0) and partition.next is not None:
            what = f"partition {partition.partition} in topic" if partition.topic in existing else "topic"
            yield warning(
                "topic-gone",
                str(partition.name),
                f"no {what} {partition.topic}",
                f"{partition.topic_id}, archived up to {partition.next}",
                "Archived data stays" if partition.topic in existing else missing,
            )


def ask_brokers(archive: Archive, cluster: Cluster, store: Store) -> list[Finding]:
    """Compare the ledger with the brokers."""
    context = Context(archive, cluster, store, Ledger(store, archive.archive))
    line = read_line(context)
    expected = line.expected(context.ledger)
    known = {p.topic for p in expected.partitions}
    declared = {*known, *(archive.source.topics or ())}
    existing = [topic for topic, topic_id in cluster.topic_ids(declared).items() if topic_id]
    partitions = {t.name: t.partitions for t in cluster.topics(existing)} if existing else {}
    findings = [
        *group_busy(archive, cluster.members(archive.group)),
        *topics_gone(archive, expected, partitions),
    ]
    # A topic with fewer partitions than before was recreated, which a policy decides.
    # Planning fails as long as a topic is missing that the YAML selects.
    gone = any(topic not in partitions for topic in declared if archive.source.selects(topic))
    first = [f.kind for f in findings if f.kind == "group-busy"] + ["topic-gone"] * gone
    if existing:
        states = survey_once(only(context, existing), line, expected).states
        findings += check_live(archive, states, {p.name: p for p in expected.partitions}, first)
    return findings


def only(context: Context, topics: list[str]) -> Context:
    """The archive with these topics only, which does not wait for transactions."""
    source = context.archive.source.model_copy(update={"topics": tuple(topics), "pattern": None, "settle": 0})
    return replace(context, archive=context.archive.model_copy(update={"source": source}))
