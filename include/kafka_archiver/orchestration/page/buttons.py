"""The buttons beside commands: each posts the action that starts what its command starts. Pure."""

import json
import re
import shlex
from collections.abc import Collection, Mapping
from typing import Any, NamedTuple

from kafka_archiver.advice import commands_in, dag_id
from kafka_archiver.audit.report import count
from kafka_archiver.config import Policies

# Before the command of a step that a person has to prepare.
_FIRST = re.compile(r"^((correct the cause, )?then|once that is fixed|with today's settings): ")


class Button(NamedTuple):
    """A form of one button: the action of the page, and its fields."""

    action: str
    label: str
    fields: tuple[tuple[str, str], ...] = ()


class Step(NamedTuple):
    """A command, and the button that does the same, if the page has the action."""

    command: str
    button: Button | None = None


def steps_of(archive: str, commands: Collection[str], damaged: Collection[str] = ()) -> list[Step]:
    """Commands with their buttons.

    :param damaged: the runs whose objects the last audit found missing or damaged.
    """
    return [Step(command, _button(archive, _FIRST.sub("", command), damaged)) for command in commands]


def steps_in(archive: str, text: str) -> list[Step]:
    """The commands in a message that start runs."""
    return [step for step in steps_of(archive, commands_in(text)) if step.button]


def _button(archive: str, command: str, damaged: Collection[str]) -> Button | None:
    try:
        words = shlex.split(command)
    except ValueError:
        return None
    if words[:4] == ["airflow", "archive", "repair", archive] and damaged and set(words[4:]) <= {"--deep"}:
        return Button("repair", f"Repair {count(len(damaged), 'run')}", tuple(("run", run) for run in damaged))
    if words == ["airflow", "archive", "fill", archive]:
        return Button("fill", "Fill the archive")
    if words[:4] == ["airflow", "archive", "rebuild", archive] and len(words) == 6 and words[4] == "--run":
        return Button("rebuild", f"Rebuild run {words[5]}", (("run", words[5]),))
    if words[:4] == ["airflow", "archive", "replay-dead-letters", archive]:
        return _replay(words[4:])
    if words[:3] == ["airflow", "dags", "unpause"]:
        dags = {dag_id(archive): "unpause", f"audit_{archive}": "unpause-audit"}
        return Button(dags[words[3]], f"Unpause {words[3]}") if len(words) == 4 and words[3] in dags else None
    if words[:3] != ["airflow", "dags", "trigger"] or len(words) not in (4, 6):
        return None
    conf = _conf(words[4:])
    if words[3] == f"audit_{archive}" and conf in ({}, {"deep": True}):
        return Button("audit", "Audit, reading every object", (("deep", "1"),)) if conf else Button("audit", "Audit")
    if words[3] != dag_id(archive) or conf is None:
        return None
    if not conf:
        return Button("run", "Run now")
    chosen = conf.get("policies")
    if set(conf) != {"policies"} or not isinstance(chosen, dict) or not set(chosen) <= set(Policies.model_fields):
        return None
    told = ", ".join(f"{policy}: {choice}" for policy, choice in chosen.items())
    return Button("run", f"Run now with {told}", tuple((f"policy.{policy}", str(c)) for policy, c in chosen.items()))


def _replay(words: list[str]) -> Button | None:
    if words == ["--all"]:
        return Button("dead-letters", "Replay all dead letters")
    if not words or any(word.startswith("-") for word in words):
        return None
    return Button("dead-letters", f"Replay dead letters of {', '.join(words)}", tuple(("run", run) for run in words))


def _conf(words: list[str]) -> Mapping[str, Any] | None:
    """The parameters of a run; None: not understood."""
    if not words:
        return {}
    try:
        found = json.loads(words[1]) if words[0] == "--conf" else None
    except ValueError:
        return None
    return found if isinstance(found, dict) else None
