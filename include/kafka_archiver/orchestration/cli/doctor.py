"""`airflow archive doctor`: find what would stop or harm a run, before the run starts."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from airflow.cli.cli_config import ActionCommand, lazy_load_command

from kafka_archiver.orchestration.cli.completion import ALL, ANSWER
from kafka_archiver.orchestration.terminal.options import OUTPUT
from kafka_archiver.orchestration.terminal.output import Answer, Cell, Red, Table, print_answer

if TYPE_CHECKING:
    from kafka_archiver.state.doctor import Finding

DOCTOR = ActionCommand(
    name="doctor",
    help="Find wrong settings and states that would stop a run",
    description=f"""\
Try what the runs of these archives, or of all, need, and look for states that would stop or harm them: the
connections, the brokers, the topics and their ids, the consumer group against the ledger and the log, retention against
the schedule, the runs (failed, late, stuck, unfinished), the store, Spark. The store gets each kind of request once,
below _ledger/NAME/doctor/; what they write is removed again. The archive is not changed.

Each check is ok, a warning (works, but look at it) or a problem (a run would fail, or lose something). It has what was
found, what that means, and the command or setting for each choice.

json and yaml: a list of {{archive, checks (a list of {{name, state (ok, warning or problem), found, means, choices (a
list of texts)}})}}.
{ANSWER} Any problem gives 1; warnings do not.""",
    func=lazy_load_command(f"{__name__}.examine"),
    args=(ALL, OUTPUT),
)


@print_answer
def examine(args: Namespace) -> Answer:
    """Check these archives, or all."""
    from kafka_archiver.orchestration.cli.doctor_checks import checks_of
    from kafka_archiver.orchestration.cli.names import ask_each

    checked, failures = ask_each(args.archives, lambda archive: (archive.archive, list(checks_of(archive))))
    document = [{"archive": name, "checks": [_document(check) for check in checks]} for name, checks in checked]
    for name, checks in checked:
        if count := sum(check.severity == "problem" for check in checks):
            failures.append(f"{name}: {count} {'problem' if count == 1 else 'problems'}")
    return Answer(document, [_table(name, checks) for name, checks in checked], failures)


def _table(name: str, checks: list[Finding]) -> Table:
    rows: list[list[Cell]] = [
        [
            check.kind,
            Red(check.severity) if check.severity == "problem" else check.severity,
            check.observed if check.severity == "ok" else "see below",
        ]
        for check in checks
    ]
    below = [line for check in checks if check.severity != "ok" for line in _in_full(check)]
    return Table(("check", "state", "found"), rows, name, below=below)


def _document(check: Finding) -> dict[str, Any]:
    """Return a check for programs."""
    return {
        "name": check.kind,
        "state": check.severity,
        "found": check.observed,
        "means": check.means,
        "choices": check.steps,
    }


def _in_full(check: Finding) -> Iterator[str]:
    yield ""
    yield f"{check.severity}: {check.kind}"
    yield f"  {check.observed}"
    if check.means:
        yield f"  This means: {check.means}."
    yield from (f"  - {choice}" for choice in check.steps)
