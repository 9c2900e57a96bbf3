"""The commands about an archive's runs."""

from airflow.cli.cli_config import ActionCommand, lazy_load_command

from kafka_archiver.orchestration.cli.definition.common import ANSWER, ARCHIVE, HERE
from kafka_archiver.orchestration.terminal.options import OUTPUT, moment, option, positive

PLAN = ActionCommand(
    name="plan",
    help="What a run would archive (a dry run)",
    description=f"""\
Show the plan that a run of an interval would make now, without making it: the offset ranges of each partition, the
number of chunks (units of work, and of objects), the policies that decided, and the unfinished runs that the run would
finish first. If the interval has a plan already, that plan is shown: a run would replay it. Where a policy says
`fail`, the command fails as the run would.

json and yaml: {{archive, run, exists (whether the interval has this plan already), offsets, chunks,
policies_triggered (a list of texts), finished_first (a list of runs), plan (the document plan.json, see
docs/FORMAT.md)}}.
{ANSWER}""",
    func=lazy_load_command(f"{HERE}.plan.show_plan"),
    args=(
        ARCHIVE,
        option(
            "-i",
            "--interval-start",
            type=moment,
            metavar="TIME",
            help="The start of the interval, as in 2026-11-21T05:00:00Z;\n"
            "default: as for a run that is triggered now: the last complete interval of the schedule or,\n"
            "if that has a plan already, what has arrived in Kafka since",
        ),
        option(
            "--backfill",
            action="store_true",
            help="Plan as a backfill does: only the offsets of the interval's own hours that no plan covers;\n"
            "the group is not moved. Default: as a scheduled run, from the group's offsets to the end of the log",
        ),
        OUTPUT,
    ),
)

RUNS = ActionCommand(
    name="runs",
    help="The latest runs in the ledger",
    description=f"""\
List the runs of an archive from its ledger, the latest interval first.

States: planned (the offset ranges are frozen), written (the objects and the manifest are there), committed (final),
settled (its hours are proved too).

json and yaml: a list of {{run, interval_start, interval_end, origin (scheduled, manual, backfill, …), planned_at,
offsets, objects, rows, bytes (null until they are written), state}}.
{ANSWER}""",
    func=lazy_load_command(f"{HERE}.runs.list_runs"),
    args=(
        ARCHIVE,
        option("-n", "--last", type=positive, default=20, metavar="N", help="How many runs (default: 20)"),
        OUTPUT,
    ),
)

SHOW = ActionCommand(
    name="show",
    help="One run: its plan, its account and its objects",
    description=f"""\
Show what the ledger records about a run: the planned offset ranges, the account of these offsets (archived, filtered,
dead-lettered, absent from Kafka, or lost), and the objects.

json and yaml: {{archive, run, state (see `airflow archive runs`), store, plan, manifest (null until it is written),
commit (null until it is committed)}}; the last three are the documents of the ledger, see docs/FORMAT.md.
{ANSWER}""",
    func=lazy_load_command(f"{HERE}.show.show_run"),
    args=(
        ARCHIVE,
        option(
            "run",
            metavar="RUN",
            help="20261121T050000Z (as in `airflow archive runs`), the start of its interval\n"
            "(2026-11-21T05:00:00Z), or last",
        ),
        OUTPUT,
    ),
)

PRINT = ActionCommand(
    name="print",
    help="The records of one object as JSON lines",
    description="""\
Print the records of an object in any format of the archiver, each as a line of JSON: topic, partition, offset,
timestamp, timestamp_type, key, value, headers, as `format: jsonl` writes them; what a format does not keep is -1, empty
or null. Of an object with decoded columns, print all its columns; of values alone, each value as it is.

An s3:// URL is below the store.url of an archive, whose credentials are taken. If the archive's ledger has the object,
it is read by its plan, and compared with its checksum before anything is printed. Of any other object, and of a local
file, the format is known by the extension and the columns by the file: a CSV file needs its header, and its columns are
text; JSON lines are printed as they are.

The exit code is 0, or 1 with the reason on stderr: after damage, some records may have been printed.""",
    func=lazy_load_command(f"{HERE}.print_object.print_object"),
    args=(
        option("object", metavar="FILE|URL", help="A local file, or s3://bucket/key"),
        option(
            "--content",
            choices=("record", "value"),
            default="record",
            help="value: of a local CSV file with the column `value` alone, print each value as it is.\n"
            "No other file needs it (default: record, all columns that the file has)",
        ),
    ),
)

GET = ActionCommand(
    name="get",
    help="One record by its offset, or some from there on",
    description="""\
Print the record at an offset, as in: airflow archive get orders orders+3@12345. The ledger finds the object, without a
listing: by the plans of the line, of which it reads the logarithm of their number. Of an object with an index
(block_gzip) it reads one range, of Parquet the footer and one row group, of every other object all, which is compared
with its checksum first. Only committed runs count, of each the highest revision. Of an encrypted archive the connection
has the master key.

If the archive has no such record, the error says what became of it: filtered, lost, a dead letter, or absent in Kafka.

json: each record as a line of JSON, as `airflow archive print` prints it. raw: the values as they are, a line break
between two. stderr says how many bytes were read, in how many requests.

The exit code is 0, or 1 with the reason on stderr: after damage, some records may have been printed.""",
    func=lazy_load_command(f"{HERE}.get.get_records"),
    args=(
        ARCHIVE,
        option("record", metavar="TOPIC+PARTITION@OFFSET", help="As in orders+3@12345"),
        option(
            "-n", "--count", type=positive, default=1, metavar="N", help="How many records from there on (default: 1)"
        ),
        option(
            "--generation",
            type=int,
            metavar="G",
            help="Of a log that was made anew: which one (default: the newest that has the offset)",
        ),
        option(
            "-o",
            "--output",
            choices=("json", "raw"),
            default="json",
            metavar="json|raw",
            help="json: whole records (default); raw: values alone",
        ),
    ),
)
