"""The `airflow archive` group as Airflow's parser needs it. Loaded by every `airflow` call: imports nothing heavy."""

from airflow.cli.cli_config import CLICommand


def commands() -> list[CLICommand]:
    """What Airflow adds to its own commands."""
    return []
