"""Requests to the coordinator of a consumer group. `Cluster` sends them through `own_process.call`."""

import re
from collections.abc import Collection, Mapping
from typing import Any, NamedTuple

import confluent_kafka
from confluent_kafka import ConsumerGroupTopicPartitions, KafkaError

from kafka_archiver.kafka.admin_requests import Asking
from kafka_archiver.kafka.failures import code_of, translate
from kafka_archiver.messages.errors import PermanentError, TransientError
from kafka_archiver.messages.foreign_text import foreign
from kafka_archiver.values.ranges import TopicPartition


class Position(NamedTuple):
    """A group's committed offset of a partition, and the metadata of that commit."""

    offset: int
    stamp: str


def positions(
    properties: Mapping[str, str],
    timeout: float,
    group: str,
    names: Collection[TopicPartition],
    stable: bool = False,
) -> dict[TopicPartition, Position | None]:
    """The group's committed offsets with their metadata; None for a partition without an offset.

    :param stable: no answer about an offset whose transaction is not decided.
    """
    asked = [confluent_kafka.TopicPartition(n.topic, n.partition) for n in names]
    [answer] = Asking(properties).ask(
        lambda admin: admin.list_consumer_group_offsets(
            [ConsumerGroupTopicPartitions(group, asked)], require_stable=stable, request_timeout=timeout
        ),
        lambda name: f"read the offsets of group {name}",
        timeout,
    )
    _require_places(answer, f"read the offset of group {group} at", properties)
    return {
        TopicPartition(p.topic, p.partition): Position(p.offset, p.metadata or "") if p.offset >= 0 else None
        for p in answer.topic_partitions
    }


def offsets_of_groups(
    properties: Mapping[str, str], timeout: float, patterns: Collection[str], topics: Collection[str], most: int
) -> dict[str, dict[TopicPartition, int]]:
    """The committed offsets in these topics of the groups whose whole name matches one of the patterns.

    Groups without such an offset are not in the result.

    :raises PermanentError: more than `most` groups match.
    """
    asking = Asking(properties)
    [listed] = asking.ask(
        lambda admin: {"": admin.list_consumer_groups(request_timeout=timeout)}, lambda _: "list the groups", timeout
    )
    if listed.errors:
        raise translate(listed.errors[0].args[0], "list the groups", properties["bootstrap.servers"])
    expressions = [re.compile(pattern) for pattern in patterns]
    groups = sorted({g.group_id for g in listed.valid if any(e.fullmatch(g.group_id) for e in expressions)})
    if len(groups) > most:
        raise PermanentError(
            f"{len(groups):,} consumer groups match {', '.join(patterns)}; expected at most {most:,}: narrow the "
            "pattern"
        )
    requests = {group: ConsumerGroupTopicPartitions(group) for group in groups}
    answers = asking.ask(
        lambda admin: {
            group: admin.list_consumer_group_offsets([request], request_timeout=timeout)[group]
            for group, request in requests.items()
        },
        lambda group: f"read the offsets of group {group}",
        timeout,
    )
    offsets = {
        group: {
            TopicPartition(place.topic, place.partition): place.offset
            for place in answer.topic_partitions
            if place.topic in topics and place.offset >= 0 and not place.error
        }
        for group, answer in zip(groups, answers, strict=True)
    }
    return {group: places for group, places in offsets.items() if places}


def operations(properties: Mapping[str, str], timeout: float, group: str) -> frozenset[str]:
    """The operations that the credentials may do with the group."""
    description = _described(properties, timeout, group, include_authorized_operations=True)
    if description is None:
        # Nobody may be told what may be done with a group that is not there yet.
        return frozenset({"READ", "DESCRIBE"})
    return frozenset(operation.name for operation in description.authorized_operations or ())


def members(properties: Mapping[str, str], timeout: float, group: str) -> list[str]:
    """The group's live members, as client@host; empty for a group that does not exist."""
    description = _described(properties, timeout, group)
    return sorted(foreign(f"{m.client_id}@{m.host.lstrip('/')}") for m in (description.members if description else ()))


def _described(properties: Mapping[str, str], timeout: float, group: str, **options: bool) -> Any:
    """Return the coordinator's description of the group; None: it does not exist."""
    try:
        [description] = Asking(properties).ask(
            lambda admin: admin.describe_consumer_groups([group], request_timeout=timeout, **options),
            lambda name: f"describe group {name}",
            timeout,
        )
    except TransientError as error:
        if code_of(error) == KafkaError.GROUP_ID_NOT_FOUND:
            return None
        raise
    return description


def commit(
    properties: Mapping[str, str], timeout: float, group: str, offsets: Mapping[TopicPartition, int], stamp: str
) -> None:
    """Set the group's committed offsets.

    :param stamp: the metadata of the commit.
    :raises PermanentError: the group has live members.
    """
    places = [
        confluent_kafka.TopicPartition(n.topic, n.partition, offset, metadata=stamp) for n, offset in offsets.items()
    ]
    [answer] = Asking(properties).ask(
        lambda admin: admin.alter_consumer_group_offsets(
            [ConsumerGroupTopicPartitions(group, places)], request_timeout=timeout
        ),
        lambda name: f"commit offsets of group {name}",
        timeout,
    )
    _require_places(answer, f"commit the offset of group {group} at", properties)


def _require_places(answer: Any, what: str, properties: Mapping[str, str]) -> None:
    for place in answer.topic_partitions:
        if not place.error:
            continue
        error = translate(place.error, f"{what} {place.topic}[{place.partition}]", properties["bootstrap.servers"])
        if place.error.code() == KafkaError.UNKNOWN_TOPIC_OR_PART:
            raise TransientError(
                f"{error}. The group's coordinator may not know it yet: the next attempt asks again"
            ) from error
        raise error
