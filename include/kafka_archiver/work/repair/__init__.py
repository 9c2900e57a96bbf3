"""Repair: correct what the audit finds wrong, or record it as lost."""

from collections.abc import Sequence

from kafka_archiver.context.archive_context import Context
from kafka_archiver.context.line import read_line, tidy_line
from kafka_archiver.messages.errors import ConfigError
from kafka_archiver.work.planned_work import PlannedWork, prepare_work
from kafka_archiver.work.repair.derived_documents import derive_documents
from kafka_archiver.work.repair.lost_objects import give_up_offsets, record_lost
from kafka_archiver.work.repair.recheck import recheck_objects
from kafka_archiver.work.repair.repairs import Repairs, find_repairs
from kafka_archiver.work.repair.restored_documents import restore_document
from kafka_archiver.work.repair.sidecars import write_sidecars
from kafka_archiver.work.revision import effective_revision

__all__ = [
    "Repairs",
    "derive_documents",
    "find_repairs",
    "give_up_offsets",
    "recheck_objects",
    "record_lost",
    "restore_document",
    "write_again",
    "write_sidecars",
]


def write_again(context: Context, runs: Sequence[str]) -> PlannedWork:
    """Return the work of a DAG run that writes missing objects of these runs again, as long as Kafka has the
    records.
    """
    line = tidy_line(context, read_line(context))
    asked = [effective_revision(context, line, run) for run in runs]
    plans = list({plan.run: plan for plan, _ in asked}.values())
    if not plans:
        raise ConfigError(f"no run of archive {context.archive.archive} is given; expected the runs to write again")
    *earlier, own = plans
    planned = prepare_work(context, [*(p for p in line.unfinished if p not in plans), *earlier], own)
    requested = {plan.run for plan in plans}
    final = {plan.run for plan, is_final in asked if is_final}
    return PlannedWork(
        planned.runs,
        tuple(run for run in planned.runs if run in requested or run in planned.archive),
        final=tuple(run for run in planned.runs if run in final),
    )
