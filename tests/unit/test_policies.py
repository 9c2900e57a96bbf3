"""Each policy is one value: the YAML's section and the docs say the same of it."""

import re
from pathlib import Path
from typing import get_args

from kafka_archiver.config import Policies
from kafka_archiver.messages.policies import AT_BROKERS, POLICIES

RUNBOOK = Path(__file__).parents[2] / "docs/runbook"


def test_the_yaml_has_the_choices_of_each_policy_and_its_default() -> None:
    in_yaml = {name: get_args(field.annotation) for name, field in Policies.model_fields.items()}
    assert in_yaml == {name: policy.names for name, policy in POLICIES.items()}
    assert Policies().model_dump() == {name: policy.names[0] for name, policy in POLICIES.items()}


def test_the_docs_have_each_policy_with_its_choices_in_this_order() -> None:
    rows = dict(
        re.findall(r"^\| `(\w+)` \| [^|\n]* \| ([^\n]*) \|$", (RUNBOOK / "policies.md").read_text(), re.MULTILINE)
    )
    for name, policy in POLICIES.items():
        choices = re.sub(r"\([^()]*(\([^()]*\)[^()]*)*\)", "", rows[name]).replace(" ", "").split(",")
        assert tuple(choices) == policy.names


def test_the_docs_have_the_finding_of_each_policy_that_the_audit_looks_for() -> None:
    assert {policy.name for policy in POLICIES.values() if policy.finding} == {
        "lost_offsets",
        "recreated_topic",
        "missing_group",
        "moved_group",
    }
    assert all(f"`{finding}`" in (RUNBOOK / "audit.md").read_text() for finding in AT_BROKERS)
