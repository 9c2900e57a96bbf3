"""Changes of the set of logs between plans: topics that were made again or are not archived any more. Pure."""

from collections.abc import Iterable, Iterator, Mapping

from kafka_archiver.model.manifest import Manifest
from kafka_archiver.model.order import Order
from kafka_archiver.model.partition_progress import PartitionProgress
from kafka_archiver.model.plan import Plan
from kafka_archiver.model.unsure_hours import LeftOutOffsets, hour_after_plan
from kafka_archiver.values.ranges import TopicPartition


def gone_logs(known: Iterable[PartitionProgress], plan: Plan) -> set[TopicPartition]:
    """Return the logs that are gone by this plan; those too that a topic has no more since it was made again."""
    anew = {planned.name for planned in plan.partitions if planned.anew}
    if plan.hour_rules < 4:
        return anew
    topics, planned_names = {name.topic for name in anew}, {planned.name for planned in plan.partitions}
    return anew | {p.name for p in known if p.topic in topics and p.name not in planned_names}


def dropped_offsets(
    older: Iterable[LeftOutOffsets], known: Mapping[TopicPartition, PartitionProgress], plan: Plan
) -> list[LeftOutOffsets]:
    """Return what is left out, by its time of hours to come, of topics that the plan does not archive any more."""
    if plan.hour_rules < 4 or plan.supersedes:
        return []
    topics, until = {planned.topic for planned in plan.partitions}, hour_after_plan(plan)
    dropped = (o for o in older if o.topic not in topics and o.than > until)
    return [o for o in dropped if known[o.name].without(o.ranges)]


def logs_added_later(known: Iterable[PartitionProgress], plan: Plan) -> set[TopicPartition]:
    """Return logs from offset 0 that begin anew in a topic whose other partitions are known by its present id."""
    if plan.hour_rules < 4:
        return set()
    ids = {p.name: p.topic_id for p in known}
    topics = {(name.topic, topic_id) for name, topic_id in ids.items()}
    anew = (p for p in plan.partitions if p.anew and not p.log_start)
    return {p.name for p in anew if (p.topic, p.topic_id) in topics and ids.get(p.name) != p.topic_id}


def former_disorders(
    known: Mapping[TopicPartition, PartitionProgress], plan: Plan, manifest: Manifest | None
) -> Iterator[int]:
    """Yield the disorder of each log that ends with this plan, or that a late run of an earlier generation read."""
    if plan.hour_rules < 4:
        return
    for planned in plan.partitions:
        before = known.get(planned.name)
        if before is None:
            continue
        if before.generation > planned.generation and manifest:
            yield Order().after(planned.name, manifest).disorder
        elif before.generation < planned.generation and planned.anew and before.order:
            yield before.order.disorder
