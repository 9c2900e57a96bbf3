"""A forecast of a restore: its extent, and what the target lacks for it. Writes nothing."""

from dataclasses import dataclass
from datetime import UTC, datetime

from kafka_archiver.kafka.cluster import Cluster
from kafka_archiver.kafka.target_facts import gather_facts
from kafka_archiver.ledger.ledger import Ledger
from kafka_archiver.model.findings import Finding
from kafka_archiver.model.restore import RestoreSource
from kafka_archiver.model.restore_request import RestoreRequest
from kafka_archiver.work.restore.exact import NotExactError
from kafka_archiver.work.restore.gather import gather
from kafka_archiver.work.restore.plan import group_of, require_exact
from kafka_archiver.work.restore.preflight import judge
from kafka_archiver.work.restore.prepare import demands_of
from kafka_archiver.work.restore.write import TRANSACTIONAL_ID


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
