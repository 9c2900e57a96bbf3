"""What the demo works with: the stack of this checkout, and the archive `orders` on it."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from kafka_archiver.config import load_archive
from kafka_archiver.errors import ConfigError
from scripts.demo.airflow import Dag
from scripts.demo.lake import Lake
from scripts.demo.tell import Clock
from scripts.demo.topic import Topic
from scripts.stack.choices import Choices
from scripts.stack.errors import StackError
from scripts.stack.stack import Stack


@dataclass
class World:
    clock: Clock
    archive: str
    airflow: Path
    """AIRFLOW_HOME, by which the stack's processes are known."""
    dag: Dag
    topic: Topic
    lake: Lake
    first_hour: int = 0
    """Where the stream begins, in milliseconds since 1970."""
    produced: dict[str, int] = field(default_factory=dict)
    """The time of each record that must be archived, by its id."""

    @classmethod
    def of(cls, clock: Clock) -> World:
        """:raises StackError: the stack was told to look at other archives, and `orders` is not among them."""
        choices = Choices.remembered()
        stack = Stack.of(choices)
        file = Path(choices.archives) / "orders.yaml"
        try:
            archive = load_archive(file)
        except ConfigError as error:
            raise StackError(f"the demo needs the archive `orders` of include/archives: {error}") from error
        if not archive.source.topics or len(archive.source.topics) > 1:
            raise StackError(f"the demo needs an archive of one topic; {file} has another")
        topic = Topic(stack.kafka.bootstrap_servers, archive.source.topics[0], archive.group)
        lake = Lake(stack.s3, archive.store.url, topic.name, archive.archive)
        dag = Dag(stack.airflow.url, f"archive_{archive.archive}")
        return cls(clock, archive.archive, stack.airflow.directory, dag, topic, lake)
