"""Clean-up on a store: what nothing needs goes, what a run at work or another archive has stays."""

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from kafka_archiver.checksum import crc32
from kafka_archiver.errors import TransientError
from kafka_archiver.keys import Place, is_ledger, object_key, probe_prefix
from kafka_archiver.layouts.hourly import hour_path
from kafka_archiver.ledger import Ledger
from kafka_archiver.manifest import ChunkAccount, Commit, Intent, Manifest, ObjectEntry, Outcome
from kafka_archiver.plan import PartitionPlan, Plan, Settings
from kafka_archiver.progress import Progress
from kafka_archiver.steps.clean_up import clean_up, leftovers, remove
from kafka_archiver.store import Store
from tests.contract.conftest import OpenStore
from tests.support.values import FIVE, HOURS, plan

pytestmark = pytest.mark.contract

HOUR, OTHER = hour_path(HOURS[0]), hour_path(HOURS[1])


def soon() -> datetime:
    """All that is there now is older."""
    return datetime.now(UTC) + timedelta(minutes=1)


def key(start: int, revision: int = 0, path: str = HOUR, dead: bool = False, generation: int = 0) -> str:
    return object_key(Place("orders", 0, start, generation, revision), path, ".jsonl.gz", dead)


class Lake:
    """An archive in a store that others use too."""

    def __init__(self, store: Store) -> None:
        self.store, self.ledger = store, Ledger(store, "orders")
        self.progress = Progress(archive="orders")
        self.last = 0

    def plan(self, number: int, **changes: Any) -> Plan:
        """The run of the `number`th hour: ten offsets."""
        start = 10 * number
        partition = PartitionPlan(
            topic="orders", topic_id="id", partition=0, start=start, end=start + 10, log_start=0, log_end=99,
            ranges=((start, start + 10),),
        )  # fmt: skip
        self.last += 1
        settings, begin = Settings(chunk_records=10), FIVE + timedelta(hours=number)
        made = plan(partition, start=begin, settings=settings, number=self.last, **changes)
        assert self.ledger.append(made)
        self.ledger.file_plan(made)
        return made

    def write(self, plan: Plan, *more: str, manifest: bool = True) -> Manifest:
        """One object; `more`: what earlier attempts had in mind."""
        [chunk] = plan.chunks()
        mine = key(chunk.start, plan.revision)
        intent = Intent(archive="orders", run=plan.run, attempt=1, keys=(mine, *more))
        assert self.ledger.put_intent(intent, self.ledger.intent(plan.run))
        entry = ObjectEntry(
            key=mine, topic="orders", partition=0, generation=0, chunk_start=chunk.start, path=HOUR, rows=10, bytes=4,
            checksum="c", etag=self.store.put(mine, b"data"), first_offset=chunk.start, last_offset=chunk.end - 1,
            min_timestamp=0, max_timestamp=0,
        )  # fmt: skip
        made = Manifest.of(plan, [entry], [ChunkAccount(**chunk.model_dump(), archived=10)])
        if manifest:
            self.ledger.create_manifest(made)
        return made

    def settle(self, plan: Plan, *more: str) -> None:
        manifest = self.write(plan, *more)
        self.end(plan, manifest)
        self.take_in(plan, "committed", manifest)

    def end(self, plan: Plan, manifest: Manifest | None = None, outcome: Outcome = "committed", by: str = "") -> Commit:
        end = Commit(
            archive="orders", run=plan.run, revision=plan.revision, outcome=outcome, by=by or None,
            plan_digest=plan.digest, manifest_digest=manifest.digest if manifest else None, committed_at=FIVE,
        )  # fmt: skip
        return self.ledger.create_commit(end)

    def take_in(self, plan: Plan, outcome: Outcome, manifest: Manifest | None = None) -> None:
        """As `close_hours` does, but for the hours."""
        self.progress = self.progress.after(plan, outcome, manifest)
        assert self.ledger.put_progress(self.progress, self.ledger.stored_progress())

    def upload(self, where: str) -> str:
        self.store.upload_part(self.store.start_upload(where), 1, b"sent", crc32(b"sent"))
        return where

    def rebuild(self, old: Plan, **changes: Any) -> Plan:
        number = old.partitions[0].start // 10
        return self.plan(number, revision=old.revision + 1, supersedes=old.run, origin="rebuild", **changes)

    def there(self) -> set[str]:
        uploads = {f"upload of {found}" for found, _, _ in self.store.list_uploads("")}
        return {stat.key for stat in self.store.list("")} | uploads


@pytest.fixture
def lake(store: Store) -> Lake:
    return Lake(store)


