"""`airflow archive audit`: check an archive against its ledger, and publish the report as the DAG's audit does."""

from argparse import Namespace
from collections.abc import Iterator
from datetime import UTC, datetime

from kafka_archiver.audit.inspection import audit, publish
from kafka_archiver.audit.report import Report
from kafka_archiver.config import Archive
from kafka_archiver.messages.errors import ArchiverError
from kafka_archiver.messages.wording import count
from kafka_archiver.orchestration.cli.find import ask_each
from kafka_archiver.orchestration.connections import open_archive, open_ledger
from kafka_archiver.orchestration.terminal.output import Answer, Red, Table, print_answer
from kafka_archiver.store import Store

SHOWN = 200


@print_answer
def show_audit(args: Namespace) -> Answer:
    """Audit these archives, or all."""

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
