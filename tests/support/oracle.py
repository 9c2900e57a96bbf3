"""The oracle: what an archive must hold, worked out from Kafka's history alone, compared with what is stored.

Reads objects with readers that are not ours, and builds keys from docs/FORMAT.md, not from the code.
"""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any
from urllib.parse import quote

from kafka_archiver.ledger import Ledger
from kafka_archiver.manifest import ChunkAccount, Manifest, ObjectEntry
from kafka_archiver.plan import PartitionPlan, Plan
from kafka_archiver.store import Store
from tests.support.kafka_twin import Entry, KafkaTwin, Log
from tests.support.stored import (
    EPOCH,
    EXTENSIONS,
    HOUR,
    as_json,
    as_row,
    hour_of,
    hour_path,
    hours,
    is_bad,
    name_of,
    parse,
)


@dataclass(frozen=True)
class Snapshot:
    """What a partition's log held when a run was planned: offset and time of every record that was there.

    `start`: where it began when the planning was over.
    """

    topic_id: str
    partition: int
    log: Log
    start: int
    high: int
    times: tuple[tuple[int, int], ...]

    @classmethod
    def of(cls, topic_id: str, partition: int, log: Log) -> "Snapshot":
        there = [(o, log.entries[o]) for o in range(log.start, log.high)]
        times = tuple((o, e.timestamp) for o, e in there if not e.compacted)
        return cls(topic_id, partition, log, log.start, log.high, times)

    def afterwards(self) -> "Snapshot":
        """The same, without what has gone since."""
        return replace(self, start=self.high if self.log.deleted else self.log.start)

    def place(self, milliseconds: int) -> int:
        """Where Kafka's time index puts a time: the first offset that may be later."""
        return next((o for o, t in self.times if t >= milliseconds), self.high)


