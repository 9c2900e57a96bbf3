"""The records that an archive has for a restore: the runs that count, their offsets, and counts from their manifests.

Ten years of runs are read one after the other. What stays in memory of each is its name, two digests, and three numbers
for each range of offsets.
"""

from array import array
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial

import numpy as np

from kafka_archiver.ledger.ledger import Ledger
from kafka_archiver.messages.errors import ConfigError, IntegrityError
from kafka_archiver.model.adopted import Adoption
from kafka_archiver.model.manifest import Manifest
from kafka_archiver.model.object_keys import split_run
from kafka_archiver.model.plan import Plan
from kafka_archiver.model.restore import (
    Inexact,
    RestoreCounts,
    RestorePage,
    RestoreSelection,
    RestoreSource,
    SourcePartition,
)
from kafka_archiver.reader.runs import Plans, Slice, require_committed, runs_with_rows_of_hours
from kafka_archiver.reader.selection import LAST_OFFSET
from kafka_archiver.values.ranges import Range
from kafka_archiver.values.threads import each
from kafka_archiver.work.restore.adopted import ADOPTED, adopted_sources
from kafka_archiver.work.restore.counts import Place, counts_of
from kafka_archiver.work.restore.exact import kind_of

# Ranges of offsets in one page of a plan.
PAGE = 5_000
# Manifests in memory at once.
WINDOW = 64


@dataclass
class _Ranges:
    """Offsets of one source partition: start, end, and the index of the run."""

    numbers: "array[int]" = field(default_factory=lambda: array("q"))

    def add(self, offsets: Range, run: int) -> None:
        self.numbers.extend((offsets.start, offsets.end, run))

    def of_runs(
        self, counting: "np.ndarray[tuple[int], np.dtype[np.bool_]]"
    ) -> "np.ndarray[tuple[int, int], np.dtype[np.int64]]":
        """Return the rows of the runs that count, by offset."""
        rows = np.frombuffer(self.numbers, np.int64).reshape(-1, 3)
        rows = rows[counting[rows[:, 2]]]
        return rows[np.argsort(rows[:, 0], kind="stable")]


@dataclass
class Gathered:
    """The runs that count, with what is taken of them. `through`: the number of the last plan that was looked at."""

    ledger: Ledger
    selection: RestoreSelection
    through: int
    runs: list[str]
    digests: list[str | None]
    ranges: dict[Place, _Ranges]
    counts: dict[Place, RestoreCounts]

    def sources(self) -> Iterator[tuple[RestoreSource, Iterator[RestorePage]]]:
        """Yield each source partition without its pages, and its pages. Take all pages before the next one."""
        counting = np.array([digest is not None for digest in self.digests], bool)
        for place in sorted(self.ranges):
            topic, partition, generation = place
            rows = self.ranges[place].of_runs(counting)
            if len(rows):
                source = SourcePartition(topic=topic, partition=partition, generation=generation)
                counts, offsets = self.counts.get(place, RestoreCounts()), int((rows[:, 1] - rows[:, 0]).sum())
                yield RestoreSource(**vars(source), **vars(counts), offsets=offsets), self._pages(source, rows)

    def _pages(
        self, source: SourcePartition, rows: "np.ndarray[tuple[int, int], np.dtype[np.int64]]"
    ) -> Iterator[RestorePage]:
        if (rows[1:, 0] < rows[:-1, 1]).any():
            raise IntegrityError(
                f"two committed runs of archive {self.ledger.archive} have the same offsets of {source}: run "
                f"`airflow archive audit {self.ledger.archive}`"
            )
        for first in range(0, len(rows), PAGE):
            some = rows[first : first + PAGE]
            numbers = {run: n for n, run in enumerate(dict.fromkeys(some[:, 2].tolist()))}
            yield RestorePage(
                archive=self.ledger.archive,
                source=source,
                runs=tuple((self.runs[run], self.digests[run] or "") for run in numbers),
                slices=tuple((start, end, numbers[run]) for start, end, run in some.tolist()),
            )


def gather(ledger: Ledger, selection: RestoreSelection) -> Gathered:
    """Read the line of plans, the ends of runs, and the manifests of those that count.

    :raises ConfigError: a topic is not in the archive, nothing is selected, or a partition has several generations.
    :raises IntegrityError: a document is missing or damaged.
    """
    plans = Plans(ledger)
    runs, kinds, planned = list[str](), list[Inexact | ConfigError | None](), list[str]()
    ranges: dict[Place, _Ranges] = {}

    def note(run: str, plan: Plan | None, slices: Iterable[Slice]) -> None:
        for part in slices:
            if not runs or runs[-1] != run:
                runs.append(run)
                kinds.append(None if plan is None else _kind(plan))
                planned.append("" if plan is None else plan.digest)
            place = (part.topic, part.partition, part.generation)
            ranges.setdefault(place, _Ranges()).add(part.offsets, len(runs) - 1)

    if selection.hours is None:
        for plan in plans.all():
            note(plan.run, plan, _slices(selection, plan))
    else:
        for run in runs_with_rows_of_hours(plans, range(*selection.hours), partial(_slices, selection)):
            effective = ledger.plan(run.name)
            note(run.name, effective, run.slices)
    _require_one_generation(ranges)
    digests = _counting(plans, runs, planned)
    gathered = Gathered(ledger, selection, plans.last, runs, digests, ranges, {})
    numbers = [number for number, digest in enumerate(digests) if digest is not None]
    for first in range(0, len(numbers), WINDOW):
        some = numbers[first : first + WINDOW]
        for number, manifest in zip(some, each(lambda n: _manifest(ledger, runs[n]), some), strict=True):
            for place, counts in counts_of(manifest, selection, kinds[number], ranges):
                gathered.counts[place] = gathered.counts.get(place, RestoreCounts()) + counts
    adoption = ledger.adoption()
    if adoption:
        _add_adopted(gathered, adoption)
    _require_something(gathered, plans, adoption)
    return gathered


