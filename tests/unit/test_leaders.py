"""The leader that a majority of the brokers names, by what each broker says."""

from types import SimpleNamespace
from typing import Any

import pytest

from kafka_archiver.kafka import cluster, topics
from kafka_archiver.kafka import leaders as module
from kafka_archiver.kafka.leaders import BrokerNode, Leader, ask_leaders, at_leaders, leaders, majority_of
from kafka_archiver.messages.errors import TransientError
from kafka_archiver.values.ranges import TopicPartition

pytestmark = pytest.mark.unit

NAME = TopicPartition("orders", 0)
ONE, TWO, THREE = NODES = [BrokerNode(number, f"broker{number}:9092") for number in (1, 2, 3)]


def named(monkeypatch: pytest.MonkeyPatch, *answers: int | None) -> Any:
    """The result if the brokers name these leaders; None: no answer."""
    views = {node: None if leader is None else {NAME: leader} for node, leader in zip(NODES, answers, strict=True)}
    monkeypatch.setattr(module, "_view", lambda properties, node, topics: views[node])
    return leaders({}, NODES, [NAME])[NAME]


@pytest.mark.parametrize(
    ("answers", "node", "other_nodes"),
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
    monkeypatch: pytest.MonkeyPatch,
    answers: tuple[int | None, ...],
    node: BrokerNode | None,
    other_nodes: tuple[BrokerNode, ...],
) -> None:
    leader = named(monkeypatch, *answers)
    assert (leader.node, leader.named_by_rest) == (node, other_nodes)
    assert bool(leader.unsure) == (node is None)


def test_the_reason_says_who_does_not_answer_or_who_disagrees(monkeypatch: pytest.MonkeyPatch) -> None:
    assert named(monkeypatch, 1, None, None).unsure == ("2 of 3 brokers do not answer, and the others are no majority")
    assert "1 name broker 1, 1 name broker 2, 1 name broker 3" in named(monkeypatch, 1, 2, 3).unsure


@pytest.mark.parametrize(("epoch", "unsure"), [(4, ""), (5, ""), (6, "broker 1 leads orders[0] in a newer epoch")])
def test_a_newer_epoch_of_another_leader_makes_the_answer_unsure(
    monkeypatch: pytest.MonkeyPatch, epoch: int, unsure: str
) -> None:
    leading = {NAME: named(monkeypatch, 1, 2, 2)}
    answers = {ONE: SimpleNamespace(offset=9, leader_epoch=epoch), TWO: SimpleNamespace(offset=10, leader_epoch=5)}
    monkeypatch.setattr(module, "_asked", lambda properties, node, names, spec, timeout: {NAME: answers[node]})
    answer = at_leaders({}, leading, SimpleNamespace(), 1.0)[NAME]
    assert answer.offset_info.offset == 10
    assert answer.unsure.startswith(unsure)
    assert bool(answer.unsure) == bool(unsure)


def test_each_leader_is_asked_by_a_client_that_knows_no_other_broker() -> None:
    names = [TopicPartition("orders", number) for number in range(4)]
    leading = dict(zip(names, [Leader(ONE), Leader(TWO), Leader(ONE), Leader(None, "unsure")], strict=True))
    servers = "broker1:9092,broker2:9092,broker3:9092"
    answers = ask_leaders(
        {"bootstrap.servers": servers}, leading, lambda of, some: dict.fromkeys(some, of["bootstrap.servers"])
    )
    assert answers == dict(zip(names, [ONE.address, TWO.address, ONE.address, servers], strict=True))


def test_a_broker_that_knows_only_itself_is_not_the_cluster_if_the_connection_names_others(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    alone = SimpleNamespace(nodes=[SimpleNamespace(id=1, host="broker1", port=9092)])
    monkeypatch.setattr(cluster.Asking, "describe_cluster", lambda *_: alone)
    asked: list[str] = []
    monkeypatch.setattr(topics, "nodes_by_each", lambda _, addresses: asked.extend(addresses) or NODES)
    assert cluster.Cluster({"bootstrap.servers": "broker1:9092"}).nodes() == [ONE]
    assert not asked
    assert cluster.Cluster({"bootstrap.servers": "broker1:9092, broker2:9092"}).nodes() == NODES
    assert asked == [ONE.address, TWO.address]


def topic(identity: str, partitions: int = 1) -> Any:
    return SimpleNamespace(topic_id=identity, partitions=[None] * partitions)


SILENT = "silent"


def majority(*answers: Any) -> Any:
    """The topic if the brokers describe it so; None: they do not know it."""
    views = [None if answer == SILENT else {"orders": answer} for answer in answers]
    return majority_of("orders", dict(zip(NODES, views, strict=True)))


def test_a_topic_that_most_brokers_do_not_know_does_not_exist() -> None:
    assert majority(None, None, None) is None
    # The first one is cut off, and still has a topic that was deleted.
    assert majority(topic("a"), None, None) is None


@pytest.mark.parametrize(
    "answers", [(None, topic("a"), topic("a")), (None, topic("a"), SILENT), (SILENT, SILENT, topic("a"))]
)
def test_a_topic_that_a_broker_does_not_know_yet_exists(answers: tuple[Any, ...]) -> None:
    assert majority(*answers).topic_id == "a"


@pytest.mark.parametrize("answers", [(None, SILENT, SILENT), (SILENT, SILENT, SILENT)])
def test_while_too_few_brokers_answer_no_topic_is_called_gone(answers: tuple[Any, ...]) -> None:
    with pytest.raises(TransientError, match="no broker that answers knows topic orders"):
        majority(*answers)


def test_partitions_that_one_broker_does_not_know_yet_exist() -> None:
    assert len(majority(topic("a", 1), topic("a", 2), topic("a", 1)).partitions) == 2


def test_a_topic_that_was_made_again_is_the_one_that_most_brokers_know() -> None:
    assert majority(topic("old", 5), topic("new", 1), topic("new", 1)).topic_id == "new"
