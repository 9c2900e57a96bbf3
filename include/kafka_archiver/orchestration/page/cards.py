"""The findings about an archive as the page shows them: each cause once, with its actions and buttons. Pure."""

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

# Sentences of one card that are shown: a moved group is one finding for every partition.
SHOWN = 20
_FAILED = ("failed", "failed for good", FAILED_REQUEST)


class Card(NamedTuple):
    """Findings with the same severity and actions: of one kind, or of several kinds with the same text."""

    findings: Sequence[Finding]
    steps: Sequence[Step]

    @property
    def name(self) -> str:
        """The kinds of its findings."""
        return ", ".join(dict.fromkeys(finding.kind for finding in self.findings))

    @property
    def verdict(self) -> Verdict:
        """The verdict of each of its findings."""
        return VERDICTS[self.findings[0].severity]

    @property
    def texts(self) -> Sequence[str]:
        """The sentences that are shown, each once."""
        return self._texts[:SHOWN]

    @property
    def more(self) -> int:
        """The number of sentences that are not shown."""
        return len(self._texts[SHOWN:])

    @property
    def _texts(self) -> list[str]:
        return list(dict.fromkeys(finding.text for finding in self.findings))


def cards(snapshot: Snapshot | None, checks: Iterable[Finding]) -> list[Card]:
    """Return the findings, problems first, each cause once, then the checks that sum up no finding."""
    findings = snapshot.troubles if snapshot else ()
    # A failed run comes after the cause for which the brokers stand.
    in_order = sorted(findings, key=lambda finding: (finding.severity != "problem", finding.kind in _FAILED))
    # One card for a trouble of many partitions, whose actions differ by what they name.
    by_kind: dict[tuple[str, tuple[str, ...], Severity], list[Finding]] = {}
    for finding in (_by_cause(finding, findings, snapshot) for finding in in_order):
        kinds = tuple(action.kind for action in finding.actions)
        by_kind.setdefault((finding.kind, kinds, finding.severity), []).append(finding)
    # What is unknown for one reason is one card.
    by_text: dict[tuple[str, Severity, tuple[Action, ...]], list[Finding]] = {}
    for check in checks:
        if check.severity != "ok" and not check.sums_up:
            by_text.setdefault((check.text, check.severity, check.actions), []).append(check)
    archive = snapshot.archive if snapshot else ""
    damaged = snapshot.audit.damaged if snapshot and snapshot.audit else ()
    groups = (*by_kind.values(), *by_text.values())
    return [Card(group, steps_of(archive, _actions(group), damaged)) for group in groups]


def _actions(findings: Sequence[Finding]) -> list[Action]:
    """Return the actions of all findings, each once, the first ones of each finding first."""
    ranked = [(place, action) for finding in findings for place, action in enumerate(finding.actions)]
    return list(dict.fromkeys(action for _, action in sorted(ranked, key=lambda pair: pair[0])))[:SHOWN]


def explains_failure(snapshot: Snapshot | None, run: DagRun) -> bool:
    """Return True if the cards say why this run failed."""
    failure, findings = run.failure, snapshot.troubles if snapshot else ()
    if failure is None or not failure.cause or run.state != "failed":
        return False
    cause = failure.cause.rstrip(".")
    return any(f.kind in failure.kinds or (f.kind in _FAILED and f.observed == cause) for f in findings)


def _by_cause(finding: Finding, findings: Iterable[Finding], snapshot: Snapshot | None) -> Finding:
    """Return a failed run as a reference to its cause, if another card shows the cause; other findings as they are."""
    if cause := _cause_of(finding, findings):
        return _because_of(finding, cause).model_copy(update={"actions": ()})
    error = snapshot.error if snapshot else None
    if finding.kind in _FAILED and error and shape(error) in shape(finding.observed):
        return _because_of(finding, "answers")
    return finding


def _because_of(failed: Finding, cause: str) -> Finding:
    return failed.model_copy(update={"subject": "", "observed": f"{failed.subject}, because of: {cause}", "means": ""})


def _cause_of(failed: Finding, findings: Iterable[Finding]) -> str | None:
    """Return the kind of the finding at the brokers because of which a run failed."""
    return next((f.kind for f in findings if f.kind in failed.causes and f.kind not in _FAILED), None)
