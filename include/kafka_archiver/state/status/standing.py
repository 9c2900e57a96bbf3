"""Findings that stand until a person accepts them by name, such as lost records and dead letters."""

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from kafka_archiver.ledger.ledger import Ledger
from kafka_archiver.messages.advice import acknowledge, last_hours, replay_all
from kafka_archiver.messages.errors import DocumentError
from kafka_archiver.messages.wording import count
from kafka_archiver.model.acknowledged import Acknowledgement
from kafka_archiver.model.findings import Finding, warning
from kafka_archiver.model.progress import Progress

LOST, DEAD_LETTERS = "recorded loss", "dead letters"
# Begins the name of a failed backfill, rebuild, replay or repair.
FAILED_REQUEST_NAME = "failed-request:"


class Standing(NamedTuple):
    """Findings, and those that somebody has accepted."""

    open: tuple[Finding, ...]
    accepted: tuple[Finding, ...]


def of_records(archive: str, settled: Progress) -> Iterator[Finding]:
    """Yield the findings that settled runs leave to a person. One more loss or dead letter is another finding."""
    if settled.lost:
        name = f"lost-offsets:{settled.lost_by}"
        yield warning(
            LOST,
            f"{count(settled.lost, 'offset')} are recorded as lost for ever{_up_to(settled.lost_by)}",
            last_hours(archive, 168, "to see the hours"),
            acknowledge(archive, name),
            means="The hours that may lack their records are incomplete for ever",
            name=name,
        )
    if settled.dead_letters:
        name = f"dead-letters:{settled.dead_lettered_by}"
        yield warning(
            DEAD_LETTERS,
            f"{count(settled.dead_letters, 'dead letter')}{_up_to(settled.dead_lettered_by)}",
            replay_all(archive).after("once their cause is corrected"),
            acknowledge(archive, name),
            means="They are not among the archived records",
            name=name,
        )


def _up_to(number: int) -> str:
    return f", by runs up to number {number:,}" if number else ""


def split_accepted(ledger: Ledger, findings: Iterable[Finding]) -> Standing:
    """Divide findings by whether somebody has accepted them. One request or more for each that has a name."""
    left: list[Finding] = []
    accepted: list[Finding] = []
    for finding in findings:
        try:
            decision = ledger.acknowledgement(finding.name) if finding.name else None
        except DocumentError as error:
            left.append(_undecided(finding, error))
            continue
        if decision and is_accepted(finding, decision):
            accepted.append(_accepted(finding, decision))
        else:
            left.append(finding)
    return Standing(tuple(left), tuple(accepted))


def is_accepted(finding: Finding, decision: Acknowledgement) -> bool:
    """Return whether a decision accepts this finding: a run that is cleared may fail again for another reason."""
    of_a_run = finding.name.startswith(FAILED_REQUEST_NAME)
    return decision.accepted and not (of_a_run and decision.observed != finding.text)


def _undecided(finding: Finding, error: DocumentError) -> Finding:
    """Return a finding whose decision nobody can read: it warns, and hides nothing else."""
    damaged = f"Whether somebody has accepted it is unknown: {error}; or delete the document, and accept it again"
    return finding.model_copy(update={"means": ". ".join(filter(None, (finding.means, damaged)))})


def _accepted(finding: Finding, decision: Acknowledgement) -> Finding:
    return finding.model_copy(
        update={"severity": "ok", "actions": (), "means": f"Accepted by {decision.who}"},
    )
