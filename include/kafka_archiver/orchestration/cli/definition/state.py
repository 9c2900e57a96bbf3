"""How an archive is: how far, whether it is what its ledger says, and what would stop it."""

import argparse
from collections.abc import Sequence
from typing import Any

from airflow.cli.cli_config import ActionCommand, lazy_load_command

from kafka_archiver.orchestration.cli.definition.common import ALL, ANSWER, HERE
from kafka_archiver.orchestration.terminal.options import OUTPUT, option, positive


class _Hours(argparse.Action):
    """A day's without a number; Airflow's Arg knows no `const`."""

    def __call__(
        self,
        parser: argparse.ArgumentParser,  # noqa: ARG002
        namespace: argparse.Namespace,
        values: str | Sequence[Any] | None,
        option_string: str | None = None,  # noqa: ARG002
    ) -> None:
        setattr(namespace, self.dest, values or 24)


STATUS = ActionCommand(
    name="status",
    help="How far each archive is, how far behind, and what is wrong with it",
    description=f"""\
Ask the brokers, the ledger and Airflow how far an archive, or each of them, is: for every partition the group's
committed offset, up to where the ledger says it is archived, the log's start and end, how many offsets wait (the lag)
and the time of the first record that waits; then the last commit, up to when all hours are complete, and the runs that
are planned but not finished (the next run finishes them first). Below the table is what is wrong, each with the
commands to do about it: what the next run would stop at (a moved group, a topic made again, offsets that are gone),
and runs that failed, are late, stuck or have a date to come. With --hours also the last hours, one by one: open (more
may come), complete (nothing is missing) or incomplete (past, and what is missing will not come by itself).

json and yaml: a list of {{archive, lag, oldest_unarchived, closed_until, last_commit: {{run, committed_at,
plan_digest, manifest_digest, …}}, unfinished (a list of runs), partitions (a list of {{topic, partition, committed,
archived_to, log_start, log_end, lag, oldest_unarchived}}), lost (offsets lost for ever), troubles (a list of {{name,
severity (warning or problem), found, do (a list of commands)}}); with --hours also hours (a
list of {{hour_start, status (null: no run has looked at it yet), rows, bytes, objects, late_rows, dead_letters,
complete_as_of, closed_by}})}}. Null where there is nothing yet.
{ANSWER} Any problem is a reason; warnings are none.""",
    func=lazy_load_command(f"{HERE}.status.show_status"),
    args=(
        ALL,
        option(
            "--hours",
            nargs="?",
            action=_Hours,
            type=positive,
            metavar="N",
            help="Also show the last N hours (default: 24), the present one included",
        ),
        OUTPUT,
    ),
)

AUDIT = ActionCommand(
    name="audit",
    help="Whether the archive is what its ledger says",
    description="""\
Check an archive, or each of them, against its own ledger, from the store alone: every document is the one that was
committed, every plan is accounted for, the plans tile each partition's log without gap or overlap, every object is
there with its size and ETag, no object is there that nobody explains, and the proofs of the hours and the progress
are what the manifests give. Changes nothing.

Every finding names a key or offsets. Errors make the archive damaged; warnings (offsets that a policy let go for ever,
a group that the next run will put right, …) do not.

json and yaml: a list of reports, see docs/FORMAT.md: {archive, store, audited_at, deep, live, verdict (clean or
damaged), counts: {runs, objects, bytes, rows, hours, lost, read}, unfinished (a list of runs), findings (a list of
{kind, severity (error or warning), where, found, expected, what_to_do})}. Progress goes to stderr.

Ends with 0 when every archive is clean, else with 1 and the reason on stderr.""",
    func=lazy_load_command(f"{HERE}.audit.show_audit"),
    args=(
        ALL,
        option(
            "--deep",
            action="store_true",
            help="Also read every object from the first byte to the last, by readers that did not write it:\n"
            "its checksum, its rows and, with content: record, each offset, partition and hour",
        ),
        option(
            "--live",
            action="store_true",
            help="Also ask the brokers: topic ids, the group's offsets, what retention has passed or soon will",
        ),
        OUTPUT,
    ),
)

DOCTOR = ActionCommand(
    name="doctor",
    help="Every strange state and every wrong setting, before a run meets it",
    description=f"""\
Try what the runs of an archive, or of each of them, need, and look for every state that would stop or harm them: the
connections, the brokers, the topics and their ids, the consumer group against the ledger and the log, retention
against the schedule, the runs (failed, late, stuck, unfinished), the store (each kind of request is tried once, below
_ledger/NAME/doctor/, and removed again), Spark. Nothing of the archive is changed.

Each check is ok, a warning (works, but look at it) or a problem (a run would fail, or lose something), with what was
found, what it means, and the command or setting for each choice.

json and yaml: a list of {{archive, checks (a list of {{name, state (ok, warning or problem), found, means, choices (a
list of texts)}})}}.
{ANSWER} Any problem is a reason; warnings are none.""",
    func=lazy_load_command(f"{HERE}.doctor.examine"),
    args=(ALL, OUTPUT),
)
