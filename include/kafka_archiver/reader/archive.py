"""An archive for programs: its records as Arrow batches."""

from collections import deque
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

import pyarrow as pa

from kafka_archiver.context.keyring import keyring_of
from kafka_archiver.jobs.endpoints import Endpoints
from kafka_archiver.ledger.ledger import Ledger
from kafka_archiver.messages.errors import ConfigError, IntegrityError
from kafka_archiver.model.adopted import Adoption
from kafka_archiver.model.chunk_accounts import ChunkAccount
from kafka_archiver.model.manifest import ObjectEntry
from kafka_archiver.model.plan import Plan
from kafka_archiver.reader.adopted import adopted_records
from kafka_archiver.reader.chunks import Written, is_values
from kafka_archiver.reader.runs import (
    Plans,
    Run,
    Slice,
    counting_runs,
    require_committed,
    runs_of_hours,
    unless_replaced,
)
from kafka_archiver.reader.selection import Offsets, Selection, Time, selection_of
from kafka_archiver.records.reading.merge import OFFSET, merged
from kafka_archiver.records.reading.object_copies import Copies
from kafka_archiver.store import open_store
from kafka_archiver.values.ranges import Range


@dataclass(frozen=True, slots=True)
class ArchiveReader:
    """An archive that is read. Only runs that are committed count, and of each the highest committed revision."""

    ledger: Ledger

    def read(
        self,
        topic: str,
        hours: tuple[Time, Time] | Time | None = None,
        offsets: Offsets | None = None,
        partitions: Collection[int] | int | None = None,
        generation: int | None = None,
    ) -> Iterator[pa.RecordBatch]:
        """Yield records as batches with the columns of the archive, those of each partition in the order of offsets.

        Each object is compared with its checksum before its first record is given. Of values that are stored as they
        are, a batch has `offset` (null where it is unknown) and `value`. The columns may change from run to run, as the
        archive's settings and schemas did. Offsets that the account lists as lost or filtered are in no batch, nor are
        dead letters. Objects that another tool wrote come first, without `hours` only: nobody knows their hours.

        :param hours: `(start, end)` or one hour: datetimes, or text like `2026-11-21T05`; without a zone in UTC. The
            records that are filed in these hours.
        :param offsets: `(start, end)`, the end not included; None: no limit.
        :param partitions: None: all.
        :param generation: None: all, one after the other.
        :raises ConfigError: the archive has no such topic, or its objects do not tell which records are meant.
        :raises IntegrityError: an object or a document is missing or damaged; the message names it.
        :raises TransientError: a revision has replaced a run while it was read.
        """
        selection = selection_of(topic, hours, offsets, partitions, generation)
        return self._selected(selection)

    def _selected(self, selection: Selection) -> Iterator[pa.RecordBatch]:
        plans, select = Plans(self.ledger), partial(_slices, selection)
        adoption = self.ledger.adoption()
        self._require_known(plans, selection, adoption)
        if selection.hours is None:
            runs = counting_runs(plans, select)
            if adoption and selection.generation in (None, 0):
                yield from adopted_records(self.ledger, adoption, selection)
        else:
            runs = runs_of_hours(plans, selection.hours, select)
        for run, slices in _in_order(runs):
            with unless_replaced(self.ledger, run):
                written = self._written(run)
                for part in slices:
                    yield from _records(written, part, selection)

    def _written(self, run: str) -> Written:
        plan, manifest = self.ledger.plan(run), self.ledger.sound_manifest(run)
        if plan is None or manifest is None:
            raise IntegrityError(f"run {run} of archive {self.ledger.archive} has no plan or no manifest any more")
        require_committed(self.ledger, run, plan.digest, manifest.plan_digest)
        return Written(self.ledger, plan, manifest)

    def _require_known(self, plans: Plans, selection: Selection, adoption: Adoption | None) -> None:
        """Check that the archive has what a selection names. Raises ConfigError."""
        logs = {(p.topic, p.partition, p.generation) for p in plans.progress.partitions}
        logs |= {(p.topic, p.partition, p.generation) for plan in plans.unsettled for p in plan.partitions}
        adopted = {(p.topic, p.partition, 0) for p in adoption.partitions} if adoption else set()
        topics, topic = {topic for topic, *_ in logs}, selection.topic
        if topic in {topic for topic, *_ in adopted} - topics and selection.hours is not None:
            raise ConfigError(
                f"archive {self.ledger.archive} has adopted topic {topic}, and nobody knows the hours of its "
                "records: read it without `hours`"
            )
        logs |= adopted
        topics = {topic for topic, *_ in logs}
        if topic not in topics:
            raise ConfigError(
                f"archive {self.ledger.archive} in {self.ledger.store.url} has no topic {topic!r}; found "
                f"{', '.join(sorted(topics)) or 'no run yet'}"
            )
        partitions = {partition for name, partition, _ in logs if name == topic}
        if selection.partitions is not None and (unknown := selection.partitions - partitions):
            raise ConfigError(
                f"archive {self.ledger.archive} has no partition {', '.join(map(str, sorted(unknown)))} of {topic}; "
                f"found {', '.join(map(str, sorted(partitions)))}"
            )
        newest = max(generation for name, _, generation in logs if name == topic)
        if selection.generation is not None and selection.generation > newest:
            raise ConfigError(
                f"archive {self.ledger.archive} has no generation {selection.generation} of {topic}: the newest is "
                f"{newest}"
            )


