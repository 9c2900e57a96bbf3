"""The runs that count: that of one offset with few requests, or those that may have some records."""

from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from itertools import chain
from typing import NamedTuple, NoReturn

from kafka_archiver.ledger.ledger import Ledger
from kafka_archiver.messages.errors import IntegrityError, TransientError
from kafka_archiver.model.manifest import Commit
from kafka_archiver.model.object_keys import interval_of, split_run
from kafka_archiver.model.plan import PartitionPlan, Plan
from kafka_archiver.model.progress import Progress
from kafka_archiver.model.proof import hours_with_proofs
from kafka_archiver.values.gaps import OffsetRange
from kafka_archiver.values.ranges import Range, TopicPartition, subtract

THREADS = 16
# Plans in a row that are no scheduled run, before a search goes on elsewhere.
_AROUND = 64
# More hours are not asked for one by one: as many as one listing names.
_MANY = 1000


class Plans:
    """The line of an archive's plans, each read once."""

    def __init__(self, ledger: Ledger) -> None:
        self.ledger = ledger
        self.progress = ledger.progress() or Progress(archive=ledger.archive)
        self.unsettled = list(ledger.following(self.progress.settled))
        self._plans: dict[int, Plan] = {plan.number: plan for plan in self.unsettled}

    @property
    def last(self) -> int:
        """The number of the last plan."""
        return self.progress.settled + len(self.unsettled)

    def at(self, number: int) -> Plan:
        """Return the plan at a place of the line, up to `last`. :raises IntegrityError: it is gone."""
        if number not in self._plans:
            self._plans[number] = self._settled(number)
        return self._plans[number]

    def all(self) -> Iterator[Plan]:
        """Yield every plan, in the line's order; none of them is kept.

        :raises IntegrityError: one is gone or lacks offsets, or a run was planned twice.
        """
        runs, taken = set[str](), TakenOffsets(self.progress)
        with ThreadPoolExecutor(THREADS) as pool:
            for plan in chain(pool.map(self._settled, range(1, self.progress.settled + 1)), self.unsettled):
                if plan.run in runs:
                    raise self.planned_twice(plan.run)
                runs.add(plan.run)
                taken.add(plan)
                yield plan
        if missing := taken.missing():
            raise self._without(missing)

    def _without(self, offsets: str) -> IntegrityError:
        """Return the error about offsets that the progress has and no plan of the line."""
        for number in range(1, self.progress.settled + 1):
            plan = self._settled(number)
            if end := self.end_of(plan.run):
                require_committed(self.ledger, plan.run, plan.digest, end.plan_digest)
        return self._gone(f"the plan that had {offsets}")

    def planned_twice(self, run: str) -> IntegrityError:
        """Return the error about a run whose documents were deleted, and that was planned again then."""
        return self._gone(f"the documents of the first plan of run {run}, which was planned twice")

    def _settled(self, number: int) -> Plan:
        plan = self.ledger.planned(number)
        if plan is None:
            raise self._gone(f"plan {number} of its line")
        return plan

    def end_of(self, run: str) -> Commit | None:
        """Return the end of the run of a plan; None: it has not ended yet.

        :raises IntegrityError: it has, by the progress, and its end is gone.
        """
        commit = self.ledger.commit(run)
        if commit is None and all(plan.run != run for plan in self.unsettled):
            self._end_gone(run)
        return commit

    def counting_in(self, interval: str) -> Plan | None:
        """Return the plan of an interval's highest committed revision; None: none has ended yet.

        :raises IntegrityError: one has, as its plan stands in the line, and its documents are gone.
        """
        last = self.ledger.last_committed(interval)
        if last is None:
            return None if any(plan.interval.id == interval for plan in self.unsettled) else self._end_gone(interval)
        plan, commit = self.ledger.plan(last), self.ledger.commit(last)
        if plan is None or commit is None:
            self._end_gone(last)
        require_committed(self.ledger, last, plan.digest, commit.plan_digest)
        return plan

    def _end_gone(self, run: str) -> NoReturn:
        raise self._gone(f"the plan or the end of run {run}")

    def _gone(self, what: str) -> IntegrityError:
        return IntegrityError(
            f"archive {self.ledger.archive} has lost {what}, so nobody knows which records it has: restore the "
            f"document from a version or copy of the store; `airflow archive audit {self.ledger.archive}` names all "
            "that are gone"
        )

    def with_offset(self, name: TopicPartition, offset: int, generation: int | None) -> Plan | None:
        """Return the plan that took an offset of a generation; None: no plan has.

        Plans of scheduled runs have rising offsets, so a search reads the logarithm of their number. What a backfill or
        a fill took is found by reading the line, and only if the progress says that the offset is archived.

        :param generation: None: the newest one that has the offset.
        """
        newest = self._newest(name)
        for number in range(newest, -1, -1) if generation is None else [generation]:
            plan = self._searched(name, offset, number)
            if plan is None and self._may_be_elsewhere(name, offset, number, newest):
                plan = next((p for p in self.all() if not p.revision and _has(p, name, offset, number)), None)
            if plan:
                return plan
        return None

    def next_offset(self, name: TopicPartition, offset: int, generation: int) -> int:
        """Return the first offset from one on that a run of a generation may have; this one if nothing is known."""
        known = self.progress.partition(name)
        # The progress has no ranges of a log that was replaced.
        is_summed_up = known is not None and known.generation == generation
        ranges = self._summary(name, generation) if is_summed_up else _ranges(self.all(), name, generation)
        return min((max(start, offset) for start, end in ranges if end > offset), default=offset)

    def _newest(self, name: TopicPartition) -> int:
        known = self.progress.partition(name)
        planned = [p.generation for plan in self.unsettled for p in plan.partitions if p.name == name]
        return max([known.generation if known else 0, *planned])

    def _may_be_elsewhere(self, name: TopicPartition, offset: int, generation: int, newest: int) -> bool:
        """Return True if the summary cannot exclude that a run out of order has the offset, as a backfill's may be."""
        return generation < newest or any(start <= offset < end for start, end in self._summary(name, generation))

    def _summary(self, name: TopicPartition, generation: int) -> list[OffsetRange]:
        """Return the offsets of a generation that the progress has, and those of the plans that are not settled."""
        known = self.progress.partition(name)
        covered = known.covered if known and known.generation == generation else ()
        return [*covered, *_ranges(self.unsettled, name, generation)]

    def _searched(self, name: TopicPartition, offset: int, generation: int) -> Plan | None:
        """Return the scheduled run's plan with the offset, by bisection."""

        def is_behind(number: int) -> bool:
            planned = self._around(name, number)
            return planned is not None and (planned[1].generation, planned[1].end) > (generation, offset)

        place = bisect_left(range(1, self.last + 1), True, key=is_behind) + 1
        planned = self._around(name, place) if place <= self.last else None
        return planned[0] if planned and _has(planned[0], name, offset, generation) else None

    def _around(self, name: TopicPartition, number: int) -> tuple[Plan, PartitionPlan] | None:
        """Return the plan at a place or the next one before it that is of a scheduled run with this partition."""
        for place in range(number, max(0, number - _AROUND), -1):
            plan = self.at(place)
            if plan.moves_group and not plan.revision:
                planned = _partition(plan, name)
                if planned:
                    return plan, planned
        return None


