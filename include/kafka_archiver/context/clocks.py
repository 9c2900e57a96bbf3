"""The time by this machine's clock and by the store's, which may differ."""

import logging
from datetime import datetime, timedelta
from typing import NamedTuple

from kafka_archiver.context.archive_context import Context
from kafka_archiver.messages.errors import PermanentError

log = logging.getLogger(__name__)
# The skew of the clocks from which on there is a warning, and from which on nothing is planned.
SKEW_NOTED, SKEW_REFUSED = timedelta(minutes=1), timedelta(minutes=10)
# The store gives its time in whole seconds, and with a delay. If the delay was longer, its clock may be further ahead.
_SAME = timedelta(seconds=2)


class ClockReading(NamedTuple):
    """The time of the earlier clock, and of the later one; None if they agree."""

    earliest: datetime
    latest: datetime | None


def read_clocks(context: Context) -> ClockReading:
    """Return the present time by both clocks.

    :raises PermanentError: our clock and the store's differ by too much.
    """
    before = context.clock()
    store_time = context.store.now()
    after = context.clock()
    # The answer may have taken long, and this machine may have slept.
    skew = max(before - store_time, store_time - after, timedelta(0))
    difference = f"this machine's clock says {after:%H:%M:%S} UTC, the store's {store_time:%H:%M:%S}"
    if skew > SKEW_REFUSED:
        raise PermanentError(
            f"{difference}: with clocks so far apart it is unknown which hours are over. Synchronise both with NTP"
        )
    if skew > SKEW_NOTED:
        log.warning("%s: synchronise both with NTP; hours are closed by the clock that is behind", difference)
    earliest, latest = min(before, store_time), max(after, store_time)
    return ClockReading(earliest, latest if latest - earliest > _SAME else None)


def later_time(context: Context) -> datetime:
    """Return the later of our clock and the store's."""
    return max(context.store.now(), context.clock())
