"""The actions that findings and errors name, and the sentences about choices. Pure."""

import json
import shlex
from collections.abc import Mapping, Sequence

from kafka_archiver.messages.actions import Action, Advice, advise, command, words
from kafka_archiver.messages.policies import POLICIES, effects


def dag_id(archive: str) -> str:
    """The DAG of an archive."""
    return f"archive_{archive}"


# The DAG that watches all archives.
WATCHDOG = "archiver_watchdog"


def audit_dag_id(archive: str) -> str:
    """The DAG that audits an archive."""
    return f"audit_{archive}"


def restore_dag_id(archive: str) -> str:
    """Return the id of the DAG that restores an archive."""
    return f"restore_{archive}"


def next_steps(causes: Sequence[Action], again: Action, otherwise: Action) -> tuple[Action, ...]:
    """Return the steps after a failure: the actions of its cause, then the one that goes on, unless one of them does.

    :param otherwise: the step if the cause has no action.
    """
    if not causes:
        return (otherwise,)
    steps = tuple(_prepared(action, again) for action in causes)
    if again.command and any(action.command.startswith(again.command) for action in causes):
        return steps
    return (*steps, again.after("then") if again.command else words(f"then: {again.words}"))


def _prepared(action: Action, again: Action) -> Action:
    """Return the action after what a person has to correct before it, if it would fail the same way."""
    if action.command == again.command:
        return action.after("once that is fixed")
    return action.after("with today's settings") if action.kind == "rebuild" else action


def choose(archive: str, policy: str, choice: str) -> Advice:
    """Return how to choose: the command for one run, the setting for all runs."""
    return advise("for one run ", once(archive, {policy: choice}), f", for all runs `policies.{policy}: {choice}`")


def choose_all(archive: str, choices: Mapping[str, str]) -> Advice:
    """Return how to go on when several policies stop a run: one command for all, or it would stop at the next."""
    always = ", ".join(
        f"`policies.{policy}: {choice}` ({POLICIES[policy].choice(choice).effect})"
        for policy, choice in choices.items()
    )
    return advise(
        "One run stops at each of these, so choose for all of them. To go on: for one run ",
        once(archive, choices),
        f", for all runs {always}",
    )


def meanings(actions: Sequence[Action]) -> str:
    """Return the meaning of the choices of these actions: "record_loss: …; …"."""
    return effects(choice for action in actions for choice in action.conf.get("policies", {}).values())


def once(archive: str, choices: Mapping[str, str]) -> Action:
    """Start a run with these choices."""
    conf = {"policies": dict(choices)}
    return Action(f"airflow dags trigger {dag_id(archive)} --conf '{json.dumps(conf)}'", "run", conf)


def run_now(archive: str) -> Action:
    """Start a run."""
    return Action(f"airflow dags trigger {dag_id(archive)}", "run")


def go_on(archive: str, run: str) -> Advice:
    """Return how to go on with an unfinished run: every run of the DAG finishes earlier runs first."""
    return advise(run_now(archive), f" goes on with run {run}")


def repair(archive: str, lost: str = "", deep: bool = False) -> Action:
    """Write missing objects again, and record unrecoverable objects as lost.

    :param lost: the key of an object to record as lost, whatever Kafka has.
    """
    line = ["airflow", "archive", "repair", archive, *["--deep"] * deep, *(["--lost", lost] if lost else [])]
    # The page repairs what the audit has found; whoever gives up an object names it on a terminal.
    return command(shlex.join(line)) if lost else Action(shlex.join(line), "repair", {"deep": True} if deep else {})


def lose_offsets(archive: str, run: str, topic: str, partition: int, start: int, end: int) -> Action:
    """Give up offsets of a run that no client can read. They are lost for ever."""
    offsets = f"{topic}:{partition}:{start}-{end}"
    return command(shlex.join(["airflow", "archive", "repair", archive, "--run", run, "--lost-offsets", offsets]))


def fill(archive: str) -> Action:
    """Archive what earlier runs have left out."""
    return Action(f"airflow archive fill {archive}", "fill")


def audit(archive: str, deep: bool = False) -> Action:
    """Audit an archive on a terminal."""
    return command(f"airflow archive audit {archive}{' --deep' * deep}")


def audit_again(archive: str, deep: bool = False) -> Action:
    """Audit an archive and write the report."""
    conf = {"deep": True} if deep else {}
    more = f" --conf '{json.dumps(conf)}'" if conf else ""
    return Action(f"airflow dags trigger {audit_dag_id(archive)}{more}", "audit", conf)


def plan_anew(archive: str, run: str) -> Action:
    """Plan a run anew, with today's settings."""
    return Action(shlex.join(["airflow", "archive", "rebuild", archive, "--run", run]), "rebuild", {"run": run})


def rebuild_with_fewer(archive: str, run: str) -> Action:
    """Rebuild a run also if fewer records are archived then."""
    line = ["airflow", "archive", "rebuild", archive, "--run", run, "--fewer"]
    return Action(shlex.join(line), "rebuild", {"run": run, "fewer": True})


def replay_again(archive: str, run: str) -> Action:
    """Archive a run's dead letters again, with today's settings."""
    line = ["airflow", "archive", "replay-dead-letters", archive, run]
    return Action(shlex.join(line), "dead-letters", {"runs": [run]})


def replay_all(archive: str) -> Action:
    """Archive all dead letters again, with today's settings."""
    return Action(f"airflow archive replay-dead-letters {archive} --all", "dead-letters", {"all": True})


def unpause(dag: str) -> Action:
    """Let the runs of a DAG start."""
    return Action(f"airflow dags unpause {dag}", "unpause", {"dag": dag})


def acknowledge(archive: str, finding: str) -> Action:
    """Accept a finding by name: it stays on record, and warns no longer."""
    line = shlex.join(["airflow", "archive", "acknowledge", archive, finding])
    return Action(line, "acknowledge", {"finding": finding}, "if this is accepted")


def accepted_findings(archive: str) -> Action:
    """Show what was accepted, and what waits to be."""
    return command(f"airflow archive acknowledge {archive} --list")


def status(archive: str) -> Action:
    """Show how far the archive is, and what is wrong."""
    return command(f"airflow archive status {archive}")


def last_hours(archive: str, count: int, before: str = "") -> Action:
    """Show the last hours."""
    return command(f"airflow archive status {archive} --hours {count}", before)


def start_again(dag: str) -> Action:
    """Start a run of a DAG by its id."""
    return Action(f"airflow dags trigger {dag}", "run")


def validate(archive: str) -> Action:
    """Check the archive's YAML."""
    return command(f"airflow archive validate {archive}")


def runs(archive: str) -> Action:
    """List the last runs."""
    return command(f"airflow archive runs {archive}")


def print_object(url: str) -> Action:
    """Print the records of an object."""
    return command(shlex.join(["airflow", "archive", "print", url]))


def show(archive: str, run: str) -> Action:
    """Show a run's documents."""
    return command(shlex.join(["airflow", "archive", "show", archive, run]))


def examine(archive: str) -> Action:
    """Look for what would stop or harm a run."""
    return command(f"airflow archive doctor {archive}")


def clean(archive: str) -> Action:
    """Remove what killed jobs and rebuilds left."""
    return command(f"airflow archive clean {archive}")
