"""Brokers with the answers that a test defines, in the place of :class:`~kafka_archiver.kafka.cluster.Cluster`."""

import re
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from kafka_archiver.kafka.first_records import FirstRecord, LogEnd
from kafka_archiver.kafka.groups import Position
from kafka_archiver.kafka.topics import Topic
from kafka_archiver.messages.kafka_tools import KafkaTools
from kafka_archiver.values.ranges import Range, TopicPartition


@dataclass
class Brokers:
    """One log `[start, end)` per partition, with one record an hour since `first` (whole hours since 1970)."""

    logs: dict[TopicPartition, Range]
    first: int
    group: dict[TopicPartition, int] = field(default_factory=dict)
    stamps: dict[TopicPartition, str] = field(default_factory=dict)
    failure: Exception | None = None
    settings: dict[str, str] = field(default_factory=dict)
    live: list[str] = field(default_factory=list)
    brokers: str = "broker:9092"
    leader_epoch: int = 0
    # The ids of recreated topics.
    ids: dict[str, str] = field(default_factory=dict)

    def __call__(self, _: Mapping[str, str]) -> "Brokers":
        """Replaces the class too: every client is this object."""
        return self

    @property
    def tools(self) -> KafkaTools:
        return KafkaTools(self.brokers)

    def cluster_id(self) -> str:
        return "a-cluster"

    def look_anew(self) -> None:
        """All brokers agree."""

    def size(self) -> int:
        if self.failure:
            raise self.failure
        return 3

    def topic_settings(self, topics: Iterable[str]) -> dict[str, dict[str, str]]:
        return dict.fromkeys(topics, self.settings)

    def own_settings(self, topics: Iterable[str]) -> dict[str, dict[str, str]]:
        return self.topic_settings(topics)

    def replication(self, topics: Collection[str]) -> dict[str, int]:
        return dict.fromkeys(topics, 3)

    def topics(self, selection: Any) -> list[Topic]:
        if self.failure:
            raise self.failure
        counts: dict[str, int] = {}
        for name in self.logs:
            counts[name.topic] = counts.get(name.topic, 0) + 1
        ids = {name: self.ids.get(name, f"id-of-{name}") for name in counts}
        return [Topic(name, ids[name], count) for name, count in sorted(counts.items()) if _is_wanted(name, selection)]

    def topic_ids(self, names: Collection[str]) -> dict[str, str | None]:
        ids = {topic.name: topic.id for topic in self.topics(names)}
        return {name: ids.get(name) for name in names}

    def members(self, group: str) -> list[str]:
        return self.live

    def committed(self, group: str, names: Iterable[TopicPartition]) -> dict[TopicPartition, int | None]:
        return {name: self.group.get(name) for name in names}

    def positions(self, group: str, names: Iterable[TopicPartition]) -> dict[TopicPartition, Position | None]:
        return {n: Position(self.group[n], self._stamp(n)) if n in self.group else None for n in names}

    def _stamp(self, name: TopicPartition) -> str:
        """The metadata of the commit; empty if a test has changed the offset since."""
        offset, _, stamp = self.stamps.get(name, "").partition(" ")
        return stamp if offset == str(self.group[name]) else ""

    def move_group(self, group: str, offsets: Mapping[TopicPartition, int], stamp: str = "") -> None:
        self.group.update(offsets)
        self.stamps.update({name: f"{offset} {stamp}" for name, offset in offsets.items()})

    def high_watermarks(self, names: Iterable[TopicPartition]) -> dict[TopicPartition, LogEnd]:
        return {name: LogEnd(self.logs[name].end, self.leader_epoch) for name in names}

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

    def first_records(
        self, starts: Mapping[TopicPartition, int], seconds: float = 10.0
    ) -> dict[TopicPartition, FirstRecord | None]:
        return {name: self._first(name, max(start, self.logs[name].start)) for name, start in starts.items()}

    def times_behind(
        self, places: Mapping[TopicPartition, Collection[int]], seconds: float = 10.0
    ) -> dict[TopicPartition, dict[int, int]]:
        offsets = {name: {o for place in of for o in range(place, place + 3)} for name, of in places.items()}
        return {n: {o: (self.first + o) * 3_600_000 for o in of if o in self.logs[n]} for n, of in offsets.items()}

    def truncated(
        self, ends: Mapping[TopicPartition, LogEnd], seconds: float = 10.0
    ) -> dict[TopicPartition, int | None]:
        return dict.fromkeys(ends)

    def _first(self, name: TopicPartition, offset: int) -> FirstRecord | None:
        if offset not in self.logs[name]:
            return None
        return FirstRecord(offset, (self.first + offset) * 3_600_000, self.leader_epoch, "")


def _is_wanted(name: str, selection: Any) -> bool:
    return bool(selection.fullmatch(name)) if isinstance(selection, re.Pattern) else name in selection
