"""One chunk: record batches in, pending uploads and an account out."""

import logging
import time
import zlib
from collections.abc import Iterable, Iterator
from contextlib import closing

import pyarrow as pa
import pyarrow.compute as pc

from kafka_archiver.errors import IntegrityError
from kafka_archiver.formats.base import RECORD, UNREAD, VALUE
from kafka_archiver.gaps import count, pack
from kafka_archiver.keys import is_dead_letter
from kafka_archiver.manifest import ChunkAccount, Witness
from kafka_archiver.plan import Chunk
from kafka_archiver.store.base import Store
from kafka_archiver.writer.disk import working_directory
from kafka_archiver.writer.offsets import OffsetTally
from kafka_archiver.writer.outputs import Outputs
from kafka_archiver.writer.result import ChunkResult, Limits, WriteJob
from kafka_archiver.writer.split import blocks, column
from kafka_archiver.writer.upload import Uploads

log = logging.getLogger(__name__)

_COLUMNS = {"value": VALUE.names, "record": RECORD.names[2:]}


def write_chunk(
    chunk: Chunk, batches: Iterable[pa.RecordBatch], job: WriteJob, store: Store, limits: Limits
) -> ChunkResult:
    """Write the records of one chunk as objects that nobody sees until the driver completes their uploads.

    The objects are a function of the chunk, the records and the job's settings alone; how the records are cut into
    batches and what the limits are cannot be told from them.

    :param batches: columns of `formats.base.VALUE` or, for `content: record`, of `RECORD` without topic and
        partition; `UNREAD` too, where a record could not be read whole; offsets strictly increasing.
    :raises IntegrityError: the offsets are not increasing, or not of this chunk.

    On any error all uploads are aborted and all temporary files removed.
    """
    started = time.monotonic()
    tally = OffsetTally(chunk)
    skip = job.settings.null_value == "skip"
    # A dead letter has all that Kafka had.
    columns = _COLUMNS["record" if job.bad_record == "dead_letter" else job.settings.content]
    filtered = 0

    last: pa.RecordBatch | None = None

    def wanted() -> Iterator[pa.RecordBatch]:
        nonlocal filtered, last
        for batch in batches:
            if not batch.num_rows:
                continue
            tally.see(column(batch, "offset"), column(batch, "timestamp"))
            last = batch.slice(batch.num_rows - 1)
            kept = batch.select(columns + [UNREAD.name] * (UNREAD.name in batch.schema.names))
            if skip and kept.column("value").null_count:
                kept = kept.filter(pc.is_valid(kept.column("value")))
                filtered += batch.num_rows - kept.num_rows
            if kept.num_rows:
                yield kept

    with (
        working_directory(limits.spill_directory) as directory,
        Uploads(store, limits.upload_threads) as uploads,
        closing(Outputs(chunk, job, limits, uploads, directory)) as outputs,
    ):
        for hour, batch in blocks(wanted(), limits.block_bytes):
            outputs.write(hour, batch)
        objects = outputs.finish()
        dead_lettered = sum(o.rows for o in objects if is_dead_letter(o.upload.key))
        archived = sum(o.rows for o in objects) - dead_lettered
        account = _account(chunk, tally, archived, filtered + outputs.skipped, dead_lettered, _witness(last))
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


def _witness(last: pa.RecordBatch | None) -> Witness | None:
    """By what the log is known again: the last record that was seen, whatever became of it."""
    if last is None:
        return None
    value = last.column("value")[0].as_py()
    crc = None if value is None else f"{zlib.crc32(value):08x}"
    return Witness(offset=int(column(last, "offset")[0]), timestamp=int(column(last, "timestamp")[0]), value=crc)


def _account(
    chunk: Chunk, tally: OffsetTally, archived: int, filtered: int, dead_lettered: int, last: Witness | None
) -> ChunkAccount:
    gaps = tally.gaps()
    absent = count(gaps)
    if (archived + filtered + dead_lettered, tally.seen + absent) != (tally.seen, chunk.end - chunk.start):
        raise IntegrityError(
            f"{chunk}: {tally.seen} offsets seen and {absent} not seen, {archived} records written, {filtered} "
            f"filtered and {dead_lettered} dead-lettered do not add up. Nothing of this chunk is stored; this is a "
            "fault of the writer, please report it."
        )
    # Not validated again: a compacted chunk has half a million gaps, and to look at each would take a second.
    return ChunkAccount.model_construct(
        **chunk.model_dump(),
        archived=archived,
        filtered=filtered,
        dead_lettered=dead_lettered,
        absent=absent,
        absent_ranges=pack(chunk.start, chunk.end, gaps),
        lost_ranges=(),
        lost=0,
        last=last,
        disorder=tally.disorder,
    )
