"""The policies that decide while a run is read. Pure."""

from dataclasses import asdict, dataclass
from typing import Self

from kafka_archiver.messages.policies import BadRecord, LostOffsets
from kafka_archiver.model.manifest import Manifest
from kafka_archiver.model.plan import Plan


@dataclass(frozen=True, slots=True)
class ReadPolicies:
    """The policies that decide while a run is read: the archive's present ones, so that a failed run can go on.

    The manifest has them, and a replay uses the manifest's.
    """

    lost_offsets: LostOffsets = "fail"
    bad_record: BadRecord = "fail"

    def for_run(self, plan: Plan, stored: Manifest | None) -> Self:
        """Return the policies for a run with this manifest, if it has one. A rebuild loses nothing, whatever the
        policy.
        """
        known = {**asdict(self), **(stored.policies if stored else {})}
        loses_nothing = plan.supersedes and not plan.takes_over
        return type(self)(**{**known, **({"lost_offsets": "fail"} if loses_nothing else {})})
