"""The archive's present troubles, as in `airflow archive status`, and what is ok."""

from collections.abc import Iterable, Iterator
from datetime import datetime

from kafka_archiver.context.archive_context import Context
from kafka_archiver.context.line import Line, read_line
from kafka_archiver.messages.errors import ArchiverError
from kafka_archiver.state.doctor.check import Finding, ok, problem, tried
from kafka_archiver.state.status.condition import Observed, lag_of, observe, of_brokers
from kafka_archiver.state.status.damage import of_audit
from kafka_archiver.state.status.facts import Facts
from kafka_archiver.state.status.running import of_runs
from kafka_archiver.state.status.standing import of_records, run_at_place, split_accepted
from kafka_archiver.state.status.unread import of_unread_topics

GROUP = "group"


def check_condition(context: Context, facts: Facts, kafka: bool) -> Iterator[Finding]:
    """Check the brokers against the ledger, the last audit, and the runs.

    :param kafka: whether the brokers answer and have a topic of the archive.
    """
    line, lag = None, None
    try:
        line = read_line(context)
        if kafka:
            observed = observe(context)
            lag = lag_of(context, observed)
            yield from _group(context, observed)
            yield from _accepted_or_not(context, of_unread_topics(context, observed.line))
    except ArchiverError as error:
        means = "" if line else "the group cannot be compared with the ledger"
        yield problem(GROUP if line else "ledger", str(error), means)
    if line:
        settled_line, archive = line, context.archive.archive
        audit = of_audit(context.ledger, settled_line.settled.settled, facts.audit_paused)
        yield from tried("audit", lambda: _accepted_or_not(context, audit))
        yield from tried(
            "records",
            lambda: _accepted_or_not(context, of_records(archive, settled_line.settled, run_at_place(context.ledger))),
        )
    yield from check_runs(context.archive.archive, facts, line, lag, context.clock(), context)


def _accepted_or_not(context: Context, findings: Iterable[Finding]) -> Iterator[Finding]:
    standing = split_accepted(context.ledger, findings)
    return map(_check, (*standing.open, *standing.accepted))


def _group(context: Context, observed: Observed) -> Iterator[Finding]:
    findings = list(of_brokers(context, observed))
    yield from map(_check, findings)
    if not findings:
        with_offset = sum(s.committed is not None for s in observed.partitions)
        group = context.archive.group
        yield ok(
            GROUP, f"{group} has no members and an offset for {with_offset} of {len(observed.partitions)} partitions"
        )
    if not any(finding.kind == "recreated topic" for finding in findings):
        yield ok("topic ids", "the same as in the ledger" if observed.known else "nothing is archived yet")


def check_runs(
    archive: str, facts: Facts, line: Line | None, lag: int | None, moment: datetime, context: Context | None = None
) -> Iterator[Finding]:
    """Check the runs. Parameters as of `of_runs`.

    :param context: None: nobody can ask what was accepted.
    """
    findings = list(of_runs(archive, facts, line, lag, moment))
    yield from tried("runs", lambda: _accepted_or_not(context, findings) if context and line else map(_check, findings))
    if not findings:
        settled = f"{line.settled.settled:,} settled, " if line else ""
        yield ok("runs", f"{settled}{len(facts.at_work(moment))} at work")


def _check(finding: Finding) -> Finding:
    """Return a finding of `status` as a check that says the same."""
    return finding.model_copy(update={"subject": "", "observed": finding.text, "means": ""})
