"""`airflow archive acknowledge`: accept a finding by name, so that it warns no longer."""

import getpass
from argparse import Namespace
from datetime import UTC, datetime
from typing import Any

from kafka_archiver.config import Archive
from kafka_archiver.model.acknowledged import Acknowledgement
from kafka_archiver.model.findings import Finding
from kafka_archiver.orchestration.cli.find import find_archive
from kafka_archiver.orchestration.connections import open_archive
from kafka_archiver.orchestration.metadata.facts import facts_of
from kafka_archiver.orchestration.terminal.output import Answer, Table, print_answer
from kafka_archiver.state.acknowledge import accept, open_findings, take_back


@print_answer
def acknowledge(args: Namespace) -> Answer:
    """Accept a finding, take that back, or list both."""
    archive = find_archive(args.archive)
    context, facts = open_archive(archive), facts_of(archive, datetime.now(UTC))
    by = args.by or getpass.getuser()
    if args.finding and not args.list:
        decision = (
            take_back(context, args.finding, by, args.note)
            if args.undo
            else accept(context, facts, args.finding, by, args.note)
        )
        return _answer(archive, (), [decision], decision)
    return _answer(archive, open_findings(context, facts), context.ledger.acknowledgements(), None)


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
