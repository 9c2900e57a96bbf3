"""Accept a finding by name, or take that back: one create-only document for each decision."""

from kafka_archiver.context.archive_context import Context
from kafka_archiver.context.line import read_line
from kafka_archiver.messages.actions import advise
from kafka_archiver.messages.advice import accepted_findings
from kafka_archiver.messages.errors import ConfigError, TransientError
from kafka_archiver.model.acknowledged import Acknowledgement, checked_name
from kafka_archiver.model.findings import Finding
from kafka_archiver.state.status.condition import without_brokers
from kafka_archiver.state.status.facts import Facts


def open_findings(context: Context, facts: Facts) -> tuple[Finding, ...]:
    """Return the findings that wait for a person's decision."""
    return tuple(finding for finding in without_brokers(context, read_line(context), facts).open if finding.name)


def accept(context: Context, facts: Facts, name: str, by: str, note: str = "") -> Acknowledgement:
    """Accept a finding. If it is accepted already, return that decision.

    :raises ConfigError: the archive has no such finding now.
    """
    before = context.ledger.acknowledgement(checked_name(name))
    findings = open_findings(context, facts)
    finding = next((finding for finding in findings if finding.name == name), None)
    if before and before.accepted and finding is None:
        return before
    if finding is None:
        named = ", ".join(finding.name for finding in findings)
        raise ConfigError(
            f"archive {context.archive.archive} has no finding {name} to accept now; "
            + (f"expected one of {named}." if named else "nothing waits to be accepted."),
            *advise(accepted_findings(context.archive.archive), " shows what waits and what was accepted"),
        )
    return _decide(context, before, name, True, by, note, finding.kind, finding.text)


def take_back(context: Context, name: str, by: str, note: str = "") -> Acknowledgement:
    """Take the acceptance of a finding back: as long as it is so, it is a warning again.

    :raises ConfigError: nobody has accepted it.
    """
    before = context.ledger.acknowledgement(checked_name(name))
    if before is None or not before.accepted:
        raise ConfigError(
            f"nobody has accepted {name} of archive {context.archive.archive}.",
            *advise(accepted_findings(context.archive.archive), " shows what was accepted"),
        )
    return _decide(context, before, name, False, by, note, before.kind, before.observed)


def _decide(
    context: Context,
    before: Acknowledgement | None,
    name: str,
    accepted: bool,
    by: str,
    note: str,
    kind: str,
    text: str,
) -> Acknowledgement:
    try:
        decision = Acknowledgement(
            archive=context.archive.archive,
            finding=name,
            number=before.number + 1 if before else 1,
            accepted=accepted,
            at=context.clock().replace(microsecond=0),
            by=by,
            note=note,
            kind=kind,
            observed=text,
        )
    except ValueError as error:
        raise ConfigError(f"expected who decides, and a note of at most 1,000 characters: {error}") from None
    if not context.ledger.acknowledge(decision):
        raise TransientError(f"somebody else has decided about {name} meanwhile; nothing was changed. Look again")
    return decision
