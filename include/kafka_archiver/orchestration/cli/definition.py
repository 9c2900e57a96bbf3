"""The `airflow archive` group as Airflow's parser needs it. Loaded by every `airflow` call: imports nothing heavy."""

import argparse
from collections.abc import Sequence
from datetime import timedelta
from typing import Any

from airflow.cli.cli_config import ActionCommand, CLICommand, GroupCommand, lazy_load_command

from kafka_archiver.orchestration.terminal.options import OUTPUT, duration, moment, option, positive

_HERE = "kafka_archiver.orchestration.cli"
_ARCHIVE = option("archive", metavar="NAME", help="The archive, as `airflow archive list` names it")
_ALL = option("archive", nargs="?", metavar="NAME", help="The archive; default: all of them")
_YES = option("-y", "--yes", action="store_true", help="Do not ask first, which is done on a terminal only")
# At the end of each description: what a program may rely on. (What looks like [markup] in a text is lost in the help.)
_ANSWER = """
Times are RFC 3339 in UTC; offset ranges are [start, end), the end not included. Only the result goes to stdout.
Ends with 0, or with 1 and the reason on stderr."""

LIST = ActionCommand(
    name="list",
    help="The archives, their DAGs and their files",
    description=f"""\
List the archives in the folder of YAML files (ARCHIVER_CONFIG_DIR). What is wrong with other files goes to stderr.

json and yaml: a list of {{archive, dag_id, topics (null with a pattern), pattern (null with topics), group, store,
schedule (null: by hand only), timezone, file}}.
{_ANSWER}""",
    func=lazy_load_command(f"{_HERE}.archives.list_archives"),
    args=(OUTPUT,),
)

VALIDATE = ActionCommand(
    name="validate",
    help="Every problem of the archives' YAML files",
    description=f"""\
Check YAML files of archives: all of the folder (ARCHIVER_CONFIG_DIR), or those that are named. Asks neither the
brokers nor the store nor Airflow's database, so it also runs where an archive is reviewed before it is merged.

json and yaml: a list of {{file, archive (null when it cannot be read), problems (a list, empty when there are none)}}.
{_ANSWER} Any problem is a reason.""",
    func=lazy_load_command(f"{_HERE}.validate.validate"),
    args=(
        option(
            "archives",
            nargs="*",
            metavar="NAME|FILE",
            help="Archives by name, or files by path (ending in .yaml or .yml); default: all",
        ),
        OUTPUT,
    ),
)


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
{_ANSWER} Any problem is a reason; warnings are none.""",
    func=lazy_load_command(f"{_HERE}.status.show_status"),
    args=(
        _ALL,
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

PLAN = ActionCommand(
    name="plan",
    help="What a run would archive (a dry run)",
    description=f"""\
Show the plan that a run of an interval would make now, without making it: the offset ranges of each partition, how
many chunks (units of work, and of objects) they are, which policies decided, and which unfinished runs it would finish
first. An interval that has a plan already is shown with that plan, for a run would replay it. Where a policy says
`fail`, the command fails as the run would.

json and yaml: {{archive, run, exists (whether the interval has this plan already), offsets, chunks,
policies_triggered (a list of texts), finished_first (a list of runs), plan (the document plan.json, see
docs/FORMAT.md)}}.
{_ANSWER}""",
    func=lazy_load_command(f"{_HERE}.plan.show_plan"),
    args=(
        _ARCHIVE,
        option(
            "-i",
            "--interval-start",
            type=moment,
            metavar="TIME",
            help="Where the interval starts, as in 2026-11-21T05:00:00Z;\n"
            "default: the last complete one of the schedule",
        ),
        option(
            "--backfill",
            action="store_true",
            help="As a backfill plans it: only the offsets of the interval's own hours that no plan covers;\n"
            "the group stays. Default: as a scheduled run does, from the group's offsets to the end of the log",
        ),
        OUTPUT,
    ),
)

RUNS = ActionCommand(
    name="runs",
    help="What happened lately: the runs in the ledger",
    description=f"""\
List the runs of an archive from its ledger, the latest interval first.

States: planned (the offset ranges are frozen), written (the objects and the manifest are there), committed (final),
settled (its hours are proved too).

json and yaml: a list of {{run, interval_start, interval_end, origin (scheduled or backfill), planned_at, offsets,
objects, rows, bytes (null until they are written), state}}.
{_ANSWER}""",
    func=lazy_load_command(f"{_HERE}.runs.list_runs"),
    args=(
        _ARCHIVE,
        option("-n", "--last", type=positive, default=20, metavar="N", help="How many runs (default: 20)"),
        OUTPUT,
    ),
)

SHOW = ActionCommand(
    name="show",
    help="One run: its plan, its account and its objects",
    description=f"""\
Show what the ledger has of a run: the offset ranges it planned, what became of every one of these offsets (the
account: archived, filtered, dead-lettered, absent from Kafka, or lost), and the objects it wrote.

