"""`airflow archive status`: how far each archive is, and how far behind."""

from __future__ import annotations

import argparse
from argparse import Namespace
from collections import Counter
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, NamedTuple

from airflow.cli.cli_config import ActionCommand, lazy_load_command

from kafka_archiver.messages.advice import fill, replay_all
from kafka_archiver.messages.errors import ArchiverError, TransientError
from kafka_archiver.messages.wording import count, span
from kafka_archiver.orchestration.cli.completion import ALL, ANSWER
from kafka_archiver.orchestration.terminal.dialog import announce_wait
from kafka_archiver.orchestration.terminal.options import OUTPUT, option, positive
from kafka_archiver.orchestration.terminal.output import Answer, Cell, Red, Table, print_answer
from kafka_archiver.values.documents import isoformat

if TYPE_CHECKING:
    from kafka_archiver.config import Archive
    from kafka_archiver.context.archive_context import Context
    from kafka_archiver.messages.actions import Action
    from kafka_archiver.model.findings import Finding
    from kafka_archiver.model.partition_progress import PartitionProgress
    from kafka_archiver.state.overview import Snapshot
    from kafka_archiver.state.status import HourStatus


class _Hours(argparse.Action):
    """Without a number 24; Airflow's Arg has no `const`."""

    def __call__(
        self,
        parser: argparse.ArgumentParser,  # noqa: ARG002
        namespace: argparse.Namespace,
        values: str | Sequence[Any] | None,
        option_string: str | None = None,  # noqa: ARG002
    ) -> None:
        setattr(namespace, self.dest, values or 24)


STATUS = ActionCommand(
    name="status",
    help="How far each archive is, how far behind, and what is wrong with it",
    description=f"""\
Show how far these archives, or all, are, as the brokers, the ledger and Airflow know it. For each partition: the
group's committed offset, the offset up to which the ledger has it archived, the log's start and end, the number of
offsets that wait (the lag) and the time of the first of their records. Then: the last commit, the end of the
last closed hour (complete or incomplete), and the runs that are planned but not finished (the next run finishes them
first).
Below the table are what the last run wrote, with its dead letters, what the last audit found, and the problems and
warnings, each with the commands that help: what would stop the next run (a moved group, a recreated topic, lost
offsets), damage that the last audit found, runs that failed, are late, are stuck or have a date in the future, and
limits of `health` that are exceeded, and recent hours that are incomplete. If the brokers do not answer, it shows what
the ledger knows, and ends with 1. All of it is also on the archiver's page.
With --hours also the last hours, one by one: open (more may come), complete (nothing is missing) or incomplete (past,
and what is missing will not come by itself).

json and yaml: a list of {{archive, lag, oldest_unarchived, closed_until, last_commit: {{run, committed_at,
plan_digest, manifest_digest, …}}, unfinished (a list of runs), partitions (a list of {{topic, partition, committed,
archived_to, log_start, log_end, lag, oldest_unarchived, gone (removed by Kafka before they were archived)}}), lost
(offsets lost for ever), troubles (a list of {{name, severity (warning or problem), found, do (a list of commands)}}),
health (a list of {{name, verdict (ok, warning, unknown or failing), found, do}}), last_run: {{run, committed_at,
offsets, rows, bytes, objects, dead_letters, lost, seconds, cpu_seconds, retries}}, audit: {{at, deep, verdict,
errors, counts, damaged (a list of runs)}}, adopted (null, or what another tool wrote: {{tool, adopted_at, verdict,
objects, rows, bytes, loose, unproven}}), hours_open (ended hours without a verdict), incomplete (a list of
{{hour_start, reason, fillable, lost_by, accepted (somebody has accepted the losses for which it is incomplete)}}: the
incomplete ones of the last 72 closed hours), error (null, or why the brokers did not answer); with --hours also hours
(a list of {{hour_start, status (null: no run has looked at it yet), rows, bytes, objects, late_rows, dead_letters,
complete_as_of, closed_by}})}}. Null where there is nothing yet.
{ANSWER} Any problem gives 1; warnings do not.""",
    func=lazy_load_command(f"{__name__}.show_status"),
    args=(
        ALL,
        option(
            "--hours",
            nargs="?",
            action=_Hours,
            type=positive,
            metavar="N",
            help="Also show the last N hours (default: 24), including the present one",
        ),
        OUTPUT,
    ),
)