@dataclass
class Oracle:
    """`snapshots`: of each run, what its planner saw."""

    twin: KafkaTwin
    store: Store
    ledger: Ledger
    snapshots: dict[str, list[Snapshot]] = field(default_factory=dict)
    _read: dict[tuple[str, str], list[Any]] = field(default_factory=dict)
    _closed: dict[int | None, str] = field(default_factory=dict)

    def check(self) -> None:
        """Everything that must hold at any time, settled or not."""
        runs = self.ledger.runs()
        settled = set(progress.runs) if (progress := self.ledger.progress()) else set()
        stored = {s.key: s for s in self.store.list("") if not s.key.startswith("_ledger/")}
        plans = {run: plan for run, found in runs.items() if "plan" in found and (plan := self.ledger.plan(run))}
        committed = {run for run, found in runs.items() if "commit" in found}
        assert settled <= committed, f"settled and not committed: {settled - committed}"
        manifests = {run: m for run, found in runs.items() if "manifest" in found and (m := self.ledger.manifest(run))}
        current = self._current(plans, committed)
        explained: set[str] = set()
        fates: dict[tuple[str, int, int], str] = {}
        for run in sorted(committed):
            commit, plan, manifest = self.ledger.commit(run), plans[run], manifests[run]
            assert commit is not None
            assert (commit.plan_digest, commit.manifest_digest) == (plan.digest, manifest.digest), f"{run}: digests"
            superseded = current[plan.interval.id] != run
            if superseded and run in settled and self._removed(run, plans, settled):
                left = {o.key for o in manifest.stored} & stored.keys()
                assert not left, f"{run} is superseded, and not removed: {left}"
                continue
            explained |= {o.key for o in manifest.stored}
            if not superseded:
                self._check_run(plan, manifest, stored)
                fates |= _fates(plan, manifest)
            if plan.supersedes:
                now = _fates(plan, manifest)
                old = _fates(plans[plan.supersedes], manifests[plan.supersedes]).items()
                assert not (less := [o for o, fate in old if fate == "kept" and now[o] != "kept"]), (
                    f"{run} lacks {less}"
                )
        # A run that is not final may have objects, and a rebuild that was given up leaves some.
        pending = {(p.interval.id, p.revision) for run, p in plans.items() if run not in committed}
        for key in stored.keys() - explained:
            assert self._of_pending(key, plans, committed), f"{key}: nobody explains it (unfinished: {pending})"
        # A run that is not final yet counts as it is planned; a rebuild does not before it is final.
        planned = {plan.interval.id: run for run, plan in plans.items() if plan.supersedes is None} | current
        self._check_cover(
            [plans[run] for run in planned.values()], {i for i in planned if plans[i].origin == "scheduled"}
        )
        unsettled = {run for run, p in plans.items() if p.supersedes is None or run in committed} - settled
        counting = {run: manifests[run] for run in current.values() if run in settled}
        self._check_hours(counting, fates, plans, not unsettled)

    @staticmethod
    def _current(plans: Mapping[str, Plan], committed: Iterable[str]) -> dict[str, str]:
        """By interval, the run that counts: the last revision that is committed."""
        found: dict[str, str] = {}
        for run in sorted(committed, key=lambda r: plans[r].revision):
            found[plans[run].interval.id] = run
        return found

    @staticmethod
    def _removed(run: str, plans: Mapping[str, Plan], settled: Iterable[str]) -> bool:
        return any(plans[r].supersedes == run and not plans[r].keep_superseded for r in settled)

    @staticmethod
    def _of_pending(key: str, plans: Mapping[str, Plan], committed: Iterable[str]) -> bool:
        name = key.rsplit("/", 1)[1]
        for run, plan in plans.items():
            if run not in committed and any(name.startswith(name_of(c, plan) + ".") for c in plan.chunks()):
                return True
        return False

    # One run: every offset has one fate, the fate is true, and the objects hold just what was archived.

    def _check_run(self, plan: Plan, manifest: Manifest, stored: Mapping[str, Any]) -> None:
        partitions = {(p.topic, p.partition): p for p in plan.partitions}
        expected: dict[str, list[tuple[int, Entry]]] = {}
        planned = Counter(
            (p.topic, p.partition, o) for p in plan.partitions for r in (*p.ranges, *p.lost) for o in range(*r)
        )
        accounted = Counter((a.topic, a.partition, o) for a in manifest.chunks for o in range(a.start, a.end))
        assert accounted == planned, f"{plan.run}: the account is not of the plan's offsets"
        for account in manifest.chunks:
            partition = partitions[account.topic, account.partition]
            expected |= self._expected(plan, manifest, partition, account)
        entries = {o.key: o for o in manifest.stored}
        assert entries.keys() == expected.keys(), (
            f"{plan.run}: unexpected {sorted(entries.keys() - expected.keys())}, "
            f"missing {sorted(expected.keys() - entries.keys())}"
        )
        assert manifest.account["archived"] == sum(o.rows for o in manifest.objects)
        for key, entry in entries.items():
            assert key in stored, f"{plan.run}: {key} is not in the store"
            assert (stored[key].etag, stored[key].size) == (entry.etag, entry.bytes), f"{key} is not what was promised"
            self._check_object(plan, entry, expected[key])

    def _expected(
        self, plan: Plan, manifest: Manifest, partition: PartitionPlan, account: ChunkAccount
    ) -> dict[str, list[tuple[int, Entry]]]:
        """The objects of one chunk, by key; checks the chunk's account on the way."""
        settings, bad_record = plan.settings, manifest.policies.get("bad_record", "fail")
        log = self.twin.logs[partition.topic_id][partition.partition]
        if log.gone(account.start) and bad_record != "fail":
            # It may have been taken over from an attempt under another policy, when Kafka had lost records of it.
            bad_record = "dead_letter" if account.dead_lettered else "skip"
        lost = {o for r in account.lost_ranges for o in range(*r)}
        absent = {o for r in account.absent_ranges for o in range(*r)}
        found: dict[str, list[tuple[int, Entry]]] = {}
        counts = Counter(lost=len(lost), absent=len(absent))
        for offset in range(account.start, account.end):
            entry = log.entries[offset]
            where = f"{plan.run}: {partition.name} {partition.topic_id} offset {offset} ({entry})"
            if offset in lost:
                assert log.gone(offset), f"{where} is called lost and is there"
                continue
            if offset in absent:
                assert not entry.visible(settings.isolation), f"{where} is called absent and can be read"
                continue
            assert entry.was_visible(settings.isolation), f"{where} is no record and is accounted for as one"
            assert entry.record is not None
            value = entry.record.value
            if value is None and settings.null_value == "skip":
                counts["filtered"] += 1
                continue
            bad = value is not None and is_bad(value, settings)
            if bad and bad_record == "skip":
                counts["filtered"] += 1
                continue
            assert not bad or bad_record == "dead_letter", f"{where} is bad and was archived"
            counts["dead_lettered" if bad else "archived"] += 1
            extension = ".jsonl.gz" if bad else EXTENSIONS[settings.format][settings.codec]
            key = f"{'_dead_letter/' * bad}{quote(account.topic, safe='')}/{hour_path(entry.timestamp)}/"
            found.setdefault(key + name_of(account, plan) + extension, []).append((offset, entry))
        claimed = {fate: getattr(account, fate) for fate in ("archived", "filtered", "dead_lettered", "absent", "lost")}
        assert claimed == {fate: counts[fate] for fate in claimed}, f"{plan.run}: {account} but found {counts}"
        return found

    def _check_object(self, plan: Plan, entry: ObjectEntry, expected: list[tuple[int, Entry]]) -> None:
        found = self._rows(plan, entry)
        settings = plan.settings
        if entry.key.startswith("_dead_letter/"):
            assert all(row.pop("error", None) for row in found if "error" in row)
            wanted = [as_json(entry, offset, e) for offset, e in expected]
        elif settings.content == "value":
            wanted = [e.record.value if e.record and e.record.value is not None else b"null" for _, e in expected]
            wanted = [value.replace(b"\n", b" ") for value in wanted]
        elif settings.format == "jsonl":
            wanted = [as_json(entry, offset, e) for offset, e in expected]
        else:
            wanted = [as_row(entry, offset, e) for offset, e in expected]
        assert found == wanted, f"{entry.key}: {found} instead of {wanted}"
        assert entry.rows == len(wanted)
        assert (entry.first_offset, entry.last_offset) == (expected[0][0], expected[-1][0])

    def _rows(self, plan: Plan, entry: ObjectEntry) -> list[Any]:
        if (known := self._read.get((entry.key, entry.etag))) is None:
            data = self.store.get(entry.key)
            assert data is not None
            known = self._read[entry.key, entry.etag] = parse(data, entry.key, plan)
        return [dict(row) if isinstance(row, dict) else row for row in known]

    # All runs: no offset twice, none between two runs left out.

    @staticmethod
    def _check_cover(plans: Iterable[Plan], scheduled: set[str]) -> None:
        taken: dict[tuple[str, str, int, int], Counter[int]] = {}
        forward: dict[tuple[str, str, int, int], list[PartitionPlan]] = {}
        for plan in plans:
            for p in plan.partitions:
                place = (p.topic, p.topic_id, p.partition, p.generation)
                taken.setdefault(place, Counter()).update(o for r in (*p.ranges, *p.lost) for o in range(*r))
                if plan.interval.id in scheduled:
                    forward.setdefault(place, []).append(p)
        for place, offsets in taken.items():
            twice = sorted(o for o, count in offsets.items() if count > 1)
            assert not twice, f"{place}: offsets {twice} are in two runs"
        for place, partitions in forward.items():
            first, last = min(p.start for p in partitions), max(p.end for p in partitions)
            # A generation may leave to earlier ones of the same log what they have.
            anywhere = {o for other, offsets in taken.items() if other[:3] == place[:3] for o in offsets}
            missing = sorted(set(range(first, last)) - anywhere)
            assert not missing, f"{place}: offsets {missing} are in no run, though it stands at {last}"

    # Hours.

    def _check_hours(
        self,
        settled: Mapping[str, Manifest],
        fates: Mapping[tuple[str, int, int], str],
        plans: Mapping[str, Plan],
        settled_all: bool,
    ) -> None:
        holds: dict[int | None, dict[str, set[str]]] = {}
        for run, manifest in settled.items():
            for o in manifest.objects:
                hour = hour_of(o.min_timestamp)
                holds.setdefault(hour, {}).setdefault(run, set()).add(o.key)
        progress = self.ledger.progress()
        proofs = {hour: proof for hour in self.ledger.hours() if (proof := self.ledger.hour(hour))}
        for hour, proof in proofs.items():
            known = {c.run: {o.key for o in c.objects} for c in proof.runs if c.run in settled}
            assert known == holds.get(hour, {}), f"hour {hour}: proof has {known}, the manifests {holds.get(hour)}"
            assert proof.rows == sum(c.rows for c in proof.runs)
            if hour in self._closed:
                assert proof.status == "complete", f"hour {hour} was complete and is {proof.status}"
            if proof.status == "complete" and hour is not None and self._closed.get(hour) is None:
                assert proof.closed_by is not None
                self._closed[hour] = proof.closed_by
                self._check_complete(hour, plans[proof.closed_by], fates)
        assert holds.keys() <= proofs.keys(), f"hours without a proof: {holds.keys() - proofs.keys()}"
        # An hour that a run made incomplete is known to the progress once the run is settled.
        if progress and progress.closed_until and settled_all:
            until, since = hours(progress.closed_until), hours(progress.complete_from or EPOCH)
            for hour, proof in proofs.items():
                if hour is not None and hour + 1 <= until:
                    assert proof.status != "open", f"hour {hour} is open, all until {until} are closed"
                    if hour >= since:
                        assert proof.status == "complete", (
                            f"hour {hour} is {proof.status}, complete from {since} to {until}: {proof}"
                        )

    def _check_complete(self, hour: int, plan: Plan, fates: Mapping[tuple[str, int, int], str]) -> None:
        """What Kafka held of the hour when its run was planned, before the hour's end in the time index, is there."""
        for seen in self.snapshots[plan.run]:
            place = seen.place((hour + 1) * HOUR)
            for offset, timestamp in seen.times:
                entry = seen.log.entries[offset]
                if (
                    hour_of(timestamp) != hour
                    or not seen.start <= offset < place
                    or not entry.was_visible(plan.settings.isolation)
                ):
                    continue
                fate = fates.get((seen.topic_id, seen.partition, offset))
                what = f"hour {hour} was closed by {plan.run}, and {seen.topic_id}[{seen.partition}] {offset} is {fate}"
                if fate == "lost":
                    assert self._later_than_what_follows(plan, seen, offset, hour), what
                else:
                    assert fate is not None or entry.compacted, what

    def _later_than_what_follows(self, plan: Plan, seen: Snapshot, offset: int, hour: int) -> bool:
        """Nobody knows the times of what was lost; it may have been later than what came behind it."""
        behind = (seen.log.entries[o] for o in range(offset + 1, seen.log.high))
        return any((hour_of(e.timestamp) or 0) < hour for e in behind if e.record is not None)


def _fates(plan: Plan, manifest: Manifest) -> dict[tuple[str, int, int], str]:
    ids = {(p.topic, p.partition): p.topic_id for p in plan.partitions}
    found = {}
    for a in manifest.chunks:
        lost = {o for r in a.lost_ranges for o in range(*r)}
        absent = {o for r in a.absent_ranges for o in range(*r)}
        for o in range(a.start, a.end):
            found[ids[a.topic, a.partition], a.partition, o] = (
                "lost" if o in lost else "absent" if o in absent else "kept"
            )
    return found
