"""Findings that stand until a person accepts them by name, such as lost records and dead letters."""

from collections.abc import Callable, Collection, Iterable, Iterator
from typing import NamedTuple

from kafka_archiver.ledger.ledger import Ledger
from kafka_archiver.messages.advice import acknowledge, last_hours, replay_all
from kafka_archiver.messages.errors import DocumentError
from kafka_archiver.messages.wording import count
from kafka_archiver.model.acknowledged import Acknowledgement
from kafka_archiver.model.findings import Finding, warning
from kafka_archiver.model.progress import Progress

LOST, DEAD_LETTERS = "recorded loss", "dead letters"
# Begins the name of a loss; the number of the last run that recorded one ends it.
_LOST_NAME = "lost-offsets:"


class Standing(NamedTuple):
    """Findings, and those that somebody has accepted."""

    open: tuple[Finding, ...]
    accepted: tuple[Finding, ...]


def of_records(archive: str, settled: Progress, run_at: Callable[[int], str | None]) -> Iterator[Finding]:
    """Yield the findings that settled runs leave to a person. One more loss or dead letter is another finding.

    :param run_at: names the run at a place of the line.
    """
    if settled.lost:
        name = f"{_LOST_NAME}{settled.lost_by}"
        yield warning(
            LOST,
            f"{count(settled.lost, 'offset')} {_is_are(settled.lost)} recorded as lost for ever"
            f"{_last(settled.lost_by, run_at)}",
            last_hours(archive, 168, "to see the hours"),
            acknowledge(archive, name),
            means="The hours that may lack their records are incomplete for ever",
            name=name,
        )
    if settled.dead_letters:
        name = f"dead-letters:{settled.dead_lettered_by}"
        yield warning(
            DEAD_LETTERS,
            f"{count(settled.dead_letters, 'record')} could not be archived and {_is_are(settled.dead_letters)} stored "
            f"as {'a dead letter' if settled.dead_letters == 1 else 'dead letters'}"
            f"{_last(settled.dead_lettered_by, run_at)}",
            replay_all(archive).after("once their cause is corrected"),
            acknowledge(archive, name),
            name=name,
        )


def _is_are(number: int) -> str:
    return "is" if number == 1 else "are"


def _last(number: int, run_at: Callable[[int], str | None]) -> str:
    run = run_at(number) if number else None
    return f", last by run {run}" if run else ""


def run_at_place(ledger: Ledger) -> Callable[[int], str | None]:
    """Return what names the run at a place of the line. One request for each that is asked for."""

    def run_at(number: int) -> str | None:
        try:
            plan = ledger.planned(number)
        except DocumentError:
            # The audit reports it.
            return None
        return plan.run if plan else None

    return run_at


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
        if decision and decision.accepts(finding):
            accepted.append(_accepted(finding, decision))
        else:
            left.append(finding)
    return Standing(tuple(left), tuple(accepted))


def accepted_losses(ledger: Ledger, lost_by: int, numbers: Collection[int], standing: Standing) -> set[int]:
    """Return the runs up to which somebody has accepted all losses. One request or more for each of `numbers`.

    :param lost_by: the last run that recorded a loss: if that is accepted, all are, and nothing is read.
    :param numbers: of earlier runs with losses.
    """
    if any(finding.name == f"{_LOST_NAME}{lost_by}" for finding in standing.accepted):
        return {lost_by}
    accepted = set()
    for number in {*numbers} - {lost_by}:
        try:
            decision = ledger.acknowledgement(f"{_LOST_NAME}{number}")
        except DocumentError:
            # Unreadable: it hides nothing.
            continue
        if decision and decision.accepted:
            accepted.add(number)
    return accepted


def _undecided(finding: Finding, error: DocumentError) -> Finding:
    """Return a finding whose decision nobody can read: it warns, and hides nothing else."""
    damaged = f"Whether somebody has accepted it is unknown: {error}; or delete the document, and accept it again"
    return finding.model_copy(update={"means": ". ".join(filter(None, (finding.means, damaged)))})


def _accepted(finding: Finding, decision: Acknowledgement) -> Finding:
    return finding.model_copy(
        update={"severity": "ok", "actions": (), "means": f"Accepted by {decision.who}"},
    )
