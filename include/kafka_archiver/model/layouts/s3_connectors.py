"""The paths of two connectors to S3.

`zooz`: Zooz's kafka-s3-connector, <topic>/date=2026-11-21/hour=05/<partition>_<start>. The topic's folder takes the
place of their root path. A file's number is the first offset of the chunk; theirs is that of the file's first message,
which depends on when the process was started.

`deviantart`: DeviantArt's kafka-connect-s3, 2026-11-21/<topic>-00003-000000000042. The date is that of the record's
time; theirs is the day of the upload, which `timestamp.from: wallclock` gives.
"""

from kafka_archiver.model.layouts.form import PathForm
from kafka_archiver.model.layouts.options import ClockOptions
from kafka_archiver.model.layouts.template import parsed


class DeviantArt:
    """Files records by their day."""

    name = "deviantart"
    options = ClockOptions

    def form(self, options: ClockOptions) -> PathForm:
        """Records without a usable time go to a null partition."""
        name = parsed("{topic}-{partition:5}-{start:12}")
        return PathForm(parsed("{yyyy-MM-dd}"), name, missing="null", **options.clock())


class Zooz:
    """Files records by their hour."""

    name = "zooz"
    options = ClockOptions

    def form(self, options: ClockOptions) -> PathForm:
        """Records without a usable time go to a null partition."""
        folders, name = parsed("{topic}/date={yyyy-MM-dd}/hour={HH}"), parsed("{partition}_{start}")
        return PathForm(folders, name, columns=("date", "hour"), missing="null", **options.clock())
