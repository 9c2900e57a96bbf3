"""Commands in Airflow's audit log, as entries of the archive's DAG."""

import functools
from argparse import Namespace
from collections.abc import Callable
from typing import Any

from airflow.utils.cli import action_cli

from kafka_archiver.messages.advice import dag_id


def in_audit_log(command: Callable[[Namespace], Any]) -> Callable[[Namespace], Any]:
    """Return a command that Airflow's audit log has: who called it when, with which arguments, for which archive."""
    # A command that needs no database does not fail for want of it.
    logged = action_cli(check_db=False)(command)  # type: ignore[no-untyped-call]

    @functools.wraps(command)
    def call(args: Namespace) -> Any:
        if archive := getattr(args, "archive", None):
            args.dag_id = dag_id(archive)
        return logged(args)

    return call
