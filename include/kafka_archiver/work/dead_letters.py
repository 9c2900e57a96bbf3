"""Dead letters come back: today's settings archive them, once the cause is mended.

A replay is a revision of each run, which reads the letters and keeps the other objects.
"""

import logging
from collections import Counter
from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import NamedTuple

from kafka_archiver.context.archive_context import Context
from kafka_archiver.context.clocks import read_clocks
from kafka_archiver.context.line import Line, read_line
from kafka_archiver.messages.errors import ConfigError, TransientError
from kafka_archiver.model.manifest import ObjectEntry
from kafka_archiver.model.plan import DeadLetters, Plan
from kafka_archiver.model.settings import Settings
from kafka_archiver.planning.schemas import FrozenSchemas, freeze_schemas
from kafka_archiver.planning.settings import settings_of
from kafka_archiver.planning.time_settings import with_wall_clock
from kafka_archiver.records.pipeline.variants import Variants
from kafka_archiver.records.writer.dead_letter_reader import read_letters
from kafka_archiver.values.intervals import to_hour
from kafka_archiver.values.threads import each
from kafka_archiver.work.planned_work import PlannedWork, prepare_work
from kafka_archiver.work.revision import (
    append_revision,
    effective_revision,
    rewriting_plan,
    time_origin,
    unfinished_revisions,
)

log = logging.getLogger(__name__)


class HourRange(NamedTuple):
    """From the hour of one moment to that of another, both included."""

    first: datetime
    last: datetime


class RunWithLetters(NamedTuple):
    """A run that counts, with its objects of dead letters."""

    plan: Plan
    letters: tuple[ObjectEntry, ...]

    @property
    def rows(self) -> int:
        """The number of its dead letters."""
        return sum(o.rows for o in self.letters)


def runs_with_letters(context: Context, selection: Iterable[str] | HourRange | None) -> list[RunWithLetters]:
    """Return the runs with dead letters, in the line's order.

    :param selection: names of runs; the hours of the letters; None: all runs. For the last two, every run of the
        archive is looked at.
    :raises ConfigError: there is no such run, or it is not final yet.
    """
    line = read_line(context)
    if selection is None or isinstance(selection, HourRange):
        candidates = each(lambda n: _run_at(context, n), range(1, line.last + 1))
        return [run for run in candidates if run and run.letters and (not selection or _has_letters_of(run, selection))]
    plans = {}
    for run in selection:
        plan, final = effective_revision(context, line, run)
        if not final:
            raise ConfigError(
                f"run {plan.run} of archive {plan.archive} is not final yet, and only a final run has dead letters to "
                "replay. The next run finishes it"
            )
        plans[plan.number] = plan
    return [lettered for number in sorted(plans) if (lettered := _with_letters(context, plans[number])).letters]


def _run_at(context: Context, number: int) -> RunWithLetters | None:
    """Return the run at a place of the line, if it counts."""
    plan = context.ledger.planned(number)
    counts = plan and context.ledger.is_final(plan.run) and context.ledger.superseded_by(plan.run) is None
    return _with_letters(context, plan) if plan and counts else None


def _with_letters(context: Context, plan: Plan) -> RunWithLetters:
    manifest = context.ledger.sound_manifest(plan.run)
    return RunWithLetters(plan, manifest.dead_letters if manifest else ())


def _has_letters_of(lettered: RunWithLetters, hours: HourRange) -> bool:
    numbers = range(to_hour(hours.first), to_hour(hours.last) + 1)
    return any(hour in numbers for item in lettered.letters for hour in item.hours if hour is not None)


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


# Different reasons to remember. Some name a length or a number.
REASONS = 20


class ReplayForecast(NamedTuple):
    """The number of dead letters of a run that today's settings would archive, filter, or still reject, and why."""

    run: str
    letters: int
    archived: int
    filtered: int
    rejected: int
    reasons: tuple[str, ...]


def forecast_replay(context: Context, lettered: RunWithLetters) -> ReplayForecast:
    """Read a run's dead letters by today's settings.

    :raises IntegrityError: a dead letter is damaged.
    :raises ArchiverError: as the replay's own planning, if the schemas cannot be had.
    """
    settings = settings_for(context, lettered.plan).without_spark()
    frozen = schemas_for(context, lettered.plan, settings)
    # One for each partition.
    chunks = {chunk.name: chunk for chunk in lettered.plan.chunks()}
    pipelines = {
        name: Variants(settings, name.topic, frozen.schemas, frozen.texts, chunk, context.keys)
        for name, chunk in chunks.items()
    }
    reasons: Counter[str] = Counter()
    writers = [context.ledger.writer_of(lettered.plan, o.key) for o in lettered.letters]
    keys = {key: context.ledger.open_key(key) for key in {writer.data_key for writer in writers} if key}
    for chunk in lettered.plan.chunks():
        place = (chunk.topic, chunk.partition, chunk.start)
        mine = [as_dead_letters(o) for o in lettered.letters if o.place == place]
        for batch in read_letters(context.store, chunk, mine, keys) if mine else ():
            for reason in pipelines[chunk.name].run(batch).rejected.values():
                if reason in reasons or len(reasons) < REASONS:
                    reasons[reason] += 1
    frequent = tuple(reason for reason, _ in reasons.most_common())
    counts = [pipeline.counts for pipeline in pipelines.values()]
    archived, filtered = sum(c.archived for c in counts), sum(c.filtered for c in counts)
    rejected = sum(c.rejected for c in counts)
    return ReplayForecast(lettered.plan.run, lettered.rows, archived, filtered, rejected, frequent)
