"""What Kafka's time index can prove: that everything before an offset is older than an hour.

The index is exact in one direction only: all records before the first record at or after a time are older than it.
About the records behind it the index proves nothing: one record with a wrong clock hides all that follow.
"""

from collections.abc import Collection, Mapping

from kafka_archiver.intervals import LAST_MS, MS_PER_HOUR, hour_start
from kafka_archiver.kafka.cluster import Cluster
from kafka_archiver.progress import Older
from kafka_archiver.ranges import Range, TopicPartition

# If several records of one batch have the requested time, brokers may return the last of them.
MARGIN_MS = 1000


def older(
    cluster: Cluster, left_out: Mapping[TopicPartition, tuple[Range, ...]], starts: Mapping[TopicPartition, int]
) -> dict[TopicPartition, Older]:
    """The hour before which the records at all of these offsets are.

    :param starts: where each log began when it was looked at. A log that has lost offsets since gets no answer, nor
        does a log that did not have all of these offsets: what was known of them before still holds.
    """
    ends = {name: holes[-1].end for name, holes in left_out.items() if holes[0].start >= starts[name]}
    low = dict.fromkeys(ends, 0)
    high = dict.fromkeys(ends, LAST_MS // MS_PER_HOUR + 1)
    latest = latest_times(cluster, ends, LAST_MS)
    while searched := [name for name in ends if low[name] < high[name]]:
        middle = {name: (low[name] + high[name]) // 2 for name in searched}
        for hour in set(middle.values()):
            names = [name for name in searched if middle[name] == hour]
            time = hour * MS_PER_HOUR - MARGIN_MS
            # Including records of open transactions.
            found = cluster.offsets_at(names, max(time, 0), "read_uncommitted")
            for name, offset in found.items():
                # The answer "none" counts only if no time is late enough: the brokers may not see a record (`hidden`).
                if latest[name] < time if offset is None else offset >= ends[name]:
                    high[name] = hour
                else:
                    low[name] = hour + 1
    # With a record of the year 9999, no hour can be complete.
    hours = {name: min(hour, LAST_MS // MS_PER_HOUR) for name, hour in low.items()}
    now = cluster.log_starts(ends)
    return {
        name: Older(topic=name.topic, partition=name.partition, ranges=left_out[name], than=hour_start(hour))
        for name, hour in hours.items()
        if now[name] == starts[name]
    }


def hidden(cluster: Cluster, found: Mapping[TopicPartition, int | None], milliseconds: int) -> set[TopicPartition]:
    """The logs that may have records of this time or later although the brokers found none.

    A broker searches only the first segment whose latest time is late enough. If `delete_records` let the log begin in
    the middle of that segment, the record with that time may be gone, and later segments are not searched.

    :param found: the brokers' answers to `offsets_at` for this time.
    """
    nothing = [name for name, offset in found.items() if offset is None]
    # An open transaction may have such a record.
    open_ones = cluster.offsets_at(nothing, milliseconds, "read_uncommitted")
    unknown = [name for name in nothing if open_ones[name] is None]
    latest = latest_times(cluster, unknown, LAST_MS)
    return {name for name in unknown if latest[name] >= milliseconds}


def latest_times(cluster: Cluster, names: Collection[TopicPartition], at_worst: int) -> dict[TopicPartition, int]:
    """The latest timestamp of each log; -1 for an empty one.

    :param at_worst: used if the brokers give no time: they hold it back until the record is replicated.
    """
    latest = cluster.latest_times(names)
    silent = [name for name in names if latest[name] < 0]
    starts, highs = cluster.log_starts(silent), cluster.log_ends(silent, "read_uncommitted")
    return latest | {name: at_worst for name in silent if starts[name] < highs[name]}
