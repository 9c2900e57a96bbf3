"""A policy: what a plan does if the interval has no records. Its places, as they are in the package.

`messages/policies.py` has the value and the field, a module of `planning/` the decision.
"""

from typing import Literal

from kafka_archiver.config import Archive, Policies
from kafka_archiver.messages.actions import advise
from kafka_archiver.messages.advice import choose
from kafka_archiver.messages.errors import PolicyError
from kafka_archiver.messages.policies import Choice, Policy

EmptyInterval = Literal["fail", "close"]
POLICY = Policy(
    "empty_interval",
    "an interval has no records",
    (Choice("fail", "the run stops"), Choice("close", "the hour is closed without a record", is_for_ever=True)),
)


class PoliciesOfThree(Policies):
    empty_interval: EmptyInterval = "fail"


class ArchiveOfThree(Archive):
    policies: PoliciesOfThree = PoliciesOfThree()


def empty_interval(archive: ArchiveOfThree) -> str:
    if archive.policies.empty_interval == "fail":
        how = advise("To go on: ", choose(archive.archive, "empty_interval", "close"))
        raise PolicyError("there are no records", "empty_interval", "orders", "close", *how)
    return archive.policies.empty_interval
