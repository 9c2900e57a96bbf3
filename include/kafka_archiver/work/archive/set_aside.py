"""Freezes the records that attempts of a run leave out, so that every attempt and every replay leaves out the same."""

import logging
from collections.abc import Sequence
from dataclasses import replace

from kafka_archiver.ledger.ledger import Ledger
from kafka_archiver.messages.actions import advise
from kafka_archiver.messages.advice import plan_anew
from kafka_archiver.messages.errors import BadRecordError, PermanentError, TransientError
from kafka_archiver.model.manifest import Manifest
from kafka_archiver.model.plan import Plan
from kafka_archiver.model.set_aside import FatalRecordsError, RecordAside, SetAside
from kafka_archiver.records.writer.bad_records import choices
from kafka_archiver.records.writer.result import WriteJob

log = logging.getLogger(__name__)
TRIES = 5
# More records of one run than so many are no fault of theirs.
MOST_RECORDS = 100


def set_aside_of(ledger: Ledger, run: str, stored: Manifest | None) -> SetAside | None:
    """Return the records that attempts of a run leave out; those of a run with a manifest are in that."""
    aside = ledger.set_aside(run).document
    if stored is None:
        return aside
    return (aside or SetAside(archive=ledger.archive, run=run)).as_accounted(stored.chunks)


def freeze_fatal_records(ledger: Ledger, plan: Plan, job: WriteJob, fatal: FatalRecordsError) -> WriteJob:
    """Freeze that the run leaves out records that end processes. Returns the job that does.

    :raises BadRecordError: the policy `bad_record` is `fail`. Nothing is frozen then.
    :raises PermanentError: the run has a manifest, which says otherwise; or there are too many such records.
    """
    if job.bad_record == "fail":
        raise _bad_record_error(fatal.records, plan.archive)
    if ledger.manifest(plan.run):
        raise PermanentError(
            f"{fatal}. Run {plan.run} has a manifest already, and that record ended no process when it was written: "
            "another version of a library, or less memory? Replay the run where it ran before"
        )
    for _ in range(TRIES):
        before = ledger.set_aside(plan.run)
        known = before.document or SetAside(archive=plan.archive, run=plan.run)
        aside = known.with_records(fatal.records)
        if len(aside.records) > MOST_RECORDS:
            raise PermanentError(
                f"{fatal}. More than {MOST_RECORDS} records of run {plan.run} end the process that works on them: that "
                "is no fault of a record, but of the code of `transform`, a library, or `spark.record_seconds` and "
                "`spark.record_memory_bytes`.",
                *advise(
                    "Correct it. Then plan the run anew, without what was set aside: ",
                    plan_anew(plan.archive, plan.run),
                ),
            )
        if ledger.put_set_aside(aside, before):
            for record in fatal.records:
                log.warning("%s: `bad_record: %s` decides", record, job.bad_record)
            return replace(job, aside=aside)
    raise TransientError(
        f"other attempts of run {plan.run} set records aside at the same time; the next attempt reads them"
    )


def _bad_record_error(records: Sequence[RecordAside], archive: str) -> BadRecordError:
    first = records[0]
    same = {r.offset: r.reason for r in records if r.name == first.name}
    return BadRecordError(first.topic, first.partition, same, *choices(archive))
