"""`airflow archive status`: how far each archive is, and how far behind."""

from argparse import Namespace
from collections import Counter
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any, NamedTuple

from kafka_archiver.config import Archive
from kafka_archiver.config.archives import config_folder, read_archives
from kafka_archiver.context.archive_context import Context
from kafka_archiver.context.line import read_line
from kafka_archiver.messages.advice import replay_all
from kafka_archiver.messages.errors import ArchiverError, TransientError
from kafka_archiver.messages.wording import count, span
from kafka_archiver.model.findings import Finding
from kafka_archiver.model.progress import PartitionProgress
from kafka_archiver.orchestration.cli.find import ask_each
from kafka_archiver.orchestration.connections import open_archive
from kafka_archiver.orchestration.metadata.facts import facts_of
from kafka_archiver.orchestration.metadata.former import checks_of_file, former
from kafka_archiver.orchestration.terminal.output import Answer, Cell, Red, Table, answering
from kafka_archiver.orchestration.terminal.patience import saying
from kafka_archiver.state.health import VERDICTS, as_check
from kafka_archiver.state.health.plugins import checks_of
from kafka_archiver.state.overview import Snapshot, look
from kafka_archiver.state.status import HourStatus, last_hours
from kafka_archiver.values.documents import isoformat

# Troubles shown of each kind: a moved group is one for every partition.
SHOWN = 3


class Shown(NamedTuple):
    """One archive, as the page has it too: its snapshot, its checks and, if wanted, its hours.

    `known`: what the ledger knows of the partitions, if the brokers do not answer.
    """

    snapshot: Snapshot
    known: tuple[PartitionProgress, ...]
    checks: list[Finding]
    now: datetime
    hours: list[HourStatus] | None


@answering
def show_status(args: Namespace) -> Answer:
    """Show the status of these archives, or of all; also of those whose file is wrong or gone."""
    known = former(read_archives(config_folder()))

    def is_former(one: Shown) -> bool:
        return one.snapshot.archive in known

    def ask(archive: Archive) -> Shown:
        context, now = open_archive(archive), datetime.now(UTC)
        with saying(lambda: _waiting(context)):
            seen = look(context, facts_of(archive, now))
        if seen.state is None and seen.incomplete is None:
            # Not even the ledger can be read.
            raise TransientError(seen.error or "no answer")
        of_ledger = () if seen.state else read_line(context).settled.partitions
        hours = last_hours(context, args.hours, now) if args.hours else None
        return Shown(
            seen, of_ledger, [*checks_of_file(known.get(archive.archive)), *checks_of(archive, seen, now)], now, hours
        )

    found, failures = ask_each(args.archives, ask, {name: one.archive for name, one in known.items()})
    failures += [f"{one.snapshot.archive}: {known[one.snapshot.archive].fault}" for one in found if is_former(one)]
    for seen in (one.snapshot for one in found):
        if seen.error:
            failures.append(f"{seen.archive}: {seen.error}")
        if seen.problems:
            failures.append(f"{seen.archive}: {count(len(seen.problems), 'problem')}")
    tables = [table for one in found for table in (_table(one), *([hours_table(one.hours)] if one.hours else []))]
    return Answer([_document(one) for one in found], tables, failures)


def _waiting(context: Context) -> Iterator[str]:
    """Yield what `status` waits for, and then what the ledger knows meanwhile."""
    name = context.archive.archive
    yield f"{name}: waiting for the brokers at {context.cluster.brokers}, and for the store at {context.store.url}"
    try:
        progress = context.ledger.progress()
    except ArchiverError:
        return
    if progress and progress.closed_until:
        yield f"{name}: by the ledger, hours are closed until {isoformat(progress.closed_until)}"


def _document(one: Shown) -> dict[str, Any]:
    seen, state = one.snapshot, one.snapshot.state
    document = {
        "archive": seen.archive,
        "error": seen.error,
        "partitions": [p.model_dump() for p in state.partitions] if state else [_of_ledger(p) for p in one.known],
        "last_commit": state.last_commit and state.last_commit.model_dump() if state else None,
        "closed_until": seen.closed_until,
        "unfinished": seen.unfinished,
        "lost": seen.lost,
        "dead_letters": seen.dead_letters,
        "accepted": [_trouble(finding) for finding in seen.accepted],
        "troubles": [_trouble(finding) for finding in seen.troubles],
        "lag": seen.lag,
        "oldest_unarchived": state.oldest_unarchived if state else None,
        "incomplete": [hour.model_dump() for hour in seen.incomplete or ()],
        "hours_open": seen.hours_open(one.now),
        "health": [as_check(check) for check in one.checks],
        "last_run": {**seen.last_run.model_dump(), **_effort(seen)} if seen.last_run else None,
        "audit": seen.audit and seen.audit.model_dump(),
    }
    return document if one.hours is None else {**document, "hours": [hour.model_dump() for hour in one.hours]}


def _trouble(finding: Finding) -> dict[str, Any]:
    """Return a finding for programs."""
    return {"name": finding.kind, "severity": finding.severity, "found": finding.text, "do": finding.steps}


def _effort(seen: Snapshot) -> dict[str, float | None]:
    """What the DAG run took that finished the last run."""
    return {
        "seconds": seen.duration.total_seconds() if seen.duration else None,
        "cpu_seconds": seen.effort.cpu_seconds if seen.effort else None,
        "retries": seen.effort.retries if seen.effort else None,
    }


