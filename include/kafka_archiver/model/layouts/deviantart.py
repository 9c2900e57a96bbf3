"""The layout `deviantart`: the paths of DeviantArt's kafka-connect-s3, 2026-11-21/<topic>-00003-000000000042.

The date is that of the record's time; theirs is the day of the upload, which `timestamp.from: wallclock` gives. A
file's offset is the first offset of the chunk.
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
