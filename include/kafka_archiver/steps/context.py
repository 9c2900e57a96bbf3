"""What every step works with."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Self

from kafka_archiver.config import Archive
from kafka_archiver.job import Endpoints
from kafka_archiver.ledger import Ledger
from kafka_archiver.store import Store, open_store

if TYPE_CHECKING:
    # It loads Kafka's client, and Airflow parses all day what only names a context.
    from kafka_archiver.kafka.cluster import Cluster


def connect(properties: Mapping[str, str]) -> "Cluster":
    """The brokers; nothing is asked of them yet."""
    from kafka_archiver.kafka.cluster import Cluster

    return Cluster(properties)


def _now() -> datetime:
    return datetime.now(UTC)


@dataclass(frozen=True, slots=True)
class Context:
    """One archive with its brokers, its store and its ledger. `clock`: this machine's, UTC."""

    archive: Archive
    cluster: "Cluster"
    store: Store
    ledger: Ledger
    clock: Callable[[], datetime] = _now

    @classmethod
    def open(cls, archive: Archive, endpoints: Endpoints) -> Self:
        """Connect. Nothing is asked of the brokers or the store yet."""
        store = open_store(archive.store.url, endpoints.store)
        return cls(archive, connect(endpoints.kafka), store, Ledger(store, archive.archive))
