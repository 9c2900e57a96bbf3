"""`airflow archive audit`: check an archive against its ledger, and publish the report as the DAG's audit does."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from airflow.cli.cli_config import ActionCommand, lazy_load_command

from kafka_archiver.messages.errors import ArchiverError
from kafka_archiver.messages.wording import count
from kafka_archiver.orchestration.cli.completion import ALL
from kafka_archiver.orchestration.terminal.options import OUTPUT, option
from kafka_archiver.orchestration.terminal.output import Answer, Red, Table, print_answer

if TYPE_CHECKING:
    from kafka_archiver.audit.report import Report
    from kafka_archiver.config import Archive
    from kafka_archiver.store import Store

AUDIT = ActionCommand(
    name="audit",
    help="Check the archive against its ledger",
    description="""\
Check these archives, or all, against the ledger, from the store alone: every document is the one that was committed;
every plan is accounted for; the plans tile each partition's log without gap or overlap; every object is there with its
size and ETag, and no object is unexplained; the proofs of the hours and the progress are what the manifests give.
Changes nothing but the published report, _ledger/NAME/audit.json, which `status` and the page show. Who may not write
there gets the report all the same.

Every finding names a key or offsets. Errors make the archive damaged, or stop the next run (those at the brokers, with
--live); warnings (offsets that a policy has recorded as lost, a group that the next run will correct, …) do neither.

json and yaml: a list of reports, see docs/FORMAT.md: {archive, store, audited_at, deep, live, verdict (clean or
damaged), counts: {runs, objects, bytes, rows, hours, lost, read}, unfinished (a list of runs), findings (a list of
{kind, severity (error or warning), where, found, expected, what_to_do})}. Progress goes to stderr.

The exit code is 0 when there is no error, else 1 with the reason on stderr.""",
    func=lazy_load_command(f"{__name__}.show_audit"),
    args=(
        ALL,
        option(
            "--deep",
            action="store_true",
            help="Also read every object in full, by readers that share no code with the writers:\n"
            "its checksum, its rows and, with content: record, each offset, partition and hour",
        ),
        option(
            "--live",
            action="store_true",
            help="Also ask the brokers: topic ids, the group's offsets, what retention has deleted or soon will",
        ),
        OUTPUT,
    ),
)

SHOWN = 200


@print_answer
def show_audit(args: Namespace) -> Answer:
    """Audit these archives, or all."""
    from kafka_archiver.audit.inspection import audit
    from kafka_archiver.orchestration.cli.names import ask_each
    from kafka_archiver.orchestration.connections import open_archive, open_ledger

    def audit_archive(archive: Archive) -> Report:
        ledger = open_ledger(archive)
        cluster = open_archive(archive).cluster if args.live else None
        audited_at = datetime.now(UTC)
        # What is printed here goes to stderr.
        report = audit(archive, ledger.store, audited_at, args.deep, cluster, tell=print, keyring=ledger.keyring)
        _publish(ledger.store, report)
        return report

    reports, failures = ask_each(args.archives, audit_archive)
    damaged = [report.summary for report in reports if report.damage or report.stops]
    tables = [table for report in reports for table in _tables(report)]
    return Answer([report.model_dump() for report in reports], tables, [*failures, *damaged])


def _publish(store: Store, report: Report) -> None:
    """Publish the report for `status` and the page. Somebody who may only read can audit, too."""
    from kafka_archiver.audit.inspection import publish

    try:
        print(f"{report.archive}: the report is {store.url}/{publish(store, report)}")
    except ArchiverError as error:
        print(f"{report.archive}: `status` and the page do not know this report, because it cannot be written: {error}")


def _tables(report: Report) -> Iterator[Table]:
    counts = report.counts
    title = (
        f"{report.summary}\n{count(counts.runs, 'run')}, {count(counts.objects, 'object')} of "
        f"{count(counts.bytes, 'byte')} with {count(counts.rows, 'row')}, {count(counts.hours, 'hour')}"
        + f", {count(counts.read, 'object')} read"
        * report.deep
    )
    if report.unfinished:
        title += f"\nNot finished: {', '.join(report.unfinished)}"
    if len(report.findings) > SHOWN:
        title += f"\nThe first {SHOWN} of {len(report.findings):,} findings; `--output json` has all"
    shown = report.findings[:SHOWN]
    rows = [
        (Red("error") if f.severity == "problem" else f.severity, f.kind, f.subject, f.observed, f.expected)
        for f in shown
    ]
    advice = dict.fromkeys(f"{f.kind}: {f.advice}" for f in shown)
    below = ["", "what to do", *(f"- {line}" for line in advice)] if shown else []
    yield Table(("severity", "kind", "where", "found", "expected"), rows, title, below=below)
