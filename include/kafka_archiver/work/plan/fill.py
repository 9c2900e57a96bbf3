"""The offsets of a run that fills the archive: those before the scheduled runs that no run has."""

from datetime import datetime
from typing import NamedTuple

from kafka_archiver.context.archive_context import Context
from kafka_archiver.messages.errors import ConfigError
from kafka_archiver.planning.partition_state import Known
from kafka_archiver.planning.survey import Survey
from kafka_archiver.planning.time_index import find_hidden_logs
from kafka_archiver.values.intervals import to_ms
from kafka_archiver.values.ranges import Range, TopicPartition


class Fill(NamedTuple):
    """`since`: only what may have records of this time or later; None: all that is left out."""

    since: datetime | None = None


def ranges_to_fill(context: Context, observed: Survey, known: Known, fill: Fill) -> dict[TopicPartition, Range]:
    """Return the offsets of each log among which some may be left out: up to where scheduled runs began.

    Nothing behind the end of the log for this isolation: a group that was put behind an open transaction begins there.

    :raises ConfigError: the records are filed by a time that Kafka's index does not know.
    """
    starts = {state.name: state.log_start for state in observed.states}
    readable = {state.name: state.log_end for state in observed.states}
    ends = {name: min(known[name].next or 0, readable[name]) if name in known else 0 for name in starts}
    if fill.since:
        if not context.archive.settings.time.is_known_to_kafka:
            raise ConfigError(
                "`from` of a fill needs records that are filed by Kafka's timestamps, which its index knows; this "
                "archive files them by another time. Fill it without `from`"
            )
        since_ms = to_ms(fill.since)
        # Everything before the first record of that time is older, also what is not committed yet.
        first = context.cluster.offsets_at(starts, since_ms, "read_uncommitted")
        unseen = find_hidden_logs(context.cluster, first, since_ms)
        for name, start in starts.items():
            offset = ends[name] if first[name] is None else first[name]
            if name not in unseen and offset is not None:
                starts[name] = max(start, offset)
    return {name: Range(start, max(start, ends[name])) for name, start in starts.items()}
