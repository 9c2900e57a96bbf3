"""The archive, brokers, store and ledger that every step works with."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Self

from kafka_archiver.config import Archive
from kafka_archiver.context.keyring import keyring_of
from kafka_archiver.context.local_spark import ask_spark
from kafka_archiver.jobs.endpoints import Endpoints
from kafka_archiver.ledger.ledger import Ledger
from kafka_archiver.store import Store, open_store

if TYPE_CHECKING:
    # Not at runtime: it loads Kafka's client, and Airflow parses modules that import this one all day.
    from kafka_archiver.kafka.cluster import Cluster
    from kafka_archiver.records.decode.schema_registry import Registry
    from kafka_archiver.records.pipeline.transform.questions import SqlAnswer, SqlQuestion


def connect(properties: Mapping[str, str]) -> "Cluster":
    """Return the brokers, without any request."""
    from kafka_archiver.kafka.cluster import Cluster

    return Cluster(properties)


def open_registry(properties: Mapping[str, str]) -> "Registry":
    """Return the schema registry, without any request."""
    from kafka_archiver.records.decode.schema_registry import Registry

    return Registry.of(properties)


def _utc_now() -> datetime:
    return datetime.now(UTC)


@dataclass(frozen=True, slots=True)
class Context:
    """One archive with its brokers, its store and its ledger.

    `clock`: this machine's time, UTC. `registry` opens the schema registry, which only planning needs; None: the
    archive names none. `keys`: the secret keys of transforms by name. `spark`: checks
    SQL.
    """

    archive: Archive
    cluster: "Cluster"
    store: Store
    ledger: Ledger
    clock: Callable[[], datetime] = _utc_now
    registry: "Callable[[], Registry] | None" = None
    keys: Mapping[str, str] = field(default_factory=dict, repr=False)
    spark: "Callable[[SqlQuestion], SqlAnswer]" = ask_spark

    @classmethod
    def open(
        cls, archive: Archive, endpoints: Endpoints, registry: Callable[[], Mapping[str, str]] | None = None
    ) -> Self:
        """Return the context of an archive, without any request to the brokers or the store.

        :param registry: gives the properties of the archive's registry, if it names one.
        """
        store = open_store(archive.store.url, endpoints.store)
        opener = None if registry is None else lambda: open_registry(registry())
        ledger = Ledger(store, archive.archive, keyring_of(endpoints))
        return cls(archive, connect(endpoints.kafka), store, ledger, registry=opener, keys=endpoints.keys)