def _partition(plan: Plan, name: TopicPartition) -> PartitionPlan | None:
    same = (p for p in plan.partitions if p.partition == name.partition and p.topic == name.topic)
    return next(same, None)


def _ranges(plans: Iterable[Plan], name: TopicPartition, generation: int) -> list[OffsetRange]:
    """Return the offsets that plans take of a partition's generation."""
    parts = (part for plan in plans for part in plan.partitions if part.name == name and part.generation == generation)
    return [range_ for part in parts for range_ in (*part.ranges, *part.lost)]


def _has(plan: Plan, name: TopicPartition, offset: int, generation: int) -> bool:
    planned = _partition(plan, name)
    ranges = (*planned.ranges, *planned.lost) if planned and planned.generation == generation else ()
    return any(start <= offset < end for start, end in ranges)


class Slice(NamedTuple):
    """Offsets of one partition that one run has. `run`: its place in the line."""

    topic: str
    partition: int
    generation: int
    offsets: Range
    run: int


class Run(NamedTuple):
    """A run that counts, with the offsets that are wanted of it. A plan would take much more memory."""

    name: str
    number: int
    slices: tuple[Slice, ...]


# Selects offsets of a plan.
Select = Callable[[Plan], Iterator[Slice]]


def require_committed(ledger: Ledger, run: str, digest: str, committed: str) -> None:
    """Check that a plan is the one with which its run was committed. Raises IntegrityError."""
    if digest != committed:
        raise IntegrityError(
            f"the plan of run {run} of archive {ledger.archive} ({digest[:12]}) is not the one that was committed "
            f"({committed[:12]}), so nobody knows which records it has: restore it from a version or copy of the store;"
            f" `airflow archive audit {ledger.archive}` names all such documents"
        )


@contextmanager
def unless_replaced(ledger: Ledger, run: str) -> Iterator[None]:
    """Read a run; tell what is damaged from what a revision has deleted because it has replaced the run meanwhile.

    :raises TransientError: it has.
    """
    try:
        yield
    except IntegrityError as error:
        if revision := ledger.superseded_by(run):
            raise TransientError(
                f"run {run} of archive {ledger.archive} was replaced by {revision} while it was read: read again"
            ) from error
        raise