# Findings shown of each kind: a moved group is one for every partition.
SHOWN = 3


class ShownArchive(NamedTuple):
    """One archive, as the page has it too: its snapshot, its checks and, if wanted, its hours.

    `of_ledger`: what the ledger knows of the partitions, if the brokers do not answer.
    """

    snapshot: Snapshot
    of_ledger: tuple[PartitionProgress, ...]
    checks: list[Finding]
    asked_at: datetime
    hours: list[HourStatus] | None


@print_answer
def show_status(args: Namespace) -> Answer:
    """Show the status of these archives, or of all; also of those whose file is wrong or gone."""
    from kafka_archiver.config.archives import read_archives
    from kafka_archiver.context.line import read_line
    from kafka_archiver.orchestration.cli.names import ask_each
    from kafka_archiver.orchestration.connections import open_archive
    from kafka_archiver.orchestration.folder import config_folder
    from kafka_archiver.orchestration.metadata.facts import facts_of
    from kafka_archiver.orchestration.metadata.undeclared import checks_of_file, undeclared_archives
    from kafka_archiver.state.health.judge import checks_of
    from kafka_archiver.state.overview import take_snapshot
    from kafka_archiver.state.status import last_hours

    undeclared = undeclared_archives(read_archives(config_folder()))

    def ask(archive: Archive) -> ShownArchive:
        context, asked_at = open_archive(archive), datetime.now(UTC)
        with announce_wait(lambda: _describe_wait(context)):
            snapshot = take_snapshot(context, facts_of(archive, asked_at))
        if snapshot.state is None and snapshot.incomplete is None:
            # Not even the ledger can be read.
            raise TransientError(snapshot.error or "no answer")
        of_ledger = () if snapshot.state else read_line(context).settled.partitions
        hours = last_hours(context, args.hours, asked_at) if args.hours else None
        return ShownArchive(
            snapshot,
            of_ledger,
            [*checks_of_file(undeclared.get(archive.archive)), *checks_of(archive, snapshot, asked_at)],
            asked_at,
            hours,
        )

    statuses, failures = ask_each(args.archives, ask, {name: entry.archive for name, entry in undeclared.items()})
    tables: list[Table] = []
    for status in statuses:
        tables += [_table(status), *([hours_table(status.hours, _filled_by(status.snapshot))] if status.hours else [])]
    snapshots = [status.snapshot for status in statuses]
    failures += [f"{s.archive}: {undeclared[s.archive].fault}" for s in snapshots if s.archive in undeclared]
    for snapshot in snapshots:
        if snapshot.error:
            failures.append(f"{snapshot.archive}: {snapshot.error}")
        if snapshot.problems:
            failures.append(f"{snapshot.archive}: {count(len(snapshot.problems), 'problem')}")
    return Answer([_document(status) for status in statuses], tables, failures)


def _describe_wait(context: Context) -> Iterator[str]:
    """Yield what `status` waits for, and then what the ledger knows meanwhile."""
    name = context.archive.archive
    yield f"{name}: waiting for the brokers at {context.cluster.brokers}, and for the store at {context.store.url}"
    try:
        progress = context.ledger.progress()
    except ArchiverError:
        return
    if progress and progress.closed_until:
        yield f"{name}: by the ledger, hours are closed until {isoformat(progress.closed_until)}"


