"""The argument RUN of the commands."""

from argparse import ArgumentTypeError
from datetime import datetime

from kafka_archiver.messages.errors import ConfigError
from kafka_archiver.model.keys import run_name, split_run
from kafka_archiver.orchestration.terminal.options import moment
from kafka_archiver.values.intervals import run_id


def run_name_of(text: str) -> str:
    """Return the ledger's name of a run.

    :param text: this name, the start of the run's interval, or `last`, which is returned as it is.
    :raises ConfigError: `text` is none of these.
    """
    if text == "last":
        return text
    try:
        start, revision = _split(text)
    except ArgumentTypeError as error:
        raise ConfigError(f"RUN: {error}; a run's name like 20261121T050000Z or `last` will do too.") from None
    return run_name(run_id(start), revision)


def _split(text: str) -> tuple[datetime, int]:
    try:
        return split_run(text)
    except ValueError:
        return moment(text), 0
