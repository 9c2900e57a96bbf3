"""The DAG run that an action of the page starts."""

import json
import shlex
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kafka_archiver.config import Archive, parse_archive
from kafka_archiver.messages import advice
from kafka_archiver.messages.actions import Action, command, words
from kafka_archiver.messages.errors import ConfigError
from kafka_archiver.orchestration.dag_run.restore_form import KEYS, conf_of, restore_params, restore_request
from kafka_archiver.orchestration.dag_run.schedule import last_interval
from kafka_archiver.orchestration.page.actions import trigger_of
from kafka_archiver.orchestration.page.buttons import steps_of
from kafka_archiver.orchestration.page.restore_fields import sections
from kafka_archiver.orchestration.page.submitted import SubmittedForm

pytestmark = pytest.mark.unit

MINIMAL = "archive: orders\nsource: {topics: [orders]}\nstore: {url: 's3://bucket/lake'}\n"
DAY = datetime(2026, 11, 20, tzinfo=UTC)


def archive(more: str = "") -> Archive:
    return parse_archive(MINIMAL + more, "orders.yaml")


def form(**fields: str) -> SubmittedForm:
    return SubmittedForm(list(fields.items()))


@given(st.integers(0, 59), st.integers(0, 47), st.integers(0, 5))
def test_a_backfill_takes_every_interval_with_a_part_of_the_hours_and_no_other(
    minute: int, first: int, more: int
) -> None:
    orders = archive(f"schedule: '{minute} * * * *'\n")
    begin, end = DAY + timedelta(hours=first), DAY + timedelta(hours=first + more)
    trigger = trigger_of("backfill", orders, form(first=f"{begin:%Y-%m-%dT%H:%M}", last=f"{end:%Y-%m-%dT%H}"))
    assert trigger.backfill is not None
    since, until, again = trigger.backfill
    assert again == "none"
    # Airflow takes the intervals that start from `since` to `until`, both included.
    starts = [DAY + timedelta(hours=hour, minutes=minute) for hour in range(-2, 60)]
    taken = {start for start in starts if since <= start <= until}
    assert taken == {s for s in starts if s < end + timedelta(hours=1) and s + timedelta(hours=1) > begin}


def test_a_backfill_of_an_hour_of_a_daily_schedule_takes_its_day() -> None:
    orders = archive("schedule: '0 0 * * *'\n")
    trigger = trigger_of("backfill", orders, form(first="2026-11-20T05", last="2026-11-20T07", failed="1"))
    assert trigger.backfill == (DAY, DAY + timedelta(hours=7, minutes=59), "failed")
    assert last_interval(orders, DAY + timedelta(hours=5)).end == DAY


def test_a_backfill_is_of_at_most_so_many_intervals_whatever_their_length() -> None:
    year = {"first": "2025-11-20T00:00", "last": "2026-11-19T23:00"}
    assert trigger_of("backfill", archive("schedule: '0 0 * * *'\n"), form(**year)).backfill
    with pytest.raises(ConfigError, match="at most 750 intervals"):
        trigger_of("backfill", archive(), form(**year))
    month = {"first": "2026-10-20T00:00", "last": "2026-11-19T23:00"}
    assert trigger_of("backfill", archive(), form(**month)).backfill


def test_an_archive_without_a_schedule_has_nothing_to_backfill() -> None:
    with pytest.raises(ConfigError, match="has no schedule"):
        trigger_of("backfill", archive("schedule: null\n"), form(first="2026-11-20T05", last="2026-11-20T05"))


def test_an_audit_is_of_the_audits_dag() -> None:
    assert trigger_of("audit", archive(), form()) == ("audit_orders", {}, None)
    assert trigger_of("audit", archive(), form(deep="1")) == ("audit_orders", {"deep": True}, None)


def test_a_policy_is_for_the_run_alone() -> None:
    fields = {"policy.lost_offsets": "record_loss", "policy.bad_record": ""}
    trigger = trigger_of("run", archive(), SubmittedForm(list(fields.items())))
    assert trigger.conf == {"policies": {"lost_offsets": "record_loss"}}


RUN = "20261120T020000Z"


@pytest.mark.parametrize(
    ("action", "conf"),
    [
        (advice.run_now("orders"), {}),
        (advice.run_now("orders").after("correct the cause, then"), {}),
        (advice.once("orders", {"lost_offsets": "record_loss", "moved_group": "follow_ledger"}), None),
        (advice.audit_again("orders"), {}),
        (advice.audit_again("orders", deep=True), {"deep": True}),
        (advice.repair("orders", deep=True), {"repair": [RUN]}),
        (advice.replay_all("orders"), {"dead_letters": {"all": True}}),
        (advice.replay_again("orders", RUN).after("then"), {"dead_letters": {"runs": [RUN]}}),
        (advice.plan_anew("orders", RUN), {"rebuild": {"run": RUN}}),
    ],
)
def test_a_button_starts_what_the_command_beside_it_starts(action: Action, conf: Any) -> None:
    [step] = steps_of("orders", [action], [RUN])
    assert (step.words, step.command) == (action.words, action.command)
    assert step.button
    trigger = trigger_of(step.button.action, archive(), SubmittedForm(step.button.fields))
    assert trigger.conf == (json.loads(shlex.split(action.command)[-1]) if conf is None else conf)