json and yaml: {{archive, run, state (see `airflow archive runs`), store, plan, manifest (null until it is written),
commit (null until it is committed)}}; the last three are the documents of the ledger, see docs/FORMAT.md.
{_ANSWER}""",
    func=lazy_load_command(f"{_HERE}.show.show_run"),
    args=(
        _ARCHIVE,
        option(
            "run",
            metavar="RUN",
            help="20261121T050000Z (as in `airflow archive runs`), the start of its interval\n"
            "(2026-11-21T05:00:00Z), or last",
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
    func=lazy_load_command(f"{_HERE}.audit.show_audit"),
    args=(
        _ALL,
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
{_ANSWER} Any problem is a reason; warnings are none.""",
    func=lazy_load_command(f"{_HERE}.doctor.examine"),
    args=(_ALL, OUTPUT),
)

CLEAN = ActionCommand(
    name="clean",
    help="Remove what killed attempts and given-up rebuilds have left",
    description=f"""\
Find, and without --dry-run remove, what nothing needs any more: unfinished uploads of offsets that are settled,
everything of rebuilds that were given up, objects that a rebuild has replaced or that no manifest names, and on this
machine the temporary files of tasks that were killed. The DAG audit_NAME does the same once a day.

json and yaml: {{removed (whether they were), leftovers: a list of {{archive (null: of this machine), kind (upload,
rebuild, superseded, attempt, probe or temporary), what (a key or a folder), run, upload_id}}}}.
{_ANSWER}""",
    func=lazy_load_command(f"{_HERE}.clean.clean"),
    args=(
        _ALL,
        option(
            "--older-than",
            type=duration,
            default=timedelta(days=1),
            metavar="TIME",
            help="Only what has not moved for so long: 90s, 30m, 12h, 1d (default), 2w.\n"
            "Less than the longest run takes could disturb a run at work",
        ),
        option("-n", "--dry-run", action="store_true", help="Only list"),
        _YES,
        OUTPUT,
    ),
)

REBUILD = ActionCommand(
    name="rebuild",
    help="Read an hour or a run again from Kafka, in place of what is stored",
    description="""\
Read what is archived already again from Kafka, with the settings that the archive has today, and replace its objects:
all runs that have records of an hour, or one run. Starts a run of the DAG archive_NAME, waits for its end and says how
each task ends. What is stored stays until the new objects are final; what Kafka does not have any more is refused.

Ends with 0 when the run has succeeded, else with 1 and the reason. Ctrl-C ends only the waiting.""",
    func=lazy_load_command(f"{_HERE}.rebuild.rebuild"),
    args=(
        _ARCHIVE,
        option("--hour", type=moment, metavar="TIME", help="The start of an hour, as in 2026-11-21T05:00:00Z"),
        option("--run", metavar="RUN", help="A run, as `airflow archive runs` names it, or the start of its interval"),
        option("--keep", action="store_true", help="Leave the objects that are replaced in the store"),
        _YES,
        option("-v", "--verbose", action="store_true", help="Make logging output more verbose"),
    ),
)

REPAIR = ActionCommand(
    name="repair",
    help="Put right what the audit finds wrong, or have it on record",
    description=f"""\
Audit an archive, and do what its findings advise: write again from Kafka what is missing or damaged of the objects
(by a run of the DAG archive_NAME), put on record as lost, by name, the objects that Kafka does not have any more,
compute proofs and progress again, restore plans and manifests from the documents that say the same, plan anew the runs
that cannot be finished as they were planned. Then audit again.

An object that is on record as lost makes its hour incomplete for ever; its records count as lost, and every audit says
so. The rest of its run stays. Restore the object from a version or copy of the bucket first, if you have one.

json and yaml: {{archive, repaired (whether anything was done), actions: a list of {{action (write again, lost, plan
anew, restore or compute), run, what (a key or a run), rows, reason}}, left (findings that a repair can do nothing
about)}}.
{_ANSWER} What is left is one.""",
    func=lazy_load_command(f"{_HERE}.repair.repair"),
    args=(
        _ARCHIVE,
        option("-n", "--dry-run", action="store_true", help="Only say what would be done"),
        option("--deep", action="store_true", help="Also read every object, as `airflow archive audit --deep` does"),
        option(
            "--lost",
            action="append",
            metavar="KEY",
            help="Give up this object, whatever Kafka has: for one that is read again with other bytes",
        ),
        _YES,
        OUTPUT,
    ),
)


def commands() -> list[CLICommand]:
    """What Airflow adds to its own commands."""
    return [
        GroupCommand(
            name="archive",
            help="Archives of Kafka topics: their state, their plans, their runs",
            description="Look at archives of Kafka topics, and look after them. Clean, rebuild and repair change one.",
            subcommands=(LIST, VALIDATE, STATUS, PLAN, RUNS, SHOW, AUDIT, DOCTOR, CLEAN, REBUILD, REPAIR),
        )
    ]
