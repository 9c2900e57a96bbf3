"""What time it is: by our clock and by the store's, which may differ."""

import logging
from datetime import datetime, timedelta
from typing import NamedTuple

from kafka_archiver.errors import PermanentError
from kafka_archiver.steps.context import Context

log = logging.getLogger(__name__)
# By how much clocks may differ before somebody is told, and before nothing is planned any more.
SKEW_NOTED, SKEW_REFUSED = timedelta(minutes=1), timedelta(minutes=10)
# The store tells its time in whole seconds, and late.
_SAME = timedelta(seconds=2)


class Moment(NamedTuple):
    """The earlier clock, and the later one; None where they agree."""

    earliest: datetime
    latest: datetime | None


def moment(context: Context) -> Moment:
    """What time it is.

    :raises PermanentError: our clock and the store's differ by too much.
    """
    before = context.clock()
    theirs = context.store.now()
    now = context.clock()
    # The answer may have taken its time, and this machine may have slept.
    skew = max(before - theirs, theirs - now, timedelta(0))
    said = f"this machine's clock says {now:%H:%M:%S} UTC, the store's {theirs:%H:%M:%S}"
    if skew > SKEW_REFUSED:
        raise PermanentError(
            f"{said}: with clocks so far apart nobody knows which hours are over. Synchronise both with NTP"
        )
    if skew > SKEW_NOTED:
        log.warning("%s: synchronise both with NTP; hours are closed by the one that is behind", said)
    return Moment(min(before, theirs), max(now, theirs) if skew > _SAME else None)


def at_latest(context: Context) -> datetime:
    """The later of our clock and the store's."""
    return max(context.store.now(), context.clock())
