"""Clean-up on a store: what nothing needs goes, what a run at work or another archive has stays."""

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from kafka_archiver.ledger.ledger import Ledger
from kafka_archiver.messages.errors import TransientError
from kafka_archiver.model.layouts.hourly import hour_path
from kafka_archiver.model.manifest import Intent
from kafka_archiver.model.object_keys import LEDGER, ObjectName, object_key, probe_prefix, run_document
from kafka_archiver.store import Store
from kafka_archiver.values.checksum import crc32
from kafka_archiver.values.intervals import to_ms
from kafka_archiver.values.ranges import Range, TopicPartition
from kafka_archiver.work.clean_up import clean_up, find_leftovers, remove_leftovers
from kafka_archiver.work.plan import PlannedWork
from tests.contract.conftest import OpenStore
from tests.support import lake as lakes
from tests.support.lake import FIRST, hour

pytestmark = pytest.mark.contract

P0 = TopicPartition("orders", 0)
HOUR, OTHER = (hour_path(to_ms(hour(number).start) // lakes.HOUR) for number in (0, 1))
RUN = hour(0).id


def soon() -> datetime:
    """All that is there now is older."""
    return datetime.now(UTC) + timedelta(minutes=1)


def key(start: int, revision: int = 0, path: str = HOUR, dead: bool = False, generation: int = 0) -> str:
    return object_key(ObjectName("orders", 0, start, generation, revision), path, ".jsonl.gz", dead)


class Lake(lakes.Lake):
    """An archive in a store that others use too. Each run has ten records of the same hour, which are one object."""

    def __init__(self, store: Store) -> None:
        odd = {(P0, offset): {"timestamp": to_ms(FIRST)} for offset in range(30)}
        super().__init__(store, {P0: Range(0, 0)}, settings={"chunk_records": 10}, odd=odd, name="orders")

    def begin(self, number: int) -> str:
        """Plan the run of the `number`th hour."""
        self.logs[P0] = Range(0, 10 * number + 10)
        return self.run(number, until="planned")

    def intend(self, run: str, *keys: str) -> None:
        """Write the intent of an earlier attempt."""
        intent = Intent(archive="orders", run=run, attempt=1, keys=keys)
        assert self.ledger.put_intent(intent, self.ledger.intent(run))

    def settle(self, run: str, until: str = "settled") -> None:
        self.finish(PlannedWork((run,), (run,)), until)

    def upload(self, where: str) -> str:
        self.store.upload_part(self.store.start_upload(where), 1, b"sent", crc32(b"sent"))
        return where

    def all_keys(self) -> set[str]:
        uploads = {f"upload of {key}" for key, _, _ in self.store.list_uploads("")}
        return {stat.key for stat in self.store.list("")} | uploads


@pytest.fixture
def lake(store: Store) -> Lake:
    """An archive with a settled run."""
    lake = Lake(store)
    lake.settle(lake.begin(0))
    return lake


def test_nothing_is_left_of_sound_runs(lake: Lake) -> None:
    lake.settle(lake.begin(1))
    before = lake.all_keys()
    assert find_leftovers(lake.ledger, soon()) == []
    assert clean_up(lake.ledger, soon()) == []
    assert lake.all_keys() == before


def test_uploads_of_what_is_settled_go_and_no_others(lake: Lake) -> None:
    lake.begin(1)
    lake.rebuild(RUN, until="planned")
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
    assert find_leftovers(lake.ledger, datetime.now(UTC) - timedelta(hours=1)) == []
    before = lake.all_keys()
    remove_leftovers(lake.ledger, [item for item in find_leftovers(lake.ledger, soon()) if item.kind == "upload"])
    assert before - lake.all_keys() == {f"upload of {stray}" for stray in strays}


def test_what_a_run_s_own_attempts_left_goes_before_its_commit_which_never_moves_the_group_back(lake: Lake) -> None:
    run = lake.begin(1)
    lake.settle(run, until="written")
    lake.upload(key(10))
    lake.upload(key(20))
    lake.brokers.group[P0] = 25
    lake.settle(run, until="committed")
    assert [uploaded for uploaded, *_ in lake.store.list_uploads("")] == [key(20)]
    assert lake.brokers.group == {P0: 25}


def test_uploads_of_a_log_that_was_given_up_go(lake: Lake) -> None:
    [known] = lake.progress.partitions
    anew = lake.progress.model_copy(update={"partitions": (known.model_copy(update={"generation": 1}),)})
    assert lake.ledger.put_progress(anew, lake.ledger.stored_progress())
    lake.upload(key(30))
    lake.upload(key(30, generation=1))
    assert [item.key for item in find_leftovers(lake.ledger, soon())] == [key(30)]


def test_objects_of_a_zombie_and_those_that_a_rebuild_replaced_go(store: Store) -> None:
    lake, dead = Lake(store), key(0, path=OTHER)
    first = lake.begin(0)
    # An intent may also name what is not there, and nothing that it should name is another run's.
    lake.intend(first, dead, key(0, dead=True), key(10))
    lake.settle(first)
    second = lake.begin(1)
    lake.settle(second)
    lake.rebuild(first)
    lake.rebuild(second, keep=True)
    lake.store.put(dead, b"of a zombie")
    # As if the task had been killed before it removed it.
    lake.store.put(key(0), b"data")
    before = lake.all_keys()
    removal = clean_up(lake.ledger, soon() + timedelta(days=1))
    assert sorted((item.kind, item.key, item.run) for item in removal) == [
        ("attempt", dead, first),
        ("superseded", key(0), first),
    ]
    assert before - lake.all_keys() == {dead, key(0)}
    assert clean_up(lake.ledger, soon() + timedelta(days=1)) == []


def test_old_runs_are_not_looked_at_every_day(store: Store) -> None:
    lake, dead = Lake(store), key(0, path=OTHER)
    lake.intend(lake.begin(0), dead)
    lake.settle(RUN)
    lake.store.put(dead, b"of a zombie")
    assert find_leftovers(lake.ledger, soon(), since=soon()) == []
    assert [item.key for item in find_leftovers(lake.ledger, soon(), since=FIRST - timedelta(days=365))] == [dead]


def rebuilt(lake: Lake) -> tuple[str, set[str]]:
    """A rebuild that nobody finishes, and all there is of it besides its documents."""
    before, run = lake.all_keys(), lake.rebuild(RUN, until="planned")
    lake.intend(run, key(0, revision=1, path=OTHER), key(0, revision=1, dead=True))
    lake.settle(run, until="written")
    lake.store.put(key(0, revision=1, path=OTHER), b"of its first attempt")
    lake.upload(key(0, revision=1))
    lake.upload(key(0, revision=1, dead=True))
    return run, {key_left for key_left in lake.all_keys() - before if not key_left.startswith(f"{LEDGER}/")}


def given_up(lake: Lake, settled: bool = False) -> tuple[str, set[str]]:
    """The same, given up by the next run.

    :param settled: nothing stands before it in the line any more.
    """
    run, its = rebuilt(lake)
    lake.run(1, until="settled" if settled else "planned")
    return run, its


@pytest.mark.parametrize("settled", [False, True])
def test_a_rebuild_that_was_given_up_goes_whole_but_for_what_is_on_record(lake: Lake, settled: bool) -> None:
    """Its plan has a place in the line, so its documents stay; whoever still completes it would take its intent."""
    run, its = given_up(lake, settled)
    before = lake.all_keys()
    assert find_leftovers(lake.ledger, FIRST) == []
    remove_leftovers(lake.ledger, find_leftovers(lake.ledger, soon()))
    assert before - lake.all_keys() == its
    assert {"plan", "intent", "manifest", "commit"} <= lake.ledger.runs()[run]
    intent = lake.ledger.intent(run).document
    assert intent is not None
    assert intent.closed
    assert find_leftovers(lake.ledger, soon()) == []


def test_a_rebuild_that_nobody_has_given_up_stays_however_old(lake: Lake) -> None:
    """It may be at work; the next run of the archive gives it up, and a day later it goes."""
    rebuilt(lake)
    assert find_leftovers(lake.ledger, soon() + timedelta(days=365)) == []


@pytest.mark.parametrize("manifest", [False, True])
def test_a_run_that_is_not_finished_stays_however_old(lake: Lake, manifest: bool) -> None:
    run = lake.begin(1)
    lake.intend(run, key(10, path=OTHER))
    lake.settle(run, until="written")
    if not manifest:
        lake.store.delete(run_document("orders", run, "manifest"))
    lake.upload(key(10))
    assert find_leftovers(lake.ledger, soon() + timedelta(days=365)) == []


def test_a_committed_rebuild_stays(lake: Lake) -> None:
    lake.rebuild(RUN, until="committed")
    assert find_leftovers(lake.ledger, soon()) == []


@pytest.mark.parametrize("keep", [False, True])
def test_objects_of_a_run_that_was_never_final_go_once_a_rebuild_that_does_not_keep_them_has_its_place(
    store: Store, keep: bool
) -> None:
    lake, its = Lake(store), {key(0), key(0, path=OTHER)}
    lake.intend(lake.begin(0), key(0, path=OTHER), key(0, revision=1))
    lake.settle(RUN, until="written")
    lake.store.delete(run_document("orders", RUN, "manifest"))
    lake.rebuild(RUN, keep)
    # As if the task had been killed before it removed them.
    for left in its:
        lake.store.put(left, b"data")
    before = lake.all_keys()
    removal = clean_up(lake.ledger, soon() + timedelta(days=1))
    assert {(item.kind, item.run) for item in removal} == (set() if keep else {("superseded", RUN)})
    assert before - lake.all_keys() == (set() if keep else its)


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
        lake.settle(lake.begin(0))
        _, its = given_up(lake)
        before = lake.all_keys()
        left = iter([False] * changes)
        broken = Ledger(Broken(lake.store, lambda _: next(left, True)), "orders")  # type: ignore[arg-type]  # noqa: B023
        with pytest.raises(TransientError, match="gone away"):
            remove_leftovers(broken, find_leftovers(lake.ledger, soon()))
        remove_leftovers(lake.ledger, find_leftovers(lake.ledger, soon()))
        assert before - lake.all_keys() == its


def test_what_a_killed_doctor_left_goes(store: Store) -> None:
    lake, probe = Lake(store), f"{probe_prefix('orders')}1"
    lake.store.put(probe, b"x")
    lake.upload(probe)
    lake.store.put(f"{probe_prefix('returns')}1", b"of another archive")
    assert find_leftovers(lake.ledger, datetime.now(UTC) - timedelta(hours=1)) == []
    remove_leftovers(lake.ledger, find_leftovers(lake.ledger, soon()))
    assert lake.all_keys() == {f"{probe_prefix('returns')}1"}
