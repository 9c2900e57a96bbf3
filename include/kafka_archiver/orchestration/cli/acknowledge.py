"""`airflow archive acknowledge`: accept a finding by name, so that it warns no longer."""

from __future__ import annotations

import getpass
from argparse import Namespace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from airflow.cli.cli_config import ActionCommand, lazy_load_command

from kafka_archiver.orchestration.cli.completion import ANSWER, ARCHIVE
from kafka_archiver.orchestration.terminal.options import OUTPUT, option
from kafka_archiver.orchestration.terminal.output import Answer, Table, in_audit_log, print_answer

if TYPE_CHECKING:
    from kafka_archiver.config import Archive
    from kafka_archiver.model.acknowledged import Acknowledgement
    from kafka_archiver.model.findings import Finding

ACKNOWLEDGE = ActionCommand(
    name="acknowledge",
    help="Accept a finding by name, so that it warns no longer",
    description=f"""\
Accept a finding that stays until a person has looked at it: records that were recorded as lost, dead letters, an
archive that was never audited, a topic that the YAML names no longer, a failed backfill, rebuild, replay or repair.
`status`, `doctor`, the page and health show it no longer as a warning, but who has accepted it and when. Nothing else
changes: lost records stay lost. The name says what is accepted: dead-letters:12 are those of the runs up to number 12,
and one more is another finding.

json and yaml: {{archive, findings: a list of {{finding, state (waits, accepted or taken back), observed, by, at,
note}}}}.
{ANSWER}""",
    func=lazy_load_command(f"{__name__}.acknowledge"),
    args=(
        ARCHIVE,
        option("finding", nargs="?", metavar="FINDING", help="Its name, as --list shows it (default: list them)"),
        option("--list", action="store_true", help="Only list what waits, and what was accepted"),
        option("--undo", action="store_true", help="Take it back: the finding is a warning again"),
        option("--by", metavar="WHO", help="Who decides (default: the user of this machine)"),
        option("--note", default="", metavar="TEXT", help="Why"),
        OUTPUT,
    ),
)


@print_answer
@in_audit_log
def acknowledge(args: Namespace) -> Answer:
    """Accept a finding, take that back, or list both."""
    from kafka_archiver.orchestration.cli.names import find_archive
    from kafka_archiver.orchestration.connections import open_archive
    from kafka_archiver.orchestration.metadata.facts import facts_of
    from kafka_archiver.state.status.condition import open_findings
    from kafka_archiver.work.acknowledge import accept, take_back

    archive = find_archive(args.archive)
    context, facts = open_archive(archive), facts_of(archive, datetime.now(UTC))
    by = args.by or getpass.getuser()
    if args.finding and args.undo and not args.list:
        decision = take_back(context, args.finding, by, args.note)
        return _answer(archive, (), [decision], decision)
    findings = open_findings(context, facts)
    if args.finding and not args.list:
        decision = accept(context, findings, args.finding, by, args.note)
        return _answer(archive, (), [decision], decision)
    return _answer(archive, findings, context.ledger.acknowledgements(), None)


def _answer(
    archive: Archive,
    waiting: tuple[Finding, ...],
    decisions: list[Acknowledgement],
    decision: Acknowledgement | None,
) -> Answer:
    rows: list[dict[str, Any]] = [
        {"finding": f.name, "state": "waits", "observed": f.text, "by": None, "at": None, "note": None} for f in waiting
    ]
    rows += [
        {
            "finding": d.finding,
            "state": "accepted" if d.accepted else "taken back",
            "observed": d.observed,
            "by": d.by,
            "at": d.at,
            "note": d.note or None,
        }
        for d in decisions
        if d.accepted or decision or d.finding not in {f.name for f in waiting}
    ]
    title = f"Findings of {archive.archive}" if decision is None else f"{archive.archive}: {decision.finding}"
    table = Table(("finding", "state", "observed", "by", "at", "note"), [list(row.values()) for row in rows], title)
    return Answer({"archive": archive.archive, "findings": rows}, [table])
