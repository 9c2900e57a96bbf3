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
