"""The leader that a majority of the brokers names, by what each broker says."""

from types import SimpleNamespace
from typing import Any

import pytest

from kafka_archiver.kafka import leaders as module
from kafka_archiver.kafka.leaders import Node, at_leaders, leaders
from kafka_archiver.ranges import TopicPartition

pytestmark = pytest.mark.unit

NAME = TopicPartition("orders", 0)
ONE, TWO, THREE = NODES = [Node(number, f"broker{number}:9092") for number in (1, 2, 3)]


def named(monkeypatch: pytest.MonkeyPatch, *said: int | None) -> Any:
    """The result if the brokers name these leaders; None: no answer."""
    views = {node: None if leader is None else {NAME: leader} for node, leader in zip(NODES, said, strict=True)}
    monkeypatch.setattr(module, "_view", lambda properties, node, topics: views[node])
    return leaders({}, NODES, [NAME])[NAME]


@pytest.mark.parametrize(
    ("said", "node", "others"),
    [
        ((2, 2, 2), TWO, ()),
        # The first one is cut off, and takes itself for the leader.
        ((1, 2, 2), TWO, (ONE,)),
        ((None, 2, 2), TWO, ()),
        ((None, None, 2), None, ()),
        ((1, None, None), None, ()),
        ((1, 2, 3), None, ()),
        ((1, 2, None), None, ()),
        ((None, None, None), None, ()),
    ],
)
def test_a_majority_of_all_brokers_names_the_leader(
    monkeypatch: pytest.MonkeyPatch, said: tuple[int | None, ...], node: Node | None, others: tuple[Node, ...]
) -> None:
    found = named(monkeypatch, *said)
    assert (found.node, found.others) == (node, others)
    assert bool(found.unsure) == (node is None)


def test_the_reason_says_who_does_not_answer_or_who_disagrees(monkeypatch: pytest.MonkeyPatch) -> None:
    assert named(monkeypatch, 1, None, None).unsure == ("2 of 3 brokers do not answer, and the others are no majority")
    assert "1 name broker 1, 1 name broker 2, 1 name broker 3" in named(monkeypatch, 1, 2, 3).unsure


@pytest.mark.parametrize(("epoch", "unsure"), [(4, ""), (5, ""), (6, "broker 1 leads orders[0] in a newer epoch")])
def test_a_newer_epoch_of_another_leader_makes_the_answer_unsure(
    monkeypatch: pytest.MonkeyPatch, epoch: int, unsure: str
) -> None:
    leading = {NAME: named(monkeypatch, 1, 2, 2)}
    said = {ONE: SimpleNamespace(offset=9, leader_epoch=epoch), TWO: SimpleNamespace(offset=10, leader_epoch=5)}
    monkeypatch.setattr(module, "_asked", lambda properties, node, names, spec, timeout: {NAME: said[node]})
    found = at_leaders({}, leading, SimpleNamespace(), 1.0)[NAME]
    assert found.found.offset == 10
    assert found.unsure.startswith(unsure)
    assert bool(found.unsure) == bool(unsure)
