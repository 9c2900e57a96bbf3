"""Reads logs and consumer groups from the brokers; writes only groups' offsets.

Before a topic or records are called gone, `Cluster.look_anew` waits for `SESSION_SECONDS`; then the caller asks again.
"""

import time
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Any

import confluent_kafka
from confluent_kafka import IsolationLevel, KafkaError
from confluent_kafka.admin import OffsetSpec  # type: ignore[attr-defined]

from kafka_archiver.kafka import groups, own_process
from kafka_archiver.kafka.admin_requests import Asking, Result
from kafka_archiver.kafka.failures import UNKNOWN, code_of
from kafka_archiver.kafka.first_records import FirstRecord, LogEnd, first_records, known_epoch, times_behind, truncated
from kafka_archiver.kafka.groups import Position
from kafka_archiver.kafka.leaders import Leader, ask_leaders, at_leaders, leaders
from kafka_archiver.kafka.topics import Topics
from kafka_archiver.messages.errors import ArchiverError, PermanentError, TransientError
from kafka_archiver.values.ranges import TopicPartition

# Longer than `broker.session.timeout.ms` (9 s) or `zookeeper.session.timeout.ms` (18 s) of most clusters.
SESSION_SECONDS = 20.0
# Consumer groups that one request is about.
MOST_GROUPS = 1000
# Requests for watermarks if the connection breaks before the answer.
_TRIES = 2
# New clients that are asked, if a broker does not know a topic that others know.
_BROKERS = 3


def _answers_once(
    asking: Asking, asked: Sequence[TopicPartition], spec: tuple[OffsetSpec, IsolationLevel], timeout: float
) -> dict[TopicPartition, Any]:
    if not asked:
        return {}
    specs = {confluent_kafka.TopicPartition(n.topic, n.partition): spec[0] for n in asked}
    unknown: list[TopicPartition] = []
    for _ in range(_TRIES):
        answers = asking.ask(
            lambda admin: admin.list_offsets(specs, isolation_level=spec[1], request_timeout=timeout),
            lambda place: f"read the watermarks of {place.topic}[{place.partition}]",
            timeout,
        )
        answered = dict(zip(asked, answers, strict=True))
        # -1: no record at or after this time. -1001: the connection broke. librdkafka then waits until the timeout
        # and returns no error.
        unknown = sorted(name for name, answer in answered.items() if answer.offset < -1)
        if not unknown:
            return answered
    raise TransientError(
        f"{asking.brokers}: could not read the watermarks of {unknown[0]}: the connection broke before the answer"
    )


