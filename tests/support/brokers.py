"""Brokers that answer from what a test writes down, as :class:`~kafka_archiver.kafka.cluster.Cluster` would."""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from kafka_archiver.kafka.cluster import Topic
from kafka_archiver.ranges import Range, TopicPartition


@dataclass
class Brokers:
    """One log a partition: `[start, end)`, one record an hour since `first` (whole hours since 1970)."""

    logs: dict[TopicPartition, Range]
    first: int
    group: dict[TopicPartition, int] = field(default_factory=dict)
    failure: Exception | None = None
    settings: dict[str, str] = field(default_factory=dict)
    live: list[str] = field(default_factory=list)
    brokers: str = "broker:9092"

    def __call__(self, _: Mapping[str, str]) -> "Brokers":
        """Stands for the class, too: every client is this one."""
        return self

    def cluster_id(self) -> str:
        return "a-cluster"

    def size(self) -> int:
        if self.failure:
            raise self.failure
        return 3

    def topic_settings(self, topics: Iterable[str]) -> dict[str, dict[str, str]]:
        return dict.fromkeys(topics, self.settings)

    def topics(self, wanted: Any) -> list[Topic]:
        if self.failure:
            raise self.failure
        counts: dict[str, int] = {}
        for name in self.logs:
            counts[name.topic] = counts.get(name.topic, 0) + 1
        return [Topic(name, f"id-of-{name}", count) for name, count in sorted(counts.items()) if name in wanted]

    def topic_ids(self, names: Collection[str]) -> dict[str, str | None]:
        there = {topic.name: topic.id for topic in self.topics(names)}
        return {name: there.get(name) for name in names}

    def members(self, group: str) -> list[str]:
        return self.live

    def committed(self, group: str, names: Iterable[TopicPartition]) -> dict[TopicPartition, int | None]:
        return {name: self.group.get(name) for name in names}

    def move_group(self, group: str, offsets: Mapping[TopicPartition, int]) -> None:
        self.group.update(offsets)

    def log_starts(self, names: Iterable[TopicPartition]) -> dict[TopicPartition, int]:
        return {name: self.logs[name].start for name in names}

    def log_ends(self, names: Iterable[TopicPartition], isolation: str) -> dict[TopicPartition, int]:
        return {name: self.logs[name].end for name in names}

    def offsets_at(
        self, names: Iterable[TopicPartition], milliseconds: int, isolation: str
    ) -> dict[TopicPartition, int | None]:
        offset = max(0, -(-milliseconds // 3_600_000) - self.first)
        return {n: max(offset, self.logs[n].start) if offset < self.logs[n].end else None for n in names}

    def latest_times(self, names: Iterable[TopicPartition]) -> dict[TopicPartition, int]:
        return {n: (self.first + self.logs[n].end - 1) * 3_600_000 if self.logs[n].end else -1 for n in names}

    def first_timestamp(self, name: TopicPartition, offsets: Range, seconds: float = 10.0) -> int | None:
        return (self.first + offsets.start) * 3_600_000 if offsets.size else None
