"""Plan a replay of dead letters: a revision of each run, which reads the letters and keeps the other objects."""

import logging
from collections.abc import Iterable, Sequence

from kafka_archiver.context.archive_context import Context
from kafka_archiver.context.clocks import read_clocks
from kafka_archiver.context.line import Line, read_line
from kafka_archiver.messages.errors import ConfigError, TransientError
from kafka_archiver.model.manifest import ObjectEntry
from kafka_archiver.model.plan import DeadLetters, Plan, Settings
from kafka_archiver.planning.schemas import FrozenSchemas, freeze_schemas
from kafka_archiver.planning.settings import settings_of
from kafka_archiver.planning.time_settings import with_wall_clock
from kafka_archiver.work.dead_letters.lettered_runs import HourRange, runs_with_letters
from kafka_archiver.work.planned_work import PlannedWork, prepare_work
from kafka_archiver.work.revision import append_revision, rewriting_plan, time_origin, unfinished_revisions

log = logging.getLogger(__name__)


def replay_letters(context: Context, selection: Iterable[str] | HourRange | None) -> PlannedWork:
    """Plan the replay of the dead letters of some runs, with the archive's present settings.

    If no run has dead letters (any more), the work is that of the last run, which has nothing to read.

    :param selection: as of `runs_with_letters`.
    :raises ConfigError: there is no such run, or it is not final yet.
    """
    plans: list[Plan] = []
    for lettered in runs_with_letters(context, selection):
        plans.append(_plan_replay(context, lettered.plan.run, [plan.run for plan in plans]))
    line = read_line(context)
    planned = {plan.run for plan in plans}
    if not plans:
        return _nothing_to_replay(context, line)
    return prepare_work(context, [*(p for p in line.unfinished if p.run not in planned), *plans[:-1]], plans[-1])


def _nothing_to_replay(context: Context, line: Line) -> PlannedWork:
    final = [w.plan.run for w in line.waiting if w.outcome == "committed"]
    settled = (context.ledger.planned(number) for number in range(line.settled.settled, 0, -1))
    last = final[-1] if final else next((p.run for p in settled if p and context.ledger.is_final(p.run)), None)
    if last is None:
        raise ConfigError(f"archive {context.archive.archive} has no final run, so it has no dead letters to replay")
    log.info("no run has such dead letters: nothing to replay")
    return PlannedWork((last,), (), final=(last,))


def _plan_replay(context: Context, run: str, own: Sequence[str]) -> Plan:

    def begun(line: Line) -> Plan | None:
        plan = next(unfinished_revisions(line, run, "dead_letters"), None)
        return plan if plan and plan.settings.asked() == settings_for(context, plan).asked() else None

    def make(line: Line, old: Plan, final: bool) -> Plan:
        clocks = read_clocks(context)
        before = context.ledger.sound_manifest(old.run)
        if not final or before is None or not before.dead_letters:
            raise TransientError(f"run {old.run} was changed by others meanwhile; the next attempt looks again")
        settings = settings_for(context, old)
        frozen = schemas_for(context, old, settings)
        own = {
            "origin": "dead_letters",
            "lost_objects": tuple(sorted(o.key for o in before.lost_objects)),
            "letters": tuple(as_dead_letters(o) for o in before.dead_letters),
        }
        partitions = tuple(p.again() for p in old.partitions)
        return rewriting_plan(context, line, old, clocks, settings, frozen, partitions, **own)

    return append_revision(context, run, own, begun, make)


def as_dead_letters(entry: ObjectEntry) -> DeadLetters:
    """Return an object of dead letters as a plan freezes it."""
    return DeadLetters(key=entry.key, rows=entry.rows, bytes=entry.bytes, checksum=entry.checksum)


def settings_for(context: Context, old: Plan) -> Settings:
    """Return today's settings for the letters of a run. Its chunks stay: the account is by chunk."""
    kept = {"chunk_records": old.settings.chunk_records, "isolation": old.settings.isolation}
    settings = settings_of(context.archive, context.keys).model_copy(update=kept)
    return with_wall_clock(settings, old.planned_at, time_origin(context, old))


def schemas_for(context: Context, old: Plan, settings: Settings) -> FrozenSchemas:
    """Return the schemas of today with which the letters of a run are decoded. Raises as `freeze_schemas` does."""
    partitions = [p.again() for p in old.partitions]
    return freeze_schemas(context, settings, partitions, old.schemas, infers=False)
