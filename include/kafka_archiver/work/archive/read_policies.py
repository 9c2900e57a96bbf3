"""The policies of one run that is read."""

from dataclasses import asdict

from kafka_archiver.messages.policies import ReadPolicies
from kafka_archiver.model.manifest import Manifest
from kafka_archiver.model.plan import Plan


def policies_of_run(present: ReadPolicies, plan: Plan, stored: Manifest | None) -> ReadPolicies:
    """Return the policies for a run: those of its manifest, if it has one.

    A rebuild loses nothing, whatever the policy.

    :param present: the archive's.
    """
    choices = {**asdict(present), **(stored.policies if stored else {})}
    loses_nothing = plan.supersedes and not plan.takes_over
    return ReadPolicies.of({**choices, **({"lost_offsets": "fail"} if loses_nothing else {})})
