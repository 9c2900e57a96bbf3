"""Accept a finding by name, or take that back: one create-only document for each decision."""

from collections.abc import Collection

from kafka_archiver.context.archive_context import Context
from kafka_archiver.messages.actions import advise
from kafka_archiver.messages.advice import accepted_findings
from kafka_archiver.messages.errors import ConfigError, TransientError
from kafka_archiver.model.acknowledged import Acknowledgement, checked_name
from kafka_archiver.model.findings import Finding


def accept(context: Context, findings: Collection[Finding], name: str, by: str, note: str = "") -> Acknowledgement:
    """Accept a finding. If it is accepted already, return that decision.

    :param findings: those that wait for a person's decision (`state.status.condition.open_findings`).
    :raises ConfigError: the finding is none of these.
    """
    before = context.ledger.acknowledgement(checked_name(name))
    finding = next((finding for finding in findings if finding.name == name), None)
    if before and before.accepted and (finding is None or before.accepts(finding)):
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
