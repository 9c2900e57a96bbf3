"""The twin of Kafka as the target of a restore: transactional writers with fencing, and what may happen to them."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa

from kafka_archiver.kafka.groups import Position
from kafka_archiver.kafka.target import as_columns
from kafka_archiver.messages.errors import FencedError, UncertainError
from kafka_archiver.model.plan import Chunk
from kafka_archiver.model.settings import Isolation, Settings
from kafka_archiver.values.ranges import Range, TopicPartition
from tests.support.kafka_twin import KafkaTwin
from tests.support.topics import Record


class TwinTarget:
    """A twin with the interface of `work.restore.target.Target`."""

    def __init__(self, twin: KafkaTwin) -> None:
        self.twin = twin
        # By transactional id, the number of the last writer.
        self.epochs: dict[str, int] = {}

    def writer(self, transactional_id: str, name: TopicPartition) -> "TwinWriter":
        self.twin.log(name)
        self.epochs[transactional_id] = self.epochs.get(transactional_id, 0) + 1
        self.twin.end_transaction(transactional_id, commit=False)
        return TwinWriter(self, transactional_id, name, self.epochs[transactional_id])

    def progress(self, group: str, name: TopicPartition) -> Position | None:
        return self.twin.positions(group, [name])[name]

    def ends(self, name: TopicPartition) -> tuple[int, int]:
        log = self.twin.log(name)
        return log.end("read_committed"), log.high

    def topic_id(self, topic: str) -> str | None:
        return self.twin.topic_ids([topic])[topic]

    def read(self, name: TopicPartition, offsets: Range, isolation: Isolation) -> Iterator[pa.RecordBatch]:
        if offsets.size:
            place = {"topic": name.topic, "partition": name.partition, "generation": 0}
            chunk = Chunk(**place, start=offsets.start, end=offsets.end)
            settings = Settings(content="record", isolation=isolation)
            for batch in self.twin.read_chunk(chunk, settings):
                yield as_columns(batch, name)

    def count(self, name: TopicPartition, ranges: Sequence[Range]) -> int:
        return sum(batch.num_rows for offsets in ranges for batch in self.read(name, offsets, "read_uncommitted"))


@dataclass
class TwinWriter:
    """A transactional producer of one partition."""

    target: TwinTarget
    transactional_id: str
    name: TopicPartition
    epoch: int
    offsets: list[int] = field(default_factory=list)

    def send(self, batch: pa.RecordBatch) -> None:
        self._require_epoch()
        for row in batch.to_pylist():
            headers = [(header["key"], header["value"]) for header in row["headers"]]
            record = Record(self.name.partition, row["timestamp"], row["value"], row["key"], headers)
            self.offsets.append(self.target.twin.log(self.name).high)
            self.target.twin.produce(self.name.topic, [record], self.transactional_id)

    def commit(self, group: str, stamp: str) -> Range:
        self._require_epoch()
        written = Range(self.offsets[0], self.offsets[-1] + 1)
        self.target.twin.reset_group(group, {self.name: written.end}, stamp)
        self.target.twin.end_transaction(self.transactional_id, commit=True)
        self.offsets.clear()
        return written

    def close(self) -> None:
        if self.offsets and self.target.epochs[self.transactional_id] == self.epoch:
            self.target.twin.end_transaction(self.transactional_id, commit=False)
        self.offsets.clear()

    def _require_epoch(self) -> None:
        if self.target.epochs[self.transactional_id] != self.epoch:
            raise FencedError(f"another attempt writes {self.name} now")


class KilledError(BaseException):
    """The process has ended: nothing of it runs any more."""


@dataclass
class Fate:
    """The fate of one call. `how`: kill, kill after, lost before, lost after (an answer), or meanwhile."""

    how: str
    meanwhile: Callable[[], object] = lambda: None


class FatedTarget:
    """A target at whose calls something happens; also at those of its writers. `fates`: by the number of the call."""

    CALLS = frozenset({"writer", "progress", "ends", "topic_id", "read", "count", "send", "commit", "close"})

    def __init__(self, inner: Any, fates: Mapping[int, Fate]) -> None:
        self.inner, self.fates, self.calls = inner, fates, list[str]()

    def __getattr__(self, name: str) -> Any:
        return self.fated(self.inner, name)

    def fated(self, inner: Any, name: str) -> Any:
        call = getattr(inner, name)
        if name not in self.CALLS:
            return call

        def fated_call(*args: Any) -> Any:
            fate = self.fates.get(len(self.calls))
            self.calls.append(name)
            if fate and fate.how == "kill":
                raise KilledError
            if fate and fate.how == "lost before" and name in ("send", "commit", "writer"):
                raise UncertainError("no answer")
            if fate and fate.how == "meanwhile":
                fate.meanwhile()
            answer = call(*args)
            if name == "read":
                answer = iter(list(answer))
            if fate and fate.how == "kill after":
                raise KilledError
            if fate and fate.how == "lost after" and name in ("send", "commit", "writer"):
                raise UncertainError("no answer")
            return _FatedWriter(self, answer) if name == "writer" else answer

        return fated_call


@dataclass
class _FatedWriter:
    target: FatedTarget
    inner: Any

    def send(self, batch: pa.RecordBatch) -> None:
        self.target.fated(self.inner, "send")(batch)

    def commit(self, group: str, stamp: str) -> Range:
        written: Range = self.target.fated(self.inner, "commit")(group, stamp)
        return written

    def close(self) -> None:
        self.inner.close()