def open_archive(
    url: str,
    archive: str,
    options: Mapping[str, str] | None = None,
    master_keys: Mapping[str, str] | None = None,
) -> ArchiveReader:
    """Open an archive to read it. Makes no request.

    :param url: the archive's `store.url`.
    :param archive: its name.
    :param options: address and credentials of the store, named as boto3 names them: `endpoint_url`, `region_name`,
        `aws_access_key_id`, … None: boto3 finds them.
    :param master_keys: of encrypted archives, `secret` (32 bytes in base64) or `kms_key_id`, and `previous_secrets`.
    :raises ConfigError: the URL, an option or a key is wrong.
    """
    endpoints = Endpoints(kafka={}, store=options or {}, master_keys=master_keys or {})
    return ArchiveReader(Ledger(open_store(url, endpoints.store), archive, keyring_of(endpoints)))


def _slices(selection: Selection, plan: Plan) -> Iterator[Slice]:
    """Yield the offsets of a plan that are wanted."""
    for part in plan.partitions:
        if selection.takes(part.topic, part.partition, part.generation):
            for start, end in part.ranges:
                if start < selection.offsets.end and selection.offsets.start < end:
                    yield Slice(part.topic, part.partition, part.generation, Range(start, end), plan.number)


def _in_order(runs: Sequence[Run]) -> Iterator[tuple[str, list[Slice]]]:
    """Yield the runs with their offsets, so that the offsets of each partition rise.

    A run whose offsets lie before and behind those of another run comes twice.
    """
    names = {run.number: run.name for run in runs}
    queues: dict[tuple[str, int], deque[Slice]] = {}
    for part in sorted(part for run in runs for part in run.slices):
        queues.setdefault((part.topic, part.partition), deque()).append(part)
    while queues:
        number = min(queue[0].run for queue in queues.values())
        slices = []
        for queue in queues.values():
            while queue and queue[0].run == number:
                slices.append(queue.popleft())
        queues = {place: queue for place, queue in queues.items() if queue}
        yield names[number], slices


def _records(written: Written, part: Slice, selection: Selection) -> Iterator[pa.RecordBatch]:
    accounts = [
        account
        for account in written.manifest.chunks
        if (account.topic, account.partition, account.generation) == (part.topic, part.partition, part.generation)
        and account.start in part.offsets
        and account.start < selection.offsets.end
        and selection.offsets.start < account.end
    ]
    for account in sorted(accounts, key=lambda account: account.start):
        yield from _of_chunk(written, account, selection)


def _of_chunk(written: Written, account: ChunkAccount, selection: Selection) -> Iterator[pa.RecordBatch]:
    entries = sorted(filter(selection.may_have, written.objects_of(account)), key=lambda entry: entry.first_offset)
    with Copies() as copies:
        # Before any record is given, all objects of the chunk are compared with their checksums.
        sources = [_rows(written, entry, selection, written.whole(entry, copies)) for entry in entries]
        known = all(map(written.knows_offsets, entries))
        for batch in merged(sources, OFFSET.name) if known else (batch for source in sources for batch in source):
            yield _without_own_column(batch)


def _rows(
    written: Written, entry: ObjectEntry, selection: Selection, batches: Iterator[pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    target = written.target(entry)
    for batch in batches:
        rows = selection.rows(batch, entry, target, OFFSET.name)
        if rows.num_rows:
            yield rows


def _without_own_column(batch: pa.RecordBatch) -> pa.RecordBatch:
    """Return a batch without the column of this module; of values alone, with `offset` before them."""
    offsets, records = batch.column(OFFSET.name), batch.drop_columns([OFFSET.name])
    if is_values(records):
        fields = [OFFSET.with_name("offset"), records.schema.field(0)]
        return pa.RecordBatch.from_arrays([offsets, records.column(0)], schema=pa.schema(fields))
    return records
