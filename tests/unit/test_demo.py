"""The demo's pure parts: its stream, and the checks that must be able to fail."""

import json
from dataclasses import replace
from datetime import datetime

import pytest

from scripts.demo.account import account, faults
from scripts.demo.check import Found, broken_claims, compare
from scripts.demo.orders import HOUR, IMPORT_HOUR, PER_HOUR, Batch, Stream
from scripts.demo.produced import Produced, Sent, spans

pytestmark = pytest.mark.unit
START = 1_795_219_200_000


@pytest.fixture(scope="module")
def batches() -> list[Batch]:
    return list(Stream(START, scale=0.02).batches())


def test_the_same_seed_gives_the_same_stream(batches: list[Batch]) -> None:
    assert list(Stream(START, scale=0.02).batches()) == batches
    assert list(Stream(START, seed=4, scale=0.02).batches()) != batches


def test_the_whole_stream_has_about_200_000_events() -> None:
    assert 195_000 < sum(len(b.events) for b in Stream(START).batches()) < 205_000


def test_events_say_what_their_records_say(batches: list[Batch]) -> None:
    for event in (e for b in batches for e in b.events):
        value = json.loads(event.value)
        assert (value["event_id"], value["order_id"]) == (event.id, event.key)
        assert round(datetime.fromisoformat(value["created_at"]).timestamp() * 1000) == event.timestamp
        assert [name for name, _ in event.headers] == ["source", "trace"]
        assert START <= event.timestamp < START + len(PER_HOUR) * HOUR


def test_some_events_are_late_and_some_out_of_order_but_none_for_the_first_hour(batches: list[Batch]) -> None:
    times = [e.timestamp for b in batches for e in b.events]
    newest, behind, late = 0, 0, 0
    first_over = False
    for time in times:
        newest = max(newest, time)
        behind += time < newest
        late += time // HOUR < newest // HOUR
        first_over |= time >= START + HOUR
        assert not (first_over and time < START + HOUR), "the first hour must be one piece of the log"
    assert len(times) / 20 < behind < len(times) / 3
    assert 0 < late < len(times) / 20


def test_the_import_is_aborted_and_repeated_as_a_whole(batches: list[Batch]) -> None:
    aborted, committed = (next(b for b in batches if b.transaction == t) for t in ("aborted", "committed"))
    assert 0 < len(aborted.events) < len(committed.events)
    assert committed.events[: len(aborted.events)] == aborted.events
    assert {(e.timestamp - START) // HOUR for e in committed.events} == {IMPORT_HOUR}


def _produced(batches: list[Batch]) -> Produced:
    """As Kafka would number them: a control record ends each transaction in each partition it touched."""
    ends = [0, 0]
    sent = []
    for number, batch in enumerate(batches):
        transaction = None if batch.transaction == "none" else (number, batch.transaction == "committed")
        touched = set()
        for event in batch.events:
            partition = sum(event.key.encode()) % 2
            sent.append(Sent(event, partition, ends[partition], transaction))
            ends[partition] += 1
            touched.add(partition)
        for partition in touched if transaction else ():
            ends[partition] += 1
    return Produced(sent)


def test_what_is_expected_leaves_out_what_compaction_and_the_abort_took(batches: list[Batch]) -> None:
    produced = _produced(batches)
    fates = produced.fates()
    keys = {e.key for b in batches for e in b.events}
    expected = produced.expected()
    assert len(expected) == len(keys)
    aborted = sum(f == "aborted" for fate in fates.values() for f in fate.values())
    assert aborted == len(next(b for b in batches if b.transaction == "aborted").events)
    last = {s.event.key: s.event.id for s in sorted(produced.sent, key=lambda s: s.offset)}
    assert set(expected) == set(last.values())
    assert produced.markers() == {0: 2, 1: 2}


def test_a_right_archive_passes(batches: list[Batch]) -> None:
    expected = _produced(batches).expected()
    assert compare(expected, [_found(i, at) for i, at in expected.items()]).faults == []


def _found(id_: str, at: int) -> Found:
    return Found(id_, at, at // HOUR * HOUR)


def test_every_way_to_be_wrong_is_noticed() -> None:
    expected = {"a": START, "b": START + HOUR - 1, "c": START + HOUR}
    right = [_found(i, at) for i, at in expected.items()]
    assert compare(expected, right).faults == []
    assert compare(expected, right[1:]).missing == ("a",)
    assert compare(expected, [*right, right[0]]).repeated == ("a",)
    assert compare(expected, [*right, _found("d", START)]).unexpected == ("d",)
    assert compare(expected, [right[0], replace(right[1], hour=START + HOUR), right[2]]).misfiled == ("b",)
    assert compare(expected, [right[0], replace(right[1], at=START), right[2]]).changed == ("b",)
    [fault] = compare(expected, right[1:]).faults
    assert fault == "1 records missing (first: a)"


def test_the_account_explains_every_offset_or_says_how_many_it_does_not() -> None:
    fates = {0: {0: "compacted", 1: "kept", 2: "kept", 3: "aborted"}}
    chunks = [
        {"archived": 1, "lost": 0, "absent_ranges": [[0, 1]]},
        {"archived": 1, "lost": 0, "absent_ranges": [[3, 5]]},
    ]
    right = account(0, (0, 5), chunks, fates[0])  # type: ignore[arg-type]
    assert right.row == (0, 5, 2, 1, 1, 1, 0, 0)
    assert faults([right], fates, {0: 1}) == []  # type: ignore[arg-type]
    # The same, as the bits of a chunk: offsets 0, 3 and 4 of five.
    packed = {"start": 0, "end": 5, "archived": 2, "lost": 0, "absent_ranges": {"bitmap": "mA=="}}
    assert account(0, (0, 5), [packed], fates[0]) == right  # type: ignore[arg-type]
    uncovered = account(0, (0, 5), chunks[:1], fates[0])  # type: ignore[arg-type]
    assert uncovered.unexplained == 3
    assert len(faults([uncovered], fates, {0: 1})) == 4  # type: ignore[arg-type]
    swallowed = account(0, (0, 5), [{"archived": 1, "lost": 0, "absent_ranges": [[0, 2], [3, 5]]}], fates[0])  # type: ignore[arg-type]
    assert swallowed.unexplained == 1
    assert faults([swallowed], fates, {0: 2}) != []  # type: ignore[arg-type]


def test_spans() -> None:
    assert spans([7, 5, 6]) == (5, 8)
    assert spans([]) == (0, 0)


def test_claims_of_keys_and_bytes_can_be_broken() -> None:
    etags = {"a": "1", "b": "2"}
    assert broken_claims({"a": "1", "b": ""}, etags) == []
    assert broken_claims({"a": "2", "b": "", "c": ""}, etags) == ["a", "c"]
