"""The trigger form: its fields, and what a run makes of them."""

from typing import Any

import pytest
from airflow.sdk.definitions.param import ParamsDict
from airflow.sdk.exceptions import ParamValidationError

from kafka_archiver.config import Policies
from kafka_archiver.messages.errors import ConfigError
from kafka_archiver.orchestration.dag_run.form import KEYS, PATHS, SECTIONS, params, request_of
from kafka_archiver.orchestration.dag_run.params import Rebuild, require_known, selected_letters, takes_new, with_params
from tests.dags.conftest import MakeArchive

pytestmark = pytest.mark.dags
RUN = "20261121T050000Z"
HOUR = "2026-11-21T05:00:00Z"


def test_the_form_has_a_field_for_each_key_and_no_raw_json(archive: MakeArchive) -> None:
    form_fields = params(archive())
    assert tuple(form_fields) == PATHS
    assert {*form_fields, *SECTIONS} == KEYS
    assert not [name for name, param in form_fields.items() if "object" in param.schema["type"]]


def test_each_policy_is_a_choice_that_names_the_one_of_the_yaml(archive: MakeArchive) -> None:
    form_fields = params(archive("policies: {moved_group: follow_ledger}\n"))
    moved = form_fields["policies.moved_group"]
    assert moved.value is None
    assert moved.schema["enum"] == [None, "fail", "follow_ledger", "new_generation"]
    assert moved.schema["values_display"] == {"null": "as in the YAML (follow_ledger)"}
    assert "`follow_ledger`" in (moved.description or "")
    assert [name for name in form_fields if name.startswith("policies.")] == [
        f"policies.{p}" for p in Policies.model_fields
    ]


def test_what_the_untouched_form_sends_is_a_run_like_any_other(archive: MakeArchive) -> None:
    sent = ParamsDict(params(archive())).validate()
    require_known(sent, KEYS)
    assert takes_new(sent)
    assert with_params(archive(), sent) == archive()
    assert request_of(sent) == {
        "max_records": 50_000_000, "policies": {}, "fill": None, "rebuild": None, "dead_letters": None, "repair": None,
    }  # fmt: skip


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("policies.lost_offsets", "ignore"),
        ("rebuild.keep", "yes"),
        ("repair.runs", RUN),
        ("max_records", 0),
    ],
)
def test_airflow_refuses_a_wrong_value_when_the_form_is_sent(archive: MakeArchive, field: str, value: Any) -> None:
    with pytest.raises(ParamValidationError):
        params(archive())[field].resolve(value)


@pytest.mark.parametrize(
    ("fields", "whole"),
    [
        ({"policies.lost_offsets": "record_loss"}, {"policies": {"lost_offsets": "record_loss"}}),
        ({"rebuild.hour": HOUR, "rebuild.keep": True}, {"rebuild": {"hour": HOUR, "keep": True}}),
        ({"rebuild.run": RUN, "rebuild.keep": False}, {"rebuild": {"run": RUN}}),
        ({"repair.runs": [RUN]}, {"repair": [RUN]}),
        ({"dead_letters.runs": [RUN]}, {"dead_letters": {"runs": [RUN]}}),
        ({"dead_letters.all": True}, {"dead_letters": {"all": True}}),
        ({"dead_letters.from": HOUR, "dead_letters.to": HOUR}, {"dead_letters": {"hours": [HOUR, HOUR]}}),
        ({"rebuild.hour": "", "repair.runs": [], "policies.bad_record": None}, {}),
    ],
)
def test_a_field_is_a_key_of_its_section(fields: dict[str, Any], whole: dict[str, Any]) -> None:
    assert request_of(fields) == request_of(whole)
    assert takes_new(fields) == takes_new(whole)


def test_a_rebuild_and_a_replay_of_the_form_are_those_of_the_commands() -> None:
    assert Rebuild.of(request_of({"rebuild.run": RUN, "rebuild.keep": True})["rebuild"]) == Rebuild(None, RUN, True)
    first, last = selected_letters(
        request_of({"dead_letters.from": HOUR, "dead_letters.to": HOUR})["dead_letters"]
    ) or (
        (),
        (),
    )
    assert first == last


@pytest.mark.parametrize(
    ("conf", "message"),
    [
        ({"policies": "record_loss"}, "in the run's `policies`: expected a mapping, found 'record_loss'"),
        ({"repair": RUN}, "in the run's `repair`: expected a list"),
        ({"rebuild": {"run": RUN}, "rebuild.hour": HOUR}, "has `rebuild` and `rebuild.hour`; expected one of them"),
        ({"dead_letters.from": HOUR}, "expected both `from` and `to`"),
    ],
)
def test_what_cannot_be_meant_is_refused_and_plans_nothing(conf: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError) as failure:
        request_of(conf)
    assert message in str(failure.value)
    assert not takes_new(conf)
