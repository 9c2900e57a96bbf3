"""Read target partitions back and compare their whole logs with the archive, record by record."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa

from kafka_archiver.model.offset_map import LogMap
from kafka_archiver.model.offset_map_recorder import RunRecorder
from kafka_archiver.model.restore import PartitionReport, TargetTopic
from kafka_archiver.model.restore_progress import Place
from kafka_archiver.values.columns import Int64s
from kafka_archiver.values.ranges import Range
from kafka_archiver.work.restore.digests import StrongDigest
from kafka_archiver.work.restore.lane import Lane, LaneBatch, Lost, offsets_of
from kafka_archiver.work.restore.partition_writer import require_topic, settled_end
from kafka_archiver.work.restore.rows import first_difference, first_place, shown
from kafka_archiver.work.restore.target import Target


@dataclass
class LogComparison:
    """The comparison so far.

    `log`: the committed records of the target, in order. `start`, `end`: of the log. `lost`: records that nobody has.
    `records`: of the target; `archived`: of the archive; `written`: those that are in both. `behind`: the offset behind
    the last record of the target. `gaps`: offsets without a committed record.
    """

    lane: Lane
    topic: TargetTopic
    log: Iterator[pa.RecordBatch]
    start: int
    end: int
    lost: Lost = field(default_factory=Lost)
    log_digest: StrongDigest = field(default_factory=StrongDigest)
    archive_digest: StrongDigest = field(default_factory=StrongDigest)
    records: int = 0
    archived: int = 0
    written: int = 0
    difference: str = ""
    gaps: list[Range] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.behind = self.start
        self._waiting: pa.RecordBatch | None = None
        self._recorders: dict[int, RunRecorder] = {}
        self._last_source: tuple[int, int] | None = None
        self._missing: Place | None = None

    def take(self, batch: LaneBatch) -> None:
        """Compare the next records of the archive with those of the log."""
        self.archive_digest.add(self._digested(batch.records))
        self.archived += batch.records.num_rows
        done = 0
        for here in self._from_log(batch.records.num_rows):
            self._compare(here, batch.sliced(done, here.num_rows))
            done += here.num_rows
        if done < batch.records.num_rows and self._missing is None:
            self._missing = first_place(batch.sliced(done))

    def finish(self) -> None:
        """Take what the log has more, and its last offsets."""
        target = self.lane.target
        for remainder in self._from_log(2**62):
            self._differs(f"{target} has more records than the archive, from offset {offsets_of(remainder)[0]} on")
        if self.end > self.behind:
            self.gaps.append(Range(self.behind, self.end))
        if self._missing is not None:
            source, offset = self._missing
            self._differs(
                f"{target} lacks the last {self.archived - self.written:,} records, from {self.lane.sources[source]} "
                f"offset {offset} on: `write` has not ended"
            )

    def maps(self) -> tuple[LogMap, ...]:
        """Return where the records of each source partition are."""
        target = self.lane.target
        return tuple(
            LogMap(
                topic=source.topic,
                partition=source.partition,
                generation=source.generation,
                target_topic=target.topic,
                target_partition=target.partition,
                end=self.behind,
                runs=self._recorders[index].runs if index in self._recorders else (),
            )
            for index, source in enumerate(self.lane.sources)
        )

    def _from_log(self, rows: int) -> Iterator[pa.RecordBatch]:
        """Yield the next records of the log, up to `rows` of them: fewer at its end."""
        while rows and (batch := self._waiting or self._next()):
            head = batch.slice(0, rows)
            self._waiting = batch.slice(rows) if rows < batch.num_rows else None
            rows -= head.num_rows
            yield head

    def _next(self) -> pa.RecordBatch | None:
        batch = next((batch for batch in self.log if batch.num_rows), None)
        if batch is not None:
            self._note_gaps(offsets_of(batch))
            self.records += batch.num_rows
            self.log_digest.add(self._digested(batch))
        return batch

    def _compare(self, here: pa.RecordBatch, piece: LaneBatch) -> None:
        self.written += here.num_rows
        if difference := first_difference(here, piece.records, self.topic.append_time):
            row, column = difference
            place = first_place(piece.sliced(row))
            self._differs(
                f"{self.lane.target} offset {offsets_of(here)[row]} is not {self.lane.sources[place.source]} "
                f"offset {place.offset}: its {column} is {shown(here, piece, row, column)}"
            )
        elif not self.difference:
            self._record(piece.source, offsets_of(piece.records), offsets_of(here))

    def _record(self, source: int, sources: Int64s, targets: Int64s) -> None:
        """Note where records are. Of several rows of one record, the first."""
        first = np.ones(len(sources), bool)
        first[1:] = sources[1:] != sources[:-1]
        first[0] = (source, int(sources[0])) != self._last_source
        self._last_source = (source, int(sources[-1]))
        self._recorders.setdefault(source, RunRecorder()).extend(sources[first], targets[first])

    def _note_gaps(self, offsets: Int64s) -> None:
        steps = np.flatnonzero(np.diff(offsets) > 1).tolist()
        if int(offsets[0]) > self.behind:
            self.gaps.append(Range(self.behind, int(offsets[0])))
        self.gaps += [Range(int(offsets[n]) + 1, int(offsets[n + 1])) for n in steps]
        self.behind = int(offsets[-1]) + 1

    def _digested(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        if not self.topic.append_time:
            return batch
        at = batch.schema.names.index("timestamp")
        zeros = pa.array(np.zeros(batch.num_rows, np.int64))
        return batch.set_column(at, "timestamp", zeros)

    def _differs(self, difference: str) -> None:
        self.difference = self.difference or difference


@dataclass(frozen=True)
class Verified:
    """The report of one partition, and where each of its records went."""

    report: PartitionReport
    maps: tuple[LogMap, ...]


@dataclass
class PartitionReader:
    """Reads a target partition back, with a consumer that has no part in the writing. `sleep`: waits for others."""

    target: Target
    lane: Lane
    sleep: Callable[[float], None]

    def run(self) -> Verified:
        """Compare all records from the plan's start offset to the end of the log with the lane.

        :raises PermanentError: the topic is gone. :raises TransientError: the brokers do not answer.
        """
        comparison = self.begin()
        for batch in self.lane.batches(lost=comparison.lost):
            if batch is not None:
                comparison.take(batch)
        return self.finish(comparison)

    def begin(self) -> LogComparison:
        """Return a comparison of which nothing is read yet. Raises as `run`."""
        plan, name = self.lane.plan, self.lane.target
        topic = require_topic(self.target, plan, name)
        offsets = Range(plan.start(name), settled_end(self.target, name, self.sleep))
        log = self.target.read(name, offsets, "read_committed") if offsets.size else iter(())
        return LogComparison(self.lane, topic, log, *offsets)

    def finish(self, comparison: LogComparison) -> Verified:
        """Return the result once all records of the lane were compared. Raises as `run`."""
        name = self.lane.target
        comparison.finish()
        aborted = self.target.count(name, comparison.gaps)
        require_topic(self.target, self.lane.plan, name)
        excluded = self.lane.excluded(comparison.lost)
        present = comparison.archived + sum(excluded.values())
        selected = present if self.lane.promised is None else self.lane.promised
        report = PartitionReport(
            topic=name.topic,
            partition=name.partition,
            offsets=(comparison.start, comparison.end),
            selected=selected,
            written=comparison.written,
            excluded=excluded,
            records=comparison.records,
            markers=sum(gap.size for gap in comparison.gaps) - aborted,
            aborted=aborted,
            digest=comparison.log_digest.text,
            expected_digest=comparison.archive_digest.text,
            difference=comparison.difference or _broken_promise(self.lane, selected, present),
        )
        return Verified(report, comparison.maps())


def verify_together(readers: Sequence[PartitionReader]) -> Iterator[Verified]:
    """Compare several partitions of one topic in one pass over the archive; yield the results in order.

    :param readers: of partitions of the same topic, which have the same source partitions.
    """
    comparisons = {reader.lane.target.partition: reader.begin() for reader in readers}
    lane, lost = readers[0].lane, Lost()
    for batch in lane.read(lost=lost):
        for partition, own in ({} if batch is None else lane.routed(batch)).items():
            if partition in comparisons:
                comparisons[partition].take(own)
    for reader in readers:
        comparison = comparisons[reader.lane.target.partition]
        comparison.lost = lost
        yield reader.finish(comparison)


def _broken_promise(lane: Lane, selected: int, present: int) -> str:
    if selected == present:
        return ""
    return (
        f"the manifests promise {selected:,} records for {lane.target}, and the archive has {present:,}, with those "
        f"that are left out: run `airflow archive audit {lane.plan.archive}`"
    )