def counting_runs(plans: Plans, select: Select) -> list[Run]:
    """Return the runs that count, each with its highest committed revision: two requests for each plan."""
    return [run for run, _ in _committed(plans, select)]


def _committed(plans: Plans, select: Select) -> list[tuple[Run, Commit]]:
    """Return the runs that count, each with its end."""
    some = [(Run(p.run, p.number, slices), p.digest) for p in plans.all() if (slices := tuple(select(p)))]
    with ThreadPoolExecutor(THREADS) as pool:
        ends = list(pool.map(plans.end_of, (run.name for run, _ in some)))
    final = []
    for (run, digest), end in zip(some, ends, strict=True):
        if end and end.outcome == "committed":
            require_committed(plans.ledger, run.name, digest, end.plan_digest)
            final.append((run, end))
    # The highest revision last.
    final.sort(key=lambda each: split_run(each[0].name))
    return [*{split_run(run.name)[0]: (run, end) for run, end in final}.values()]


def runs_of_hours(plans: Plans, hours: range, select: Select) -> list[Run]:
    """Return the runs that count and may have records of some hours: by the proofs, and those that are not settled.

    A proof that somebody put back from an earlier day names fewer runs, and nothing here can see it.

    :raises IntegrityError: an hour was judged, and its proof is gone.

    Of many hours those with a proof of their own are listed: nobody asks for each hour since 1970.
    """
    ledger = plans.ledger
    known = hours if len(hours) <= _MANY else ledger.hours(hours)
    proved = [hour for hour in known if hour is not None and hour in hours]
    names = {plan.run for plan in plans.unsettled}
    required = {hour for some in hours_with_proofs(plans.progress) for hour in range(*some) if hour in hours}
    if gone := required - set(proved):
        raise ledger.proof_gone(min(gone))

    def of_hour(hour: int) -> list[tuple[str, int]]:
        # Runs that were settled since the progress was read are among the unsettled ones.
        proof = ledger.stored_hour(hour).document
        if proof.former_gone if proof else hour in required:
            # Runs of this hour would be passed over.
            raise ledger.proof_gone(hour)
        return [(each.run, each.number) for each in ledger.contributions(proof)] if proof else []

    with ThreadPoolExecutor(THREADS) as pool:
        numbers = dict(chain.from_iterable(pool.map(of_hour, proved)))
    intervals = {interval_of(name) for name in (*names, *numbers)}
    of_plans = [plan for interval in sorted(intervals) if (plan := plans.counting_in(interval))]
    if twice := [plan.run for plan in of_plans if numbers.get(plan.run, plan.number) != plan.number]:
        raise plans.planned_twice(twice[0])
    return [Run(plan.run, plan.number, slices) for plan in of_plans if (slices := tuple(select(plan)))]


def runs_with_rows_of_hours(plans: Plans, hours: range, select: Select) -> list[Run]:
    """Return the runs that count and have records or dead letters of some hours, by all manifests: no proof is asked.

    Three requests for each plan, as for a selection without hours.

    :raises IntegrityError: a document of a run is gone.
    """

    def has_rows(run_and_end: tuple[Run, Commit]) -> bool:
        run, end = run_and_end
        manifest = plans.ledger.sound_manifest(run.name, end)
        return manifest is not None and any(hour in hours for entry in manifest.stored for hour in entry.hours)

    committed = _committed(plans, select)
    with ThreadPoolExecutor(THREADS) as pool:
        return [run for (run, _), has in zip(committed, pool.map(has_rows, committed), strict=True) if has]


class TakenOffsets:
    """The offsets that plans have of the present generations; a few ranges for each partition."""

    def __init__(self, progress: Progress) -> None:
        self._known = {p.name: p for p in progress.partitions if p.covered}
        self._taken: dict[TopicPartition, list[Range]] = {name: [] for name in self._known}

    def add(self, plan: Plan) -> None:
        for part in plan.partitions:
            known = self._known.get(part.name)
            if known and known.generation == part.generation:
                taken = self._taken[part.name]
                for start, end in (*part.ranges, *part.lost):
                    if taken and taken[-1].end == start:
                        taken[-1] = Range(taken[-1].start, end)
                    else:
                        taken.append(Range(start, end))

    def missing(self) -> str:
        """Return the first offsets that the progress has and no plan, for messages; empty if there are none."""
        for name, known in self._known.items():
            for covered in known.covered:
                for left in subtract(Range(*covered), self._taken[name]):
                    return f"{left} of {name}"
        return ""
