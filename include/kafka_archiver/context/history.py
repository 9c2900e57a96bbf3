"""The history of an archive: the line read backwards, and one run in full."""

from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Literal, Self

from kafka_archiver.ledger.ledger import Ledger
from kafka_archiver.messages.actions import advise
from kafka_archiver.messages.advice import audit
from kafka_archiver.messages.errors import ConfigError
from kafka_archiver.model.chunk_accounts import FATES, ChunkAccount, totals
from kafka_archiver.model.manifest import Commit, Manifest
from kafka_archiver.model.plan import Plan
from kafka_archiver.values.documents import PartitionValue, UtcTime, Value
from kafka_archiver.values.ranges import TopicPartition

RunState = Literal["planned", "written", "committed", "settled", "replaced", "given_up"]


class RunSummary(Value):
    """One run. Counts are None until the run is written; `letter_…`: of dead letters, beside the others.

    `replaced_by`: the later run whose objects count in place of this one's.
    """

    run: str
    number: int
    interval_start: UtcTime
    interval_end: UtcTime
    origin: str
    planned_at: UtcTime
    offsets: int
    objects: int | None
    rows: int | None
    bytes: int | None
    state: RunState
    letter_objects: int | None = None
    letter_bytes: int | None = None
    replaced_by: str | None = None


class PartitionAccount(PartitionValue):
    """The fates of the planned offsets of one partition; each offset is counted once."""

    archived: int
    filtered: int
    dead_lettered: int
    absent: int
    lost: int

    @classmethod
    def of(cls, name: TopicPartition, chunks: list[ChunkAccount]) -> Self:
        """Return the sum over the chunks of a partition."""
        return cls(topic=name.topic, partition=name.partition, **totals(chunks))

    @property
    def offsets(self) -> int:
        return sum(getattr(self, fate) for fate in FATES)


class RunDetails(Value):
    """One run: its documents in the ledger, and its state. `store`: the URL below which its keys are."""

    archive: str
    run: str
    state: RunState
    store: str
    plan: Plan
    manifest: Manifest | None
    commit: Commit | None

    @property
    def accounts(self) -> list[PartitionAccount]:
        """The account of each partition, sorted; empty until the run is written."""
        chunks: dict[TopicPartition, list[ChunkAccount]] = {}
        for chunk in self.manifest.chunks if self.manifest else ():
            chunks.setdefault(chunk.name, []).append(chunk)
        return [PartitionAccount.of(name, chunks[name]) for name in sorted(chunks)]


def last_runs(ledger: Ledger, count: int) -> list[RunSummary]:
    """Return the last planned runs, newest first."""
    settled = _settled(ledger)
    last = _last(ledger, settled)
    with ThreadPoolExecutor(8) as pool:
        pairs = list(pool.map(lambda n: _summary(ledger, n, settled), range(last, max(0, last - count), -1)))
    # A run stands before those that supersede it, so all of them are here.
    later = {
        plan.supersedes: plan
        for plan, summary in reversed(pairs)
        if plan.supersedes and summary.state in ("committed", "settled")
    }
    return [summary.model_copy(update={"replaced_by": _replaced_by(summary.run, later)}) for _, summary in pairs]


def _replaced_by(run: str, later: Mapping[str, Plan]) -> str | None:
    """Return the last run that has replaced the objects of a run; a repair or a replay of dead letters keeps them.

    :param later: the plan that supersedes a run, by that run.
    """
    last = None
    while plan := later.get(run):
        run, last = plan.run, last if plan.keeps else plan.run
    return last


def newest_runs(ledger: Ledger, count: int) -> list[str]:
    """Return the names of the last planned runs, newest first: a read for each."""
    last = _last(ledger, _settled(ledger))
    with ThreadPoolExecutor(8) as pool:
        plans = pool.map(ledger.planned, range(last, max(0, last - count), -1))
        return [plan.run for plan in plans if plan]


def run_details(ledger: Ledger, run: str) -> RunDetails:
    """Everything that the ledger has of a run.

    :param run: its name; `last`: the last planned run.
    :raises ConfigError: there is no such run.
    """
    plan = find_plan(ledger, run)
    manifest, commit = ledger.manifest(plan.run), ledger.commit(plan.run)
    return RunDetails(
        archive=ledger.archive,
        run=plan.run,
        state=_state_of(plan, manifest, commit, _settled(ledger)),
        store=ledger.store.url,
        plan=plan,
        manifest=manifest,
        commit=commit,
    )


def _last(ledger: Ledger, settled: int) -> int:
    """Return the number of the last plan."""
    return max((plan.number for plan in ledger.following(settled)), default=settled)


def _settled(ledger: Ledger) -> int:
    progress = ledger.progress()
    return progress.settled if progress else 0


def _summary(ledger: Ledger, number: int, settled: int) -> tuple[Plan, RunSummary]:
    plan = ledger.planned(number)
    if plan is None:
        raise ConfigError(
            f"place {number} of the line of archive {ledger.archive} is empty: its plan was deleted from "
            f"{ledger.store.url}.",
            *advise(audit(ledger.archive), " says what else is missing"),
        )
    manifest = ledger.manifest(plan.run)
    return plan, RunSummary(
        run=plan.run,
        number=number,
        interval_start=plan.interval.start,
        interval_end=plan.interval.end,
        origin=plan.origin,
        planned_at=plan.planned_at,
        offsets=plan.count,
        objects=None if manifest is None else len(manifest.objects),
        rows=None if manifest is None else manifest.rows,
        bytes=None if manifest is None else sum(o.bytes for o in manifest.objects),
        letter_objects=None if manifest is None else len(manifest.dead_letters),
        letter_bytes=None if manifest is None else sum(o.bytes for o in manifest.dead_letters),
        state=_state_of(plan, manifest, ledger.commit(plan.run), settled),
    )


def _state_of(plan: Plan, manifest: Manifest | None, commit: Commit | None, settled: int) -> RunState:
    """Return the state of a run.

    :param settled: the last place of the line whose hours are proved.
    """
    if commit and commit.outcome != "committed":
        return commit.outcome
    if plan.number <= settled:
        return "settled"
    if commit:
        return "committed"
    return "written" if manifest else "planned"


def find_plan(ledger: Ledger, run: str) -> Plan:
    """Return the plan of a run.

    :param run: its name in the ledger; `last`: the last planned run.
    :raises ConfigError: there is no such run.
    """
    unsettled = [p for p in ledger.following(_settled(ledger)) if run in (p.run, "last")]
    plan = unsettled[-1] if unsettled else ledger.planned(_settled(ledger)) if run == "last" else ledger.plan(run)
    if plan is None:
        last = ", ".join(reversed([r.run for r in last_runs(ledger, 5)]))
        raise ConfigError(f"Archive {ledger.archive} has no {'runs yet' if not last else f'run {run}'}."
                          + (f" Its last runs: {last}." if last else ""))  # fmt: skip
    return plan
