"""`policies`: what to do when the brokers' state is strange."""

from typing import Literal

from kafka_archiver.config.section import Section
from kafka_archiver.model.plan import BadRecord, NullValue


class Policies(Section):
    """The choice for each strange state of the brokers."""

    lost_offsets: Literal["fail", "record_loss"] = "fail"
    recreated_topic: Literal["fail", "new_generation"] = "fail"
    missing_group: Literal["resume_from_ledger", "fail"] = "resume_from_ledger"
    moved_group: Literal["fail", "follow_ledger", "new_generation"] = "fail"
    changed_code: Literal["fail", "plan_anew"] = "fail"
    bad_record: BadRecord = "fail"
    null_value: NullValue = "archive"
