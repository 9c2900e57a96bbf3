"""Writes one chunk: takes record batches, returns pending uploads and an account."""

import logging
import time
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing

import numpy as np
import pyarrow as pa

from kafka_archiver.messages.errors import IntegrityError
from kafka_archiver.model.chunk_accounts import ChunkAccount, Witness
from kafka_archiver.model.plan import Chunk
from kafka_archiver.records.pipeline.base import rows_where
from kafka_archiver.records.pipeline.runner import Counts
from kafka_archiver.records.pipeline.variants import Variants
from kafka_archiver.records.writer.bad_records import BadRecords
from kafka_archiver.records.writer.chunk_objects import ChunkObjects
from kafka_archiver.records.writer.disk import LateDirectory
from kafka_archiver.records.writer.offset_tally import OffsetTally
from kafka_archiver.records.writer.openers import archived
from kafka_archiver.records.writer.record_limits import RecordLimits
from kafka_archiver.records.writer.result import ChunkResult, Limits, WriteJob, WrittenObject
from kafka_archiver.records.writer.split import blocks, gathered
from kafka_archiver.records.writer.upload import Sender
from kafka_archiver.store.base import Store
from kafka_archiver.values.columns import column
from kafka_archiver.values.gaps import count, pack

log = logging.getLogger(__name__)


def write_chunk(
    chunk: Chunk, batches: Iterable[pa.RecordBatch], job: WriteJob, store: Store, limits: Limits
) -> ChunkResult:
    """Write the records of one chunk as objects that are invisible until the driver completes their uploads.

    The objects depend only on the chunk, the records and the job's settings: not on the size of batches, nor on the
    limits. On any error all uploads are aborted and all temporary files removed.

    :param batches: as readers give them, with strictly increasing offsets. Columns: `formats.base.VALUE` or, for
        `content: record`, `RECORD` without topic and partition; `UNREAD` too if a record is not complete.
    :raises IntegrityError: the offsets are not increasing, or are outside the chunk.
    """
    started = time.monotonic()
    tally = OffsetTally(chunk)
    aside = job.set_aside(chunk)
    variants = variants_of(job, chunk, limits.max_paths)
    watch = RecordLimits(limits.record_seconds, limits.record_memory_bytes) if job.runs_code else RecordLimits()
    left_out: dict[int, str] = {}
    opener = archived(chunk, job, variants)
    last: pa.RecordBatch | None = None
    with (
        closing(LateDirectory(limits.spill_directory)) as directory,
        Sender(store, limits.upload_threads) as sender,
        closing(ChunkObjects(chunk, job, limits, sender, directory, opener, variants.paths)) as filed,
        closing(BadRecords(chunk, job, limits, sender)) as bad_records,
    ):

        def kept() -> Iterator[Sequence[tuple[int, pa.RecordBatch]]]:
            nonlocal last
            for batch in rejected(chunk, batches, job.rejected_by) if job.rejected_by else batches:
                if not batch.num_rows:
                    continue
                tally.see(column(batch, "offset"), column(batch, "timestamp"))
                last = batch.slice(batch.num_rows - 1)
                for piece, passed in watch.each(batch, variants.run):
                    if passed.rejected:
                        bad_records.take(piece, passed.rejected)
                        left_out.update({offset: aside[offset] for offset in passed.rejected if offset in aside})
                    if passed.kept:
                        yield passed.kept

        files = gathered(kept(), limits.block_bytes)
        for variant, part, batch in blocks(files, limits.block_bytes):
            filed.write(variant, part, batch)
        objects = filed.finish()
        letters = bad_records.finish()
        account = _account(chunk, tally, variants.counts, job.bad_record == "dead_letter", _witness(last), left_out)
        _require_rows(chunk, "archived", objects, variants.counts.rows)
        _require_rows(chunk, "dead-lettered", letters, account.dead_lettered)
        objects += letters
    seconds = max(time.monotonic() - started, 1e-6)
    log.info(
        "chunk %s: %s records, %d objects, %.1f MB, %s records/s",
        chunk,
        f"{tally.seen:,}",
        len(objects),
        sum(o.upload.size for o in objects) / 1e6,
        f"{tally.seen / seconds:,.0f}",
    )
    return ChunkResult(account=account, objects=objects)


def variants_of(job: WriteJob, chunk: Chunk, most: int | None = None) -> Variants:
    """Return what a job makes of a chunk's records. :param most: the most paths of the chunk."""
    aside = job.set_aside(chunk)
    return Variants(job.settings, chunk.topic, job.decoded, job.schemas, chunk, job.keys, most, aside)


def _witness(last: pa.RecordBatch | None) -> Witness | None:
    """The last record that was seen, also if it was not archived. A later run recognises the log by it."""
    if last is None:
        return None
    value = last.column("value")[0].as_py()
    crc = None if value is None else f"{zlib.crc32(value):08x}"
    return Witness(offset=int(column(last, "offset")[0]), timestamp=int(column(last, "timestamp")[0]), value=crc)


def _require_rows(chunk: Chunk, what: str, objects: Iterable[WrittenObject], expected: int) -> None:
    written = sum(o.rows for o in objects)
    if written != expected:
        raise _fault(chunk, f"expected {expected} {what} rows, found {written} in its objects")


def _account(
    chunk: Chunk,
    tally: OffsetTally,
    counts: Counts,
    dead_letters: bool,
    last: Witness | None,
    set_aside: Mapping[int, str],
) -> ChunkAccount:
    gaps = tally.gaps()
    absent = count(gaps)
    counted = counts.archived + counts.filtered + counts.rejected
    if (counted, tally.seen + absent) != (tally.seen, chunk.end - chunk.start):
        what = f"{counts.archived} archived, {counts.filtered} filtered and {counts.rejected} rejected"
        raise _fault(chunk, f"{tally.seen} offsets seen and {absent} not seen, {what} do not add up")
    dead_lettered = counts.rejected if dead_letters else 0
    # Without validation: a compacted chunk may have half a million gaps, which take a second to validate.
    return ChunkAccount.model_construct(
        **chunk.model_dump(),
        archived=counts.archived,
        filtered=counts.filtered + counts.rejected - dead_lettered,
        dead_lettered=dead_lettered,
        absent=absent,
        absent_ranges=pack(chunk.start, chunk.end, gaps),
        lost_ranges=(),
        lost=0,
        last=last,
        disorder=tally.disorder,
        rows=None if counts.rows == counts.archived else counts.rows,
        unnamed=counts.unnamed,
        set_aside=tuple(set_aside.items()),
    )


def _fault(chunk: Chunk, what: str) -> IntegrityError:
    return IntegrityError(
        f"{chunk}: {what}. Nothing of this chunk is stored; this is a fault of the writer, please report it."
    )


def rejected(chunk: Chunk, batches: Iterable[pa.RecordBatch], jobs: Sequence[WriteJob]) -> Iterator[pa.RecordBatch]:
    """The records that every one of the jobs rejects, as they came. Some batches may be empty.

    :param batches: whole records, as readers give them.
    """
    pipelines = [variants_of(job, chunk) for job in jobs]
    for batch in batches:
        kept = batch
        for pipeline in pipelines:
            if kept.num_rows:
                reasons = pipeline.run(kept).rejected
                kept = rows_where(kept, np.isin(column(kept, "offset"), list(reasons)))
        yield kept
