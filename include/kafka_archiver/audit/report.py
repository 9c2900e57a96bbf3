"""The result of an audit."""

import hashlib
from collections.abc import Iterable
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, PlainSerializer

from kafka_archiver.messages.actions import Advice, from_dicts, to_dicts
from kafka_archiver.messages.foreign_text import foreign
from kafka_archiver.messages.policies import AT_BROKERS
from kafka_archiver.messages.wording import count
from kafka_archiver.model.findings import Finding, Severity
from kafka_archiver.values.documents import ArchiveDocument, UtcTime, Value, isoformat

# The findings about one object.
OBJECT_DAMAGE = frozenset({"object-missing", "object-changed", "object-rewritten", "content-wrong"})


def in_words(finding: Finding) -> str:
    """Return a finding as one sentence: the place, the kind, the states and what to do."""
    place = foreign(finding.subject, 1024)
    return f"{place}: {finding.kind}: found: {finding.observed}; expected: {finding.expected}. {finding.advice}"


def error(
    kind: str,
    where: str,
    actual: str,
    expected: str,
    what_to_do: str | Advice,
    run: str | None = None,
    severity: Severity = "problem",
) -> Finding:
    """Return a finding that makes the archive damaged, or stops the next run."""
    text, actions = what_to_do if isinstance(what_to_do, Advice) else (what_to_do, ())
    return Finding(
        kind=kind,
        severity=severity,
        subject=where,
        observed=actual,
        expected=expected,
        advice=text,
        actions=actions,
        run=run,
    )


def warning(kind: str, where: str, actual: str, expected: str, what_to_do: str | Advice) -> Finding:
    """Return a finding that does not make the archive damaged."""
    return error(kind, where, actual, expected, what_to_do, severity="warning")


_STORED: dict[Severity, str] = {"problem": "error", "warning": "warning"}


def to_stored(finding: Finding) -> dict[str, Any]:
    """Return a finding as the report has it."""
    return {
        "kind": finding.kind,
        "severity": _STORED[finding.severity],
        "where": finding.subject,
        "found": finding.observed,
        "expected": finding.expected,
        "what_to_do": finding.advice,
        "run": finding.run,
        **({"actions": to_dicts(finding.actions)} if finding.actions else {}),
    }


def from_stored(value: object) -> Finding:
    """Return the inverse of `to_stored`. Reports of earlier releases have no actions.

    :raises ValueError: the value is something else.
    """
    if isinstance(value, Finding):
        return value
    if not isinstance(value, dict) or not {"kind", "severity", "where"} <= set(value):
        raise ValueError("no finding: expected kind, severity, where, found, expected and what_to_do")
    severity: Severity = "problem" if value["severity"] == "error" else "warning"
    kind, where, actual, expected = (str(value.get(name, "")) for name in ("kind", "where", "found", "expected"))
    advice = Advice(str(value.get("what_to_do", "")), from_dicts(value.get("actions")))
    return error(kind, where, actual, expected, advice, value.get("run"), severity)


StoredFinding = Annotated[Finding, BeforeValidator(from_stored), PlainSerializer(to_stored)]


class Counts(Value):
    """The things that were checked: the committed runs that count (only the last revision of a rebuilt run), and their
    contents.

    `read`: objects of which every byte was read (deep). `lost`: offsets that the runs recorded as lost.
    """

    runs: int
    objects: int
    bytes: int
    rows: int
    hours: int
    lost: int
    read: int = 0


class Mended(Value):
    """The objects that runs have written again since the audit: the number of objects, read again and right; the last
    time.
    """

    at: UtcTime
    objects: int

    def __str__(self) -> str:
        return f"{count(self.objects, 'object')} repaired since, read again at {isoformat(self.at)}"


class Report(ArchiveDocument):
    """The result of one audit of one archive. `unfinished`: runs without a commit, or without proved hours.

    `mended`: findings about these objects were taken out since.
    """

    document: Literal["kafka-archiver/audit"] = "kafka-archiver/audit"
    store: str
    audited_at: UtcTime
    deep: bool
    live: bool
    verdict: Literal["clean", "damaged"]
    counts: Counts
    # Before what may be long: `status` reads the beginning only.
    mended: Mended | None = None
    unfinished: tuple[str, ...] = ()
    findings: tuple[StoredFinding, ...] = ()

    @property
    def damage(self) -> tuple[Finding, ...]:
        """The errors in what is stored."""
        return tuple(f for f in self.findings if f.severity == "problem" and f.kind not in AT_BROKERS)

    @property
    def stops(self) -> tuple[Finding, ...]:
        """The errors at the brokers, which stop the next run."""
        return tuple(f for f in self.findings if f.severity == "problem" and f.kind in AT_BROKERS)

    @property
    def summary(self) -> str:
        """The result in one line."""
        lost = f", {self.counts.lost:,} offsets lost for ever" if self.counts.lost else ""
        stops = ", but the next run stops" if self.stops else ""
        errors = len(self.damage) + len(self.stops)
        warnings = len(self.findings) - errors
        counts = f"{count(errors, 'error')}, {count(warnings, 'warning')}" if self.findings else "nothing to report"
        return f"{self.archive}: {self.verdict}{stops}{lost}: {counts}"


def same_findings(findings: Iterable[tuple[str, str]]) -> str:
    """Return a text that is the same for each report that finds the same.

    :param findings: kind and place of each.
    """
    lines = sorted(f"{kind} {where}" for kind, where in findings)
    return hashlib.sha256("\n".join(lines).encode()).hexdigest()[:16]


def verdict(findings: tuple[Finding, ...]) -> Literal["clean", "damaged"]:
    """Only errors in what is stored make an archive damaged. Recorded losses are warnings: they are in the account."""
    return "damaged" if any(f.severity == "problem" and f.kind not in AT_BROKERS for f in findings) else "clean"
