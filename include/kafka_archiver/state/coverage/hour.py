"""Everything that the ledger has of one hour: its proof, its objects, and the runs behind it."""

from collections import Counter
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor

from kafka_archiver.context.archive_context import Context
from kafka_archiver.model.manifest import Manifest, ObjectEntry
from kafka_archiver.model.object_keys import hour_document, progress_document
from kafka_archiver.model.plan import Plan
from kafka_archiver.model.progress import Progress
from kafka_archiver.model.proof import Contribution, HourProof
from kafka_archiver.state.coverage.damage import DamagedEntry, read_damage
from kafka_archiver.state.coverage.dead_letters import Reason, dead_letter_objects, dead_letter_runs, reasons_of
from kafka_archiver.values.documents import PartitionValue, UtcTime, Value
from kafka_archiver.values.intervals import hour_start, to_hour

# Runs whose documents are read, newest first: an hour of an old archive may have records of thousands of runs.
RUNS = 24
# Objects that are listed.
OBJECTS = 500


class PartitionInHour(PartitionValue):
    """The hour's records of one partition, by the runs that were read. `first`, `last`: of the objects' offsets."""

    generation: int
    objects: int
    rows: int
    bytes: int
    first: int
    last: int
    dead_letters: int


class RunOfHour(Value):
    """One run that added to the hour, if only dead letters. `schemas`: what its records were written with."""

    run: str
    number: int
    late: bool
    rows: int
    origin: str | None
    schemas: tuple[str, ...]
    account: dict[str, int] | None


class HourDetail(Value):
    """One hour. `proof`: None if no run has looked at it. `more_runs`, `more_objects`: how many are not shown.

    `more_letters`: objects of dead letters whose run was not found. `damaged`: what the last audit found missing or
    wrong. `reasons`: of the first dead letters. `proof_key`: the document that has the verdict. `loss`: the loss for
    which the hour can no longer become complete, unless it is; empty: none. `kafka_has_more`: False if Kafka has
    nothing of what earlier runs left out; True also if it was not asked.
    """

    hour_start: UtcTime
    proof: HourProof | None
    runs: tuple[RunOfHour, ...] = ()
    partitions: tuple[PartitionInHour, ...] = ()
    objects: tuple[ObjectEntry, ...] = ()
    letters: tuple[ObjectEntry, ...] = ()
    reasons: tuple[Reason, ...] = ()
    damaged: tuple[DamagedEntry, ...] = ()
    more_runs: int = 0
    more_objects: int = 0
    more_letters: int = 0
    proof_key: str = ""
    loss: str = ""
    kafka_has_more: bool = True

    @property
    def is_left_out(self) -> bool:
        """True if the hour is incomplete, and neither a loss nor missing objects are the cause."""
        incomplete = self.proof is not None and self.proof.status == "incomplete"
        return incomplete and not self.loss and not (self.proof and self.proof.lost_rows)

    @property
    def hour(self) -> int:
        """The hour, in whole hours since 1970."""
        return to_hour(self.hour_start)

    @property
    def damage(self) -> dict[str, DamagedEntry]:
        """The damage by key."""
        return {damaged.key: damaged for damaged in self.damaged}

    @property
    def dead_letters(self) -> int:
        """Its dead letters, in the runs that were read."""
        return sum(entry.rows_in(self.hour) for entry in self.letters)


