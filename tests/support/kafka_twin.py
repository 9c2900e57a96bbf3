"""An in-memory twin of Kafka, with the interface of `Cluster` and the native reader, and for producers and operators.

It keeps every record for ever, also of deleted topics. Tests compare an archive with it.
"""

import itertools
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

import pyarrow as pa

from kafka_archiver.kafka.first_records import FirstRecord, LogEnd, crc32
from kafka_archiver.kafka.groups import Position
from kafka_archiver.kafka.topics import Topic
from kafka_archiver.messages.errors import PermanentError, PolicyError, TransientError
from kafka_archiver.messages.kafka_tools import KafkaTools
from kafka_archiver.model.plan import Chunk
from kafka_archiver.model.settings import Settings
from kafka_archiver.records.formats.base import RECORD, VALUE
from kafka_archiver.values.ranges import TopicPartition
from tests.support.topics import Record

BATCH = 3
# Offsets in a segment of a log.
SEGMENT = 4
_RECORD = pa.schema([RECORD.field(name) for name in RECORD.names if name not in ("topic", "partition")])


@dataclass(slots=True)
class Entry:
    """The entry at one offset, present or removed. A control record has no `record`.

    Times in milliseconds by the right clock: `appended`; `committed` (None: not yet, or aborted); `gone`: removed
    (None: still readable).
    """

    timestamp: int
    record: Record | None
    state: Literal["open", "committed", "aborted"]
    compacted: bool = False
    appended: int = 0
    committed: int | None = None
    gone: int | None = None
    leader_epoch: int = 0

    def was_there(self, moment: int, isolation: str) -> bool:
        """Return True if a consumer could read it at that moment."""
        since = self.appended if isolation == "read_uncommitted" else self.committed
        is_appended = since is not None and since <= moment and (self.gone is None or self.gone > moment)
        return is_appended and self.was_visible(isolation)

    def vanish(self, moment: int) -> None:
        """Mark it as removed, unless it was removed earlier."""
        self.gone = moment if self.gone is None else self.gone

    def visible(self, isolation: str) -> bool:
        """Return True if a consumer can read it, apart from retention."""
        return self.was_visible(isolation) and not self.compacted

    def was_visible(self, isolation: str) -> bool:
        """Return True if a consumer could read it, apart from retention and compaction."""
        return self.record is not None and (isolation == "read_uncommitted" or self.state == "committed")


@dataclass(eq=False)
class Log:
    """One partition of one topic id. The index of an entry is its offset."""

    entries: list[Entry] = field(default_factory=list)
    start: int = 0
    deleted: bool = False
    opened: dict[str, int] = field(default_factory=dict)
    leader_epoch: int = 0
    cut: list[Entry] = field(default_factory=list)

    @property
    def high(self) -> int:
        """The high watermark."""
        return len(self.entries)

    def end(self, isolation: str) -> int:
        """The last stable offset, or the high watermark."""
        stable = min(self.opened.values(), default=self.high)
        return max(self.start, stable) if isolation == "read_committed" else self.high

    def first_at(self, milliseconds: int) -> int | None:
        """The first offset with this timestamp or a later one, also of control and aborted records.

        Like a broker, it searches only the first segment with such a timestamp, even if that record is removed.
        """
        for base in range(0, self.high, SEGMENT):
            if base + SEGMENT <= self.start:
                continue
            offsets = [o for o in range(base, min(base + SEGMENT, self.high)) if not self.entries[o].compacted]
            later = [o for o in offsets if self.entries[o].timestamp >= milliseconds]
            if later:
                return next((o for o in later if o >= self.start), None)
        return None

    def end_of(self, epoch: int | None) -> int:
        """The end offset of this leader epoch and all earlier ones."""
        return next((o for o, e in enumerate(self.entries) if epoch is None or e.leader_epoch > epoch), self.high)

    def as_now(self) -> "Log":
        """Return what a leader that is cut off goes on to show: nothing that happens from now on."""
        return Log(list(self.entries), self.start, opened=dict(self.opened), leader_epoch=self.leader_epoch)

    @property
    def latest(self) -> int:
        """The latest timestamp in its segments, also of records removed from the first one; -1 for none."""
        first = self.start // SEGMENT * SEGMENT
        return max((e.timestamp for e in self.entries[first:] if not e.compacted), default=-1)

    def gone(self, offset: int) -> bool:
        """Return True if the offset was removed by retention or with the topic."""
        return self.deleted or offset < self.start


