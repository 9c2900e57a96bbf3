"""The model test on the twins; tests/integration/test_model.py is the same on real servers.

Below it what it has found, as the shortest sequences, and every place at which a run can be killed or overtaken.
"""

import functools
import re
from collections.abc import Callable, Iterator

import pytest

from kafka_archiver.messages.errors import IntegrityError
from kafka_archiver.work.rebuild import rebuild_run
from tests.support.draws import MENDED
from tests.support.kafka_twin import KafkaTwin
from tests.support.model import ALL_GOES, Model
from tests.support.model_run import one_thread, run
from tests.support.outcomes import STEPS

pytestmark = [pytest.mark.unit, pytest.mark.slow]

STORE = {"format": "jsonl", "codec": "none", "content": "record", "chunk_records": 2}
SOURCE = {
    "start": "earliest",
    "isolation": "read_committed",
    "max_records_per_run": 1000,
    "value": {"decode": "bytes"},
}
HOUR = 3_600_000
RECORDS = [(0, 0, b"a", "good"), (1, 0, None, "good"), (0, HOUR, b"a", "two lines"), (0, -HOUR, None, None)]
HAPPENS = ["kill", "freeze", "compact", "retention", "produce"]
# And the first question of `verify`, which writes nothing.
WRITES = re.compile(
    r"store (create|replace|put|delete|start_upload|upload_part|complete_upload|abort|list_uploads)\b|kafka move_group"
)
# A document that is there, and that nobody replaces.
FINAL = re.compile(r"store (version|get) _ledger/.*(/line/\d+|/plan|/manifest|/commit|/keys/\w+)\.json$")


@pytest.fixture(autouse=True)
def _one_thread() -> Iterator[None]:
    with one_thread():
        yield


def archive() -> Model:
    """Two partitions with four records in three hours."""
    state = Model()
    state.begin(STORE, SOURCE, [2], "archive")
    state.produce(0, RECORDS, None)
    return state


def go(
    state: Model,
    policies: str = ALL_GOES,
    fates: list[tuple[str, int]] | None = None,
    again: bool = True,
    give_up: bool = False,
) -> None:
    state.scheduled(policies, fates or [], again, give_up, 0, 0)


