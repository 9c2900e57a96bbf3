"""Forecast a restore, and make its target ready or refuse it, before the plan is frozen."""

import logging
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from kafka_archiver.kafka.cluster import Cluster
from kafka_archiver.kafka.target_facts import gather_facts
from kafka_archiver.ledger.ledger import Ledger
from kafka_archiver.messages.wording import count
from kafka_archiver.model.findings import Finding
from kafka_archiver.model.restore import RestoreSource
from kafka_archiver.model.restore_request import RestoreRequest
from kafka_archiver.model.snapshots import TopicSnapshot
from kafka_archiver.model.target_facts import TopicDemand
from kafka_archiver.reader.runs import Plans
from kafka_archiver.work.restore.exact import NotExactError
from kafka_archiver.work.restore.gather import gather
from kafka_archiver.work.restore.groups import snapshot_of_topics
from kafka_archiver.work.restore.partition_writer import TRANSACTIONAL_ID
from kafka_archiver.work.restore.plan import group_of, require_exact
from kafka_archiver.work.restore.preflight import creation, judge, require, settings_of_source

log = logging.getLogger(__name__)


def prepare(
    ledger: Ledger,
    cluster: Cluster,
    request: RestoreRequest,
    sources: Sequence[RestoreSource],
    through: int,
    create: bool = False,
) -> list[Finding]:
    """Create missing topics if that is wanted, and judge the target. Returns the warnings.

    :param through: the number of the last plan that counts.
    :raises PolicyError: the target is not ready, with all reasons and remedies.
    """
    demands = demands_of(ledger, request, sources, through)
    group = group_of(ledger.archive, request.restore)
    names = [demand.topic for demand in demands]
    facts = gather_facts(cluster, names, group, TRANSACTIONAL_ID)
    missing = [demand for demand in demands if demand.topic not in facts.topics]
    if missing and create:
        for demand in missing:
            planned = creation(demand, facts.brokers)
            log.info("creating topic %s with %d partitions", planned.topic, planned.partitions)
            cluster.create_topic(planned.topic, planned.partitions, planned.replication, planned.settings)
            if planned.later:
                # Not by itself: with the source's retention the brokers would remove what was just restored.
                log.info("%s", settings_of_source(planned, cluster.tools))
        facts = gather_facts(cluster, names, group, TRANSACTIONAL_ID)
    findings = judge(demands, facts, request.options, datetime.now(UTC))
    require(findings)
    return [finding for finding in findings if finding.severity == "warning"]


def demands_of(
    ledger: Ledger, request: RestoreRequest, sources: Sequence[RestoreSource], through: int
) -> list[TopicDemand]:
    """Return the needs of a restore in each topic of the target."""
    snapshot = snapshot_of_topics(ledger, through)
    snapshots = {known.topic: known for known in snapshot.topics} if snapshot else {}
    demands = []
    for topic in request.selection.topics:
        own = [source for source in sources if source.topic == topic]
        partitions = frozenset(source.partition for source in own)
        same = request.partitioner == "same"
        count = max(partitions, default=0) + 1 if same else 1
        oldest = [source.oldest for source in own if source.oldest is not None and source.oldest >= 0]
        newest = [source.newest for source in own if source.newest is not None and source.newest >= 0]
        demands.append(
            TopicDemand(
                topic=request.target_of(topic),
                partitions=count,
                # By the key, any partition may get records.
                written=partitions if same else frozenset(range(1_000_000)),
                oldest=min(oldest, default=None),
                newest=max(newest, default=None),
                largest=largest_of(snapshots.get(topic)),
                snapshot=snapshots.get(topic),
            )
        )
    return demands


def largest_of(snapshot: TopicSnapshot | None) -> int | None:
    """Return the largest record that the source's topic took, if it had a setting of its own; None: unknown."""
    largest = snapshot.settings.get("max.message.bytes") if snapshot else None
    return int(largest) if largest else None


def known_topics(ledger: Ledger) -> list[str]:
    """Return the topics that an archive has, sorted."""
    plans = Plans(ledger)
    planned = {partition.topic for plan in plans.unsettled for partition in plan.partitions}
    adoption = ledger.adoption()
    adopted = {partition.topic for partition in adoption.partitions} if adoption else set()
    return sorted({partition.topic for partition in plans.progress.partitions} | planned | adopted)


@dataclass(frozen=True)
class Forecast:
    """The sources with their counts; the findings about the target; why it would not be exact (empty: it would)."""

    sources: tuple[RestoreSource, ...]
    findings: tuple[Finding, ...]
    refused: str

    @property
    def exact(self) -> bool:
        """Return True if the manifests alone tell the counts."""
        return all(source.exact for source in self.sources)

    def problems(self, create: bool) -> list[Finding]:
        """Return what the target lacks.

        :param create: the restore creates missing topics.
        """
        problems = (finding for finding in self.findings if finding.severity == "problem")
        return [finding for finding in problems if not (create and finding.kind == "topic missing")]

    def lines(self, request: RestoreRequest) -> Iterator[str]:
        """Yield what a restore would take, a line for each topic."""
        most = "" if self.exact else "at most "
        for topic in request.selection.topics:
            own = [source for source in self.sources if source.topic == topic]
            records, size = sum(source.records for source in own), sum(source.bytes for source in own)
            letters, filtered = (sum(getattr(source, name) for source in own) for name in ("dead_letters", "filtered"))
            notes = [f"{letters:,} of them dead letters"] if letters else []
            notes += [f"{filtered:,} offsets were filtered and are not in the archive"] if filtered else []
            also = f" ({'; '.join(notes)})" if notes else ""
            yield (
                f"{topic} to {request.target_of(topic)}: {most}{count(records, 'record')} of "
                f"{count(len(own), 'partition')}, from {size:,} bytes of objects{also}"
            )


def forecast(ledger: Ledger, cluster: Cluster, request: RestoreRequest) -> Forecast:
    """Return what a request would take now. Reads the ledger and asks the target, but reads no object.

    :raises ConfigError: nothing is selected, or a topic is unknown.
    """
    gathered = gather(ledger, request.selection)
    sources = tuple(source for source, _ in gathered.sources())
    demands = demands_of(ledger, request, sources, gathered.through)
    group = group_of(ledger.archive, request.restore)
    facts = gather_facts(cluster, [demand.topic for demand in demands], group, TRANSACTIONAL_ID)
    refused = ""
    try:
        require_exact(sources, request.options)
    except NotExactError as error:
        refused = str(error)
    return Forecast(sources, tuple(judge(demands, facts, request.options, datetime.now(UTC))), refused)
