"""The layout `zooz`: the paths of Zooz's kafka-s3-connector, <topic>/date=2026-11-21/hour=05/<partition>_<start>.

The topic's folder takes the place of their root path. A file's number is the first offset of the chunk; theirs is that
of the file's first message, which depends on when the process was started.
"""

from kafka_archiver.model.layouts.form import PathForm
from kafka_archiver.model.layouts.options import ClockOptions
from kafka_archiver.model.layouts.template import parsed


class Zooz:
    """Files records by their hour."""

    name = "zooz"
    options = ClockOptions

    def form(self, options: ClockOptions) -> PathForm:
        """Records without a usable time go to a null partition."""
        folders, name = parsed("{topic}/date={yyyy-MM-dd}/hour={HH}"), parsed("{partition}_{start}")
        return PathForm(folders, name, columns=("date", "hour"), missing="null", **options.clock())