class KafkaTwin:
    """:param clock: milliseconds since 1970, for control records.
    :param wallclock: the clock of events; by default `clock`.
    """

    brokers = "twin"
    can_cut_leaders = True

    def __init__(self, clock: Callable[[], int], wallclock: Callable[[], int] | None = None) -> None:
        self._now = wallclock or clock
        self.logs: dict[str, list[Log]] = {}
        """By topic id, with deleted topics."""
        self.groups: dict[str, dict[TopicPartition, Position]] = {}
        self.live: dict[str, list[str]] = {}
        # The own settings of topics, by name.
        self.settings: dict[str, dict[str, str]] = {}
        self._clock = clock
        self._ids: dict[str, str] = {}
        self._pending: dict[str, list[Entry]] = {}
        self._numbers = itertools.count(1)
        # By topic id and partition: what a leader shows that is cut off from the others.
        self.cut_off: dict[tuple[str, int], Log] = {}
        # Which answers come from such a leader, in turns, and whether a majority of the brokers names the new one.
        self.stale: Iterator[bool] = itertools.cycle([True])
        self.has_majority = False

    # The interface of producers and operators.

    @property
    def hour(self) -> int:
        """The present hour since 1970."""
        return self._now() // 3_600_000

    def create_topic(self, name: str, partitions: int = 1) -> None:
        assert name not in self._ids
        self._ids[name] = self._new_id(name)
        self.logs[self._ids[name]] = [Log() for _ in range(partitions)]

    def _new_id(self, name: str) -> str:
        return f"{name}#{next(self._numbers)}"

    def delete_topic(self, name: str) -> None:
        for log in self.logs[self._ids.pop(name)]:
            log.deleted = True
            log.opened.clear()
            for entry in log.entries:
                entry.vanish(self._now())
        for offsets in self.groups.values():
            for place in [p for p in offsets if p.topic == name]:
                del offsets[place]

    def add_partition(self, name: str) -> None:
        self.logs[self._ids[name]].append(Log())

    def produce(self, topic: str, records: Iterable[Record], transaction: str | None = None) -> None:
        """Append records. A transaction stays open until `end_transaction`."""
        for record in records:
            log = self.log(TopicPartition(topic, record.partition))
            if transaction:
                log.opened.setdefault(transaction, log.high)
            moment = self._now()
            if transaction:
                entry = Entry(record.timestamp, record, "open", appended=moment)
            else:
                entry = Entry(record.timestamp, record, "committed", appended=moment, committed=moment)
            entry.leader_epoch = log.leader_epoch
            log.entries.append(entry)
            if transaction:
                self._pending.setdefault(transaction, []).append(log.entries[-1])

    def end_transaction(self, transaction: str, commit: bool) -> None:
        """Commit or abort. Every partition of the transaction gets a control record."""
        for entry in self._pending.pop(transaction, ()):
            entry.state = "committed" if commit else "aborted"
            entry.committed = self._now() if commit else None
        for logs in self.logs.values():
            for log in logs:
                if log.opened.pop(transaction, None) is not None:
                    log.entries.append(Entry(self._clock(), None, "committed", leader_epoch=log.leader_epoch))

    def compact(self, name: TopicPartition, before: int) -> None:
        """Before an offset, keep the last record of each key, and no record without a key."""
        log = self.log(name)
        stable = range(log.start, min(before, log.end("read_committed")))
        last = {
            self._key(log, offset): offset for offset in stable if log.entries[offset].was_visible("read_committed")
        }
        for offset in stable:
            entry = log.entries[offset]
            if entry.record is not None and (entry.record.key is None or last.get(entry.record.key) != offset):
                entry.compacted = True
                entry.vanish(self._now())

    @staticmethod
    def _key(log: Log, offset: int) -> bytes | None:
        record = log.entries[offset].record
        return record.key if record else None

    def delete_records(self, name: TopicPartition, before: int) -> None:
        """Remove the records before an offset, as retention does."""
        log = self.log(name)
        assert before <= log.high
        log.start = max(log.start, before)
        for entry in log.entries[: log.start]:
            entry.vanish(self._now())

    def elect(self, name: TopicPartition, cut: int = 0) -> None:
        """Elect another leader. `cut`: the number of last records that it lacks after an unclean election."""
        log = self.log(name)
        log.leader_epoch += 1
        for entry in log.entries[log.high - cut :] if cut else ():
            entry.vanish(self._now())
            log.cut.append(entry)
        del log.entries[log.high - cut if cut else log.high :]
        log.start = min(log.start, log.high)

    def cut_leader_off(self, name: TopicPartition) -> None:
        """Elect another leader, while the old one goes on to answer."""
        old = self.log(name).as_now()
        self.elect(name)
        self.cut_off.setdefault(self._place(name), old)

    def heal(self) -> None:
        """The leaders that were cut off know that they lead no more."""
        self.cut_off.clear()

    def reset_group(self, group: str, offsets: Mapping[TopicPartition, int], stamp: str = "") -> None:
        """Move a group by hand."""
        self.groups.setdefault(group, {}).update({name: Position(o, stamp) for name, o in offsets.items()})

    def delete_group(self, group: str) -> None:
        self.groups.pop(group, None)

    def refresh(self) -> None:
        """Take over changes of the real broker, if the twin mirrors one."""

    def log(self, name: TopicPartition) -> Log:
        """The log of a partition as it is now."""
        return self.logs[self._ids[name.topic]][name.partition]

    # The interface of `Cluster`.

    @property
    def tools(self) -> KafkaTools:
        return KafkaTools(self.brokers)

    def cluster_id(self) -> str:
        return "twin"

    def topics(self, selection: Collection[str] | re.Pattern[str]) -> list[Topic]:
        if isinstance(selection, re.Pattern):
            names = sorted(n for n in self._ids if selection.fullmatch(n) and not n.startswith("__"))
            if not names:
                raise PermanentError(f"no topic at {self.brokers} matches source.pattern {selection.pattern!r}")
        else:
            names = sorted(selection)
        if missing := [name for name in names if name not in self._ids]:
            raise PermanentError(f"describe topic {missing[0]}: it does not exist")
        return [Topic(name, self._ids[name], len(self.logs[self._ids[name]])) for name in names]

    def own_settings(self, topics: Iterable[str]) -> dict[str, dict[str, str]]:
        return {name: dict(self.settings.get(name, {})) for name in topics}

    def topic_settings(self, topics: Iterable[str]) -> dict[str, dict[str, str]]:
        return self.own_settings(topics)

    def replication(self, topics: Collection[str]) -> dict[str, int]:
        return dict.fromkeys(topics, 1)

    def topic_ids(self, names: Collection[str]) -> dict[str, str | None]:
        return {name: self._ids.get(name) for name in names}

    def log_starts(self, names: Iterable[TopicPartition]) -> dict[TopicPartition, int]:
        return {name: self._known(name).start for name in names}

    def log_ends(self, names: Iterable[TopicPartition], isolation: str) -> dict[TopicPartition, int]:
        return {name: self._known(name).end(isolation) for name in names}

    def offsets_at(
        self, names: Iterable[TopicPartition], milliseconds: int, isolation: str
    ) -> dict[TopicPartition, int | None]:
        offsets = {}
        for name in names:
            log = self._led(name)
            offset = log.first_at(milliseconds)
            offsets[name] = offset if offset is not None and offset < log.end(isolation) else None
        return offsets

    def latest_times(self, names: Iterable[TopicPartition]) -> dict[TopicPartition, int]:
        return {name: self._led(name).latest for name in names}

    def high_watermarks(self, names: Iterable[TopicPartition]) -> dict[TopicPartition, LogEnd]:
        ends = {}
        for name in names:
            log = self._led(name)
            ends[name] = LogEnd(log.high, log.leader_epoch, self._unsure(name))
        return ends

    def _unsure(self, name: TopicPartition) -> str:
        is_cut = self._place(name) in self.cut_off and not self.has_majority
        return "the brokers do not agree on the leader" if is_cut else ""

    def look_anew(self) -> None:
        """The leaders that are cut off stay so."""

    def committed(self, group: str, names: Iterable[TopicPartition]) -> dict[TopicPartition, int | None]:
        return {name: place and place.offset for name, place in self.positions(group, names).items()}

    def positions(self, group: str, names: Iterable[TopicPartition]) -> dict[TopicPartition, Position | None]:
        return {name: self.groups.get(group, {}).get(name) for name in names}

    def offsets_of_groups(
        self, patterns: Collection[str], topics: Collection[str], most: int = 1000
    ) -> dict[str, dict[TopicPartition, int]]:
        names = sorted(g for g in self.groups if any(re.fullmatch(pattern, g) for pattern in patterns))
        if len(names) > most:
            raise PermanentError(f"{len(names)} consumer groups match; expected at most {most}")
        offsets = {g: {n: p.offset for n, p in self.groups[g].items() if n.topic in topics} for g in names}
        return {group: places for group, places in offsets.items() if places}

    def members(self, group: str) -> list[str]:
        return sorted(self.live.get(group, []))

    def move_group(self, group: str, offsets: Mapping[TopicPartition, int], stamp: str = "") -> None:
        if not offsets:
            return
        if self.members(group):
            raise PermanentError(f"commit offsets of group {group}: the group has live members")
        for name in offsets:
            self._known(name)
        self.reset_group(group, offsets, stamp)

    def first_records(
        self, starts: Mapping[TopicPartition, int], seconds: float = 10.0
    ) -> dict[TopicPartition, FirstRecord | None]:
        return {name: self._first(self._led(name), offset) for name, offset in starts.items()}

    def times_behind(
        self, places: Mapping[TopicPartition, Collection[int]], seconds: float = 10.0
    ) -> dict[TopicPartition, dict[int, int]]:
        times: dict[TopicPartition, dict[int, int]] = {}
        for name, offsets in places.items():
            log = self._known(name)
            readable = [o for o in range(log.start, log.high) if log.entries[o].record and not log.entries[o].compacted]
            read = (o for place in offsets for o in [o for o in readable if o >= place][:3])
            times[name] = {o: log.entries[o].timestamp for o in read}
        return times

    def truncated(
        self, ends: Mapping[TopicPartition, LogEnd], seconds: float = 10.0
    ) -> dict[TopicPartition, int | None]:
        cuts = {}
        for name, end in ends.items():
            log = self._led(name)
            # An epoch after its own is unknown to a leader that is cut off.
            is_later = end.leader_epoch is not None and end.leader_epoch > log.leader_epoch
            cuts[name] = 0 if is_later else log.end_of(end.leader_epoch)
        return {name: cut if cut < ends[name].offset else None for name, cut in cuts.items()}

    @staticmethod
    def _first(log: Log, start: int) -> FirstRecord | None:
        for offset in range(max(start, log.start), log.high):
            entry = log.entries[offset]
            if entry.record is not None and not entry.compacted:
                return FirstRecord(offset, entry.timestamp, entry.leader_epoch, crc32(entry.record.value))
        return None

    def _known(self, name: TopicPartition) -> Log:
        if name.topic not in self._ids or name.partition >= len(self.logs[self._ids[name.topic]]):
            raise PermanentError(f"read the watermarks of {name}: it does not exist")
        old = self.cut_off.get(self._place(name))
        return old if old and next(self.stale) else self.log(name)

    def _led(self, name: TopicPartition) -> Log:
        """The log by the leader that a majority of the brokers names; without a majority, by any broker."""
        known = self._known(name)
        return self.log(name) if self.has_majority else known

    def _place(self, name: TopicPartition) -> tuple[str, int]:
        return self._ids[name.topic], name.partition

    # The interface of the native reader.

    def read_chunk(self, chunk: Chunk, settings: Settings) -> Iterator[pa.RecordBatch]:
        """Like `kafka.reader.read_chunk`, with small batches."""
        log = self._known(chunk.name)
        if not log.start <= chunk.start <= log.high:
            raise PolicyError(f"the leader does not have the start of {chunk}")
        visible = [
            o for o in range(chunk.start, min(chunk.end, log.high)) if log.entries[o].visible(settings.isolation)
        ]
        for first in range(0, len(visible), BATCH):
            yield _batch([(o, log.entries[o].record) for o in visible[first : first + BATCH]], settings)
        if log.end(settings.isolation) < chunk.end:
            raise TransientError(f"the log of {chunk.name} ends at {log.high}, before the end of {chunk}")


def _batch(records: Sequence[tuple[int, Record | None]], settings: Settings) -> pa.RecordBatch:
    rows = [
        {
            "offset": offset,
            "timestamp": record.timestamp,
            "timestamp_type": 0,
            "key": record.key,
            "value": record.value,
            "headers": [{"key": k, "value": v} for k, v in record.headers],
        }
        for offset, record in records
        if record is not None
    ]
    return pa.RecordBatch.from_pylist(rows, schema=_RECORD if settings.whole_records else VALUE)
