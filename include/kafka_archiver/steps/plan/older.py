"""What Kafka's time index can prove: that everything before an offset is older than an hour.

The index is exact in this one direction: the first record at or after a time has only older ones before it. Of what
comes behind it nothing is known, for one record of a wrong clock hides all that follows.
"""

from collections.abc import Collection, Mapping

from kafka_archiver.intervals import LAST_MS, MS_PER_HOUR, hour_start
from kafka_archiver.kafka.cluster import Cluster
from kafka_archiver.progress import Older
from kafka_archiver.ranges import Range, TopicPartition

# Where several records of one batch have the time that is asked for, brokers may give the last of them.
MARGIN_MS = 1000


def older(
    cluster: Cluster, left_out: Mapping[TopicPartition, tuple[Range, ...]], starts: Mapping[TopicPartition, int]
) -> dict[TopicPartition, Older]:
    """Before which hour all of these offsets are: the first hour at whose start the log has none of them.

    :param starts: where each log began when it was looked at. Of a log that has lost something since, nothing is said,
        and neither of offsets that it did not have then: what was known of them before still holds.
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
            # What an open transaction has is among them, too.
            found = cluster.offsets_at(names, max(time, 0), "read_uncommitted")
            for name, offset in found.items():
                # That there is none is believed when no time is late enough: the brokers may not see it (`hidden`).
                if latest[name] < time if offset is None else offset >= ends[name]:
                    high[name] = hour
                else:
                    low[name] = hour + 1
    # A record of the year 9999 among them leaves no hour that could be complete.
    hours = {name: min(hour, LAST_MS // MS_PER_HOUR) for name, hour in low.items()}
    now = cluster.log_starts(ends)
    return {
        name: Older(topic=name.topic, partition=name.partition, ranges=left_out[name], than=hour_start(hour))
        for name, hour in hours.items()
        if now[name] == starts[name]
    }


def hidden(cluster: Cluster, found: Mapping[TopicPartition, int | None], milliseconds: int) -> set[TopicPartition]:
    """Where records of a time or later may be, although the brokers know of none.

    A broker looks in the first segment alone whose latest time is late enough. Where `delete_records` let the log
    begin in its middle, what has that time may be gone, and what comes behind it is hidden.

    :param found: what the brokers answered to `offsets_at` for this time.
    """
    nothing = [name for name, offset in found.items() if offset is None]
    # There may be one, of an open transaction.
    open_ones = cluster.offsets_at(nothing, milliseconds, "read_uncommitted")
    unknown = [name for name in nothing if open_ones[name] is None]
    latest = latest_times(cluster, unknown, LAST_MS)
    return {name for name in unknown if latest[name] >= milliseconds}


def latest_times(cluster: Cluster, names: Collection[TopicPartition], at_worst: int) -> dict[TopicPartition, int]:
    """The latest timestamp of each log; -1 for an empty one.

    :param at_worst: what is said where the brokers do not: they keep it back while its record is not replicated.
    """
    latest = cluster.latest_times(names)
    silent = [name for name in names if latest[name] < 0]
    starts, highs = cluster.log_starts(silent), cluster.log_ends(silent, "read_uncommitted")
    return latest | {name: at_worst for name in silent if starts[name] < highs[name]}