def test_nothing_is_left_of_sound_runs(lake: Lake) -> None:
    lake.settle(lake.plan(0))
    lake.settle(lake.plan(1))
    before = lake.there()
    assert leftovers(lake.ledger, soon()) == []
    assert clean_up(lake.ledger, soon()) == []
    assert lake.there() == before


def test_uploads_of_what_is_settled_go_and_no_others(lake: Lake) -> None:
    first = lake.plan(0)
    lake.settle(first)
    lake.plan(1)
    lake.rebuild(first)
    strays = {
        lake.upload(key(0)),
        lake.upload(key(0, path=OTHER)),
        lake.upload(key(0, dead=True)),
        # Of a rebuild that was cleaned away while its zombie was still at work.
        lake.upload(key(0, revision=7)),
    }
    for foreign in (
        key(10),
        key(0, revision=1),
        key(20),
        key(0, generation=1),
        f"orders/{key(0)}",
        key(0).replace("orders", "returns"),
        "orders/date=2026-11-21/notes.txt",
    ):
        lake.upload(foreign)
    assert leftovers(lake.ledger, datetime.now(UTC) - timedelta(hours=1)) == []
    before = lake.there()
    remove(lake.ledger, [item for item in leftovers(lake.ledger, soon()) if item.kind == "upload"])
    assert before - lake.there() == {f"upload of {stray}" for stray in strays}


def test_uploads_of_a_log_that_was_given_up_go(lake: Lake) -> None:
    lake.settle(lake.plan(0))
    [known] = lake.progress.partitions
    anew = lake.progress.model_copy(update={"partitions": (known.model_copy(update={"generation": 1}),)})
    assert lake.ledger.put_progress(anew, lake.ledger.stored_progress())
    lake.upload(key(30))
    lake.upload(key(30, generation=1))
    assert [item.key for item in leftovers(lake.ledger, soon())] == [key(30)]


def test_objects_of_a_zombie_and_those_that_a_rebuild_replaced_go(lake: Lake) -> None:
    dead = key(0, path=OTHER)
    # An intent may also name what is not there, and nothing that it should name is another run's.
    first, second = lake.plan(0), lake.plan(1)
    lake.settle(first, dead, key(0, dead=True), key(10))
    lake.settle(second)
    lake.store.put(dead, b"of a zombie")
    lake.settle(lake.rebuild(first))
    lake.settle(lake.rebuild(second, keep_superseded=True))
    before = lake.there()
    found = clean_up(lake.ledger, soon() + timedelta(days=1))
    assert sorted((item.kind, item.key, item.run) for item in found) == [
        ("attempt", dead, "20261121T050000Z"),
        ("superseded", key(0), "20261121T050000Z"),
    ]
    assert before - lake.there() == {dead, key(0)}
    assert clean_up(lake.ledger, soon() + timedelta(days=1)) == []


def test_old_runs_are_not_looked_at_every_day(lake: Lake) -> None:
    dead = key(0, path=OTHER)
    lake.settle(lake.plan(0), dead)
    lake.store.put(dead, b"of a zombie")
    assert leftovers(lake.ledger, soon(), since=soon()) == []
    assert [item.key for item in leftovers(lake.ledger, soon(), since=FIVE - timedelta(days=365))] == [dead]


def given_up(lake: Lake, settled: bool = False) -> tuple[Plan, set[str]]:
    """A rebuild that nobody finished, and all there is of it besides its documents.

    :param settled: nothing stands before it in the line any more.
    """
    first = lake.plan(0)
    lake.settle(first)
    before = lake.there()
    plan = lake.rebuild(first)
    lake.write(plan, key(0, revision=1, path=OTHER), key(0, revision=1, dead=True))
    lake.store.put(key(0, revision=1, path=OTHER), b"of its first attempt")
    lake.upload(key(0, revision=1))
    lake.upload(key(0, revision=1, dead=True))
    lake.end(plan, outcome="given_up", by="the next run")
    if settled:
        lake.take_in(plan, "given_up")
    return plan, {found for found in lake.there() - before if not is_ledger(found)}


@pytest.mark.parametrize("settled", [False, True])
def test_a_rebuild_that_was_given_up_goes_whole_but_for_what_is_on_record(lake: Lake, settled: bool) -> None:
    """Its plan has a place in the line, so its documents stay."""
    plan, its = given_up(lake, settled)
    before = lake.there()
    assert leftovers(lake.ledger, FIVE - timedelta(hours=1)) == []
    remove(lake.ledger, leftovers(lake.ledger, soon()))
    assert before - lake.there() == its
    assert lake.ledger.runs()[plan.run] == {"plan", "intent", "manifest", "commit"}
    assert leftovers(lake.ledger, soon()) == []