@pytest.mark.parametrize(
    "action",
    [
        advice.repair("orders"),
        advice.repair("orders", "an/object"),
        advice.unpause("archive_other"),
        advice.show("orders", RUN),
        words("airflow dags trigger archive_orders"),
        command("airflow dags trigger archive_orders"),
        replace(advice.plan_anew("orders", RUN), conf={}),
        replace(advice.unpause("archive_orders"), conf={}),
    ],
)
def test_what_the_page_cannot_do_has_no_button(action: Action) -> None:
    damaged = [RUN] if "--lost" in action.command else []
    assert [step.button for step in steps_of("orders", [action], damaged)] == [None]


def test_a_fill_takes_all_or_from_an_hour_on_and_has_a_button() -> None:
    assert trigger_of("fill", archive(), form()) == ("archive_orders", {"fill": {"all": True}}, None)
    since = trigger_of("fill", archive(), form(**{"from": "2026-11-20T05"}))
    assert since.conf == {"fill": {"from": "2026-11-20T05:00:00Z"}}
    [step] = steps_of("orders", [advice.fill("orders")])
    assert step.button
    assert (step.button.action, step.button.fields) == ("fill", ())


def test_the_form_of_a_restore_has_each_parameter_of_its_dag_and_gives_the_same_request() -> None:
    fields = {field.key: field for _, shown in sections(["orders"]) for field in shown}
    assert set(fields) == KEYS
    assert fields["topics"].options == ["orders"]
    assert sections([f"t{number}" for number in range(99)])[0][1][2].kind == "lines"
    texts = {"flag": "1", "choice": "", "number": "0", "time": "2026-11-20T00:00", "text": "x", "numbers": "0, 2\n5"}
    sent = [
        *((key, texts[field.kind]) for key, field in fields.items() if field.kind in texts),
        *(("topics", "orders"), ("allow", "rows"), ("allow", "lost"), ("rename", "orders=copy\r\n\r\no.*=b")),
        *(("dead_letters", "only"), ("until", "2026-11-20 05"), ("end", "7")),
    ]
    sent = [(key, value) for key, value in dict(sent).items() if key != "allow"]
    trigger = trigger_of("restore", archive(), SubmittedForm([*sent, ("allow", "rows"), ("allow", "lost")]))
    conf = trigger.conf
    assert trigger.dag == "restore_orders"
    assert (conf["allow"], conf["partitions"], conf["start"]) == (["rows", "lost"], [0, 2, 5], 0)
    assert conf["rename"] == ["orders=copy", "o.*=b"]
    # Airflow takes each value, and what is not given stays as it is by default.
    defaults = {key: param.resolve() for key, param in restore_params().items()}
    assert {key: replace_value(key, value) for key, value in conf.items()} == conf
    assert restore_request({**defaults, **conf}, ["orders"], "r").selection.hours == (498_648, 498_653)
    assert trigger_of("restore", archive(), SubmittedForm([("partitioner", "same"), ("to", " ")])).conf == {}
    assert conf_of(conf) == {key: value for key, value in conf.items() if value != 0}


def test_keys_and_headers_of_a_restore_are_as_they_were_typed() -> None:
    fields = [("keys", " a \r\n\u2028b\x1cc\r\n\r\n d"), ("headers", "h= v")]
    assert trigger_of("restore", archive(), SubmittedForm(fields)).conf == {
        "keys": [" a ", "\u2028b\x1cc", " d"],
        "headers": ["h= v"],
    }


def replace_value(key: str, value: Any) -> Any:
    """Return a value as Airflow's parameter of this name takes it."""
    param = restore_params()[key]
    return param.resolve(value)


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("start", "x"),
        ("start", "-1"),
        ("end", "9" * 30),
        ("as_of", "noon"),
        ("from", "9999-99-99"),
        ("partitions", "1;2"),
    ],
)
def test_a_wrong_field_of_a_restore_is_named_with_what_was_expected(field: str, value: str) -> None:
    with pytest.raises(ConfigError, match=rf"`{field}`: expected a (number|time).*found '{value[:40]}'"):
        trigger_of("restore", archive(), form(**{field: value}))
