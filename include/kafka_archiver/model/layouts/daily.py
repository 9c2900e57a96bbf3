"""The layout `daily`: by the day of the record's time, <topic>/date=2026-11-21."""

from kafka_archiver.model.layouts.form import Form
from kafka_archiver.model.layouts.options import Clock
from kafka_archiver.model.layouts.template import parsed


class Daily:
    """Files records by their day, UTC unless the YAML names another zone."""

    name = "daily"
    options = Clock

    def form(self, options: Clock) -> Form:
        """Records without a usable time go to a null partition."""
        return Form(parsed("{topic}/date={yyyy-MM-dd}"), columns=("date",), missing="null", **options.clock())
