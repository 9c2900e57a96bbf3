"""What a person can do about it: the exact commands that messages name, and the DAG they are about. Pure."""

import json
from collections.abc import Iterable, Mapping

# What the choices that go on do.
_MEANS = {
    "record_loss": "what is gone is shown as lost for ever",
    "new_generation": "the log is archived anew, beside the old objects",
    "follow_ledger": "archiving goes on where the ledger ends",
    "resume_from_ledger": "archiving goes on where the ledger ends",
}


def dag_id(archive: str) -> str:
    """The DAG of an archive."""
    return f"archive_{archive}"


def choose(archive: str, policy: str, choice: str) -> str:
    """How to choose: the command for once, the setting for always."""
    return f"once with `{once(archive, {policy: choice})}`, always with `policies.{policy}: {choice}`"


def choose_all(archive: str, choices: Mapping[str, str]) -> str:
    """How to go on where one run stops at several policies: one command, for each alone would stop at the next."""
    always = ", ".join(f"`policies.{policy}: {choice}` ({_MEANS[choice]})" for policy, choice in choices.items())
    return (
        "One run stops at each of these, so choose for all of them. To go on: once with "
        f"`{once(archive, choices)}`, always with {always}"
    )


def meanings(commands: Iterable[str]) -> str:
    """What the choices in these commands do: "record_loss: …; …"."""
    told = " ".join(commands)
    return "; ".join(f"{choice}: {means}" for choice, means in _MEANS.items() if f'"{choice}"' in told)


def once(archive: str, choices: Mapping[str, str]) -> str:
    """The command that chooses for one run."""
    return f"airflow dags trigger {dag_id(archive)} --conf '{json.dumps({'policies': dict(choices)})}'"


def repair(archive: str, lost: str = "") -> str:
    """How to write again what is missing, and to have on record what nobody can bring back.

    :param lost: the key of an object that is given up, whatever Kafka has.
    """
    return f"`airflow archive repair {archive}{f' --lost {lost}' if lost else ''}`"


def go_on(archive: str, run: str) -> str:
    """How to go on with a run that is not final: every run of the DAG finishes those before it first."""
    return f"{run_now(archive)} goes on with run {run}"


def plan_anew(archive: str, run: str) -> str:
    """How to give a run the settings of today."""
    return f"`airflow archive rebuild {archive} --run {run}`"


def run_now(archive: str) -> str:
    """How to start a run."""
    return f"`airflow dags trigger {dag_id(archive)}`"
