"""The commands that change an archive."""

from datetime import timedelta

from airflow.cli.cli_config import ActionCommand, lazy_load_command

from kafka_archiver.orchestration.cli.definition.common import ALL, ANSWER, ARCHIVE, HERE, YES
from kafka_archiver.orchestration.terminal.options import OUTPUT, duration, moment, option

CLEAN = ActionCommand(
    name="clean",
    help="Remove what killed attempts and given-up rebuilds have left",
    description=f"""\
Find, and without --dry-run remove, what nothing needs any more: unfinished uploads of offsets that are settled,
everything of rebuilds that were given up, objects that a rebuild has replaced or that no manifest names, and on this
machine the temporary files of tasks that were killed. The DAG audit_NAME does the same once a day.

json and yaml: {{removed (whether they were), leftovers: a list of {{archive (null: of this machine), kind (upload,
rebuild, superseded, attempt, probe or temporary), what (a key or a folder), run, upload_id}}}}.
{ANSWER}""",
    func=lazy_load_command(f"{HERE}.clean.clean"),
    args=(
        ALL,
        option(
            "--older-than",
            type=duration,
            default=timedelta(days=1),
            metavar="TIME",
            help="Only what has not moved for so long: 90s, 30m, 12h, 1d (default), 2w.\n"
            "Less than the longest run takes could disturb a run at work",
        ),
        option("-n", "--dry-run", action="store_true", help="Only list"),
        YES,
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
    func=lazy_load_command(f"{HERE}.rebuild.rebuild"),
    args=(
        ARCHIVE,
        option("--hour", type=moment, metavar="TIME", help="The start of an hour, as in 2026-11-21T05:00:00Z"),
        option("--run", metavar="RUN", help="A run, as `airflow archive runs` names it, or the start of its interval"),
        option("--keep", action="store_true", help="Leave the objects that are replaced in the store"),
        YES,
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
{ANSWER} What is left is one.""",
    func=lazy_load_command(f"{HERE}.repair.repair"),
    args=(
        ARCHIVE,
        option("-n", "--dry-run", action="store_true", help="Only say what would be done"),
        option("--deep", action="store_true", help="Also read every object, as `airflow archive audit --deep` does"),
        option(
            "--lost",
            action="append",
            metavar="KEY",
            help="Give up this object, whatever Kafka has: for one that is read again with other bytes",
        ),
        YES,
        OUTPUT,
    ),
)