def read_hour(context: Context, hour: int) -> HourDetail:
    """Read the hour's proof, with the last runs behind it.

    At most two requests for each of RUNS runs, one for each topic, and few more if a run has only dead letters here.
    """
    ledger, start = context.ledger, hour_start(hour)
    own, progress, damaged = (
        ledger.stored_hour(hour).document,
        ledger.progress(),
        read_damage(context).hours.get(hour, ()),
    )
    proof = own or ledger.hour(hour, progress)
    loss = _loss(progress, hour)
    if proof is None:
        return HourDetail(hour_start=start, proof=None, damaged=damaged, loss=loss)
    shown = sorted(proof.runs, key=lambda added: -added.number)
    # It may have only dead letters here. Its replay or rebuild has replaced it.
    last = proof.closed_by or proof.changed_by
    names = dict.fromkeys([*(added.run for added in shown[:RUNS]), ledger.superseded_by(last) or last])
    manifests, stored = _manifests(context, names), dead_letter_objects(context, hour)
    for entry in (entry for manifest in manifests.values() for entry in manifest.dead_letters):
        stored.pop(entry.key, None)
    extra_runs, unknown = dead_letter_runs(context, stored.values()) if stored else (set[str](), 0)
    manifests |= _manifests(context, sorted(extra_runs - names.keys()))
    with ThreadPoolExecutor(8) as pool:
        plans = {plan.run: plan for plan in pool.map(ledger.plan, {**names, **manifests}) if plan}
    objects = [o for m in manifests.values() for o in m.objects if hour in o.hours]
    letters = [o for m in manifests.values() for o in m.dead_letters if hour in o.hours]
    # A repair's manifest has the objects of the run that it supersedes. DamagedEntry objects are listed first.
    damaged_keys = {finding.key for finding in damaged}
    objects = sorted({o.key: o for o in objects}.values(), key=lambda o: (o.key not in damaged_keys, o.key))
    letters = sorted({o.key: o for o in letters}.values(), key=lambda o: (o.key not in damaged_keys, o.key))
    runs = [_run(added, plans.get(added.run), manifests.get(added.run)) for added in shown[:RUNS]]
    for run, manifest in manifests.items():
        is_known = run in {shown.run for shown in runs} or not any(hour in o.hours for o in manifest.dead_letters)
        if not is_known and (plan := plans.get(run)):
            no_rows = Contribution(number=plan.number, run=run, late=False, rows=0, objects=())
            runs.append(_run(no_rows, plan, manifest))
    return HourDetail(
        hour_start=start,
        proof=proof,
        runs=tuple(sorted(runs, key=lambda run: -run.number)),
        partitions=_partitions(objects, letters, hour),
        objects=tuple(objects[:OBJECTS]),
        letters=tuple(letters[:OBJECTS]),
        reasons=reasons_of(ledger.store, letters),
        damaged=damaged,
        more_runs=max(len(shown) - RUNS, 0) + sum(1 for _ in proof.pages),
        more_objects=max(proof.objects - len(objects[:OBJECTS]), 0),
        more_letters=unknown,
        proof_key=hour_document(ledger.archive, hour) if own else progress_document(ledger.archive),
        loss=loss,
    )


def _loss(progress: Progress | None, hour: int) -> str:
    """Return the loss for which an hour can no longer become complete, if it is not; empty: there is none."""
    unsure = (progress.if_ordered or progress.unsure) if progress else None
    return unsure.reason if unsure and hour < to_hour(unsure.until) else ""


def _manifests(context: Context, runs: Iterable[str]) -> dict[str, Manifest]:
    with ThreadPoolExecutor(8) as pool:
        return {manifest.run: manifest for manifest in pool.map(context.ledger.manifest, runs) if manifest}


def _run(added: Contribution, plan: Plan | None, manifest: Manifest | None) -> RunOfHour:
    return RunOfHour(
        run=added.run,
        number=added.number,
        late=added.late,
        rows=added.rows,
        origin=plan.origin if plan else None,
        schemas=_schemas(plan),
        account=dict(manifest.account) if manifest else None,
    )


def _schemas(plan: Plan | None) -> tuple[str, ...]:
    if plan is None:
        return ()
    settings = plan.settings
    decoded = (f"key: {settings.key_decode}", f"value: {settings.value_decode}")
    return (*decoded, *(f"schema {fingerprint}" for fingerprint in plan.fingerprints))


def _partitions(
    objects: Iterable[ObjectEntry], letters: Iterable[ObjectEntry], hour: int
) -> tuple[PartitionInHour, ...]:
    """Group the objects with records of the hour by partition; an object of another layout has other hours too."""
    rejected = Counter[tuple[str, int, int]]()
    for entry in letters:
        rejected[entry.topic, entry.partition, entry.generation] += entry.rows_in(hour)
    grouped: dict[tuple[str, int, int], list[ObjectEntry]] = {place: [] for place in rejected}
    for entry in objects:
        grouped.setdefault((entry.topic, entry.partition, entry.generation), []).append(entry)
    for entry in letters:
        grouped[entry.topic, entry.partition, entry.generation].append(entry)
    return tuple(
        PartitionInHour(
            topic=topic,
            partition=partition,
            generation=generation,
            objects=len(entries),
            rows=sum(o.rows_in(hour) for o in entries) - rejected[topic, partition, generation],
            bytes=sum(o.bytes for o in entries),
            first=min(o.first_offset for o in entries),
            last=max(o.last_offset for o in entries),
            dead_letters=rejected[topic, partition, generation],
        )
        for (topic, partition, generation), entries in sorted(grouped.items())
    )
