"""`audit`: when the archive is audited."""

from kafka_archiver.config.section import Section
from kafka_archiver.config.times import Schedule

# At night, and not on the hour, when archives run.
NIGHTLY = "20 3 * * *"


class AuditSection(Section):
    """The schedule of the DAG that audits, in the archive's `timezone`; null: by hand only.

    An archive without a schedule of its own is audited by hand, unless this is given.
    """

    schedule: Schedule = NIGHTLY
