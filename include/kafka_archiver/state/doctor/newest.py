"""The newest records of an archive's topics: few of each, for checks."""

import re
from collections.abc import Iterator

from kafka_archiver.config import Archive
from kafka_archiver.kafka.cluster import Cluster
from kafka_archiver.kafka.topics import Topic
from kafka_archiver.messages.errors import ArchiverError, TransientError
from kafka_archiver.model.plan import Chunk, PartitionPlan

# Topics to check, partitions of each topic, and offsets of each partition.
TOPICS, PARTITIONS, OFFSETS = 20, 3, 5
PATIENCE_SECONDS = 5.0


def topics_of(archive: Archive, cluster: Cluster) -> Iterator[Topic]:
    """Yield the archive's topics. The brokers' checks report errors."""
    selection = archive.source.selection
    for query in [selection] if isinstance(selection, re.Pattern) else [[name] for name in selection]:
        try:
            yield from cluster.topics(query)
        except TransientError:
            return
        except ArchiverError:
            continue


def newest(archive: Archive, cluster: Cluster, topic: Topic) -> Iterator[Chunk]:
    """Yield the last offsets of some partitions of a topic."""
    starts, ends = cluster.log_starts(topic.names), cluster.log_ends(topic.names, archive.source.isolation)
    for name in [n for n in topic.names if ends[n] > starts[n]][:PARTITIONS]:
        start = max(starts[name], ends[name] - OFFSETS)
        yield Chunk(topic=topic.name, partition=name.partition, generation=0, start=start, end=ends[name])


def planned(topic: Topic, chunk: Chunk) -> PartitionPlan:
    """Return the partition of a plan that reads these offsets alone."""
    return PartitionPlan(
        topic=topic.name,
        topic_id=topic.id,
        partition=chunk.partition,
        start=chunk.start,
        end=chunk.end,
        log_start=chunk.start,
        log_end=chunk.end,
        ranges=((chunk.start, chunk.end),),
    )
