"""Two archives of one topic: each in a place of its own, or the second one waits for a person."""

import re
import uuid
from typing import Any

import pytest

from kafka_archiver.messages.errors import DocumentError, PolicyError
from kafka_archiver.state.doctor.examine import check_claims
from kafka_archiver.store import Store, open_store
from kafka_archiver.store.memory import MemoryStore
from kafka_archiver.values.ranges import Range, TopicPartition
from kafka_archiver.work.plan import propose
from tests.support.lake import Lake, hour

ORDERS, BILLS = TopicPartition("orders", 0), TopicPartition("bills", 0)


@pytest.fixture
def store() -> Store:
    return MemoryStore(uuid.uuid4().hex)


def test_the_second_archive_of_a_topic_in_one_place_is_refused_before_it_writes_anything(store: Store) -> None:
    first = Lake(store, {ORDERS: Range(0, 2)})
    run = first.run(2)
    before = {s.key: s.etag for s in store.list("")}
    second = Lake(store, {ORDERS: Range(0, 3)})
    second.now = hour(3).end
    with pytest.raises(PolicyError, match="has topic orders in the same place"):
        propose(second.context, hour(2), "scheduled")
    with pytest.raises(PolicyError, match=rf"archive {first.name} has topic orders in the same place, memory://.*keys"):
        second.run(2)
    [check] = check_claims(second.context)
    assert (check.severity, first.name in check.observed) == ("problem", True)
    assert {s.key: s.etag for s in store.list("")} == before
    assert first.audit(deep=True).verdict == "clean"
    # The way out that the message names.
    [check] = check_claims(second.context)
    for place in re.findall(r"memory://[^/\s]*/(\S+(?:/|\.json))", check.observed):
        for stat in list(store.list(place)):
            store.delete(stat.key)
    second.run(2)
    assert first.ledger.claimed("orders") == second.name
    assert run not in first.ledger.runs()
    assert second.audit(deep=True).verdict == "clean"


@pytest.mark.parametrize("dead", [False, True], ids=["objects", "dead letters"])
def test_a_topic_that_nobody_has_is_not_taken_where_objects_of_it_are(store: Store, dead: bool) -> None:
    """An archive was renamed, and its claim deleted. Kafka may not have any more what is archived."""
    odd: dict[Any, dict[str, Any]] = {(ORDERS, n): {"value": b"no\njson"} for n in range(2)}
    first = Lake(store, {ORDERS: Range(0, 2)}, odd=odd if dead else {}, policies={"bad_record": "dead_letter"})
    first.run(2)
    store.delete("_ledger/_topics/orders.json")
    before = {s.key: s.etag for s in store.list("")}
    second = Lake(store, {ORDERS: Range(0, 3)})
    second.now = hour(3).end
    message = (
        rf"no archive has topic orders in this place, memory://\w+, but objects of it are there \({'_dead_l' * dead}"
    )
    with pytest.raises(PolicyError, match=message):
        propose(second.context, hour(2), "scheduled")
    with pytest.raises(PolicyError, match=message):
        second.run(2)
    [check] = check_claims(second.context)
    assert (check.severity, "another `store.url`" in check.observed) == ("problem", True)
    assert {s.key: s.etag for s in store.list("")} == before
    assert list(check_claims(first.context)) == []


def test_what_another_archive_has_below_a_topic_is_in_nobody_s_way() -> None:
    name = uuid.uuid4().hex
    Lake(open_store(f"memory://{name}/orders", {}), {ORDERS: Range(0, 2)}).run(2)
    lake = Lake(open_store(f"memory://{name}", {}), {ORDERS: Range(0, 2)})
    lake.run(2)
    assert lake.audit(deep=True).verdict == "clean"


def test_an_archive_that_is_refused_takes_nothing_from_others(store: Store) -> None:
    Lake(store, {ORDERS: Range(0, 2)}).run(2)
    greedy = Lake(store, {BILLS: Range(0, 2), ORDERS: Range(0, 2)})
    with pytest.raises(PolicyError, match="has topic orders in the same place"):
        greedy.run(2)
    assert greedy.ledger.claimed("bills") is None


def test_an_archive_whose_claim_is_gone_takes_it_again_or_learns_whose_it_is(store: Store) -> None:
    first = Lake(store, {ORDERS: Range(0, 2)})
    first.run(2)
    store.delete("_ledger/_topics/orders.json")
    first.logs[ORDERS] = Range(0, 3)
    first.run(3)
    assert first.ledger.claimed("orders") == first.name
    store.delete("_ledger/_topics/orders.json")
    second = Lake(store, {ORDERS: Range(2, 3)})
    second.ledger.claim("orders")
    with pytest.raises(PolicyError, match=f"archive {second.name} has topic orders"):
        first.run(4)


def test_archives_of_different_topics_share_a_place(store: Store) -> None:
    first, second = Lake(store, {ORDERS: Range(0, 2)}), Lake(store, {BILLS: Range(0, 2)})
    for lake in (first, second):
        lake.run(2)
        assert list(check_claims(lake.context)) == []
        assert lake.audit(deep=True).verdict == "clean"


def test_a_topic_that_is_added_later_is_asked_for_as_well(store: Store) -> None:
    Lake(store, {BILLS: Range(0, 2)}).run(2)
    second = Lake(store, {ORDERS: Range(0, 2)})
    second.run(2)
    with_bills = Lake(store, {ORDERS: Range(0, 2), BILLS: Range(0, 2)}, name=second.name)
    with pytest.raises(PolicyError, match="has topic bills in the same place"):
        with_bills.run(3)


def test_a_claim_that_is_damaged_says_so(store: Store) -> None:
    store.put("_ledger/_topics/orders.json", b"{}")
    with pytest.raises(DocumentError, match=r"_ledger/_topics/orders.json is not a readable claim document"):
        Lake(store, {ORDERS: Range(0, 2)}).run(2)