def _document(status: ShownArchive) -> dict[str, Any]:
    from kafka_archiver.state.health import as_check

    snapshot, state = status.snapshot, status.snapshot.state
    document = {
        "archive": snapshot.archive,
        "error": snapshot.error,
        "partitions": [p.model_dump() for p in state.partitions] if state else [_progress(p) for p in status.of_ledger],
        "last_commit": state.last_commit and state.last_commit.model_dump() if state else None,
        "closed_until": snapshot.closed_until,
        "unfinished": snapshot.unfinished,
        "lost": snapshot.lost,
        "dead_letters": snapshot.dead_letters,
        "accepted": [_finding_document(finding) for finding in snapshot.accepted],
        "troubles": [_finding_document(finding) for finding in snapshot.troubles],
        "lag": snapshot.lag,
        "oldest_unarchived": state.oldest_unarchived if state else None,
        "incomplete": [hour.model_dump() for hour in snapshot.incomplete or ()],
        "hours_open": snapshot.hours_open(status.asked_at),
        "health": [as_check(check) for check in status.checks],
        "last_run": {**snapshot.last_run.model_dump(), **_effort(snapshot)} if snapshot.last_run else None,
        "audit": snapshot.audit and snapshot.audit.model_dump(),
        "adopted": snapshot.adopted and snapshot.adopted.model_dump(),
    }
    return document if status.hours is None else {**document, "hours": [hour.model_dump() for hour in status.hours]}


def _finding_document(finding: Finding) -> dict[str, Any]:
    """Return a finding for programs."""
    return {"name": finding.kind, "severity": finding.severity, "found": finding.text, "do": finding.steps}


def _effort(snapshot: Snapshot) -> dict[str, float | None]:
    """Return what the DAG run took that finished the last run."""
    return {
        "seconds": snapshot.duration.total_seconds() if snapshot.duration else None,
        "cpu_seconds": snapshot.effort.cpu_seconds if snapshot.effort else None,
        "retries": snapshot.effort.retries if snapshot.effort else None,
    }


def _progress(partition: PartitionProgress) -> dict[str, Any]:
    """Return what the ledger alone knows of a partition."""
    return {"topic": partition.topic, "partition": partition.partition, "archived_to": partition.next}


def _table(status: ShownArchive) -> Table:
    snapshot = status.snapshot
    columns: tuple[str, ...] = ("topic", "partition", "archived to")
    rows: list[tuple[Cell, ...]] = [(p.topic, p.partition, p.next) for p in status.of_ledger]
    if snapshot.state:
        columns = ("topic", "partition", "committed", "archived to", "log start", "log end", "lag", "oldest unarchived")
        rows = [
            (p.topic, p.partition, p.committed, p.archived_to, p.log_start, p.log_end, p.lag, p.oldest_unarchived)
            for p in snapshot.state.partitions
        ]
    lost = f"{snapshot.lost:,} offsets lost for ever" if snapshot.lost else None
    below = [*_figures(snapshot), *_limits(status), *_findings(snapshot), *_accepted(snapshot)]
    return Table(columns, rows, f"{snapshot.archive}: {', '.join(_summary(snapshot))}", lost, below=below)


def _figures(snapshot: Snapshot) -> Iterator[str]:
    """Yield what the last run wrote, and what the last audit found."""
    if last := snapshot.last_run:
        took = f", in {span(snapshot.duration)}" if snapshot.duration else ""
        yield (
            f"last run: {count(last.rows, 'row')} in {count(last.objects, 'object')} of {count(last.bytes, 'byte')}"
            f"{took}, {count(last.dead_letters, 'dead letter')}"
        )
        if (wrote := snapshot.wrote) and wrote.runs > 1:
            yield (
                f"with {count(wrote.runs - 1, 'earlier run')} that its DAG run finished: "
                f"{count(wrote.records, 'record')}, {count(wrote.bytes, 'byte')}"
            )
        if last.dead_letters and not snapshot.dead_letters:
            # Settled by an earlier release, which did not count them.
            yield f"  - {replay_all(snapshot.archive)}"
    if audit := snapshot.audit:
        counts = audit.counts
        stored = f"; {count(counts.objects, 'object')} of {count(counts.bytes, 'byte')}" if counts else ""
        yield f"last audit: {audit.verdict} at {isoformat(audit.at)}{stored}"
    elif snapshot.last_run:
        yield "last audit: none yet"
    if adopted := snapshot.adopted:
        yield (
            f"adopted from {adopted.tool}: {count(adopted.rows, 'row')} in {count(adopted.objects, 'object')} of "
            f"{count(adopted.bytes, 'byte')}, {adopted.verdict}: {count(adopted.unproven, 'offset')} of which nobody "
            f"knows what Kafka had there, {count(adopted.loose, 'row')} without a known offset"
        )


