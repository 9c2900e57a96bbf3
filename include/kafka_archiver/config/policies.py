"""`policies`: the archive's choices. `messages/policies.py` has the policies themselves."""

from kafka_archiver.config.section import Section
from kafka_archiver.messages.policies import (
    BadRecord,
    ChangedCode,
    LostOffsets,
    MissingGroup,
    MovedGroup,
    NullValue,
    RecreatedTopic,
)


class Policies(Section):
    """The choice of each policy."""

    lost_offsets: LostOffsets = "fail"
    recreated_topic: RecreatedTopic = "fail"
    missing_group: MissingGroup = "resume_from_ledger"
    moved_group: MovedGroup = "fail"
    changed_code: ChangedCode = "fail"
    bad_record: BadRecord = "fail"
    null_value: NullValue = "archive"
