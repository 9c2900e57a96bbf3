"""The commands about the archives' YAML files."""

from airflow.cli.cli_config import ActionCommand, lazy_load_command

from kafka_archiver.orchestration.cli.definition.common import ANSWER, HERE
from kafka_archiver.orchestration.terminal.options import OUTPUT, option

LIST = ActionCommand(
    name="list",
    help="The archives, their DAGs and their files",
    description=f"""\
List the archives in the folder of YAML files (ARCHIVER_CONFIG_DIR). Errors in other files go to stderr.

json and yaml: a list of {{archive, dag_id, topics (null with a pattern), pattern (null with topics), group, store,
schedule (null: by hand only), timezone, file}}.
{ANSWER}""",
    func=lazy_load_command(f"{HERE}.list.list_archives"),
    args=(OUTPUT,),
)

VALIDATE = ActionCommand(
    name="validate",
    help="Check the archives' YAML files",
    description=f"""\
Check YAML files of archives: all files of the folder (ARCHIVER_CONFIG_DIR), or the named ones. Needs neither the
brokers nor the store nor Airflow's database, so it can run in CI before a change is merged.

json and yaml: a list of {{file, archive (null when it cannot be read), problems (a list, empty when there are none)}}.
{ANSWER} Any problem gives 1.""",
    func=lazy_load_command(f"{HERE}.validate.validate"),
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

IMPORT = ActionCommand(
    name="import",
    help="The YAML of archives from another tool's configuration",
    description=f"""\
Print the YAML of archives that take over from another tool, from its configuration: Confluent's S3 sink, that of
Confluent Cloud, Aiven's (JSON, bare or as {{name, config}}, properties, or YAML, also of Strimzi), Lenses' S3 sink (one
archive for each KCQL statement), DeviantArt's S3 sink, Zooz' environment variables (NAME=value), kafkatos3.cfg. Nothing
is written or asked but that file.

Comments say, for each of its keys, whether the YAML says the same, what is different on purpose, what has no equivalent
and what a person has to do. Secrets are never printed. The YAML begins where the tool's consumer group has stopped
(source.start), see docs/MIGRATING.md.

What decides keys, values or records and is not the same here, or is not known, and each key that is not understood,
ends the command with an error, unless --accept says that a person has seen it.

json and yaml: {{tool, archives: a list of {{archive, yaml (the text), problems (what `airflow archive validate` would
say)}}, notes: a list of {{kind (kept, differs, lacks, by_hand, decide or unknown), key (null: a remark), text}}}}.
{ANSWER} A YAML with problems gives 1, and so does a note to decide or unknown without --accept.""",
    func=lazy_load_command(f"{HERE}.import_file.import_file"),
    args=(
        option("file", metavar="FILE", help="The other tool's configuration; - reads standard input"),
        option(
            "--from",
            dest="tool",
            choices=("confluent", "cloud", "aiven", "lenses", "deviantart", "zooz", "kafkatos3"),
            help="Whose configuration it is (default: known by its keys)",
        ),
        option(
            "--group",
            metavar="GROUP",
            help="The consumer group to take over from (default: the one that the file tells)",
        ),
        option(
            "--worker",
            metavar="FILE",
            help="The configuration of the connector's worker: its converters count where the connector has none",
        ),
        option(
            "--accept",
            action="store_true",
            help="Exit 0 although something is not the same here, or not understood: a person has seen it",
        ),
        option(
            "--output-folder",
            metavar="FOLDER",
            help="Write a file NAME.yaml for each archive instead; none is overwritten",
        ),
        OUTPUT,
    ),
)
