"""`health` and `audit`: an archive's limits, and when the audit looks at it."""

from datetime import timedelta
from typing import Annotated

from pydantic import Field

from kafka_archiver.config.section import Section
from kafka_archiver.config.times import Schedule, span

# At night, and not on the hour, when archives run.
NIGHTLY = "20 3 * * *"
_SPAN = span("expected a time like 90m, 12h or 2d")


class Health(Section):
    """The limits of one archive."""

    max_lag_records: Annotated[int, Field(ge=0)] | None = None
    max_age: Annotated[timedelta | None, *_SPAN] = None
    max_audit_age: Annotated[timedelta | None, *_SPAN] = timedelta(days=3)
    ignore: tuple[Annotated[str, Field(min_length=1)], ...] = ()


class AuditSection(Section):
    """The schedule of the DAG that audits, in the archive's `timezone`; null: by hand only.

    An archive without a schedule of its own is audited by hand, unless this is given.
    """

    schedule: Schedule = NIGHTLY
