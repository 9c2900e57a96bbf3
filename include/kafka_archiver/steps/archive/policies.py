"""The policies that decide while a run is read. Pure."""

from dataclasses import asdict, dataclass
from typing import Literal, Self

from kafka_archiver.manifest import Manifest
from kafka_archiver.plan import BadRecord, Plan


@dataclass(frozen=True, slots=True)
class ReadPolicies:
    """The policies that decide while a run is read: those of the archive today, or else a failed run could not go on.

    The manifest has them, and a replay keeps to those.
    """

    lost_offsets: Literal["fail", "record_loss"] = "fail"
    bad_record: BadRecord = "fail"

    def for_run(self, plan: Plan, stored: Manifest | None) -> Self:
        """What counts for a run with this manifest, if it has one. A rebuild loses nothing, whatever the policy."""
        known = {**asdict(self), **(stored.policies if stored else {})}
        loses_nothing = plan.supersedes and not plan.takes_over
        return type(self)(**{**known, **({"lost_offsets": "fail"} if loses_nothing else {})})
