"""Read one target partition back and compare it with the archive, record by record."""

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa

from kafka_archiver.model.offset_map import LogMap
from kafka_archiver.model.offset_map_recorder import RunRecorder
from kafka_archiver.model.restore import PartitionReport, TargetTopic
from kafka_archiver.model.restore_progress import START
from kafka_archiver.values.ranges import Range
from kafka_archiver.work.restore.comparison import first_difference, shown, target_offsets
from kafka_archiver.work.restore.digests import StrongDigest
from kafka_archiver.work.restore.lane import Excluded, Lane, LaneBatch, offsets_of
from kafka_archiver.work.restore.rows import LaneRows, first_place
from kafka_archiver.work.restore.target import Target
from kafka_archiver.work.restore.write import require_topic, settled_end

Offsets = np.ndarray[tuple[int], np.dtype[np.int64]]


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
        plan, name = self.lane.plan, self.lane.target
        topic = require_topic(self.target, plan, name)
        offsets = Range(plan.start(name), settled_end(self.target, name, self.sleep))
        comparison = _Comparison(self.lane, topic, end=offsets.start)
        if offsets.size:
            for batch in self.target.read(name, offsets, "read_committed"):
                comparison.add(batch)
        comparison.finish(offsets.end)
        aborted = self.target.count(name, comparison.gaps)
        require_topic(self.target, plan, name)
        excluded = comparison.excluded
        promised = self.lane.promised
        selected = comparison.archived + sum(excluded.values()) if promised is None else promised
        markers = sum(gap.size for gap in comparison.gaps) - aborted
        report = PartitionReport(
            topic=name.topic,
            partition=name.partition,
            offsets=(offsets.start, offsets.end),
            selected=selected,
            written=comparison.written,
            excluded=dict(excluded),
            records=comparison.records,
            markers=markers,
            aborted=aborted,
            digest=comparison.here.text,
            expected_digest=comparison.there.text,
            difference=comparison.difference or _broken_promise(comparison, selected),
        )
        return Verified(report, comparison.maps(comparison.end))


@dataclass
class _Comparison:
    """The comparison so far.

    `records`: of the target; `archived`: of the archive; `written`: those that are in both. `end`: behind the last
    record of the target. `gaps`: offsets without a committed record.
    """

    lane: Lane
    topic: TargetTopic
    here: StrongDigest = field(default_factory=StrongDigest)
    there: StrongDigest = field(default_factory=StrongDigest)
    records: int = 0
    archived: int = 0
    written: int = 0
    difference: str = ""
    end: int = 0
    gaps: list[Range] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._rows = LaneRows(self.lane, START)
        self._recorders: dict[int, RunRecorder] = {}
        self._last_source: tuple[int, int] | None = None

    @property
    def excluded(self) -> Excluded:
        """The number of records that were left out, by the option that allows it."""
        return self._rows.excluded

    def add(self, batch: pa.RecordBatch) -> None:
        """Compare records of the target."""
        offsets = target_offsets(batch)
        self._note_gaps(offsets)
        self.records += batch.num_rows
        self.here.add(self._digested(batch))
        done = 0
        for piece in self._rows.take(batch.num_rows):
            self._take(batch.slice(done, piece.records.num_rows), piece)
            done += piece.records.num_rows
        if done < batch.num_rows:
            self._differs(f"{self.lane.target} has more records than the archive, from offset {offsets[done]} on")

    def finish(self, end: int) -> None:
        """Count what the archive has more, and the last offsets of the log, up to its end."""
        if end > self.end:
            self.gaps.append(Range(self.end, end))
        first: LaneBatch | None = None
        missing = 0
        for piece in self._rows.take(2**62):
            first = first or piece
            self.there.add(self._digested(piece.records))
            missing += piece.records.num_rows
        self.archived += missing
        if first is not None:
            place = first_place(first)
            self._differs(
                f"{self.lane.target} lacks the last {missing:,} records, from {self.lane.sources[place.source]} offset "
                f"{place.offset} on: `write` has not ended"
            )

    def maps(self, end: int) -> tuple[LogMap, ...]:
        """Return where the records of each source partition are."""
        target = self.lane.target
        return tuple(
            LogMap(
                topic=source.topic,
                partition=source.partition,
                generation=source.generation,
                target_topic=target.topic,
                target_partition=target.partition,
                end=end,
                runs=self._recorders[index].runs if index in self._recorders else (),
            )
            for index, source in enumerate(self.lane.sources)
        )

    def _take(self, here: pa.RecordBatch, piece: LaneBatch) -> None:
        self.there.add(self._digested(piece.records))
        self.archived += piece.records.num_rows
        self.written += piece.records.num_rows
        if difference := first_difference(here, piece.records, self.topic.append_time):
            row, column = difference
            place = first_place(piece.sliced(row))
            self._differs(
                f"{self.lane.target} offset {target_offsets(here)[row]} is not {self.lane.sources[place.source]} "
                f"offset {place.offset}: its {column} is {shown(here, piece, row, column)}"
            )
        elif not self.difference:
            self._record(piece.source, offsets_of(piece.records), target_offsets(here))

    def _record(self, source: int, sources: Offsets, targets: Offsets) -> None:
        """Note where records are. Of several rows of one record, the first."""
        first = np.ones(len(sources), bool)
        first[1:] = sources[1:] != sources[:-1]
        first[0] = (source, int(sources[0])) != self._last_source
        self._last_source = (source, int(sources[-1]))
        self._recorders.setdefault(source, RunRecorder()).extend(sources[first], targets[first])

    def _note_gaps(self, offsets: Offsets) -> None:
        steps = np.flatnonzero(np.diff(offsets) > 1).tolist()
        if int(offsets[0]) > self.end:
            self.gaps.append(Range(self.end, int(offsets[0])))
        self.gaps += [Range(int(offsets[n]) + 1, int(offsets[n + 1])) for n in steps]
        self.end = int(offsets[-1]) + 1

    def _digested(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        if not self.topic.append_time:
            return batch
        at = batch.schema.names.index("timestamp")
        zeros = pa.array(np.zeros(batch.num_rows, np.int64))
        return batch.set_column(at, "timestamp", zeros)

    def _differs(self, difference: str) -> None:
        self.difference = self.difference or difference


def _broken_promise(comparison: _Comparison, selected: int) -> str:
    present, left_out = comparison.archived, sum(comparison.excluded.values())
    if selected == present + left_out:
        return ""
    return (
        f"the manifests promise {selected:,} records for {comparison.lane.target}, and the archive's objects have "
        f"{present:,} and {left_out:,} are left out: run `airflow archive audit {comparison.lane.plan.archive}`"
    )
