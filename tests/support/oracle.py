"""The oracle: computes the expected archive from Kafka's history alone, and compares it with the store.

It reads objects with other libraries, and builds keys by docs/FORMAT.md, not with the code.
"""

import json
import re
import zlib
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from itertools import accumulate
from typing import Any

from kafka_archiver.ledger.ledger import Ledger
from kafka_archiver.messages.errors import ConfigError
from kafka_archiver.model.chunk_accounts import ChunkAccount
from kafka_archiver.model.manifest import Manifest, ObjectEntry
from kafka_archiver.model.plan import PartitionPlan, Plan
from kafka_archiver.model.progress import Progress
from kafka_archiver.model.proof import HourProof
from kafka_archiver.model.settings import Settings
from kafka_archiver.reader.lookup import Lookup
from kafka_archiver.store import Store
from tests.support.kafka_twin import Entry, KafkaTwin
from tests.support.outcomes import EPOCH, HOUR, Outcome, Row, hour_of, is_deadly, outcome
from tests.support.stored import expected_of, hours, key_of, letter_of, name_of, opened, parse
from tests.support.topics import Record


def has_no_null(settings: Settings) -> bool:
    """Return True if the first version of MAK stores the records, where a null value becomes an empty one."""
    return settings.format == "mak" and settings.options.get("version", 1) == 1


# What an object should have: offsets, with several rows of one offset beside each other.
Rows = list[tuple[int, Entry, Row]]
SIDECAR = ".index.json"


