"""The exact commands and settings that messages name. Pure."""

import json
import re
from collections.abc import Iterable, Mapping

# What each choice does.
_MEANS = {
    "record_loss": "the missing offsets are recorded as lost for ever",
    "new_generation": "the log is archived anew, beside the old objects",
    "follow_ledger": "archiving goes on where the ledger ends",
    "resume_from_ledger": "archiving goes on where the ledger ends",
}


# What comes before a command that fails the same way until something is corrected.
_FIXED, _ANEW = "once that is fixed: ", "with today's settings: "
# A command in a message.
_COMMAND = re.compile(r"`(airflow(?: [\w./:=,@%+*-]+| --conf '\{[^'`]*\}')+)`", re.ASCII)


def commands_in(text: str) -> tuple[str, ...]:
    """Return the commands of Airflow that a message names, in its order: only such as the archiver makes.

    A message may quote text that others wrote. `foreign_text.foreign` takes away its backticks; and what a shell would
    take as more than words of one command is no command here.
    """
    return tuple(dict.fromkeys(_COMMAND.findall(text)))


def audit_dag_id(archive: str) -> str:
    """The DAG that audits an archive."""
    return f"audit_{archive}"


def without_commands(text: str) -> str:
    """The text before the sentence with its first command."""
    found = _COMMAND.search(text)
    if not found:
        return text
    before = text[: found.start()]
    ends = [end for mark in (". ", "; ", ": ") if (end := before.rfind(mark)) > 0]
    return before[: ends[0]] if ends else before.strip()


def next_steps(commands: tuple[str, ...], again: str, otherwise: str) -> tuple[str, ...]:
    """The steps after a failure: the commands of its cause, then the one that goes on, unless one of them does.

    :param otherwise: the step if the cause names no command.
    """
    if not commands:
        return (otherwise,)
    steps = tuple(
        _FIXED if command == again else _ANEW if command.startswith("airflow archive rebuild ") else ""
        for command in commands
    )
    told = tuple(f"{before}{command}" for before, command in zip(steps, commands, strict=True))
    return told if any(command.startswith(again) for command in commands) else (*told, f"then: {again}")


def dag_id(archive: str) -> str:
    """The DAG of an archive."""
    return f"archive_{archive}"


def choose(archive: str, policy: str, choice: str) -> str:
    """How to choose: the command for one run, the setting for all runs."""
    return f"for one run `{once(archive, {policy: choice})}`, for all runs `policies.{policy}: {choice}`"


def choose_all(archive: str, choices: Mapping[str, str]) -> str:
    """How to go on when several policies stop a run. One command for all: a single choice would stop at the next."""
    always = ", ".join(f"`policies.{policy}: {choice}` ({_MEANS[choice]})" for policy, choice in choices.items())
    return (
        "One run stops at each of these, so choose for all of them. To go on: for one run "
        f"`{once(archive, choices)}`, for all runs {always}"
    )


def meanings(commands: Iterable[str]) -> str:
    """The meaning of the choices in these commands: "record_loss: …; …"."""
    told = " ".join(commands)
    return "; ".join(f"{choice}: {means}" for choice, means in _MEANS.items() if f'"{choice}"' in told)


def once(archive: str, choices: Mapping[str, str]) -> str:
    """The command that starts a run with these choices."""
    return f"airflow dags trigger {dag_id(archive)} --conf '{json.dumps({'policies': dict(choices)})}'"


def repair(archive: str, lost: str = "") -> str:
    """The command that writes missing objects again, and records unrecoverable objects as lost.

    :param lost: the key of an object to record as lost, whatever Kafka has.
    """
    return f"`airflow archive repair {archive}{f' --lost {lost}' if lost else ''}`"


def lose_offsets(archive: str, run: str, topic: str, partition: int, start: int, end: int) -> str:
    """The command that gives up offsets of a run that no client can read. They are lost for ever."""
    return f"`airflow archive repair {archive} --run {run} --lost-offsets {topic}:{partition}:{start}-{end}`"


def fill(archive: str) -> str:
    """The command that archives what earlier runs have left out."""
    return f"`airflow archive fill {archive}`"


def go_on(archive: str, run: str) -> str:
    """How to go on with an unfinished run: every run of the DAG finishes earlier runs first."""
    return f"{run_now(archive)} goes on with run {run}"


def audit_again(archive: str, deep: bool = False) -> str:
    """The command that audits an archive and writes the report."""
    conf = " --conf '{\"deep\": true}'" if deep else ""
    return f"airflow dags trigger {audit_dag_id(archive)}{conf}"


def plan_anew(archive: str, run: str) -> str:
    """The command that plans a run anew, with today's settings."""
    return f"`airflow archive rebuild {archive} --run {run}`"


def replay_again(archive: str, run: str) -> str:
    """The command that archives a run's dead letters again, with today's settings."""
    return f"`airflow archive replay-dead-letters {archive} {run}`"


def run_now(archive: str) -> str:
    """The command that starts a run."""
    return f"`airflow dags trigger {dag_id(archive)}`"
