"""The commands that change an archive."""

from datetime import timedelta

from airflow.cli.cli_config import ActionCommand, lazy_load_command

from kafka_archiver.orchestration.cli.definition.common import ALL, ANSWER, ARCHIVE, HERE, YES
from kafka_archiver.orchestration.terminal.options import OUTPUT, duration, moment, offsets, option

CLEAN = ActionCommand(
    name="clean",
    help="Remove what killed attempts and given-up rebuilds have left",
    description=f"""\
Remove what is no longer needed, or list it with --dry-run: unfinished uploads of offsets that are settled, everything
of rebuilds that were given up, objects that a rebuild has replaced or that no manifest names, and temporary files of
killed tasks on this machine. The DAG audit_NAME does the same once a day.

json and yaml: {{removed (true or false), leftovers: a list of {{archive (null: of this machine), kind (upload,
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
            help="Only what is older than this: 90s, 30m, 12h, 1d (default), 2w.\n"
            "A time shorter than your longest run could break a run at work",
        ),
        option("-n", "--dry-run", action="store_true", help="Only list"),
        YES,
        OUTPUT,
    ),
)

REBUILD = ActionCommand(
    name="rebuild",
    help="Read an hour or a run from Kafka again, and replace its objects",
    description="""\
Read archived offsets from Kafka again, with the archive's present settings, and replace their objects: of all runs
that have records of an hour, or of one run. Says first what it would replace; --dry-run only says it. Asks on a
terminal; in a script, a large rebuild needs --yes. Starts a run of the DAG archive_NAME, waits until it ends and
reports each task. The stored objects stay until the new ones are final. Offsets that Kafka no longer has are refused,
and, without --fewer, a rebuild that would archive fewer records than there are.

The exit code is 0 when the run has succeeded, else 1 with the reason. Ctrl-C ends the waiting, not the run.""",
    func=lazy_load_command(f"{HERE}.rebuild.rebuild"),
    args=(
        ARCHIVE,
        option("--hour", type=moment, metavar="TIME", help="The start of an hour, as in 2026-11-21T05:00:00Z"),
        option("--run", metavar="RUN", help="A run, as `airflow archive runs` names it, or the start of its interval"),
        option("--keep", action="store_true", help="Keep the replaced objects in the store"),
        option("--fewer", action="store_true", help="Replace them also if fewer records are archived then"),
        option("-n", "--dry-run", action="store_true", help="Only say what would be replaced"),
        YES,
        option("-v", "--verbose", action="store_true", help="Make logging output more verbose"),
    ),
)

ACKNOWLEDGE = ActionCommand(
    name="acknowledge",
    help="Accept a finding by name, so that it warns no longer",
    description=f"""\
Accept a finding that stays until a person has looked at it: records that were recorded as lost, dead letters, an
archive that was never audited, a failed backfill, rebuild, replay or repair. `status`, `doctor`, the page and health
show it no longer as a warning, but who has accepted it and when. Nothing else changes: lost records stay lost. The name
says what is accepted: dead-letters:12 are those of the runs up to number 12, and one more is another finding.

json and yaml: {{archive, findings: a list of {{finding, state (waits, accepted or taken back), observed, by, at,
note}}}}.
{ANSWER}""",
    func=lazy_load_command(f"{HERE}.acknowledge.acknowledge"),
    args=(
        ARCHIVE,
        option("finding", nargs="?", metavar="FINDING", help="Its name, as --list shows it (default: list them)"),
        option("--list", action="store_true", help="Only list what waits, and what was accepted"),
        option("--undo", action="store_true", help="Take it back: the finding is a warning again"),
        option("--by", metavar="WHO", help="Who decides (default: the user of this machine)"),
        option("--note", default="", metavar="TEXT", help="Why"),
        OUTPUT,
    ),
)

FILL = ActionCommand(
    name="fill",
    help="Archive what earlier runs have left out",
    description=f"""\
Archive what Kafka still has of the offsets before the first scheduled run that no run has: what `source.start` or
backfills have left out, also behind records with wrong clocks. Counts them first; --dry-run only counts. Starts runs of
the DAG archive_NAME, each of at most `source.max_records_per_run` records, waits until they end and reports each task.
Hours that lacked nothing else are complete then.

json and yaml: {{archive, filled (true or false), partitions: a list of {{partition, offsets, left}}}}.
{ANSWER}""",
    func=lazy_load_command(f"{HERE}.fill.fill"),
    args=(
        ARCHIVE,
        option("--from", dest="since", type=moment, metavar="HOUR", help="Only what may be of this hour or later"),
        option("-n", "--dry-run", action="store_true", help="Only count"),
        YES,
        OUTPUT,
    ),
)

REPLAY_DEAD_LETTERS = ActionCommand(
    name="replay-dead-letters",
    help="Archive dead letters, once their cause is mended",
    description=f"""\
Archive the records below _dead_letter/ (policy bad_record: dead_letter) where they belong, with the archive's present
settings: after another store.content or store.format, another source.value.decode, or a higher source.max_value_bytes.
Kafka is not asked: a dead letter has everything that Kafka had. Starts a run of the DAG archive_NAME, waits until it
ends and reports each task. The run's other objects stay as they are; the dead letters stay until the new objects are
final. A record that still fails goes by policies.bad_record: it is a dead letter again, or is left out, or the run
fails and changes nothing.

json and yaml: {{archive, replayed (whether anything was done), runs: a list of {{run, letters (before), archived,
filtered, rejected (dead letters now), reasons (why, with --dry-run), revision (the run that counts now)}}}}.
{ANSWER}""",
    func=lazy_load_command(f"{HERE}.replay_dead_letters.replay"),
    args=(
        ARCHIVE,
        option(
            "run",
            nargs="*",
            metavar="RUN",
            help="Runs, as `airflow archive runs` names them, or the starts of their intervals",
        ),
        option(
            "--hours",
            nargs=2,
            type=moment,
            metavar=("FIRST", "LAST"),
            help="Every run with dead letters in these hours, both included",
        ),
        option("--all", action="store_true", help="Every run with dead letters"),
        option("-n", "--dry-run", action="store_true", help="Only read them, and say what would become of them"),
        YES,
        OUTPUT,
    ),
)

REPAIR = ActionCommand(
    name="repair",
    help="Correct what the audit finds wrong, or record it as lost",
    description=f"""\
Audit an archive and do what the findings advise, then audit again. A repair
- writes missing and damaged objects again from Kafka (by a run of the DAG archive_NAME)
- records objects as lost, by name, if Kafka no longer has their records
- computes proofs and progress again
- restores plans and manifests from other documents with the same content
- plans runs anew that cannot be finished as planned.

An object that is recorded as lost makes its hour incomplete for ever: its records count as lost, and every audit
reports them. The rest of its run stays. If the bucket has a version or copy of the object, restore that first.

With --run and --lost-offsets nothing is audited: an unfinished run goes on without these offsets, which no client can
read. The message of the failed run names them.

json and yaml: {{archive, repaired (whether anything was done), actions: a list of {{action (write again,
lost, give up, plan anew, restore or compute), run, what (a key, a run or offsets), rows, reason}}, left (findings that
cannot be repaired)}}.
{ANSWER} A finding that is left gives 1.""",
    func=lazy_load_command(f"{HERE}.repair.repair"),
    args=(
        ARCHIVE,
        option("-n", "--dry-run", action="store_true", help="Only list what would be done"),
        option("--deep", action="store_true", help="Also read every object, as `airflow archive audit --deep` does"),
        option(
            "--lost",
            action="append",
            metavar="KEY",
            help="Record this object as lost, whatever Kafka has: for an object that Kafka gives back with other bytes",
        ),
        option("--run", metavar="RUN", help="The run that cannot read the offsets of --lost-offsets"),
        option(
            "--lost-offsets",
            action="append",
            type=offsets,
            metavar="TOPIC:PARTITION:START-END",
            help="Give up these offsets of the run (END is exclusive): they are lost for ever",
        ),
        YES,
        OUTPUT,
    ),
)
