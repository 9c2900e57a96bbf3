"""The result of an audit."""

from typing import Literal

from kafka_archiver.documents import Document, UtcTime, Value, isoformat
from kafka_archiver.foreign_text import foreign

# error: the archive is damaged, or the next run stops. warning: neither, but an operator should know.
Severity = Literal["error", "warning"]
# The findings at the brokers by the policy that decides them. An error of these stops the next run; nothing that is
# stored is damaged.
AT_BROKERS = {
    "recreated_topic": "topic-recreated",
    "moved_group": "group-moved",
    "missing_group": "group-missing",
    "lost_offsets": "retention-passed",
}
LIVE = frozenset(AT_BROKERS.values())


class Finding(Value):
    """One deviation. `where`: a key below the store's URL, or a partition and its offsets.

    `run`: the run of the object or document, if there is one.
    """

    kind: str
    severity: Severity
    where: str
    found: str
    expected: str
    what_to_do: str
    run: str | None = None

    def __str__(self) -> str:
        where = foreign(self.where, 1024)
        return f"{where}: {self.kind}: found: {self.found}; expected: {self.expected}. {self.what_to_do}"


def error(kind: str, where: str, found: str, expected: str, what_to_do: str, run: str | None = None) -> Finding:
    """A finding that makes the archive damaged, or stops the next run."""
    return Finding(
        kind=kind, severity="error", where=where, found=found, expected=expected, what_to_do=what_to_do, run=run
    )


def warning(kind: str, where: str, found: str, expected: str, what_to_do: str) -> Finding:
    """A finding that does not make the archive damaged."""
    return error(kind, where, found, expected, what_to_do).model_copy(update={"severity": "warning"})


class Counts(Value):
    """What was checked: the committed runs that count (only the last revision of a rebuilt run), and their contents.

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
    """What runs have written again since the audit: the number of objects, read again and right; the last time."""

    at: UtcTime
    objects: int

    def __str__(self) -> str:
        return f"{count(self.objects, 'object')} repaired since, read again at {isoformat(self.at)}"


class Report(Document):
    """The result of one audit of one archive. `unfinished`: runs without a commit, or without proved hours.

    `mended`: findings about these objects were taken out since.
    """

    document: Literal["kafka-archiver/audit"] = "kafka-archiver/audit"
    version: Literal[1] = 1
    archive: str
    store: str
    audited_at: UtcTime
    deep: bool
    live: bool
    verdict: Literal["clean", "damaged"]
    counts: Counts
    # Before what may be long: `status` reads the beginning only.
    mended: Mended | None = None
    unfinished: tuple[str, ...] = ()
    findings: tuple[Finding, ...] = ()

    @property
    def damage(self) -> tuple[Finding, ...]:
        """The errors in what is stored."""
        return tuple(f for f in self.findings if f.severity == "error" and f.kind not in LIVE)

    @property
    def stops(self) -> tuple[Finding, ...]:
        """The errors at the brokers, which stop the next run."""
        return tuple(f for f in self.findings if f.severity == "error" and f.kind in LIVE)

    @property
    def summary(self) -> str:
        """The result in one line."""
        lost = f", {self.counts.lost:,} offsets lost for ever" if self.counts.lost else ""
        stops = ", but the next run stops" if self.stops else ""
        errors = len(self.damage) + len(self.stops)
        warnings = len(self.findings) - errors
        found = f"{count(errors, 'error')}, {count(warnings, 'warning')}" if self.findings else "nothing to report"
        return f"{self.archive}: {self.verdict}{stops}{lost}: {found}"


def count(number: int, thing: str) -> str:
    """A number with a noun in singular or plural."""
    return f"{number:,} {thing}{'s' * (number != 1)}"


def verdict(findings: tuple[Finding, ...]) -> Literal["clean", "damaged"]:
    """Only errors in what is stored make an archive damaged. Recorded losses are warnings: they are in the account."""
    return "damaged" if any(f.severity == "error" and f.kind not in LIVE for f in findings) else "clean"
