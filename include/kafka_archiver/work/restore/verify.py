"""Read target partitions back and compare them with the archive, record by record (`work/restore/verified_log`)."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from kafka_archiver.model.offset_map import LogMap
from kafka_archiver.model.restore import PartitionReport
from kafka_archiver.values.ranges import Range
from kafka_archiver.work.restore.lane import Lane, Lost
from kafka_archiver.work.restore.partition_writer import require_topic, settled_end
from kafka_archiver.work.restore.target import Target
from kafka_archiver.work.restore.verified_log import LogComparison


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
