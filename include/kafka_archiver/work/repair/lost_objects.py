"""Record what a run has lost for ever, by name: objects that cannot be recovered, offsets that no client can read."""

import logging
from collections.abc import Collection
from typing import NoReturn

from kafka_archiver.context.archive_context import Context
from kafka_archiver.context.clocks import read_clocks
from kafka_archiver.context.line import Line, append_plan, read_line, tidy_line
from kafka_archiver.context.run_documents import write_repair_manifest
from kafka_archiver.ledger.ledger import Ledger
from kafka_archiver.messages.actions import advise
from kafka_archiver.messages.advice import repair
from kafka_archiver.messages.errors import ConfigError, TransientError
from kafka_archiver.model.manifest import Manifest
from kafka_archiver.model.object_keys import interval_of
from kafka_archiver.model.plan import Plan
from kafka_archiver.model.set_aside import OffsetsAside, SetAside
from kafka_archiver.planning.survey import TRIES
from kafka_archiver.store.object_check import is_there
from kafka_archiver.values.ranges import subtract
from kafka_archiver.work.close_hours import close_hours
from kafka_archiver.work.commit import commit
from kafka_archiver.work.revision import effective_revision, revised_plan

log = logging.getLogger(__name__)


def record_lost(context: Context, run: str, keys: Collection[str], given_up: Collection[str] = ()) -> Plan:
    """Record objects of a run as lost, and prove its hours again. Returns the plan that counts from now on.

    A second call continues a stopped one. Objects that have come back meanwhile are not lost.

    :param given_up: the objects that are lost even if they are there as promised.
    :raises ConfigError: the run has no such object, or another one has replaced it.
    :raises IntegrityError: its manifest is not the one that was committed.
    :raises TransientError: other planners were faster at every try.
    """
    for _ in range(TRIES):
        line = _tidied_line(context, run)
        old, final = effective_revision(context, line, run)
        if old.origin == "repair" and not final:
            _finish_repair(context, old)
            continue
        before = context.ledger.sound_manifest(old.run)
        if before is None:
            raise ConfigError(f"run {old.run} of archive {context.archive.archive} has written nothing yet")
        known = {o.key: o for o in before.stored}
        requested = set(keys) - {o.key for o in before.lost_objects}
        if unknown := requested - known.keys():
            raise ConfigError(
                f"run {run} of archive {context.archive.archive} has been replaced by another run meanwhile, or never "
                f"had an object {min(unknown)}; nothing has changed.",
                *advise("Look again: ", repair(context.archive.archive)),
            )
        lost = [key for key in sorted(requested) if key in given_up or not is_there(context.store, known[key])]
        if not lost:
            return old
        repair_plan = _plan_repair(context, line, old, final, before, lost)
        if not append_plan(context, line, repair_plan):
            continue
        if _tidied_line(context, run, repair_plan.run).outcome_of(repair_plan.run) is None and _finish_repair(
            context, repair_plan
        ):
            log.warning("run %s: %d objects of run %s are recorded as lost", repair_plan.run, len(lost), old.run)
            return repair_plan
    raise TransientError(f"other planners of archive {context.archive.archive} were faster {TRIES} times; try again")


def _tidied_line(context: Context, run: str, own: str = "") -> Line:
    """Return the tidied line. Rebuilds of other runs stay, because they may be at work."""
    line = read_line(context)
    other_runs = [w.plan.run for w in line.waiting if w.plan.interval.id != interval_of(run)]
    return tidy_line(context, line, [*other_runs, own])


def _plan_repair(context: Context, line: Line, old: Plan, final: bool, before: Manifest, lost: Collection[str]) -> Plan:
    return revised_plan(
        context,
        line,
        old,
        read_clocks(context),
        takes_over=not final,
        lost_objects=tuple(sorted({*lost, *(o.key for o in before.lost_objects)})),
        origin="repair",
        settings=old.settings,
        policies=old.policies,
        schemas=old.schemas,
        partitions=tuple(p.again() for p in old.partitions),
    )


def _finish_repair(context: Context, plan: Plan) -> bool:
    """Finish a repair. False when another process has given it up."""
    context.ledger.file_plan(plan)
    write_repair_manifest(context, plan)
    commit(context, [plan.run])
    if not context.ledger.is_final(plan.run):
        return False
    close_hours(context, [plan.run])
    return True


def give_up_offsets(ledger: Ledger, run: str, offsets: OffsetsAside) -> None:
    """Record that attempts of a run do not read these offsets.

    :raises ConfigError: the run does not read them, or has ended, or everything of it is written.
    :raises TransientError: other processes were faster at every try.
    """
    _require_reads(ledger, _plan_of(ledger, run), offsets)
    for _ in range(TRIES):
        before = ledger.set_aside(run)
        aside = (before.document or SetAside(archive=ledger.archive, run=run)).with_unread(offsets)
        if aside == before.document:
            return
        if ledger.put_set_aside(aside, before):
            log.warning("run %s: the offsets %s of %s are given up", run, offsets.range, offsets.name)
            return
    raise TransientError(f"attempts of run {run} set records aside at the same time; try again")


def _plan_of(ledger: Ledger, run: str) -> Plan:
    plan = ledger.plan(run)
    if plan is None:
        raise ConfigError(
            f"archive {ledger.archive} has no run {run}; expected one of `airflow archive runs {ledger.archive}`"
        )
    return plan


def _require_reads(ledger: Ledger, plan: Plan, offsets: OffsetsAside) -> None:
    def refuse(why: str) -> NoReturn:
        raise ConfigError(f"the offsets {offsets.range} of {offsets.name} cannot be given up: {why}")

    if plan.letters or plan.origin == "repair":
        refuse(f"run {plan.run} reads nothing from Kafka")
    if commit := ledger.commit(plan.run):
        refuse(f"run {plan.run} has ended ({commit.outcome.replace('_', ' ')})")
    if ledger.manifest(plan.run):
        refuse(f"run {plan.run} has read everything, and its manifest says so")
    ranges = [each for p in plan.partitions if p.name == offsets.name for each in p.offset_ranges]
    if left := subtract(offsets.range, ranges):
        refuse(f"run {plan.run} does not read {left[0]}; it reads {', '.join(map(str, ranges)) or 'nothing'} there")