def places(how: str, begin: Callable[[], Model], attempt: Callable[[Model], None] = go) -> list[int]:
    """Return how many calls an attempt may have made when something happens to it, so that each place makes a
    difference.

    A kill leaves behind what was written: one before each write. What happens in Kafka is seen when Kafka is asked;
    once will do for an attempt that asks nothing. A sleeper goes on with what it has read: before each call, but for
    those that read what never changes.
    """
    state = begin()
    attempt(state)
    calls = list(state.calls)
    state.teardown()
    if how == "freeze":
        return [at for at, call in enumerate(calls) if not FINAL.search(call)]
    if how == "kill":
        return [at for at, call in enumerate(calls) if WRITES.match(call)]
    return [at for at, call in enumerate(calls) if call.startswith("kafka")] or [len(calls) // 2]


def test_every_committed_record_is_archived_exactly_once_whatever_happens() -> None:
    run(Model, examples=60, steps=25)


@pytest.mark.parametrize("how", [*HAPPENS, "recreate", "elect"])
def test_a_run_may_be_killed_or_overtaken_at_each_of_its_calls(how: str) -> None:
    # What sleeps at each call is below, with more runs behind it.
    for at in places(how, archive)[:: 2 if how == "freeze" else 1]:
        state = archive()
        go(state, fates=[(how, at)], again=at % 2 == 0)
        state.teardown()


def test_a_run_may_sleep_at_each_of_its_calls_while_others_go_on() -> None:
    for at in places("freeze", archive):
        state = archive()
        # Nobody retries it: the next hour's run meets what it has left, and then it wakes up.
        go(state, fates=[("freeze", at)], give_up=True)
        state.produce(0, RECORDS, None)
        go(state)
        state.produce(0, RECORDS[2:], None)
        state.wake(0, 1 << 30)
        go(state)
        state.teardown()


SKIP = ALL_GOES.replace("dead_letter", "skip")


def first_hour(state: Model, policies: str, *fates: tuple[str, int]) -> list[str]:
    """Run the first hour; nobody retries an attempt with a fate. Returns the calls of the last attempt."""
    state._go(state.interval(0), "scheduled", policies, fates, True, 0, give_up=bool(fates))
    return list(state.calls)


def test_an_attempt_under_another_policy_may_sleep_at_each_of_its_writes_while_the_next_one_finishes() -> None:
    def begun() -> Model:
        state = Model()
        state.begin({**STORE, "content": "value"}, SOURCE, [1], "archive")
        state.produce(0, [(0, 0, b"a", "good"), (0, HOUR, b"b", "bad")], None)
        return state

    def one_has_died() -> Model:
        """All that it wrote is visible, and its intent does not say so yet."""
        state = begun()
        first_hour(state, ALL_GOES, ("kill", dies_at))
        return state

    dies_at = max(n for n, call in enumerate(first_hour(begun(), ALL_GOES)) if call.endswith("intent.json")) - 1
    calls = first_hour(one_has_died(), SKIP)
    deletes = [n for n, call in enumerate(calls) if call.startswith("store delete _dead_letter")]
    assert len(deletes) == 1, "it removes what the one before wrote"
    for at in [n for n, call in enumerate(calls) if WRITES.match(call) and abs(n - deletes[0]) < 9]:
        state = one_has_died()
        first_hour(state, SKIP, ("freeze", at))
        first_hour(state, ALL_GOES)
        state.wake(0, 1 << 30)
        state.teardown()


def settled() -> Model:
    state = archive()
    go(state)
    return state


@pytest.mark.parametrize("how", HAPPENS)
def test_so_may_a_rebuild(how: str) -> None:
    def rebuild(state: Model, *fates: tuple[str, int], again: bool = True) -> None:
        state.rebuild(0, False, False, ALL_GOES, fates, again)

    for at in places(how, settled, rebuild)[:: 2 if how == "freeze" else 1]:
        state = settled()
        rebuild(state, (how, at), again=at % 2 == 0)
        state.teardown()


def lettered() -> Model:
    """A settled run with two encrypted dead letters, in two hours of one chunk."""
    state = Model()
    store = {**STORE, "content": "value", "chunk_records": 3, "encryption": {"client": {"connection": "master_key"}}}
    state.begin(store, SOURCE, [1], "archive")
    state.produce(0, [(0, 0, b"a", "bad"), (0, 0, None, "good"), (0, HOUR, b"a", "bad"), (0, 0, None, "bad")], None)
    go(state)
    return state


def replay(state: Model, *fates: tuple[str, int], mended: int = 0, again: bool = True, give_up: bool = False) -> None:
    state.replay(0, MENDED[mended], ALL_GOES, fates, again, give_up)


@pytest.mark.parametrize("how", ["kill", "freeze", "recreate"])
def test_so_may_a_replay_of_dead_letters(how: str) -> None:
    for at in places(how, lettered, replay):
        state = lettered()
        replay(state, (how, at), mended=at % 2, again=at % 3 == 0)
        state.teardown()


def test_a_replay_of_dead_letters_that_slept_ends_as_the_one_that_wrote_all_under_another_policy() -> None:
    def attempt(state: Model, policies: str, *fates: tuple[str, int]) -> list[str]:
        state.replay(0, None, policies, list(fates), True, bool(fates))
        return list(state.calls)

    def one_sleeps() -> Model:
        """It has read the letters, and is about to ask if others have begun."""
        state = lettered()
        attempt(state, SKIP, ("freeze", asks_at))
        return state

    asked = [n for n, call in enumerate(attempt(lettered(), SKIP)) if call.endswith("+r1/intent.json nothing")]
    asks_at = asked[-1]
    calls = attempt(one_sleeps(), ALL_GOES)
    written = next(n for n, call in enumerate(calls) if re.match(r"store create .*\+r1/manifest.json$", call))
    state = one_sleeps()
    attempt(state, ALL_GOES, ("freeze", written))
    # It takes over, or ends with what the other one has written; then that one goes on.
    state.wake(0, 5)
    state.wake(len(state.frozen) - 1, 1 << 30)
    state.teardown()


@pytest.mark.parametrize(("begin", "other"), enumerate(["replay", "rebuild", "destroy", "scheduled"]))
def test_a_replay_of_dead_letters_may_sleep_while_others_go_on(begin: int, other: str) -> None:
    # At each call two of the four happen.
    for at in places("freeze", lettered, replay)[begin % 2 :: 2]:
        state = lettered()
        replay(state, ("freeze", at), give_up=True)
        if other == "replay":
            replay(state, mended=1)
        elif other == "rebuild":
            state.rebuild(0, False, at % 2 == 0, ALL_GOES, [], True)
        elif other == "destroy":
            state.destroy(at, 1, "", [])
        else:
            go(state)
        state.wake(0, 1 << 30) if state.frozen else None
        go(state)
        state.teardown()


def test_two_attempts_with_compaction_between_them() -> None:
    for at in places("freeze", archive):
        state = archive()
        go(state, fates=[("freeze", at)], give_up=True)
        state.compact(0, 0)
        # The retry reads less; the first one goes on in its middle.
        state.clear_first([("freeze", at)])
        state.wake(0, 1 << 30)
        state.teardown()


def test_a_group_that_was_moved_ahead_is_put_back_when_the_policy_follows_the_ledger() -> None:
    state = archive()
    go(state)
    state.produce(0, RECORDS, None)
    state.move_group(0, 2)
    state.produce(0, RECORDS[2:], None)
    go(state)
    # Followed once, there is nothing to choose any more.
    go(state, "fail fail fail fail fail")
    assert state.ledger.settled(state.interval(2).id)
    state.teardown()


def test_an_archive_that_begins_behind_what_an_open_transaction_has_completes_no_hour_of_that() -> None:
    state = Model()
    state.begin(STORE, SOURCE, [1], "archive")
    state.produce(0, [(0, 0, None, "good")] * 3, "x")
    state.move_group(0, 1)
    go(state)
    state.teardown()


def hidden() -> Model:
    """A log that begins in the middle of a segment: what made this the one with later times is gone."""
    state = Model()
    state.begin(STORE, {**SOURCE, "start": "a time"}, [1], "archive")
    state.produce(0, [(0, HOUR, None, "good"), *[(0, -2 * HOUR, None, "good")] * 3, *[(0, 0, None, "good")] * 3], None)
    state.retention(0, 5)
    return state


def test_an_archive_that_starts_at_a_time_begins_there_although_the_time_index_hides_it() -> None:
    state = hidden()
    go(state)
    state.teardown()


def test_a_backfill_completes_no_hour_that_the_time_index_hides() -> None:
    state = hidden()
    state.next_hour = 1
    state.backfill(1, ALL_GOES, [], True, False, 0)


@pytest.mark.parametrize("backfill", [False, True])
def test_so_it_is_while_the_brokers_keep_the_latest_time_back(backfill: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    # That of a record that is not replicated yet.
    monkeypatch.setattr(KafkaTwin, "latest_times", lambda _, names: dict.fromkeys(names, -1))
    state = hidden()
    if backfill:
        state.next_hour = 1
        state.backfill(1, ALL_GOES, [], True, False, 0)
    else:
        go(state)
    state.teardown()


def test_an_archive_that_begins_in_the_middle_completes_no_hour_before_it_that_the_time_index_hides() -> None:
    state = Model()
    state.begin(STORE, SOURCE, [1], "archive")
    state.produce(0, [(0, 2 * HOUR, None, "good"), *[(0, 0, None, "good")] * 3, *[(0, HOUR, None, "good")] * 2], None)
    state.retention(0, 5)
    state.move_group(0, 5)
    for _ in range(4):
        go(state)
    state.teardown()


def test_what_a_backfill_loses_of_what_the_archive_left_out_completes_no_hour_as_of_before() -> None:
    state = Model()
    state.begin(STORE, {**SOURCE, "start": "latest"}, [1], "archive", disorder="10s")
    state.backfill(1, ALL_GOES, [("produce", 11)], False, False, 0)
    go(state, again=False)
    state.backfill(3, ALL_GOES, [("retention", 16)], False, False, 0)
    state.teardown()


def test_a_rebuild_keeps_what_was_compacted_since_though_as_many_others_can_be_read_now() -> None:
    state = Model()
    state.begin(STORE, SOURCE, [1], "archive")
    state.produce(0, [(0, 0, b"a", "good")] * 3, None)
    state.produce(0, [(0, 0, b"b", "good")] * 2, "x")
    state.end_transaction(0, commit=False)
    go(state)
    state.compact(0, 3)
    # What was aborted counts from now on.
    state.reconfigure(STORE, "read_uncommitted")
    state.rebuild(0, False, False, ALL_GOES, [], True)
    state.teardown()


def left_out(start: str) -> Model:
    """An archive that has begun, and left out what was there before."""
    state = Model()
    state.begin(STORE, {**SOURCE, "start": start}, [1], "archive")
    state.produce(0, [(0, 0, None, "good")] * 4, None)
    return state


def test_hours_close_though_retention_has_had_what_only_a_backfill_had_seen() -> None:
    state = left_out("earliest")
    state.next_hour = 6
    state.backfill(3, ALL_GOES, [], True, False, 0)
    state.retention(0, 2)
    go(state)
    state.teardown()


def test_hours_close_though_retention_passes_while_it_is_asked_how_old_the_rest_is() -> None:
    for at in range(40):
        state = left_out("latest")
        go(state, fates=[("retention", at)])
        state.teardown()


@pytest.mark.parametrize("start", ["earliest", "latest"])
def test_hours_close_behind_a_place_to_which_the_group_was_moved_over_what_retention_has_had(start: str) -> None:
    state = left_out(start)
    go(state)
    state.produce(0, [(0, 0, None, "good")] * 4, None)
    state.retention(0, 2)
    state.move_group(0, 4)
    go(state, ALL_GOES.replace("follow_ledger", "new_generation"))
    state.teardown()


def deadly() -> Model:
    """An archive whose attempts die on a record, one by one."""
    state = Model()
    state.begin({**STORE, "chunk_records": 4}, SOURCE, [1], "archive", crashes=[1])
    state.produce(0, [(0, 0, None, kind) for kind in ("good", "good", "deadly", "deadly")], None)
    return state


def test_offsets_may_be_given_up_at_each_call_of_an_attempt_that_leaves_out_deadly_records() -> None:
    for at in places("freeze", deadly):
        state = deadly()
        go(state, fates=[("freeze", at)], give_up=True)
        # Every second operator falls asleep, too.
        state.give_up(0, 0, 0, 1 + at % 4, 1 << 30 if at % 2 else at % 6 + 1)
        state.wake(0, 1 << 30)
        go(state)
        state.wake(0, 1 << 30) if state.frozen else None
        # Whoever reads the run again, reads the same.
        state.destroy(at, 1, "", [])
        state.teardown()


def test_offsets_that_are_given_up_when_a_run_has_its_manifest_are_still_read_again() -> None:
    state = deadly()
    go(state)
    begins_to_read = state.calls.index("kafka read")
    state = deadly()
    go(state, fates=[("kill", begins_to_read)], give_up=True)
    for calls in range(1, 5):
        state.give_up(0, 0, 0, calls, calls)
    go(state)
    while state.frozen:
        state.wake(0, 1 << 30)
    state.destroy(0, 2, "", [])
    assert not state.oracle.given_up
    state.teardown()


def completing() -> Model:
    """An archive with a chunk of four records in two hours."""
    state = Model()
    state.begin({**STORE, "chunk_records": 4}, SOURCE, [1], "archive")
    state.produce(0, [(0, when, None, "good") for when in (0, 0, HOUR, HOUR)], None)
    return state


def calls_until(pattern: str) -> int:
    """Return the number of the calls before the last one of a kind, of an attempt that nothing disturbs."""
    state = completing()
    go(state)
    return max(n for n, call in enumerate(state.calls) if re.match(pattern, call))


def test_offsets_may_be_given_up_that_are_in_an_object_of_an_attempt_that_died() -> None:
    state = completing()
    go(state, fates=[("kill", calls_until("store complete_upload"))], give_up=True)
    state.give_up(0, 0, 0, 1, 1 << 30)
    state.teardown()


def test_a_rebuild_whose_offsets_are_given_up_does_not_replace_the_run_that_has_their_records() -> None:
    state = completing()
    go(state)
    [interval] = state.intervals
    # It sleeps when it has its plan.
    again = functools.partial(rebuild_run, run=interval.id, fewer=True)
    state._go(interval, "scheduled", ALL_GOES, [("freeze", 20)], True, 0, again, give_up=True)
    state.give_up(0, 0, 0, 1, 1 << 30)
    state.rebuild(0, False, False, ALL_GOES, [], True, fewer=True)
    assert state.ledger.superseded_by(interval.id) is None
    state.wake(0, 1 << 30)
    state.teardown()


def test_a_restore_of_decoded_columns_is_refused_before_anything_is_written() -> None:
    state = Model()
    state.begin({**STORE, "content": "value"}, SOURCE, [1], "archive", transform={"steps": STEPS})
    state.produce(0, [(0, 0, b"a", "good")], None)
    go(state)
    state.restore(0, 0, None, "end", 0)
    assert not state.restores
    state.teardown()


def test_a_restore_whose_run_was_rebuilt_meanwhile_names_the_rebuild() -> None:
    state = settled()
    state.restore(0, 0, None, "freeze", 20)
    assert state.frozen
    [interval] = state.intervals
    state.rebuild(0, False, False, ALL_GOES, [], True)
    [restored] = state.restores
    with pytest.raises(IntegrityError, match=rf"{interval.id} was replaced by {interval.id}\+r1 since restore r0"):
        restored.attempt(lambda _: state.ledger).advance()
    state.teardown()


def test_objects_of_an_attempt_that_had_lost_records_and_died_are_kept_when_more_are_lost() -> None:
    state = completing()
    go(state, fates=[("freeze", calls_until("store create .*/plan.json"))], give_up=True)
    state.retention(0, 3)
    while state.frozen[0].calls.count("store complete_upload") < 2:
        state.wake(0, 1)
    state.never_wake(0)
    state.retention(0, 2)
    refused = sum(state.statistics.refusals.values())
    go(state)
    assert sum(state.statistics.refusals.values()) == refused
    state.teardown()


@pytest.mark.parametrize("majority", [True, False])
def test_a_backfill_completes_no_hour_by_answers_of_a_leader_that_is_cut_off_among_those_of_the_new_one(
    majority: bool,
) -> None:
    # The one that is cut off says that the hour has not begun; the other one, where it ends.
    for place in range(9):
        state = Model()
        state.begin(STORE, {**SOURCE, "start": "latest"}, [1], "archive", disorder="10s", ordered=True)
        state.most_late = None
        state.produce(0, [(0, -2 * HOUR, None, "good")] * 3, None)
        state.cut_leader_off(0, [n == place for n in range(9)], majority)
        state.produce(0, [(0, when, None, "good") for when in [-HOUR] * 3 + [HOUR // 2] * 6], None)
        state.backfill(1, ALL_GOES, [], True, False, 0)
        state.teardown()


@pytest.mark.parametrize("how", ["retention", "recreate", "fill"])
def test_what_is_left_out_of_a_wrong_clock_and_gone_keeps_no_hour_to_come_incomplete(how: str) -> None:
    state = Model()
    state.begin(STORE, {**SOURCE, "start": "latest"}, [2], "archive")
    state.produce(0, [(1, 0, None, "good"), (1, "2090", None, "good"), (1, 0, None, "good")], None)
    go(state)
    if how == "recreate":
        # With one partition.
        state.recreate(0, [])
    else:
        state.retention(1, 1 if how == "fill" else 0)
    state.teardown()
