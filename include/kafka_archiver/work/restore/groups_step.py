"""The step `translate_groups`: where groups stood, by a snapshot or by the source's brokers, and the move."""

from collections.abc import Mapping, Sequence

from kafka_archiver.kafka.cluster import Cluster
from kafka_archiver.ledger.ledger import Ledger
from kafka_archiver.model.restore import RestorePlan
from kafka_archiver.model.restored_groups import GroupsReport
from kafka_archiver.work.restore.groups import (
    GroupMover,
    groups_of_cluster,
    snapshot_of_groups,
    translate_groups,
    verified_map,
)


def move_groups(
    ledger: Ledger,
    plan: RestorePlan,
    target: Mapping[str, str],
    patterns: Sequence[str],
    source: Mapping[str, str] | None = None,
    replace: bool = False,
    dry_run: bool = False,
) -> GroupsReport:
    """Put groups behind the last restored record that each had read.

    :param target: client properties. :param patterns: for whole names of groups.
    :param source: client properties of the source, if it still runs; None: the last snapshot in the archive's plans.
    :raises ConfigError: the restore is not verified, or nothing says where these groups stood.
    """
    offsets = verified_map(ledger, plan)
    if source:
        asked = Cluster(source)
        places = asked.offsets_of_groups(patterns, plan.selection.topics)
        stood = groups_of_cluster(ledger, plan.through, asked.cluster_id(), places)
    else:
        stood = snapshot_of_groups(ledger, plan.through, patterns)
    return translate_groups(ledger, GroupMover(Cluster(target), plan, offsets, replace, dry_run), stood)
