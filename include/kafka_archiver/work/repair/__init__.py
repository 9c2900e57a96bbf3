"""Repair: correct what the audit finds wrong, or record it as lost."""

from collections.abc import Sequence

from kafka_archiver.context import Context
from kafka_archiver.context.line import read_line, tidy
from kafka_archiver.messages.errors import ConfigError
from kafka_archiver.work.planned_work import Work, work
from kafka_archiver.work.repair.derived_documents import derive
from kafka_archiver.work.repair.given_up_offsets import give_up
from kafka_archiver.work.repair.lost_objects import lose
from kafka_archiver.work.repair.recheck import look_again
from kafka_archiver.work.repair.repairs import Repairs, find
from kafka_archiver.work.repair.restored_documents import restore
from kafka_archiver.work.repair.sidecars import write_sidecars
from kafka_archiver.work.revision import counting

__all__ = ["Repairs", "derive", "find", "give_up", "look_again", "lose", "restore", "write_again", "write_sidecars"]


def write_again(context: Context, runs: Sequence[str]) -> Work:
    """The work of a DAG run that writes missing objects of these runs again, as long as Kafka has the records."""
    line = tidy(context, read_line(context))
    asked = [counting(context, line, run) for run in runs]
    plans = list({plan.run: plan for plan, _ in asked}.values())
    if not plans:
        raise ConfigError(f"no run of archive {context.archive.archive} is given; expected the runs to write again")
    *earlier, own = plans
    planned = work(context, [*(p for p in line.unfinished if p not in plans), *earlier], own)
    requested = {plan.run for plan in plans}
    final = {plan.run for plan, is_final in asked if is_final}
    return Work(
        planned.runs,
        tuple(run for run in planned.runs if run in requested or run in planned.archive),
        final=tuple(run for run in planned.runs if run in final),
    )