def test_nothing_of_a_rebuild_that_was_removed_comes_back(lake: Lake) -> None:
    """Its zombie has to take the intent before it completes anything, and the intent is closed."""
    plan, _ = given_up(lake)
    remove(lake.ledger, leftovers(lake.ledger, soon()))
    intent = lake.ledger.intent(plan.run).document
    assert intent is not None
    assert intent.closed


def test_a_rebuild_that_nobody_has_given_up_stays_however_old(lake: Lake) -> None:
    """It may be at work; the next run of the archive gives it up, and a day later it goes."""
    first = lake.plan(0)
    lake.settle(first)
    lake.write(lake.rebuild(first, planned_at=FIVE - timedelta(days=365)), key(0, revision=1, path=OTHER))
    lake.store.put(key(0, revision=1, path=OTHER), b"of its first attempt")
    lake.upload(key(0, revision=1))
    assert leftovers(lake.ledger, soon() + timedelta(days=365)) == []


@pytest.mark.parametrize("manifest", [False, True])
def test_a_run_that_is_not_finished_stays_however_old(lake: Lake, manifest: bool) -> None:
    lake.settle(lake.plan(0))
    lake.write(lake.plan(1), key(10, path=OTHER), manifest=manifest)
    lake.upload(key(10))
    assert leftovers(lake.ledger, soon() + timedelta(days=365)) == []


def test_a_committed_rebuild_stays(lake: Lake) -> None:
    first = lake.plan(0)
    lake.settle(first)
    plan = lake.rebuild(first)
    lake.end(plan, lake.write(plan))
    assert leftovers(lake.ledger, soon()) == []


def test_a_rebuild_that_has_ended_cannot_be_committed_while_it_is_found(lake: Lake) -> None:
    plan, _ = given_up(lake)
    manifest = lake.ledger.manifest(plan.run)
    assert lake.end(plan, manifest).outcome == "given_up"
    assert lake.ledger.current("20261121T050000Z") == lake.ledger.planned(1)


def taken_over(lake: Lake, **changes: Any) -> set[str]:
    """A run that was never final, and the rebuild that took its place, settled. Returns the run's objects."""
    first = lake.plan(0)
    lake.write(first, key(0, path=OTHER), key(0, revision=1), manifest=False)
    lake.store.put(key(0, path=OTHER), b"of its first attempt")
    rebuild = lake.rebuild(first, takes_over=True, **changes)
    lake.end(first, outcome="replaced", by=rebuild.run)
    lake.take_in(first, "replaced")
    lake.settle(rebuild)
    return {key(0), key(0, path=OTHER)}


def test_objects_of_a_run_that_was_never_final_go_once_another_has_its_place(lake: Lake) -> None:
    its = taken_over(lake)
    before = lake.there()
    found = clean_up(lake.ledger, soon() + timedelta(days=1))
    assert {(item.kind, item.run) for item in found} == {("superseded", "20261121T050000Z")}
    assert before - lake.there() == its


def test_objects_of_a_run_that_was_never_final_stay_where_the_rebuild_keeps_what_it_replaces(lake: Lake) -> None:
    taken_over(lake, keep_superseded=True)
    assert clean_up(lake.ledger, soon() + timedelta(days=1)) == []


class Broken:
    """A store that refuses some requests that change something."""

    def __init__(self, store: Store, refuses: Callable[[str], bool]) -> None:
        self._store, self._refuses = store, refuses

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)

    def delete(self, key: str) -> None:
        self._change(key, self._store.delete, key)

    def abort_upload(self, key: str, upload_id: str) -> None:
        self._change(key, self._store.abort_upload, key, upload_id)

    def _change(self, key: str, change: Callable[..., None], *arguments: str) -> None:
        if self._refuses(key):
            raise TransientError("gone away")
        change(*arguments)


def test_a_crash_anywhere_is_made_good_by_the_next(open_below: OpenStore) -> None:
    for changes in range(4):
        lake = Lake(open_below(f"after{changes}"))
        _, its = given_up(lake)
        before = lake.there()
        left = iter([False] * changes)
        broken = Ledger(Broken(lake.store, lambda _: next(left, True)), "orders")  # type: ignore[arg-type]  # noqa: B023
        with pytest.raises(TransientError, match="gone away"):
            remove(broken, leftovers(lake.ledger, soon()))
        remove(lake.ledger, leftovers(lake.ledger, soon()))
        assert before - lake.there() == its


def test_what_a_killed_doctor_left_goes(lake: Lake) -> None:
    probe = f"{probe_prefix('orders')}1"
    lake.store.put(probe, b"x")
    lake.upload(probe)
    lake.store.put(f"{probe_prefix('returns')}1", b"of another archive")
    assert leftovers(lake.ledger, datetime.now(UTC) - timedelta(hours=1)) == []
    remove(lake.ledger, leftovers(lake.ledger, soon()))
    assert lake.there() == {f"{probe_prefix('returns')}1"}
