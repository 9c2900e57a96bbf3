"""The final runs that have dead letters."""

from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime
from typing import NamedTuple

from kafka_archiver.context.archive_context import Context
from kafka_archiver.context.line import read_line
from kafka_archiver.messages.errors import ConfigError
from kafka_archiver.model.manifest import ObjectEntry
from kafka_archiver.model.plan import Plan
from kafka_archiver.values.intervals import to_hour
from kafka_archiver.work.revision import effective_revision

THREADS = 16


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
        with ThreadPoolExecutor(THREADS) as pool:
            candidates = [
                lettered for lettered in pool.map(lambda n: _run_at(context, n), range(1, line.last + 1)) if lettered
            ]
        return [
            lettered
            for lettered in candidates
            if lettered.letters and (selection is None or _has_letters_of(lettered, selection))
        ]
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
    return any(hour in _hour_numbers(hours) for item in lettered.letters for hour in item.hours if hour is not None)


def _hour_numbers(hours: HourRange) -> Iterator[int] | range:
    return range(to_hour(hours.first), to_hour(hours.last) + 1)
