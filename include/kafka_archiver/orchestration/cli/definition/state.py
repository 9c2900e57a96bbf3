"""The commands about an archive's state."""

import argparse
from collections.abc import Sequence
from typing import Any

from airflow.cli.cli_config import ActionCommand, lazy_load_command

from kafka_archiver.orchestration.cli.definition.common import ALL, ANSWER, HERE
from kafka_archiver.orchestration.terminal.options import OUTPUT, option, positive


class _Hours(argparse.Action):
    """Without a number 24; Airflow's Arg has no `const`."""

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
Show how far these archives, or all, are, as the brokers, the ledger and Airflow know it. For each partition: the
group's committed offset, the offset up to which the ledger has it archived, the log's start and end, the number of
offsets that wait (the lag) and the time of the first of their records. Then: the last commit, the end of the
last closed hour (complete or incomplete), and the runs that are planned but not finished (the next run finishes them
first).
Below the table are what the last run wrote, with its dead letters, what the last audit found, and the problems and
warnings, each with the commands that help: what would stop the next run (a moved group, a recreated topic, lost
offsets), damage that the last audit found, runs that failed, are late, are stuck or have a date in the future, and
limits of `health` that are exceeded, and recent hours that are incomplete. If the brokers do not answer, it shows what
the ledger knows, and ends with 1. All of it is also on the archiver's page.
With --hours also the last hours, one by one: open (more may come), complete (nothing is missing) or incomplete (past,
and what is missing will not come by itself).

json and yaml: a list of {{archive, lag, oldest_unarchived, closed_until, last_commit: {{run, committed_at,
plan_digest, manifest_digest, …}}, unfinished (a list of runs), partitions (a list of {{topic, partition, committed,
archived_to, log_start, log_end, lag, oldest_unarchived}}), lost (offsets lost for ever), troubles (a list of {{name,
severity (warning or problem), found, do (a list of commands)}}), health (a list of {{name, verdict (ok, warning,
unknown or failing), found, do}}), last_run: {{run, committed_at, offsets, rows, bytes, objects, dead_letters, lost,
seconds, cpu_seconds, retries}}, audit: {{at, deep, verdict, errors, counts, damaged (a list of runs)}}, hours_open
(ended hours without a verdict), incomplete (a list of {{hour_start, reason}}: the incomplete ones of the last 72 closed
hours), error (null, or why the brokers did not answer); with --hours also hours (a
list of {{hour_start, status (null: no run has looked at it yet), rows, bytes, objects, late_rows, dead_letters,
complete_as_of, closed_by}})}}. Null where there is nothing yet.
{ANSWER} Any problem gives 1; warnings do not.""",
    func=lazy_load_command(f"{HERE}.status.show_status"),
    args=(
        ALL,
        option(
            "--hours",
            nargs="?",
            action=_Hours,
            type=positive,
            metavar="N",
            help="Also show the last N hours (default: 24), including the present one",
        ),
        OUTPUT,
    ),
)

AUDIT = ActionCommand(
    name="audit",
    help="Check the archive against its ledger",
    description="""\
Check these archives, or all, against the ledger, from the store alone: every document is the one that was committed;
every plan is accounted for; the plans tile each partition's log without gap or overlap; every object is there with its
size and ETag, and no object is unexplained; the proofs of the hours and the progress are what the manifests give.
Changes nothing but the published report, _ledger/NAME/audit.json, which `status` and the page show. Who may not write
there gets the report all the same.

Every finding names a key or offsets. Errors make the archive damaged, or stop the next run (those at the brokers, with
--live); warnings (offsets that a policy has recorded as lost, a group that the next run will correct, …) do neither.

json and yaml: a list of reports, see docs/FORMAT.md: {archive, store, audited_at, deep, live, verdict (clean or
damaged), counts: {runs, objects, bytes, rows, hours, lost, read}, unfinished (a list of runs), findings (a list of
{kind, severity (error or warning), where, found, expected, what_to_do})}. Progress goes to stderr.

The exit code is 0 when there is no error, else 1 with the reason on stderr.""",
    func=lazy_load_command(f"{HERE}.audit.show_audit"),
    args=(
        ALL,
        option(
            "--deep",
            action="store_true",
            help="Also read every object in full, by readers that share no code with the writers:\n"
            "its checksum, its rows and, with content: record, each offset, partition and hour",
        ),
        option(
            "--live",
            action="store_true",
            help="Also ask the brokers: topic ids, the group's offsets, what retention has deleted or soon will",
        ),
        OUTPUT,
    ),
)

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
    func=lazy_load_command(f"{HERE}.doctor.examine"),
    args=(ALL, OUTPUT),
)