class Cluster(Topics):
    """One Kafka cluster: its topics, its logs, and its consumer groups."""

    def __init__(self, properties: Mapping[str, str], timeout: float = 30.0) -> None:
        super().__init__(properties, timeout)
        # As a majority of the brokers named them when watermarks were read last.
        self._leading: dict[TopicPartition, Leader] = {}

    def log_starts(self, names: Iterable[TopicPartition]) -> dict[TopicPartition, int]:
        """The first offset that each partition still has (its low watermark)."""
        asked, spec = list(names), OffsetSpec.earliest()  # type: ignore[no-untyped-call]
        if any(name not in self._leading for name in asked):
            return self._offsets(asked, spec, "read_uncommitted")
        answers = self._of_leaders(asked, lambda of, some: self._answers_of(some, spec, properties=of))
        return {name: answer.offset for name, answer in answers.items()}

    def log_ends(self, names: Iterable[TopicPartition], isolation: str) -> dict[TopicPartition, int]:
        """The end of each partition: the last stable offset for read_committed, else the high watermark."""
        return self._offsets(names, OffsetSpec.latest(), isolation)  # type: ignore[no-untyped-call]

    def high_watermarks(self, names: Iterable[TopicPartition]) -> dict[TopicPartition, LogEnd]:
        """The high watermark and leader epoch of each partition. With the same epoch the log was not truncated.

        It is the word of the leader that a majority of the brokers names now. Else it is `unsure`: any broker's word.
        """
        asked, nodes = list(names), self.nodes()
        latest = OffsetSpec.latest()  # type: ignore[no-untyped-call]
        if not asked or len(nodes) == 1:
            self._leading |= dict.fromkeys(asked, Leader(None))
            return {
                n: LogEnd(f.offset, known_epoch(f.leader_epoch)) for n, f in self._answers_of(asked, latest).items()
            }
        leading = leaders(self.properties, nodes, asked)
        self._leading |= leading
        answers = at_leaders(self.properties, leading, latest, self.timeout)
        ends = {
            n: LogEnd(a.offset_info.offset, known_epoch(a.offset_info.leader_epoch), a.unsure)
            for n, a in answers.items()
        }
        remaining = self._answers_of([name for name in asked if name not in ends], latest)
        silent = "the leader does not answer"
        return ends | {
            name: LogEnd(answer.offset, known_epoch(answer.leader_epoch), leading[name].unsure or silent)
            for name, answer in remaining.items()
        }

    def look_anew(self) -> None:
        """Wait for longer than a broker keeps its session without a word, and forget what the client knows.

        A broker that is cut off is no leader any more then, and the others know the new one.
        """
        if len(self.nodes()) > 1:
            time.sleep(SESSION_SECONDS)
        self._asking = Asking(self.properties)
        self._leading.clear()

    def _of_leaders(
        self, names: Collection[TopicPartition], ask: Callable[[Mapping[str, str], Collection[TopicPartition]], Any]
    ) -> dict[TopicPartition, Any]:
        """Return what the leaders say that a majority names; of partitions without one, what any broker says.

        A client that knows all brokers asks any of them who leads, and one that is cut off names itself.
        """
        asked = list(names)
        if new := [name for name in asked if name not in self._leading]:
            nodes = self.nodes()
            single = dict.fromkeys(new, Leader(None))
            self._leading |= single if len(nodes) == 1 else leaders(self.properties, nodes, new)
        try:
            return ask_leaders(self.properties, {name: self._leading[name] for name in asked}, ask)
        except ArchiverError:
            # A leader may have ended.
            self._leading.clear()
            raise

    def offsets_at(
        self, names: Iterable[TopicPartition], milliseconds: int, isolation: str
    ) -> dict[TopicPartition, int | None]:
        """The first offset of each partition with this timestamp or a later one; None if there is no such record."""
        spec = OffsetSpec.for_timestamp(milliseconds)
        answers = self._of_leaders(list(names), lambda of, some: self._answers_of(some, spec, isolation, of))
        offsets = {name: answer.offset for name, answer in answers.items()}
        return {name: offset if offset >= 0 else None for name, offset in offsets.items()}

    def latest_times(self, names: Iterable[TopicPartition]) -> dict[TopicPartition, int]:
        """The latest timestamp (ms) that the brokers know of each partition, -1 for none.

        If the log begins in the middle of a segment, this may be the timestamp of a removed record. Brokers before
        Kafka 3.0 may not know any.
        """
        asked = list(names)
        try:
            spec = OffsetSpec.max_timestamp()  # type: ignore[no-untyped-call]
            latest = self._of_leaders(asked, lambda of, some: self._answers_of(some, spec, properties=of))
        except TransientError as error:
            if code_of(error) == KafkaError.UNSUPPORTED_VERSION:
                return dict.fromkeys(asked, -1)
            raise
        return {name: record.timestamp for name, record in latest.items()}

    def _retried_if_unknown(self, ask: Callable[[], Result]) -> Result:
        """Ask about partitions that are there: a broker that does not know one is not believed if there are others.

        :raises TransientError: three brokers in turn do not know one.
        """
        failure: ArchiverError | None = None
        for _ in range(_BROKERS):
            try:
                return ask()
            except ArchiverError as error:
                if code_of(error) not in UNKNOWN or self.size() == 1:
                    raise
                failure = error
                # A new client may ask another broker.
                self._asking = Asking(self.properties)
        raise TransientError(
            f"{failure}. A majority of the brokers knew it a moment ago: the next attempt asks again"
        ) from failure

    def _offsets(self, names: Iterable[TopicPartition], spec: OffsetSpec, isolation: str) -> dict[TopicPartition, int]:
        return {name: answer.offset for name, answer in self._answers_of(names, spec, isolation).items()}

    def _answers_of(
        self,
        names: Iterable[TopicPartition],
        spec: OffsetSpec,
        isolation: str = "read_uncommitted",
        properties: Mapping[str, str] | None = None,
    ) -> dict[TopicPartition, Any]:
        """Return the answers about partitions of one client.

        :param properties: those of a client that is made for this; None: the client that all requests share.
        """
        asked = list(names)

        def answers() -> dict[TopicPartition, Any]:
            is_shared = properties is None or properties is self.properties
            return _answers_once(self._asking if is_shared else Asking(properties or {}), asked, level, self.timeout)

        level = (spec, IsolationLevel[isolation.upper()])
        return self._retried_if_unknown(answers)

    def committed(self, group: str, names: Iterable[TopicPartition]) -> dict[TopicPartition, int | None]:
        """The group's committed offsets; None for a partition without one."""
        return {name: place and place.offset for name, place in self.positions(group, names).items()}

    def positions(
        self, group: str, names: Iterable[TopicPartition], stable: bool = False
    ) -> dict[TopicPartition, Position | None]:
        """The group's committed offsets with their metadata; None for a partition without an offset.

        :param stable: wait for the end of a transaction that has an offset.
        """
        asked = list(names)
        return self._call(groups.positions, group, asked, stable) if asked else {}

    def group_operations(self, group: str) -> frozenset[str]:
        """The operations that the credentials may do with a consumer group, such as READ."""
        return self._call(groups.operations, group)

    def members(self, group: str) -> list[str]:
        """The group's live members, as client@host; empty for a group that does not exist."""
        return self._call(groups.members, group)

    def offsets_of_groups(
        self, patterns: Collection[str], topics: Collection[str], most: int = MOST_GROUPS
    ) -> dict[str, dict[TopicPartition, int]]:
        """The committed offsets in these topics of the groups whose whole name matches one of the patterns.

        :raises PermanentError: more than `most` groups match.
        """
        return self._call(groups.offsets_of_groups, list(patterns), set(topics), most)

    def move_group(self, group: str, offsets: Mapping[TopicPartition, int], stamp: str = "") -> None:
        """Set the group's committed offsets, and read them back.

        :param stamp: the metadata of the commit.
        :raises PermanentError: the group has live members, or reads back other offsets twice.
        :raises TransientError: it reads back none.
        """
        if not offsets:
            return
        wrong = self._moved(group, offsets, stamp)
        if wrong:
            # A broker that is the group's coordinator no more may have taken the commit, or answered.
            self.look_anew()
            wrong = self._moved(group, offsets, stamp)
        if not wrong:
            return
        name, committed = min(wrong.items())
        message = f"group {group}: committed offset {offsets[name]} of {name}, but read back {committed}"
        if all(offset is None for offset in wrong.values()):
            raise TransientError(
                f"{message}: the group's coordinator does not have it yet; the next attempt commits again"
            )
        raise PermanentError(
            f"{message}: another client commits in this group; give the archive a group of its own (source.group)"
        )

    def _moved(self, group: str, offsets: Mapping[TopicPartition, int], stamp: str) -> dict[TopicPartition, int | None]:
        """Commit the offsets. Returns those that are read back otherwise."""
        self._call(groups.commit, group, dict(offsets), stamp)
        after = self.committed(group, offsets)
        return {name: after[name] for name, offset in offsets.items() if after[name] != offset}

    def _call(self, function: Callable[..., Result], *args: Any) -> Result:
        """A request to a group's coordinator, apart. The client may use up `timeout` twice: to wait, and to retry."""
        return own_process.call(function, 2 * self.timeout + 30, self.properties, self.timeout, *args)

    def first_records(
        self, starts: Mapping[TopicPartition, int], seconds: float = 10.0
    ) -> dict[TopicPartition, FirstRecord | None]:
        """The first record of each partition at or after an offset, also if aborted; None if there is no record.

        A partition that gave no answer in time is not in the result.

        :raises TransientError, PermanentError: the brokers refuse a read.
        """

        def ask(of: Mapping[str, str], names: Collection[TopicPartition]) -> dict[TopicPartition, FirstRecord | None]:
            return first_records(of, {name: starts[name] for name in names}, seconds, self.brokers)

        return self._retried_if_unknown(lambda: self._of_leaders(starts, ask))

    def times_behind(
        self, places: Mapping[TopicPartition, Collection[int]], seconds: float = 10.0
    ) -> dict[TopicPartition, dict[int, int]]:
        """The offsets and timestamps (ms) of the first three records at or after each of these offsets.

        A partition that gave no answer in time is not in the result.

        :raises TransientError, PermanentError: the brokers refuse a read.
        """
        return self._retried_if_unknown(lambda: times_behind(self.properties, places, seconds, self.brokers))

    def truncated(
        self, ends: Mapping[TopicPartition, LogEnd], seconds: float = 10.0
    ) -> dict[TopicPartition, int | None]:
        """The offset at which each log was truncated before an earlier end; None if it was not.

        Partitions without an answer, and errors: as in `first_records`.

        :param ends: the end of each log under an earlier leader, or an offset before that end; with the leader epoch.
        """

        def ask(of: Mapping[str, str], names: Collection[TopicPartition]) -> dict[TopicPartition, int | None]:
            return truncated(of, {name: ends[name] for name in names}, seconds, self.brokers)

        return self._retried_if_unknown(lambda: self._of_leaders(ends, ask))
