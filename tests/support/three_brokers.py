"""A real Kafka cluster of one controller and three brokers, of which one can be cut off from the controller.

A broker that is cut off goes on to answer clients: as the leader of its partitions, with its old watermarks, and with
the topics that it knew. Its leaders are elected elsewhere meanwhile.
"""

import time
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from confluent_kafka import Consumer, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import AdminClient

from scripts.stack.kafka import Kafka
from scripts.stack.ports import HOST, free_ports
from tests.support import quick
from tests.support.held_link import HeldLink
from tests.support.waiting import until

CONTROLLER, CUT_OFF = 100, 1
# Of a broker without a word to the controller, which elects other leaders then.
SESSION_SECONDS = 6
_SESSION = {"broker.session.timeout.ms": str(1000 * SESSION_SECONDS), "broker.heartbeat.interval.ms": "1000"}
# A record is acknowledged when two brokers have it, so the one that is cut off acknowledges none.
_REPLICATION = {
    "default.replication.factor": "3",
    "min.insync.replicas": "2",
    "offsets.topic.replication.factor": "2",
    "transaction.state.log.replication.factor": "2",
    "transaction.state.log.min.isr": "1",
    "auto.leader.rebalance.enable": "false",
    "listener.security.protocol.map": "DIRECT:PLAINTEXT,HELD:PLAINTEXT,PLAINTEXT:PLAINTEXT",
}


@dataclass(frozen=True)
class NodePorts:
    """`clients`: of a broker, or of the controller; `controller`: its second listener; `link`: before that."""

    BASE: ClassVar[int] = 0
    clients: int
    controller: int
    link: int


class Node(Kafka):
    """One process of the cluster."""

    def __init__(self, directory: Path, number: int, ports: NodePorts, more: Mapping[str, str]) -> None:
        settings = {**_REPLICATION, **_SESSION, "node.id": str(number), **more}
        super().__init__(directory / f"node-{number}", ports, settings, quick.JAVA)  # type: ignore[arg-type]

    def ports_needed(self) -> Mapping[str, int]:
        """Only its first one: the link listens on another."""
        return {"clients": self.ports.clients}


def _controller(directory: Path, ports: NodePorts) -> Node:
    """The controller. It tells brokers its address by listener, and that of the second listener is the link's."""
    direct, held_back = f"DIRECT://{HOST}:{ports.clients}", "HELD://" + HOST
    more = {
        "process.roles": "controller",
        "controller.quorum.voters": f"{CONTROLLER}@{HOST}:{ports.clients}",
        "controller.listener.names": "DIRECT,HELD",
        "listeners": f"{direct},{held_back}:{ports.controller}",
        "advertised.listeners": f"{direct},{held_back}:{ports.link}",
    }
    return Node(directory, CONTROLLER, ports, more)


def _broker(directory: Path, number: int, controller: NodePorts) -> Node:
    ports, is_cut_off = free_ports(NodePorts), number == CUT_OFF
    more = {
        "process.roles": "broker",
        "controller.quorum.voters": f"{CONTROLLER}@{HOST}:{controller.link if is_cut_off else controller.clients}",
        "controller.listener.names": "HELD" if is_cut_off else "DIRECT",
        "listeners": f"PLAINTEXT://{HOST}:{ports.clients}",
        "advertised.listeners": f"PLAINTEXT://{HOST}:{ports.clients}",
    }
    return Node(directory, number, ports, more)


class ThreeBrokers:
    """`bootstrap_servers`: all three; `first`: the one that can be cut off; `others`: those that know the truth.

    Kafka's own topics are on the two others: groups and transactions go on there.
    """

    def __init__(self, directory: Path) -> None:
        ports = free_ports(NodePorts)
        self._controller = _controller(directory, ports)
        self._nodes = {number: _broker(directory, number, ports) for number in (CUT_OFF, 2, 3)}
        self._link = HeldLink(ports.link, ports.controller)
        self.bootstrap_servers = ",".join(node.bootstrap_servers for node in self._nodes.values())
        self.first = self._nodes[CUT_OFF].bootstrap_servers
        self.others = ",".join(node.bootstrap_servers for n, node in self._nodes.items() if n != CUT_OFF)
        self.is_cut = False

    @contextmanager
    def running(self) -> Iterator["ThreeBrokers"]:
        """Run the cluster until the block ends."""
        with ExitStack() as stack:
            stack.enter_context(self._link.serving())
            for node in (self._controller, self._nodes[2], self._nodes[3]):
                stack.callback(node.stop, grace=0)
                node.clear()
                node.launch()
            for number in (2, 3):
                self._nodes[number].wait()
            self._make_own_topics()
            stack.callback(self._nodes[CUT_OFF].stop, grace=0)
            self._nodes[CUT_OFF].start()
            self._await_brokers(3)
            yield self

    def _make_own_topics(self) -> None:
        """Let Kafka create its own topics before the third broker starts."""
        servers = {"bootstrap.servers": self.others, "log_level": 0}
        consumer = Consumer({**servers, "group.id": "first"})

        def coordinated() -> bool:
            try:
                consumer.committed([TopicPartition("none", 0)], timeout=5)
            except KafkaException:
                return False
            return True

        until(coordinated)
        consumer.close()
        Producer({**servers, "transactional.id": "first"}).init_transactions(60)

    def cut_off(self) -> None:
        """Cut one broker off from the controller, and wait until other leaders are elected."""
        if not self.is_cut:
            self._link.hold()
            self.is_cut = True
            self._await_brokers(2)

    def heal(self) -> None:
        """Connect it again, and wait until it has caught up."""
        if self.is_cut:
            self._link.release()
            self.is_cut = False
            self._await_brokers(3)

    def _await_brokers(self, count: int) -> None:
        """Wait until both others know so many brokers, and with all of them every replica is in sync."""
        deadline = time.monotonic() + 60
        while reasons := [reason for address in self.others.split(",") for reason in _unsettled(address, count)]:
            assert time.monotonic() < deadline, f"still not after a minute: {reasons[:5]}"
            time.sleep(0.1)


def _unsettled(address: str, count: int) -> Iterator[str]:
    """Yield the reasons why a broker does not know what is true when so many brokers are connected.

    A client that is older may ask any broker that it has met.
    """
    metadata = AdminClient({"bootstrap.servers": address, "log_level": 0}).list_topics(timeout=10)
    if len(metadata.brokers) != count:
        yield f"it knows the brokers {sorted(metadata.brokers)}"
    for topic in metadata.topics.values():
        for partition in topic.partitions.values():
            if partition.leader not in metadata.brokers:
                yield f"{topic.topic}[{partition.id}] has the leader {partition.leader}"
            elif count == 3 and len(partition.isrs) < len(partition.replicas):
                yield f"of {topic.topic}[{partition.id}] only {partition.isrs} are in sync"
