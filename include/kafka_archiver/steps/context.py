"""What every step works with."""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Self

from kafka_archiver.config import Archive
from kafka_archiver.kafka.cluster import Cluster
from kafka_archiver.ledger import Ledger
from kafka_archiver.store import Store, open_store


@dataclass(frozen=True, slots=True)
class Endpoints:
    """Addresses and credentials of the brokers and the store, resolved from Airflow's connections.

    `kafka`: librdkafka's client properties. `store`: the options of :func:`~kafka_archiver.store.open_store`.
    Credentials are kept out of `repr`; they travel to the Spark job in its environment, never as arguments.
    """

    kafka: Mapping[str, str] = field(repr=False)
    store: Mapping[str, str] = field(repr=False)

    def to_json(self) -> str:
        """For the environment of the Spark job."""
        return json.dumps({"kafka": dict(self.kafka), "store": dict(self.store)})

    @classmethod
    def from_json(cls, text: str) -> Self:
        """What `to_json` wrote."""
        return cls(**json.loads(text))


def _now() -> datetime:
    return datetime.now(UTC)


@dataclass(frozen=True, slots=True)
class Context:
    """One archive with its brokers, its store and its ledger. `clock`: this machine's, UTC."""

    archive: Archive
    cluster: Cluster
    store: Store
    ledger: Ledger
    clock: Callable[[], datetime] = _now

    @classmethod
    def open(cls, archive: Archive, endpoints: Endpoints) -> Self:
        """Connect. Nothing is asked of the brokers or the store yet."""
        store = open_store(archive.store.url, endpoints.store)
        return cls(archive, Cluster(endpoints.kafka), store, Ledger(store, archive.archive))
