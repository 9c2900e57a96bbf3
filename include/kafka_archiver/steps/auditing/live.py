"""Live: what the brokers say of an archive's topics and its group."""

from kafka_archiver.audit.live import Seen, check_live
from kafka_archiver.audit.report import Finding
from kafka_archiver.config import Archive
from kafka_archiver.kafka.cluster import Cluster
from kafka_archiver.plan import Plan
from kafka_archiver.proof import Progress
from kafka_archiver.ranges import TopicPartition
from kafka_archiver.steps.auditing.look import Look


def ask_brokers(archive: Archive, cluster: Cluster, found: Look) -> list[Finding]:
    """Compare the ledger with them."""
    progress = found.progress or Progress(archive=archive.archive)
    known = [p.name for p in progress.partitions if p.next is not None]
    ids = cluster.topic_ids({name.topic for name in known})
    same = [n for n in known if (p := progress.partition(n)) and ids[n.topic] == p.topic_id]
    # As planning does: what open transactions have is no end of the log.
    starts, ends = cluster.log_starts(same), cluster.log_ends(same, "read_uncommitted")
    committed = cluster.committed(archive.group, same)
    seen = [Seen(n, ids[n.topic], starts.get(n, 0), ends.get(n, 0), committed.get(n)) for n in known]
    pending: dict[TopicPartition, set[int]] = {}
    for plan in (run.plan for run in found.unfinished):
        _add_positions(pending, plan)
    return list(check_live(archive, progress, seen, pending))


def _add_positions(pending: dict[TopicPartition, set[int]], plan: Plan | None) -> None:
    for partition in plan.partitions if plan and plan.moves_group else ():
        pending.setdefault(partition.name, set()).update({partition.start, partition.end})
