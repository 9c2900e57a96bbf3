"""The `airflow archive` group as Airflow's parser needs it. Loaded by every `airflow` call: imports nothing heavy."""

from airflow.cli.cli_config import CLICommand, GroupCommand

from kafka_archiver.orchestration.cli.definition.changing import (
    ACKNOWLEDGE,
    CLEAN,
    FILL,
    REBUILD,
    REPAIR,
    REPLAY_DEAD_LETTERS,
)
from kafka_archiver.orchestration.cli.definition.declared import IMPORT, LIST, VALIDATE
from kafka_archiver.orchestration.cli.definition.keys import DECRYPT, ROTATE_KEYS
from kafka_archiver.orchestration.cli.definition.runs import GET, PLAN, PRINT, RUNS, SHOW
from kafka_archiver.orchestration.cli.definition.state import AUDIT, DOCTOR, STATUS


def commands() -> list[CLICommand]:
    """What Airflow adds to its own commands."""
    return [
        GroupCommand(
            name="archive",
            help="Archives of Kafka topics: their state, their plans, their runs",
            description="Show and maintain archives of Kafka topics. Only acknowledge, clean, fill, rebuild, "
            "repair, replay-dead-letters and rotate-keys change an archive.",
            subcommands=(
                LIST,
                VALIDATE,
                IMPORT,
                STATUS,
                PLAN,
                RUNS,
                SHOW,
                PRINT,
                GET,
                DECRYPT,
                AUDIT,
                DOCTOR,
                ACKNOWLEDGE,
                CLEAN,
                FILL,
                REBUILD,
                REPAIR,
                REPLAY_DEAD_LETTERS,
                ROTATE_KEYS,
            ),
        )
    ]