@dataclass
class Oracle:
    """:ivar complete: the number of complete hours that were checked against Kafka."""

    twin: KafkaTwin
    store: Store
    ledger: Ledger
    complete: int = 0
    # The present master key.
    master: bytes = b""
    # Keys of destroyed objects that a repair has recorded as lost.
    given_up: set[str] = field(default_factory=set)
    # Offsets that an operator has given up, by topic id and partition; and the hour in which a run had lost them.
    unread: set[tuple[str, int, int]] = field(default_factory=set)
    _unread_since: dict[tuple[str, int, int], int] = field(default_factory=dict)
    _read: dict[tuple[str, str], list[Any]] = field(default_factory=dict)
    _closed: dict[int | None, datetime] = field(default_factory=dict)
    # Topics that were deleted before the archive's first plan, whose clock may have been behind.
    _before: set[str] | None = None

    def unfinished(self) -> set[str]:
        """Runs that are planned and not settled."""
        return self.plans().keys() - self._settled()

    def plans(self) -> dict[str, Plan]:
        """Every plan of the line, in order."""
        plans = {plan.run: plan for plan in self.ledger.following(0)}
        assert [p.number for p in plans.values()] == [*range(1, len(plans) + 1)], "two plans of one run in the line"
        return plans

    def _settled(self) -> set[str]:
        progress = self.ledger.progress()
        return {run for run, plan in self.plans().items() if progress and plan.number <= progress.settled}

    def check(self) -> None:
        """Check the invariants; they hold at any time."""
        runs = self.ledger.runs()
        settled, stored = self._settled(), {s.key: s for s in self.store.list("") if not s.key.startswith("_ledger/")}
        plans = self.plans()
        if plans and self._before is None:
            gone = {topic for topic, logs in self.twin.logs.items() if all(log.deleted for log in logs)}
            self._before = gone - {p.topic_id for plan in plans.values() for p in plan.partitions}
        assert {run for run, documents in runs.items() if "plan" in documents} <= plans.keys()
        for run, plan in plans.items():
            assert (copy := self.ledger.plan(run)) in (None, plan), f"{run}: {copy} is not the plan in the line"
        ends = {
            run: end for run, documents in runs.items() if "commit" in documents and (end := self.ledger.commit(run))
        }
        assert settled <= ends.keys(), f"settled but not ended: {settled - ends.keys()}"
        committed = {run for run, end in ends.items() if end.outcome == "committed"}
        manifests = {
            run: m for run, documents in runs.items() if "manifest" in documents and (m := self.ledger.manifest(run))
        }
        current = self._current(plans, committed)
        explained: set[str] = set()
        fates: dict[tuple[str, int, int], str] = {}
        for run in sorted(committed):
            commit, plan, manifest = self.ledger.commit(run), plans[run], manifests[run]
            assert commit is not None
            assert (commit.plan_digest, commit.manifest_digest) == (plan.digest, manifest.digest), f"{run}: digests"
            superseded = current[plan.interval.id] != run
            if superseded and run in settled and self._removed(run, plans, settled & committed):
                # Objects that a repair or a replay has kept are in its manifest, and a rebuild may keep that one's.
                keepers = [r for r in committed if plans[r].interval == plan.interval]
                keepers = [r for r in keepers if not self._removed(r, plans, settled & committed)]
                kept = {o.key for r in keepers for o in manifests[r].stored}
                left = {o.key for o in manifest.stored} & stored.keys() - kept
                assert not left, f"{run} is superseded, but not removed: {left}"
                continue
            explained |= {o.key for o in manifest.stored}
            if not superseded:
                self._check_run(self._writers(plan, manifest, plans, manifests), plan, manifest, stored)
                fates |= _fates(plan, manifest)
            if plan.supersedes in committed and plan.origin != "repair":
                run_fates = _fates(plan, manifest)
                old = _fates(plans[plan.supersedes], manifests[plan.supersedes]).items()
                assert not (less := [o for o, fate in old if fate == "kept" and run_fates[o] != "kept"]), (
                    f"{run} lacks {less}"
                )
        # Unfinished runs, and rebuilds that were given up, may have objects.
        pending = {(p.interval.id, p.revision) for run, p in plans.items() if run not in committed}
        for key in stored.keys() - explained:
            assert self.of_pending(key, plans, committed), f"{key}: no run explains it (unfinished: {pending})"
        # An unfinished run counts with its plan. An unfinished rebuild counts only if it takes over: then no other run
        # has these offsets.
        first = {run for run, end in ends.items() if end.outcome == "replaced"}
        planned = {
            plan.interval.id: run
            for run, plan in plans.items()
            if (plan.supersedes is None or plan.takes_over) and run not in first
        } | current
        self._check_cover([plans[run] for run in planned.values()], {i for i in planned if plans[i].moves_group})
        unsettled = {run for run, p in plans.items() if p.supersedes is None or run in committed} - settled
        counting = {run: manifests[run] for run in current.values() if run in settled}
        self._check_hours(counting, fates, plans, not unsettled)

    @staticmethod
    def _current(plans: Mapping[str, Plan], committed: Iterable[str]) -> dict[str, str]:
        """By interval, the run that counts: the last revision that is committed."""
        current: dict[str, str] = {}
        for run in sorted(committed, key=lambda r: plans[r].revision):
            current[plans[run].interval.id] = run
        return current

    @staticmethod
    def _removed(run: str, plans: Mapping[str, Plan], settled: Iterable[str]) -> bool:
        return any(plans[r].supersedes == run and not plans[r].keep_superseded for r in settled)

    @staticmethod
    def of_pending(key: str, plans: Mapping[str, Plan], committed: Iterable[str]) -> bool:
        name, bad = key.rsplit("/", 1)[1], key.startswith("_dead_letter/")
        for run, plan in plans.items():
            if run not in committed and any(name.startswith(name_of(c, plan, bad) + ".") for c in plan.chunks()):
                return True
        return False

    @staticmethod
    def _writers(
        plan: Plan, manifest: Manifest, plans: Mapping[str, Plan], manifests: Mapping[str, Manifest]
    ) -> list[tuple[Plan, Manifest]]:
        """The plans that wrote its objects, first the one that read Kafka, then replays of dead letters; and what they
        wrote. A repair has written nothing; its manifest stands for that of the run that it repairs.
        """
        writers: list[tuple[Plan, Manifest]] = []
        while True:
            if plan.origin != "repair":
                writers.insert(0, (plan, manifest))
                if not plan.letters:
                    return writers
                manifest = manifests[plan.supersedes or ""]
            plan = plans[plan.supersedes or ""]

    # One run: every offset has one fate, which is true, and the objects have exactly the archived records.

    def _check_run(
        self, writers: Sequence[tuple[Plan, Manifest]], plan: Plan, manifest: Manifest, stored: Mapping[str, Any]
    ) -> None:
        partitions = {(p.topic, p.partition): p for p in plan.partitions}
        expected: dict[str, Rows] = {}
        planned = Counter(
            (p.topic, p.partition, o) for p in plan.partitions for r in (*p.ranges, *p.lost) for o in range(*r)
        )
        accounted = Counter((a.topic, a.partition, o) for a in manifest.chunks for o in range(a.start, a.end))
        assert accounted == planned, f"{plan.run}: the account does not have the plan's offsets"
        for account in manifest.chunks:
            partition = partitions[account.topic, account.partition]
            expected |= self._expected(writers, plan, manifest, partition, account)
        gone = {o.key for o in manifest.lost_objects}
        assert gone == set(plan.lost_objects) <= expected.keys() | self.given_up
        assert gone <= self.given_up, f"{plan.run}: {gone - self.given_up} was not given up"
        # An object's sidecar is lost with it.
        expected = {key: some for key, some in expected.items() if not gone & {key, key.replace(SIDECAR, "")}}
        entries = {o.key: o for o in manifest.stored}
        assert entries.keys() == expected.keys(), (
            f"{plan.run}: unexpected {sorted(entries.keys() - expected.keys())}, "
            f"missing {sorted(expected.keys() - entries.keys())}"
        )
        assert sum(a.stored["archived"] for a in manifest.chunks) == sum(o.rows for o in manifest.objects)
        for key, entry in entries.items():
            assert key in stored, f"{plan.run}: {key} is not in the store"
            assert stored[key].size == entry.bytes, f"{key} does not have the size in the manifest"
            revision = re.search(r"\+r(\d+)\.", key)
            [by] = [w for w, _ in writers if w.revision == int(revision[1] if revision else 0)]
            self._check_object(by, entry, expected[key], stored[key].etag)

    def _expected(
        self,
        writers: Sequence[tuple[Plan, Manifest]],
        plan: Plan,
        manifest: Manifest,
        partition: PartitionPlan,
        account: ChunkAccount,
    ) -> dict[str, Rows]:
        """The expected objects of one chunk, by key. Also checks the chunk's account."""
        settings = writers[0][0].settings
        log = self.twin.logs[partition.topic_id][partition.partition]
        place = (account.topic, account.partition, account.start)
        destroyed = [o for o in manifest.lost_objects if (o.topic, o.partition, o.chunk_start) == place]
        policies = [m.policies.get("bad_record", "fail") for _, m in writers]
        read_less = log.gone(account.start) or any(
            (partition.topic_id, partition.partition, offset) in self.unread
            for offset in range(account.start, account.end)
        )
        if read_less and policies[0] != "fail":
            # Records are lost or given up, so the run may have kept an earlier attempt's result under another policy.
            first = writers[0][1]
            of = [
                o for o in (*first.dead_letters, *first.lost_objects) if (o.topic, o.partition, o.chunk_start) == place
            ]
            policies[0] = "dead_letter" if any(o.key.startswith("_dead_letter/") for o in of) else "skip"
        lost = {o for r in account.lost_ranges for o in range(*r)}
        absent = {o for r in account.absent_ranges for o in range(*r)}
        rows_by_key: dict[str, Rows] = {}
        counts = Counter(lost=len(lost), absent=len(absent))
        for offset in range(account.start, account.end):
            entry = log.entries[offset]
            where = f"{plan.run}: {partition.name} {partition.topic_id} offset {offset} ({entry})"
            if offset in lost:
                unread = partition.topic_id, partition.partition, offset
                assert log.gone(offset) or unread in self.unread, f"{where} is called lost, but exists"
                self._unread_since.setdefault(unread, self.twin.hour)
                continue
            if offset in absent:
                assert not entry.visible(settings.isolation), f"{where} is called absent, but is readable"
                continue
            assert entry.was_visible(settings.isolation), f"{where} is not a record, but counts as one"
            assert entry.record is not None
            letter, fate, rows = "", "", Rows()
            for (by, wrote), policy in zip(writers, policies, strict=True):
                if by.letters and letter not in {item.key for item in by.letters}:
                    # It was no dead letter any more, or was destroyed before the replay.
                    break
                result = outcome(by.settings, partition.topic, partition.partition, offset, entry)
                if offset in _set_aside(wrote, place):
                    assert is_deadly(entry.record.value), f"{where} ends no process, but was set aside"
                    result = Outcome("bad")
                assert result.what != "bad" or policy != "fail", f"{where} is bad, but was archived"
                fate, letter, rows = result.what, "", []
                for row in result.rows:
                    rows.append((key_of(account, by, row.folder), row))
                if result.what == "bad":
                    fate = "filtered" if policy == "skip" else "dead_lettered"
                if fate == "dead_lettered":
                    letter = letter_of(account, by, entry.timestamp)
                    rows = [(letter, Row(entry.record.key, entry.record.value, entry.record.headers))]
            counts[fate] += 1
            for key, row in rows:
                rows_by_key.setdefault(key, []).append((offset, entry, row))
                plain = key.removesuffix(".enc")
                if plain.endswith(".gz") and not plain.endswith((".jsonl.gz", ".csv.gz", ".mak.gz")):
                    sidecar = plain + SIDECAR + key.removeprefix(plain)
                    rows_by_key.setdefault(sidecar, []).append((offset, entry, row))
        claimed = {fate: getattr(account, fate) for fate in ("archived", "filtered", "dead_lettered", "absent", "lost")}
        if destroyed:
            letters = sum(o.rows for o in destroyed if o.key.startswith("_dead_letter/"))
            objects = [o for o in destroyed if not o.key.startswith("_dead_letter/")]
            counts["dead_lettered"] -= letters
            # Which rows of a record are in which object, nobody can know once they are gone.
            gone = counts["archived"] - account.archived
            assert max((o.offsets for o in objects), default=0) <= gone <= sum(o.offsets for o in objects)
            counts["archived"] -= gone
            counts["lost"] += gone + letters
        assert claimed == {fate: counts[fate] for fate in claimed}, f"{plan.run}: {account} but found {counts}"
        return rows_by_key

    def _check_object(self, plan: Plan, entry: ObjectEntry, expected: Rows, etag: str) -> None:
        offsets = list(dict.fromkeys(offset for offset, _, _ in expected))
        assert (entry.first_offset, entry.last_offset) == (offsets[0], offsets[-1])
        if entry.sidecar_of:
            assert self._rows(plan, entry, etag)[0]["first_record_offset"] == offsets[0]
            return
        parsed, rows = self._rows(plan, entry, etag), expected_of(plan, entry, expected)
        if entry.key.startswith("_dead_letter/"):
            assert all(row.pop("error", None) for row in parsed if "error" in row)
        assert parsed == rows, f"{entry.key}: {parsed} instead of {rows}"
        assert (entry.rows, entry.offsets) == (len(rows), len(offsets))
        letter = entry.key.startswith("_dead_letter/")
        times = [e.timestamp if letter else self._time(plan, o, entry, e) for o, e, _ in expected]
        counted = Counter(map(hour_of, times))
        assert {hour: entry.rows_in(hour) for hour in entry.hours} == counted, f"{entry.key}: {counted}"

    @staticmethod
    def _time(plan: Plan, offset: int, place: ObjectEntry | PartitionPlan, entry: Entry) -> int | None:
        return outcome(plan.settings, place.topic, place.partition, offset, entry).time

    def _rows(self, plan: Plan, entry: ObjectEntry, etag: str) -> list[Any]:
        """:param etag: the stored object's current ETag."""
        if (known := self._read.get((entry.key, etag))) is None:
            data = self.store.get(entry.key)
            assert data is not None
            assert entry.checksum == f"crc32:{zlib.crc32(data):08x}", f"{entry.key} does not have its checksum"
            if entry.key.endswith(".enc"):
                wrapped = self.store.get(f"_ledger/{plan.archive}/keys/{plan.data_key}.json")
                data = opened(data, self.master, wrapped or b"")
            key = entry.key.removesuffix(".enc")
            known = json.loads(data)["chunks"] if entry.sidecar_of else parse(data, key, plan)
            self._read[entry.key, etag] = known
        return [dict(row) if isinstance(row, dict) else row for row in known]

    def check_filled(self) -> None:
        """Check that each record that Kafka still has is in a run that counts."""
        plans = self.plans()
        committed = {run for run in plans if (end := self.ledger.commit(run)) and end.outcome == "committed"}
        fates: dict[tuple[str, int, int], str] = {}
        for run in self._current(plans, committed).values():
            manifest = self.ledger.manifest(run)
            assert manifest
            fates |= _fates(plans[run], manifest)
        isolation = min(plan.settings.isolation for plan in plans.values())
        for topic_id, logs in self.twin.logs.items():
            for partition, log in enumerate(logs):
                left = [
                    offset
                    for offset, entry in enumerate(log.entries)
                    if not log.gone(offset) and entry.visible(isolation) and (topic_id, partition, offset) not in fates
                ]
                assert not left, f"nothing is left to fill, but no run has {topic_id}[{partition}] {left}"

    def check_lookup(self, ledger: Ledger) -> None:
        """Check that each offset of the runs that count gives its record, or what the account says of it."""
        plans = self.plans()
        committed = [run for run in plans if (end := self.ledger.commit(run)) and end.outcome == "committed"]
        manifests = {run: m for run in committed if (m := self.ledger.manifest(run))}
        for run in self._current(plans, committed).values():
            plan, manifest = plans[run], manifests[run]
            fates = _fates(plan, manifest)
            by_name = {p.name: p for p in plan.partitions}
            writers = self._writers(plan, manifest, plans, manifests)
            is_whole = all(by.settings.transform is None for by, _ in writers)
            # In its first version, an empty value and none are the same.
            is_whole &= all((by.settings.format, by.settings.options.get("version")) != ("mak", 1) for by, _ in writers)
            for account in manifest.chunks:
                topic_id = by_name[account.chunk.name].topic_id
                entries = self.twin.logs[topic_id][account.partition].entries
                # Of many offsets, some.
                for offset in range(account.start, account.end, 1 + (account.end - account.start) // 2):
                    fate = fates[topic_id, account.partition, offset]
                    record = entries[offset].record if is_whole else None
                    if record and record.value is None and any(has_no_null(by.settings) for by, _ in writers):
                        record = record._replace(value=b"")
                    self._check_looked_up(ledger, account, offset, record, fate)

    @staticmethod
    def _check_looked_up(ledger: Ledger, account: ChunkAccount, offset: int, record: Record | None, fate: str) -> None:
        """:param record: None if what is stored is something else."""
        where = f"{account.chunk} offset {offset}, {fate}, {account}"
        try:
            batches, refusal = [*Lookup(ledger, account.chunk.name, account.generation).records(offset)], ""
        except ConfigError as error:
            batches, refusal = [], str(error)
        if refusal:
            texts = {"lost": ["lost: Kafka had dropped it"], "absent": ["Kafka had no record there"]}.get(
                fate, ["values without their offsets", "filtered, or lost with"]
            )
            texts += ["is a dead letter"] * bool(account.dead_lettered) + ["filtered it ("] * bool(account.filtered)
            assert any(text in refusal for text in texts), f"{where}: {refusal}"
            return
        assert fate == "kept", f"{where}: {batches}"
        rows = [row for batch in batches for row in batch.to_pylist()]
        assert rows, where
        for row in rows:
            assert row.get("offset", offset) == offset, f"{where}: {row}"
            assert record is None or "key" not in row or row["value"] == record.value, f"{where}: {row}"

    # All runs: no offset twice, no gap between two runs.

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
            # Offsets of a generation may be in runs of earlier generations.
            anywhere = {o for other, offsets in taken.items() if other[:3] == place[:3] for o in offsets}
            missing = sorted(set(range(first, last)) - anywhere)
            assert not missing, f"{place}: offsets {missing} are in no run, but the position is {last}"

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
                for hour in o.hours:
                    holds.setdefault(hour, {}).setdefault(run, set()).add(o.key)
        progress = self.ledger.progress()
        proofs = _of_stretches(progress) | {
            hour: self.ledger.stored_hour(hour).document for hour in self.ledger.hours()
        }
        # A lost progress looks like a crash before it was written: the next run writes the same again.
        gone = self._closed.keys() - proofs.keys() if settled_all else set()
        assert not gone, f"verdicts are gone: {gone}"
        for hour, proof in proofs.items():
            contributions = self.ledger.contributions(proof)
            assert [c.number for c in contributions] == sorted(c.number for c in contributions)
            known = {c.run: {o.key for o in c.objects} for c in contributions if c.run in settled}
            assert known == holds.get(hour, {}), f"hour {hour}: proof has {known}, manifests have {holds.get(hour)}"
            assert proof.rows == sum(c.rows for c in contributions)
            assert proof.objects == sum(len(c.objects) for c in contributions)
            assert proof.late_rows == sum(c.rows for c in contributions if c.late)
            if hour in self._closed:
                assert proof.status == "complete" or proof.lost_rows, f"hour {hour} was complete, is {proof.status}"
            if proof.status == "complete" and hour is not None and self._closed.get(hour) is None:
                assert proof.complete_as_of is not None
                self._closed[hour] = proof.complete_as_of
                self.complete += 1
                plan = plans[proof.closed_by or ""]
                if proof.assumes is not None and plan.max_disorder_ms:
                    self._check_assumed(hour, plan, fates)
                if proof.assumes is not None:
                    self._check_not_contradicted(hour, proof.assumes, plan.number, settled, plans)
                if proof.assumes is None or self._is_so(_assumed_ms(proof.assumes)):
                    self._check_complete(hour, proof.complete_as_of, fates, plans)
        assert holds.keys() <= proofs.keys(), f"hours without a proof: {holds.keys() - proofs.keys()}"
        # The progress knows hours that a run made incomplete once that run is settled.
        if progress and progress.closed_until and settled_all:
            until, unsure = hours(progress.closed_until), progress.unsure.until if progress.unsure else EPOCH
            since = hours(max(progress.whole_from or EPOCH, unsure))
            begun = -(-(progress.begun or EPOCH).timestamp() // 3600)
            assert {*range(int(begun), int(until))} <= proofs.keys(), (
                f"judged hours from {begun} to {until} have no verdict"
            )
            for hour, proof in proofs.items():
                if hour is not None and hour + 1 <= until:
                    assert proof.status != "open", f"hour {hour} is open, but all until {until} are closed"
                    if hour >= since:
                        assert proof.status == "complete" or proof.lost_rows, (
                            f"hour {hour} is {proof.status}, complete from {since} to {until}: {proof}"
                        )

    def _check_assumed(self, hour: int, plan: Plan, fates: Mapping[tuple[str, int, int], str]) -> None:
        """Check that the run's records do not contradict the assumption of the proof."""
        for p in plan.partitions:
            entries = self.twin.logs[p.topic_id][p.partition].entries
            read = [o for o in range(p.start, p.end) if fates.get((p.topic_id, p.partition, o)) == "kept"]
            # Filtered records have no known timestamp, except the last of a chunk.
            results = {
                o: outcome(plan.settings, p.topic, p.partition, o, entries[o]) for o in read if entries[o].record
            }
            times = [entries[o].timestamp for o, result in results.items() if result.what == "archived"]
            worst = max((a - b for a, b in zip(accumulate(times, max), times, strict=True)), default=0)
            assert worst <= (plan.max_disorder_ms or 0), f"{plan.run}: hour {hour} assumes {plan}, and {worst} ms"

    @staticmethod
    def _check_not_contradicted(
        hour: int, assumes: str, number: int, settled: Mapping[str, Manifest], plans: Mapping[str, Plan]
    ) -> None:
        """Check that no run contradicts an assumption, of those since it was first declared."""
        declared = [p.number for p in plans.values() if p.max_disorder_ms or p.ordered_within_ms]
        for run, manifest in settled.items():
            if min(declared) <= plans[run].number <= number:
                worst = max((account.disorder for account in manifest.chunks), default=0)
                assert worst <= _assumed_ms(assumes), f"hour {hour}: {assumes}, but {run} has read {worst} ms"

    def _is_so(self, max_disorder_ms: int) -> bool:
        """Return True if every record is at most so much older than an earlier record of its partition."""
        for logs in self.twin.logs.values():
            for log in logs:
                times = [e.timestamp for e in log.entries if e.record is not None]
                if any(
                    before - time > max_disorder_ms for before, time in zip(accumulate(times, max), times, strict=True)
                ):
                    return False
        return True

    def _is_lost(self, entry: Entry, moment: int, isolation: str, hour: int) -> bool:
        """Return True if Kafka had removed the record by that moment, and it may be of that hour.

        A record with a time after its removal is of an hour that nobody can call incomplete in time.
        """
        since = entry.appended if isolation == "read_uncommitted" else entry.committed
        is_gone = since is not None and entry.gone is not None and since < entry.gone <= moment
        return is_gone and not entry.compacted and entry.was_visible(isolation) and hour * HOUR <= (entry.gone or 0)

    def _check_complete(
        self, hour: int, as_of: datetime, fates: Mapping[tuple[str, int, int], str], plans: Mapping[str, Plan]
    ) -> None:
        """Check every record of the hour that was committed in Kafka by that moment: the archive has it, or accounts
        for it as filtered, dead-lettered, or compacted before it was read. No record of the hour was lost.
        """
        moment = (as_of - EPOCH) // timedelta(milliseconds=1)
        assert moment >= (hour + 1) * HOUR, f"hour {hour} is called complete as of {as_of}, before its end"
        # What was aborted counts only where every run reads it.
        isolation = min(plan.settings.isolation for plan in plans.values())
        # The run that saw it, whose topics and time count; and the first of those before it that file by such a time.
        seen_by = [plan for plan in plans.values() if plan.planned_at == as_of][-1]
        source = seen_by.settings.time.source
        earlier = [plan for plan in plans.values() if plan.number <= seen_by.number]
        other_times = [
            plan.number for plan in earlier if (plan.settings.time.source == "record") != (source == "record")
        ]
        first = next(plan for plan in earlier if plan.number > max(other_times, default=0))
        topics = {p.topic_id: p.topic for p in seen_by.partitions}
        for topic_id, topic in topics.items():
            for partition, log in enumerate(self.twin.logs[topic_id] if topic_id not in (self._before or ()) else ()):
                for offset, entry in enumerate(log.entries):
                    if not entry.record or not (
                        entry.was_there(moment, isolation) or self._is_lost(entry, moment, isolation, hour)
                    ):
                        continue
                    time = entry.timestamp
                    if source != "record":
                        # The archive's begin is not in the record, and what it never had is taken for older.
                        never = fates.get((topic_id, partition, offset)) in (None, "lost")
                        if source == "wallclock" or (never and hour >= hours(first.planned_at) // 1):
                            continue
                        result = outcome(seen_by.settings, topic, partition, offset, entry)
                        time = -1 if result.time is None else result.time
                    if hour_of(time) == hour and hour <= self._unread_since.get((topic_id, partition, offset), hour):
                        fate = fates.get((topic_id, partition, offset))
                        assert fate == "kept" or (fate in ("absent", None) and entry.compacted), (
                            f"hour {hour} is called complete as of {as_of}, but {topic_id}[{partition}] {offset}, "
                            f"which existed then, is {fate or 'in no run'}"
                        )


def _of_stretches(progress: Progress | None) -> dict[int | None, Any]:
    """By hour, what the progress says of the hours that may have no proof of their own."""
    by_hour: dict[int | None, Any] = {}
    for stretch in progress.stretches if progress else ():
        for hour in range(int(hours(stretch.start)), int(hours(stretch.until))):
            assert hour not in by_hour, f"two stretches have hour {hour}"
            by_hour[hour] = HourProof(
                archive=stretch.run,
                hour_start=EPOCH + timedelta(hours=hour),
                number=stretch.number,
                status=stretch.status,
                complete_as_of=stretch.complete_as_of,
                assumes=stretch.assumes,
                closed_by=stretch.run,
                changed_by=stretch.run,
            )
    return by_hour


def _assumed_ms(assumes: str) -> int:
    """The number in a proof's assumption, in milliseconds."""
    [seconds] = re.findall(r"more than (\S+) s older", assumes)
    return round(1000 * float(seconds))


def _set_aside(manifest: Manifest, place: tuple[str, int, int]) -> set[int]:
    """The records of a chunk that a run has left out unread."""
    accounts = [a for a in manifest.chunks if (a.topic, a.partition, a.start) == place]
    return {offset for account in accounts for offset, _ in account.set_aside}


def _fates(plan: Plan, manifest: Manifest) -> dict[tuple[str, int, int], str]:
    ids = {(p.topic, p.partition): p.topic_id for p in plan.partitions}
    fates = {}
    for a in manifest.chunks:
        lost = {o for r in a.lost_ranges for o in range(*r)}
        absent = {o for r in a.absent_ranges for o in range(*r)}
        for o in range(a.start, a.end):
            fates[ids[a.topic, a.partition], a.partition, o] = (
                "lost" if o in lost else "absent" if o in absent else "kept"
            )
    return fates