def _limits(status: ShownArchive) -> Iterator[str]:
    """Yield the checks of health that are not ok, except those that only repeat a finding."""
    from kafka_archiver.state.health import VERDICTS

    for check in status.checks:
        if check.severity != "ok" and not check.sums_up:
            line = f"{VERDICTS[check.severity]}: {check.kind}: {check.text}"
            yield Red(line) if check.severity == "problem" else line
            yield from (f"  - {step}" for step in check.steps)


def _findings(snapshot: Snapshot) -> Iterator[str]:
    """Yield a line for each finding, with its commands; only the first ones of a kind."""
    kinds = Counter((finding.kind, finding.severity) for finding in snapshot.troubles)
    for (name, severity), number in kinds.items():
        alike = [finding for finding in snapshot.troubles if (finding.kind, finding.severity) == (name, severity)]
        for finding in alike[:SHOWN]:
            line = f"{severity}: {name}: {finding.text}"
            yield Red(line) if severity == "problem" else line
            yield from (f"  - {step}" for step in finding.steps)
        if number > SHOWN:
            line = f"{severity}: {name}: {number - SHOWN:,} more; `--output json` has all"
            yield Red(line) if severity == "problem" else line


def _accepted(snapshot: Snapshot) -> Iterator[str]:
    """Yield a line for each finding that a person has accepted: what, who and when."""
    yield from (f"accepted: {finding.kind}: {finding.text}" for finding in snapshot.accepted)


def _filled_by(snapshot: Snapshot) -> Action | None:
    """Return what archives the records that incomplete hours lack; None: nothing does."""
    return fill(snapshot.archive) if any(hour.fillable for hour in snapshot.incomplete or ()) else None


def hours_table(hours: list[HourStatus], filled_by: Action | None = None) -> Table:
    """Return a table of hours; hours before the first proof are only counted.

    :param filled_by: what archives the records that incomplete hours lack.
    """
    before = next((number for number, hour in enumerate(hours) if hour.status), 0)
    columns = ("hour", "status", "rows", "bytes", "objects", "late rows", "dead letters", "complete as of", "closed by")
    rows = [
        (h.hour_start, Red(h.status) if h.status == "incomplete" else h.status, h.rows, h.bytes, h.objects,
         h.late_rows, h.dead_letters, h.complete_as_of, h.closed_by)
        for h in hours[before:]
    ]  # fmt: skip
    lacking = sum(h.status == "incomplete" for h in hours)
    is_are = "is" if lacking == 1 else "are"
    alarm = f"{lacking} of {len(hours)} hours {is_are} incomplete: what is missing will not come by itself"
    alarm += f"; {filled_by.quoted} archives what Kafka still has" if filled_by else ""
    below = [f"nothing is known of {count(before, 'earlier hour')}"] if before else []
    return Table(columns, rows, None, alarm if lacking else None, below)


def _summary(snapshot: Snapshot) -> Iterator[str]:
    if state := snapshot.state:
        oldest = f", the oldest of {isoformat(state.oldest_unarchived)}" if state.oldest_unarchived else ""
        yield f"lag {state.lag:,}{oldest}"
        if state.last_commit:
            yield f"last commit {isoformat(state.last_commit.committed_at)} (run {state.last_commit.run})"
        else:
            yield "nothing committed yet"
    else:
        yield "lag unknown"
    yield f"closed until {isoformat(snapshot.closed_until)}" if snapshot.closed_until else "no hour closed yet"
    if snapshot.unfinished:
        yield f"unfinished: {', '.join(snapshot.unfinished)}"
