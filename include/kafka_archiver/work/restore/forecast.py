"""A forecast of a restore: its extent, and what the target lacks for it. Writes nothing."""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime

from kafka_archiver.kafka.cluster import Cluster
from kafka_archiver.kafka.target_facts import gather_facts
from kafka_archiver.ledger.ledger import Ledger
from kafka_archiver.messages.wording import count
from kafka_archiver.model.findings import Finding
from kafka_archiver.model.restore import RestoreSource
from kafka_archiver.model.restore_request import RestoreRequest
from kafka_archiver.work.restore.exact import NotExactError
from kafka_archiver.work.restore.gather import gather
from kafka_archiver.work.restore.partition_writer import TRANSACTIONAL_ID
from kafka_archiver.work.restore.plan import group_of, require_exact
from kafka_archiver.work.restore.preflight import judge
from kafka_archiver.work.restore.prepare import demands_of


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
