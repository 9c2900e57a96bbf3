"""Judge a target before the first record is written: what would refuse, change or remove records, and the remedy. Pure.

Each refusal names the value that the target has, the value that the restore needs, and the command that changes it.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from typing import NamedTuple

from kafka_archiver.messages.actions import Action, command, words
from kafka_archiver.messages.errors import PolicyError
from kafka_archiver.messages.kafka_tools import KafkaTools
from kafka_archiver.model.findings import Finding, problem, warning
from kafka_archiver.model.restore import RestoreOptions
from kafka_archiver.model.target_facts import TargetFacts, TopicCreation, TopicDemand, TopicFacts
from kafka_archiver.values.documents import isoformat
from kafka_archiver.values.intervals import from_ms, to_ms
from kafka_archiver.values.ranges import TopicPartition

_FOREVER = str(2**63 - 1)
# For the time of a restore: nothing is removed, and every timestamp is taken as it is.
SAFE = {
    "cleanup.policy": "delete",
    "retention.ms": "-1",
    "retention.bytes": "-1",
    "message.timestamp.type": "CreateTime",
    "message.timestamp.before.max.ms": _FOREVER,
    "message.timestamp.after.max.ms": _FOREVER,
}
# Records must stay at least until they are verified.
_MARGIN_MS = 3_600_000
# Of one cluster alone: they name its brokers, or belong to its vendor.
_NOT_COPIED = ("leader.replication.", "follower.replication.", "confluent.", "remote.")


def judge(
    demands: Iterable[TopicDemand], facts: TargetFacts, options: RestoreOptions, present: datetime
) -> list[Finding]:
    """Return what the target lacks. A problem refuses the restore, a warning does not.

    :param present: the time of the judgement.
    """
    findings = [*_rights(facts)]
    for demand in demands:
        topic = facts.topics.get(demand.topic)
        if topic is None:
            findings.append(_missing(demand, facts))
        else:
            findings += _of_topic(demand, topic, facts, options, to_ms(present))
    return findings


def require(findings: Sequence[Finding]) -> None:
    """Refuse the restore if there are problems.

    :raises PolicyError: with all of them, and the commands that help.
    """
    problems = [finding for finding in findings if finding.severity == "problem"]
    if not problems:
        return
    text = "; ".join(finding.text for finding in problems)
    actions = tuple(dict.fromkeys(action for finding in problems for action in finding.actions))
    count = f"{len(problems)} reasons" if len(problems) > 1 else "a reason"
    raise PolicyError(
        f"the target is not ready for this restore, for {count}: {text}. Nothing was written.",
        advice=" ".join(("Then run it again. To do:", "; ".join(map(_quoted, actions)))),
        actions=actions,
        kinds=tuple(dict.fromkeys(finding.kind for finding in problems)),
    )


def _quoted(action: Action) -> str:
    return f"`{action.command}`" if action.command else action.words


def creation(demand: TopicDemand, brokers: int) -> TopicCreation:
    """Return the topic to create: the source's partitions, replicas and settings, safe for the time of the restore.

    :param brokers: of the target; there cannot be more replicas.
    """
    source = demand.snapshot
    replication = min(source.replication if source else brokers, brokers, 3 if source is None else brokers)
    own = dict(source.settings) if source else {}
    copied = {name: value for name, value in own.items() if not name.startswith(_NOT_COPIED)}
    if int(copied.get("min.insync.replicas", "1")) > replication:
        copied["min.insync.replicas"] = str(replication)
    settings = {**copied, **SAFE}
    later = {name: copied.get(name) for name in SAFE if copied.get(name) != SAFE[name]}
    partitions = max(demand.partitions, source.partitions if source else 0)
    return TopicCreation(demand.topic, partitions, replication, dict(sorted(settings.items())), later)


def settings_of_source(creation: TopicCreation, tools: KafkaTools) -> Action:
    """Return the command that gives a created topic the source's settings, once the restore is over."""
    changed = {name: value for name, value in creation.later.items() if value is not None}
    removed = [name for name, value in creation.later.items() if value is None]
    return command(tools.set_topic(creation.topic, changed, removed), "once the restored records may be removed")