def _add_adopted(gathered: Gathered, adoption: Adoption) -> None:
    """Add the rows with known offsets of objects that another tool wrote: one range for each partition."""
    for source in adopted_sources(adoption, gathered.selection):
        partition = source.partition
        place = (partition.topic, partition.partition, 0)
        if place in gathered.ranges:
            raise ConfigError(f"archive {gathered.ledger.archive} has runs of {place[0]} and has adopted it, too")
        gathered.runs.append(ADOPTED)
        gathered.digests.append(adoption.digest)
        gathered.ranges.setdefault(place, _Ranges()).add(source.offsets, len(gathered.runs) - 1)
        gathered.counts[place] = RestoreCounts(
            records=partition.placed,
            exact=False,
            bytes=partition.bytes,
            lost=source.lost,
            values_only=partition.placed,
        )


def _kind(plan: Plan) -> Inexact | ConfigError | None:
    try:
        return kind_of(plan.settings, plan.has_columns)
    except ConfigError as error:
        return error


def _slices(selection: RestoreSelection, plan: Plan) -> Iterator[Slice]:
    """Yield the offsets of a plan that are selected."""
    bounds = Range(*(selection.offsets or (0, LAST_OFFSET)))
    for part in plan.partitions:
        if selection.takes(part.name) and selection.generation in (None, part.generation):
            for start, end in sorted(part.ranges + part.lost):
                if start < bounds.end and bounds.start < end:
                    yield Slice(part.topic, part.partition, part.generation, Range(start, end), plan.number)


def _require_one_generation(ranges: Mapping[Place, _Ranges]) -> None:
    generations: dict[tuple[str, int], list[int]] = {}
    for topic, partition, generation in sorted(ranges):
        generations.setdefault((topic, partition), []).append(generation)
    for (topic, partition), several in generations.items():
        if len(several) > 1:
            raise ConfigError(
                f"{topic}[{partition}] was made anew: the archive has the generations {', '.join(map(str, several))}, "
                "whose offsets mean other records. Choose one: --generation N"
            )


def _counting(plans: Plans, runs: list[str], planned: list[str]) -> list[str | None]:
    """Return the digest of the manifest of each run that counts: the highest committed revision of its interval.

    :param planned: the digests of their plans.
    :raises IntegrityError: a plan is not the committed one: its ranges may leave out records.
    """
    commits = each(plans.end_of, runs)
    for run, plan_digest, commit in zip(runs, planned, commits, strict=True):
        if commit and commit.outcome == "committed":
            require_committed(plans.ledger, run, plan_digest, commit.plan_digest)
    digests = [commit.manifest_digest if commit else None for commit in commits]
    highest: dict[object, int] = {}
    for number, (run, digest) in enumerate(zip(runs, digests, strict=True)):
        start, revision = split_run(run)
        if digest is not None and (start not in highest or split_run(runs[highest[start]])[1] < revision):
            highest[start] = number
    counting = set(highest.values())
    return [digest if number in counting else None for number, digest in enumerate(digests)]


def _manifest(ledger: Ledger, run: str) -> Manifest:
    manifest = ledger.sound_manifest(run)
    assert manifest, f"run {run} is committed"
    return manifest


def _require_something(gathered: Gathered, plans: Plans, adoption: Adoption | None) -> None:
    archive, selection = gathered.ledger.archive, gathered.selection
    places = {p.name for p in plans.progress.partitions}
    places |= {p.name for plan in plans.unsettled for p in plan.partitions}
    places |= {p.name for p in adoption.partitions} if adoption else set()
    topics = {topic for topic, _ in places}
    if unknown := sorted(set(selection.topics) - topics):
        raise ConfigError(
            f"archive {archive} has no topic {', '.join(unknown)}; it has {', '.join(sorted(topics)) or 'none yet'}"
        )
    partitions = {partition for topic, partition in places if topic in selection.topics}
    if missing := sorted(set(selection.partitions) - partitions):
        raise ConfigError(
            f"archive {archive} has no partition {', '.join(map(str, missing))} of {', '.join(selection.topics)}; it "
            f"has {', '.join(map(str, sorted(partitions)))}"
        )
    if not any(counts.records for counts in gathered.counts.values()):
        raise ConfigError(
            f"nothing in archive {archive} is selected: no committed run has a record of these topics, "
            "partitions, hours and offsets"
        )
