"""The `airflow archive` group as Airflow's parser needs it. Loaded by every `airflow` call: imports nothing heavy."""

from airflow.cli.cli_config import ActionCommand, CLICommand, GroupCommand

from kafka_archiver.orchestration.cli.acknowledge import ACKNOWLEDGE
from kafka_archiver.orchestration.cli.adopt import ADOPT
from kafka_archiver.orchestration.cli.audit import AUDIT
from kafka_archiver.orchestration.cli.clean import CLEAN
from kafka_archiver.orchestration.cli.doctor import DOCTOR
from kafka_archiver.orchestration.cli.fill import FILL
from kafka_archiver.orchestration.cli.get import GET
from kafka_archiver.orchestration.cli.import_file import IMPORT
from kafka_archiver.orchestration.cli.list import LIST
from kafka_archiver.orchestration.cli.plan import PLAN
from kafka_archiver.orchestration.cli.print_object import DECRYPT, PRINT
from kafka_archiver.orchestration.cli.rebuild import REBUILD
from kafka_archiver.orchestration.cli.repair import REPAIR
from kafka_archiver.orchestration.cli.replay_dead_letters import REPLAY_DEAD_LETTERS
from kafka_archiver.orchestration.cli.requirements import REQUIREMENTS
from kafka_archiver.orchestration.cli.restore import RESTORE
from kafka_archiver.orchestration.cli.rotate_keys import ROTATE_KEYS
from kafka_archiver.orchestration.cli.runs import RUNS
from kafka_archiver.orchestration.cli.show import SHOW
from kafka_archiver.orchestration.cli.status import STATUS
from kafka_archiver.orchestration.cli.validate import VALIDATE
from kafka_archiver.orchestration.terminal.stdout import for_data_alone

_COMMANDS = (
    LIST,
    VALIDATE,
    IMPORT,
    ADOPT,
    STATUS,
    PLAN,
    RUNS,
    SHOW,
    PRINT,
    GET,
    DECRYPT,
    AUDIT,
    DOCTOR,
    REQUIREMENTS,
    ACKNOWLEDGE,
    CLEAN,
    FILL,
    REBUILD,
    REPAIR,
    REPLAY_DEAD_LETTERS,
    RESTORE,
    ROTATE_KEYS,
)


def commands() -> list[CLICommand]:
    """Return the commands that Airflow adds to its own."""
    return [
        GroupCommand(
            name="archive",
            help="Archives of Kafka topics: their state, their plans, their runs",
            description="Show and maintain archives of Kafka topics. Only acknowledge, adopt, clean, fill, rebuild, "
            "repair, replay-dead-letters and rotate-keys change an archive; restore writes to Kafka.",
            subcommands=tuple(map(_for_data_alone, _COMMANDS)),
        )
    ]


def _for_data_alone(command: ActionCommand) -> ActionCommand:
    """The command's module is imported in its function: whatever that prints is no data either."""
    return command._replace(func=for_data_alone(command.func))