def _missing(demand: TopicDemand, facts: TargetFacts) -> Finding:
    planned = creation(demand, facts.brokers)
    create = facts.tools.create_topic(planned.topic, planned.partitions, planned.replication, planned.settings)
    return problem(
        "topic missing",
        f"the target has no topic {demand.topic}",
        command(create),
        subject=demand.topic,
        expected=f"a topic with {planned.partitions} partitions, or leave to create it",
    )


def _of_topic(
    demand: TopicDemand, topic: TopicFacts, facts: TargetFacts, options: RestoreOptions, present: int
) -> Iterator[Finding]:
    yield from _partitions(demand, topic, facts)
    yield from _empty(demand, topic, facts, options)
    yield from _topic_rights(topic, facts)
    if topic.settings is None:
        yield warning(
            "settings unknown",
            f"the credentials may not describe the settings of {topic.topic}: nobody knows if its retention, its "
            "timestamps and its largest record fit",
            command(facts.tools.allow(["DescribeConfigs"], "topic", topic.topic)),
            subject=topic.topic,
        )
        return
    judged = _Settings(demand, topic.settings, options)
    unfit = [*judged.times(present), *judged.removal(present), *judged.sizes(topic.replication)]
    # One command for all of them.
    changes = {name: value for each in unfit for name, value in each.change.items()}
    for each in unfit:
        yield problem(
            each.kind,
            f"{each.name} is {topic.settings.get(each.name)}, expected {each.expected}",
            command(facts.tools.set_topic(topic.topic, changes)),
            subject=topic.topic,
            expected=each.expected,
            means=each.means,
        )


def _partitions(demand: TopicDemand, topic: TopicFacts, facts: TargetFacts) -> Iterator[Finding]:
    if len(topic.logs) < demand.partitions:
        yield problem(
            "too few partitions",
            f"{topic.topic} has {len(topic.logs)} partitions",
            command(facts.tools.add_partitions(topic.topic, demand.partitions)),
            words("or choose the partition by the key: --partitioner murmur2"),
            subject=topic.topic,
            expected=f"at least {demand.partitions}: each record goes to the partition of its source",
        )


def _empty(demand: TopicDemand, topic: TopicFacts, facts: TargetFacts, options: RestoreOptions) -> Iterator[Finding]:
    full = {
        TopicPartition(topic.topic, number): log
        for number, log in enumerate(topic.logs)
        if log.size and number in demand.written
    }
    if full and not options.append:
        name, log = next(iter(full.items()))
        yield problem(
            "target not empty",
            f"{name} has offsets {log}" + f", and {len(full) - 1} more partitions have some" * (len(full) > 1),
            command(facts.tools.delete_topic(topic.topic), "if nobody needs its records"),
            words("or restore into another topic: --rename"),
            words("or behind its records: --append"),
            subject=topic.topic,
            expected="an empty topic",
        )


class _Unfit(NamedTuple):
    """A setting that would harm records. `means`: how. `change`: what helps."""

    kind: str
    name: str
    means: str
    expected: str
    change: Mapping[str, str]


