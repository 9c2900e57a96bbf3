"""On what the model test runs: the twins in memory, or real servers with the twin of Kafka beside them."""

import re
import time
import uuid
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Protocol

import pyarrow as pa

from kafka_archiver.kafka.cluster import Cluster
from kafka_archiver.kafka.reader import read_chunk
from kafka_archiver.plan import Chunk, Settings
from kafka_archiver.store import Store, memory, open_store
from scripts.stack.kafka import Kafka
from scripts.stack.s3 import S3
from tests.support.interrupt import Read
from tests.support.kafka_mirror import KafkaMirror
from tests.support.kafka_twin import KafkaTwin
from tests.support.topics import DAY, HOUR


class World(Protocol):
    """What a model runs on."""

    twin: KafkaTwin
    cluster: Any
    store: Store
    read: Read
    prefix: str
    epoch: int

    def close(self) -> None:
        """Throw away what the sequence made."""


@dataclass
class TwinWorld:
    """Both twins: Kafka and the store in this process."""

    clock: Callable[[], int]
    prefix: str = ""
    epoch: int = DAY

    def __post_init__(self) -> None:
        self.twin = self.cluster = KafkaTwin(self.clock)
        self.store: Store = memory.MemoryStore(uuid.uuid4().hex)
        self.read: Read = self.twin.read_chunk

    def close(self) -> None:
        memory._buckets.pop(self.store.url.removeprefix("memory://"), None)


class RealWorld:
    """A real broker and a real S3 server."""

    def __init__(self, kafka: Kafka, s3: S3) -> None:
        tag = f"model-{uuid.uuid4().hex[:12]}"
        self.prefix = f"{tag}-"
        # Control records have the broker's time; some intervals are before it, some behind.
        self.epoch = (time.time_ns() // 1_000_000 // HOUR - 3) * HOUR
        self.twin = KafkaMirror(kafka.bootstrap_servers)
        self.store: Store = open_store(
            f"s3://{s3.bucket}/{tag}",
            {
                "endpoint_url": s3.endpoint_url,
                "region_name": s3.region,
                "aws_access_key_id": s3.owner.access_key,
                "aws_secret_access_key": s3.owner.secret_key,
            },
        )

    @property
    def cluster(self) -> Cluster:
        return self.twin.cluster

    def read(self, chunk: Chunk, settings: Settings) -> Iterator[pa.RecordBatch]:
        return read_chunk({"bootstrap.servers": self.twin.brokers}, f"{self.prefix}g", chunk, settings, patience=5)

    def close(self) -> None:
        for topic in self.twin.topics(re.compile(re.escape(self.prefix) + ".*")):
            self.twin.delete_topic(topic.name)
