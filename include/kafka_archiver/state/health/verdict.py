"""The words of health for findings: a problem is `failing`."""

from collections.abc import Iterable
from typing import Any, Literal

from kafka_archiver.model.findings import Finding, Severity, worst

# failing: the archive is not healthy. warning: it is, but look at it. unknown: nobody knows, so it is not healthy.
Verdict = Literal["ok", "warning", "unknown", "failing"]
VERDICTS: dict[Severity, Verdict] = {"ok": "ok", "warning": "warning", "unknown": "unknown", "problem": "failing"}


def verdict_of(checks: Iterable[Finding]) -> Verdict:
    """Return the worst verdict of some checks; ok if there are none."""
    return VERDICTS[worst(check.severity for check in checks)]


def as_check(check: Finding) -> dict[str, Any]:
    """Return a check for programs."""
    return {"name": check.kind, "verdict": VERDICTS[check.severity], "found": check.text, "do": check.steps}