class _Settings:
    """The settings of a topic, beside what the restore needs."""

    def __init__(self, demand: TopicDemand, settings: Mapping[str, str], options: RestoreOptions) -> None:
        self._demand, self._settings, self._options = demand, settings, options

    def times(self, present: int) -> Iterator[_Unfit]:
        """Judge which timestamps the brokers take."""
        if self._is_append_time:
            if not self._options.allows("timestamps"):
                name, means = "message.timestamp.type", "the brokers would replace every timestamp by their own time"
                yield _Unfit("broker's timestamps", name, means, "CreateTime", {name: "CreateTime"})
            return
        oldest, newest = self._demand.oldest, self._demand.newest
        for name in ("message.timestamp.before.max.ms", "message.timestamp.difference.max.ms"):
            if oldest is not None and present - oldest > self._number(name, 2**63 - 1):
                means = f"the brokers would refuse records as old as {_moment(oldest)}"
                yield _Unfit("old timestamps", name, means, f"{present - oldest:,} or more", {name: _FOREVER})
        for name in ("message.timestamp.after.max.ms", "message.timestamp.difference.max.ms"):
            if newest is not None and newest - present > self._number(name, 2**63 - 1):
                means = f"the brokers would refuse records as late as {_moment(newest)}"
                yield _Unfit("future timestamps", name, means, f"{newest - present:,} or more", {name: _FOREVER})

    def removal(self, present: int) -> Iterator[_Unfit]:
        """Judge which records the brokers would remove."""
        policies, oldest = set(self._settings.get("cleanup.policy", "delete").split(",")), self._demand.oldest
        kept = self._number("retention.ms", -1)
        expired = oldest is not None and kept >= 0 and oldest < present - kept + _MARGIN_MS and not self._is_append_time
        if "compact" in policies:
            means = "the brokers would remove records of equal keys, and refuse records without a key"
            # Without compaction, retention begins to count.
            change = {"cleanup.policy": "delete", "retention.ms": "-1"}
            yield _Unfit("compaction", "cleanup.policy", means, "delete", change)
        elif expired and oldest is not None:
            means = f"the brokers would remove records as old as {_moment(oldest)} at once"
            yield _Unfit("retention", "retention.ms", means, "-1", {"retention.ms": "-1"})
        if "delete" in policies and self._number("retention.bytes", -1) >= 0:
            means = "the brokers would remove the oldest records of a partition that grows beyond it"
            yield _Unfit("retention", "retention.bytes", means, "-1", {"retention.bytes": "-1"})

    def sizes(self, replication: int) -> Iterator[_Unfit]:
        """Judge which records are too large, and how many replicas must have them."""
        largest, name = self._demand.largest, "max.message.bytes"
        if largest is not None and largest > self._number(name, 2**63 - 1):
            means = "the brokers would refuse records that the source took"
            yield _Unfit("large records", name, means, f"{largest:,} or more", {name: str(largest)})
        name = "min.insync.replicas"
        if self._number(name, 1) > replication:
            means = f"the topic has {replication} replicas, so the brokers would refuse every record"
            yield _Unfit("replicas", name, means, f"at most {replication}", {name: str(replication)})

    @property
    def _is_append_time(self) -> bool:
        return self._settings.get("message.timestamp.type", "CreateTime") != "CreateTime"

    def _number(self, name: str, default: int) -> int:
        return int(self._settings.get(name, str(default)))


def _moment(milliseconds: int) -> str:
    return isoformat(from_ms(milliseconds))


def _topic_rights(topic: TopicFacts, facts: TargetFacts) -> Iterator[Finding]:
    lacking = {"WRITE": "Write", "READ": "Read"}
    missing = [name for key, name in lacking.items() if topic.operations is not None and key not in topic.operations]
    if missing:
        yield problem(
            "missing rights",
            f"the credentials may not {' and '.join(missing).lower()}",
            command(facts.tools.allow([*missing, "Describe"], "topic", topic.topic)),
            subject=topic.topic,
            expected="Write for the records, Read for their verification",
        )


def _rights(facts: TargetFacts) -> Iterator[Finding]:
    if facts.group_operations is not None and "READ" not in facts.group_operations:
        yield problem(
            "missing rights",
            f"the credentials may not read group {facts.group}, in which the restore keeps its progress",
            command(facts.tools.allow(["Read", "Describe"], "group", facts.group)),
            subject=facts.group,
            expected="Read on the group",
        )
    if facts.refused_transaction:
        yield problem(
            "missing rights",
            f"no transaction begins ({facts.refused_transaction})",
            command(
                facts.tools.allow(["Write", "Describe"], "transactional-id", facts.transactional_id, prefixed=True)
            ),
            command(facts.tools.allow(["IdempotentWrite"], "cluster", "")),
            subject=facts.transactional_id,
            expected="Write on the transactional ids that begin so",
        )
