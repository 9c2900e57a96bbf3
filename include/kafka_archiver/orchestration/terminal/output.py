"""Results and errors: tables on a terminal, JSON or YAML for programs, and nothing else on stdout."""

import functools
import json
import sys
import warnings
from argparse import Namespace
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, TypeAlias

from airflow.utils.cli import action_cli

from kafka_archiver.messages.advice import dag_id
from kafka_archiver.messages.errors import ArchiverError
from kafka_archiver.messages.foreign_text import in_one_line
from kafka_archiver.orchestration.terminal.stdout import data_stream, for_data_alone, say
from kafka_archiver.values.documents import isoformat

Cell: TypeAlias = str | int | datetime | None
# Columns of a console that folds nothing.
_UNFOLDED = 1_000_000


class Red(str):
    """Text that is red on a terminal."""

    __slots__ = ()


@dataclass(frozen=True, slots=True)
class Table:
    """A table for people: numbers to the right with thousands separated, times in UTC. `alarm`: shown in red.

    `below`: lines under the table. They are never folded, so that commands can be copied.
    """

    columns: Sequence[str]
    rows: Sequence[Sequence[Cell]]
    title: str | None = None
    alarm: str | None = None
    below: Sequence[str] = ()


@dataclass(frozen=True, slots=True)
class Answer:
    """The result of a command. `failures`: lines for stderr; with any, the exit code is 1."""

    document: Any
    tables: Sequence[Table]
    failures: Sequence[str] = ()


def print_answer(function: Callable[[Namespace], Answer]) -> Callable[[Namespace], None]:
    """Make a command of a function."""

    @report_errors
    @functools.wraps(function)
    def command(args: Namespace) -> None:
        with warnings.catch_warnings():
            # Airflow's own deprecations.
            warnings.simplefilter("ignore")
            answer = function(args)
        show(args.output, answer.document, answer.tables)
        for failure in answer.failures:
            print(failure, file=sys.stderr)
        if answer.failures:
            raise SystemExit(1)

    return command


def plain(value: Any) -> Any:
    """Return the value in JSON's types: times as RFC 3339 in UTC, tuples as lists."""
    if isinstance(value, datetime):
        return isoformat(value)
    if isinstance(value, dict):
        return {key: plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    return value


def show(output: str, document: Any, tables: Sequence[Table]) -> None:
    """Print the result as `output` says: the document as json or yaml, the tables as table."""
    if output == "json":
        say(json.dumps(plain(document), indent=2))
    elif output == "yaml":
        import yaml

        say(yaml.safe_dump(plain(document), sort_keys=False).removesuffix("\n"))
    else:
        from rich.console import Console

        for number, table in enumerate(tables):
            if number:
                say("")
            render(table, Console(file=data_stream()))


def render(table: Table, console: Any) -> None:
    """Print a table on a rich console. Folds long cells on a terminal only: a program reads a row from one line."""
    from rich.text import Text

    if not console.is_terminal:
        console.width = _UNFOLDED
    if table.title:
        console.print(Text(table.title, style="bold"))
    if table.alarm:
        console.print(Text(table.alarm, style="bold red"))
    if table.rows:
        console.print(_grid(table))
    else:
        console.print("(none)")
    for line in table.below:
        console.print(Text(in_one_line(line), style="red" if isinstance(line, Red) else ""), soft_wrap=True)


def _grid(table: Table) -> Any:
    from airflow.cli.simple_table import SimpleTable
    from rich.text import Text

    grid = SimpleTable(caption=None)  # type: ignore[no-untyped-call]
    grid.show_header = True
    for number, column in enumerate(table.columns):
        right = all(isinstance(row[number], int | None) for row in table.rows)
        grid.add_column(column, justify="right" if right else "left", overflow="fold")
    for row in table.rows:
        # As Text: rich would read `orders[a]` as markup.
        grid.add_row(*(Text(_cell(value), style="red" if isinstance(value, Red) else "") for value in row))
    return grid


def _cell(value: Cell) -> str:
    if value is None:
        return "-"
    if isinstance(value, datetime):
        return isoformat(value)
    return f"{value:,}" if isinstance(value, int) else in_one_line(value)


def report_errors(function: Callable[[Namespace], None]) -> Callable[[Namespace], None]:
    """Make a command of a function. Standard output has its data alone.

    On an ArchiverError or a missing package, print the message alone and exit with 1. Other errors keep their
    traceback.
    """

    @for_data_alone
    @functools.wraps(function)
    def command(args: Namespace) -> None:
        try:
            function(args)
        except ArchiverError as error:
            print(error, file=sys.stderr)
            raise SystemExit(1) from error
        except ModuleNotFoundError as error:
            if (error.name or "").startswith("kafka_archiver"):
                raise
            print(f"{error}: pip install 'kafka-archiver[airflow]'", file=sys.stderr)
            raise SystemExit(1) from error

    return command


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
