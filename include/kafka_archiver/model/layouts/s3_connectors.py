"""The paths of two connectors to S3.

`zooz`: Zooz's kafka-s3-connector, <topic>/date=2026-11-21/hour=05/<partition>_<start>. The topic's folder takes the
place of their root path. A file's number is the first offset of the chunk; theirs is that of the file's first message,
which depends on when the process was started.

`deviantart`: DeviantArt's kafka-connect-s3, 2026-11-21/<topic>-00003-000000000042. The date is that of the record's
time; theirs is the day of the upload, which `timestamp.from: wallclock` gives.
"""

from kafka_archiver.model.layouts.base import NamedLayout
from kafka_archiver.model.layouts.hourly import by_time
from kafka_archiver.model.layouts.options import ClockOptions

_DAY = by_time("{yyyy-MM-dd}", name="{topic}-{partition:5}-{start:12}")
_HOUR = by_time("{topic}/date={yyyy-MM-dd}/hour={HH}", ("date", "hour"), "{partition}_{start}")
DEVIANTART = NamedLayout("deviantart", ClockOptions, _DAY)
ZOOZ = NamedLayout("zooz", ClockOptions, _HOUR)
