"""One archive at one moment, as a value."""

from datetime import datetime, timedelta
from typing import Literal

from kafka_archiver.audit.report import Counts, Mended
from kafka_archiver.model.findings import Finding
from kafka_archiver.state.overview.incomplete import IncompleteHour
from kafka_archiver.state.status import ArchiveStatus
from kafka_archiver.state.status.facts import Effort, Written
from kafka_archiver.values.documents import UtcTime, Value
from kafka_archiver.values.intervals import to_hour


class LastAudit(Value):
    """The last audit. `errors`: findings that make the archive damaged, as far as the report was read.

    `damaged`: the runs with objects that are missing or damaged. `mended`: the objects that are whole again since.
    """

    at: UtcTime
    deep: bool
    verdict: Literal["clean", "damaged"]
    errors: int
    counts: Counts | None
    damaged: tuple[str, ...] = ()
    mended: Mended | None = None


class LastRun(Value):
    """The last committed run. `bytes`: of all its objects."""

    run: str
    committed_at: UtcTime
    offsets: int
    rows: int
    bytes: int
    objects: int
    dead_letters: int
    lost: int


class Adopted(Value):
    """Objects that another tool wrote. Fields as of `model.adopted.Adoption`."""

    tool: str
    adopted_at: UtcTime
    verdict: str
    objects: int
    rows: int
    bytes: int
    loose: int
    unproven: int


class Snapshot(Value):
    """One archive as it was at `taken_at`.

    `state`: None if the brokers or the store did not answer; then `error` has the reason. `closed_until`: the end of
    the last closed hour, be it complete or incomplete; `begun`: the start of the first run's interval. `settled`: the
    number of settled runs; `incomplete`: the incomplete ones of the last closed hours, None if unknown.
    `unfinished_since`: the oldest unfinished run's planning. `duration`, `effort`, `wrote`: of the DAG run that
    finished `last_run`. `at_work`: a DAG run is queued or at work. `audit_paused`: the DAG that audits
    is paused. `troubles`: what is wrong; `accepted`: what a person has accepted of it. `dead_letters`: the records that
    are dead letters now. `adopted`: what another tool wrote.
    """

    archive: str
    taken_at: UtcTime
    interval: timedelta | None = None
    begun: UtcTime | None = None
    closed_until: UtcTime | None = None
    settled: int = 0
    incomplete: tuple[IncompleteHour, ...] | None = None
    lost: int = 0
    dead_letters: int = 0
    unfinished: tuple[str, ...] = ()
    unfinished_since: UtcTime | None = None
    state: ArchiveStatus | None = None
    audit: LastAudit | None = None
    last_run: LastRun | None = None
    duration: timedelta | None = None
    effort: Effort | None = None
    wrote: Written | None = None
    at_work: bool = False
    audit_paused: bool = False
    troubles: tuple[Finding, ...] = ()
    accepted: tuple[Finding, ...] = ()
    adopted: Adopted | None = None
    error: str | None = None

    @property
    def ledger_read(self) -> bool:
        """True if the store answered: else everything from the ledger is unknown, not zero or none."""
        return self.incomplete is not None

    @property
    def lag(self) -> int | None:
        """The number of offsets that wait; None: unknown."""
        return None if self.state is None else self.state.lag

    def behind(self, moment: datetime) -> timedelta | None:
        """Return the time since the oldest record that waits; zero if none waits; None: unknown."""
        if self.state is None:
            return None
        oldest = self.state.oldest_unarchived
        if oldest is None:
            return None if self.state.lag else timedelta(0)
        return max(moment - oldest, timedelta(0))

    def age(self, moment: datetime) -> timedelta | None:
        """Return the time since the end of the last closed hour; None before the first."""
        return None if self.closed_until is None else max(moment - self.closed_until, timedelta(0))

    def hours_open(self, moment: datetime) -> int:
        """Return the number of ended hours that are not closed yet."""
        since = self.closed_until or self.begun
        return 0 if since is None else max(to_hour(moment) - to_hour(since), 0)

    @property
    def problems(self) -> tuple[Finding, ...]:
        """The troubles for which somebody has to act."""
        return tuple(trouble for trouble in self.troubles if trouble.severity == "problem")
