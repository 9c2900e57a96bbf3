"""What is wrong with an archive, each cause once, with its actions and buttons. Pure."""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from kafka_archiver.messages.actions import Action
from kafka_archiver.messages.errors import shape
from kafka_archiver.model.findings import Finding, Severity
from kafka_archiver.orchestration.page.buttons import Step, steps_of
from kafka_archiver.state.health import VERDICTS, Verdict
from kafka_archiver.state.overview import Snapshot
from kafka_archiver.state.status.facts import DagRun
from kafka_archiver.state.status.running import FAILED_REQUEST

# Sentences of one kind that are shown: a moved group is one finding for every partition.
SHOWN = 20
_FAILED = ("failed", "failed for good", FAILED_REQUEST)


class Card(NamedTuple):
    """Findings of one kind with the same actions, as the page shows them. `more`: sentences that are not shown."""

    name: str
    verdict: Verdict
    told: Sequence[str]
    more: int
    steps: Sequence[Step]


def cards(found: Snapshot | None, checks: Iterable[Finding]) -> list[Card]:
    """Return the findings, problems first, each cause once, then the checks that sum up no finding."""
    findings = found.troubles if found else ()
    archive = found.archive if found else ""
    damaged = found.audit.damaged if found and found.audit else ()
    groups: dict[tuple[str, tuple[Action, ...], Severity], list[str]] = {}
    # A failed run comes after the cause for which the brokers stand.
    for finding in sorted(findings, key=lambda f: (f.severity != "problem", f.kind in _FAILED)):
        text, actions = finding.text, finding.actions
        if cause := _cause_of(finding, findings):
            text, actions = f"{finding.subject}, because of: {cause}", ()
        elif finding.kind in _FAILED and found and found.error and shape(found.error) in shape(finding.observed):
            text = f"{finding.subject}, because of: answers"
        groups.setdefault((finding.kind, actions, finding.severity), []).append(text)
    # What is unknown for one reason is one card.
    same: dict[tuple[str, Severity, tuple[Action, ...]], list[str]] = {}
    for check in checks:
        if check.severity != "ok" and not check.sums_up:
            same.setdefault((check.text, check.severity, check.actions), []).append(check.kind)
    return [
        *(
            Card(
                kind,
                VERDICTS[severity],
                texts[:SHOWN],
                max(len(texts) - SHOWN, 0),
                steps_of(archive, actions, damaged),
            )
            for (kind, actions, severity), texts in groups.items()
        ),
        *(
            Card(", ".join(kinds), VERDICTS[severity], [text], 0, steps_of(archive, actions, damaged))
            for (text, severity, actions), kinds in same.items()
        ),
    ]


def is_told(run: DagRun, found: Snapshot | None) -> bool:
    """Return whether the cards say why this run failed."""
    failure, findings = run.failure, found.troubles if found else ()
    if failure is None or not failure.cause or run.state != "failed":
        return False
    cause = failure.cause.rstrip(".")
    return any(f.kind in failure.kinds or (f.kind in _FAILED and f.observed == cause) for f in findings)


def _cause_of(failed: Finding, findings: Iterable[Finding]) -> str | None:
    """Return the kind of the finding at the brokers because of which a run failed."""
    return next((f.kind for f in findings if f.kind in failed.causes and f.kind not in _FAILED), None)
