"""The environments of the model test: twins in memory, or real servers with the twin of Kafka beside them."""

import re
import time
import uuid
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Protocol

import pyarrow as pa

from kafka_archiver.kafka.cluster import Cluster
from kafka_archiver.kafka.reader import read_chunk
from kafka_archiver.model.plan import Chunk
from kafka_archiver.model.settings import Settings
from kafka_archiver.store import Store, memory, open_store
from kafka_archiver.values.intervals import from_ms
from scripts.stack.kafka import Kafka
from scripts.stack.s3 import S3
from tests.support.actors import Read
from tests.support.kafka_mirror import KafkaMirror
from tests.support.kafka_twin import KafkaTwin
from tests.support.three_broker_mirror import ThreeBrokerMirror
from tests.support.three_brokers import ThreeBrokers
from tests.support.topics import DAY, HOUR


class World(Protocol):
    """The environment of a model."""

    twin: KafkaTwin
    cluster: Any
    store: Store
    read: Read
    prefix: str
    epoch: int

    def choose_etags(self, kind: str) -> None:
        """The store's ETags: MD5s, foreign, or "neither": foreign, in a store without checksums."""

    def close(self) -> None:
        """Remove the data of the sequence."""


@dataclass
class TwinWorld:
    """Both twins: Kafka and the store in this process."""

    clock: Callable[[], int]
    prefix: str = ""
    epoch: int = DAY

    def __post_init__(self) -> None:
        self.twin = self.cluster = KafkaTwin(self.clock)
        self._name = uuid.uuid4().hex
        self.store: Store = memory.MemoryStore(self._name, clock=lambda: from_ms(self.clock()))
        self.read: Read = self.twin.read_chunk

    def choose_etags(self, kind: str) -> None:
        memory.MemoryStore(self._name, foreign_etags=kind != "MD5s", checksums=kind != "neither")

    def close(self) -> None:
        memory._buckets.pop(self.store.url.removeprefix("memory://"), None)


class Clocked:
    """A store with the clock of the model."""

    def __init__(self, inner: Store, clock: Callable[[], int]) -> None:
        self._inner, self._clock = inner, clock

    def now(self) -> datetime:
        return from_ms(self._clock())

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)


class RealWorld:
    """A real broker and a real S3 server."""

    def __init__(self, kafka: Kafka | ThreeBrokers, s3: S3, clock: Callable[[], int]) -> None:
        tag = f"model-{uuid.uuid4().hex[:12]}"
        self.prefix = f"{tag}-"
        # Control records have the broker's time; some intervals are before it, some after it.
        self.epoch = (time.time_ns() // 1_000_000 // HOUR - 3) * HOUR
        self.twin = self._mirror(kafka, clock)
        self.store: Any = Clocked(open_store(f"s3://{s3.bucket}/{tag}", s3.options()), clock)

    @staticmethod
    def _mirror(kafka: Any, clock: Callable[[], int]) -> KafkaMirror:
        return KafkaMirror(kafka.bootstrap_servers, clock)

    def choose_etags(self, kind: str) -> None:
        """Do nothing: a real server's ETags are fixed."""

    @property
    def brokers(self) -> str:
        """The brokers that the archiver knows."""
        return self.twin.brokers

    @property
    def cluster(self) -> Cluster:
        return self.twin.cluster

    def read(self, chunk: Chunk, settings: Settings) -> Iterator[pa.RecordBatch]:
        return read_chunk({"bootstrap.servers": self.brokers}, f"{self.prefix}g", chunk, settings, patience=5)

    def close(self) -> None:
        for topic in self.twin.topics(re.compile(re.escape(self.prefix) + ".*")):
            self.twin.delete_topic(topic.name)


class ThreeBrokerWorld(RealWorld):
    """Three real brokers, of which one may be cut off, and a real S3 server.

    The archiver's clients begin with all brokers or, every other time, with the one that may be cut off.
    """

    twin: ThreeBrokerMirror
    _clients = 0

    @staticmethod
    def _mirror(kafka: Any, clock: Callable[[], int]) -> KafkaMirror:
        return ThreeBrokerMirror(kafka, clock)

    @property
    def brokers(self) -> str:
        self._clients += 1
        return self.twin.servers.first if self._clients % 2 else self.twin.servers.bootstrap_servers

    @property
    def cluster(self) -> Cluster:
        return Cluster({"bootstrap.servers": self.brokers})

    def close(self) -> None:
        self.twin.heal()
        super().close()