def _of_ledger(known: PartitionProgress) -> dict[str, Any]:
    """What the ledger alone knows of a partition."""
    return {"topic": known.topic, "partition": known.partition, "archived_to": known.next}


def _table(shown: Shown) -> Table:
    seen = shown.snapshot
    columns: tuple[str, ...] = ("topic", "partition", "archived to")
    rows: list[tuple[Cell, ...]] = [(p.topic, p.partition, p.next) for p in shown.known]
    if seen.state:
        columns = ("topic", "partition", "committed", "archived to", "log start", "log end", "lag", "oldest unarchived")
        rows = [
            (p.topic, p.partition, p.committed, p.archived_to, p.log_start, p.log_end, p.lag, p.oldest_unarchived)
            for p in seen.state.partitions
        ]
    lost = f"{seen.lost:,} offsets lost for ever" if seen.lost else None
    below = [*_figures(seen), *_limits(shown), *_troubles(seen), *_accepted(seen)]
    return Table(columns, rows, f"{seen.archive}: {', '.join(_summary(seen))}", lost, below=below)


def _figures(seen: Snapshot) -> Iterator[str]:
    """What the last run wrote, and what the last audit found."""
    if last := seen.last_run:
        took = f", in {span(seen.duration)}" if seen.duration else ""
        yield (
            f"last run: {count(last.rows, 'row')} in {count(last.objects, 'object')} of {count(last.bytes, 'byte')}"
            f"{took}, {count(last.dead_letters, 'dead letter')}"
        )
        if (wrote := seen.wrote) and wrote.runs > 1:
            yield (
                f"with {count(wrote.runs - 1, 'earlier run')} that its DAG run finished: "
                f"{count(wrote.records, 'record')}, {count(wrote.bytes, 'byte')}"
            )
        if last.dead_letters and not seen.dead_letters:
            # Settled by an earlier release, which did not count them.
            yield f"  - {replay_all(seen.archive)}"
    if audit := seen.audit:
        counts = audit.counts
        stored = f"; {count(counts.objects, 'object')} of {count(counts.bytes, 'byte')}" if counts else ""
        yield f"last audit: {audit.verdict} at {isoformat(audit.at)}{stored}"
    elif seen.last_run:
        yield "last audit: none yet"


def _limits(shown: Shown) -> Iterator[str]:
    """The checks of health that are not ok, except those that only repeat a trouble."""
    for check in shown.checks:
        if check.severity != "ok" and not check.sums_up:
            line = f"{VERDICTS[check.severity]}: {check.kind}: {check.text}"
            yield Red(line) if check.severity == "problem" else line
            yield from (f"  - {step}" for step in check.steps)


def _troubles(one: Snapshot) -> Iterator[str]:
    """A line for each trouble, with its commands; only the first ones of a kind."""
    kinds = Counter((trouble.kind, trouble.severity) for trouble in one.troubles)
    for (name, severity), number in kinds.items():
        these = [trouble for trouble in one.troubles if (trouble.kind, trouble.severity) == (name, severity)]
        for trouble in these[:SHOWN]:
            line = f"{severity}: {name}: {trouble.text}"
            yield Red(line) if severity == "problem" else line
            yield from (f"  - {step}" for step in trouble.steps)
        if number > SHOWN:
            line = f"{severity}: {name}: {number - SHOWN:,} more; `--output json` has all"
            yield Red(line) if severity == "problem" else line


def _accepted(one: Snapshot) -> Iterator[str]:
    """A line for each finding that a person has accepted: what, who and when."""
    yield from (f"accepted: {finding.kind}: {finding.text}" for finding in one.accepted)


def hours_table(hours: list[HourStatus]) -> Table:
    """A table of hours; hours before the first proof are only counted."""
    before = next((number for number, hour in enumerate(hours) if hour.status), 0)
    columns = ("hour", "status", "rows", "bytes", "objects", "late rows", "dead letters", "complete as of", "closed by")
    rows = [
        (h.hour_start, Red(h.status) if h.status == "incomplete" else h.status, h.rows, h.bytes, h.objects,
         h.late_rows, h.dead_letters, h.complete_as_of, h.closed_by)
        for h in hours[before:]
    ]  # fmt: skip
    lacking = sum(h.status == "incomplete" for h in hours)
    alarm = f"{lacking} of {len(hours)} hours are past and incomplete: what is missing will not come by itself"
    below = [f"{count(before, 'earlier hour')} without a proof"] if before else []
    return Table(columns, rows, None, alarm if lacking else None, below)


def _summary(one: Snapshot) -> Iterator[str]:
    if state := one.state:
        oldest = f", the oldest of {isoformat(state.oldest_unarchived)}" if state.oldest_unarchived else ""
        yield f"lag {state.lag:,}{oldest}"
        if state.last_commit:
            yield f"last commit {isoformat(state.last_commit.committed_at)} (run {state.last_commit.run})"
        else:
            yield "nothing committed yet"
    else:
        yield "lag unknown"
    yield f"closed until {isoformat(one.closed_until)}" if one.closed_until else "no hour closed yet"
    if one.unfinished:
        yield f"unfinished: {', '.join(one.unfinished)}"
