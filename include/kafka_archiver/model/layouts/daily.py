"""The layout `daily`: by the day of the record's time, <topic>/date=2026-11-21."""

from kafka_archiver.model.layouts.form import PathForm
from kafka_archiver.model.layouts.options import ClockOptions
from kafka_archiver.model.layouts.template import parsed


class Daily:
    """Files records by their day, UTC unless the YAML names another zone."""

    name = "daily"
    options = ClockOptions

    def form(self, options: ClockOptions) -> PathForm:
        """Records without a usable time go to a null partition."""
        return PathForm(parsed("{topic}/date={yyyy-MM-dd}"), columns=("date",), missing="null", **options.clock())
