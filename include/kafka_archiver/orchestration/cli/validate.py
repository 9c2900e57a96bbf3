"""`airflow archive validate`: every problem of every file, without asking the brokers, the store or Airflow."""

from __future__ import annotations

import os
from argparse import Namespace
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from airflow.cli.cli_config import ActionCommand, lazy_load_command

from kafka_archiver.messages.errors import ConfigError
from kafka_archiver.orchestration.cli.completion import ANSWER
from kafka_archiver.orchestration.terminal.options import OUTPUT, option
from kafka_archiver.orchestration.terminal.output import Answer, Table, print_answer

if TYPE_CHECKING:
    from kafka_archiver.config import Declaration

VALIDATE = ActionCommand(
    name="validate",
    help="Check the archives' YAML files",
    description=f"""\
Check YAML files of archives: all files of the folder (ARCHIVER_CONFIG_DIR), or the named ones. Needs neither the
brokers nor the store nor Airflow's database, so it can run in CI before a change is merged.

json and yaml: a list of {{file, archive (null when it cannot be read), problems (a list, empty when there are none)}}.
{ANSWER} Any problem gives 1.""",
    func=lazy_load_command(f"{__name__}.validate"),
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


@dataclass(frozen=True, slots=True)
class Checked:
    """One file and its problems. `archive` is None when the file cannot be read. `sql`: what Spark has to check."""

    file: Path
    archive: str | None
    problems: tuple[str, ...]
    sql: Literal["SQL", "function", ""] = ""


@print_answer
def validate(args: Namespace) -> Answer:
    """Check the chosen files, or all."""
    from kafka_archiver.config import declarations
    from kafka_archiver.orchestration.folder import config_folder

    needs_folder = not args.archives or not all(map(_is_file, args.archives))
    known = [_check(declaration) for declaration in declarations(config_folder(), os.environ)] if needs_folder else []
    checked = list(_choose(args.archives, _with_conflicts(known))) if args.archives else _with_conflicts(known)
    document = [{"file": str(c.file), "archive": c.archive, "problems": c.problems} for c in checked]
    rows = [(c.file.name, c.archive, problem) for c in checked for problem in c.problems or ("ok",)]
    wrong = [c for c in checked if c.problems]
    summary = [f"Files with problems: {len(wrong)} of {len(checked)}."] if wrong else []
    later = [f"Spark checks the {c.sql} of {c.archive}: airflow archive plan {c.archive}" for c in checked if c.sql]
    return Answer(document, [Table(("file", "archive", "result"), rows, below=later)], summary)


def _is_file(word: str) -> bool:
    return word.endswith((".yaml", ".yml"))


def _choose(words: list[str], known: list[Checked]) -> Iterator[Checked]:
    from kafka_archiver.config import Declaration, load_archive
    from kafka_archiver.orchestration.folder import config_folder

    for word in words:
        if _is_file(word):
            yield _check(Declaration(Path(word), partial(load_archive, Path(word))))
            continue
        # Also by the file's name: a file that cannot be read has no archive name.
        named = [c for c in known if word in (c.archive, c.file.stem)]
        if not named:
            names = ", ".join(dict.fromkeys(c.archive or c.file.name for c in known)) or "none"
            raise ConfigError(f"No archive {word!r} in {config_folder()}; found: {names}.")
        yield from named


def _check(declared: Declaration) -> Checked:
    from airflow.sdk.exceptions import AirflowException

    from kafka_archiver.orchestration.dags.archive import archive_dag
    from kafka_archiver.planning.given_schemas import require_readable
    from kafka_archiver.planning.settings import settings_of

    file = declared.file
    try:
        archive = declared.load()
    except ConfigError as error:
        return Checked(file, None, _lines(file, error))
    problems: list[str] = []
    try:
        require_readable(archive, settings_of(archive))
    except ConfigError as error:
        problems += _lines(file, error)
    try:
        archive_dag(archive)
    except (AirflowException, ValueError, TypeError) as error:
        problems.append(f"Airflow cannot make a DAG of it: {error}")
    sql = archive.settings.transform and archive.settings.transform.sql
    return Checked(file, archive.archive, tuple(problems), ("function" if sql.function else "SQL") if sql else "")


def _with_conflicts(known: list[Checked]) -> list[Checked]:
    """Add the problems that come from conflicts with other files."""
    from kafka_archiver.config.archives import read_archives
    from kafka_archiver.orchestration.folder import config_folder

    errors = read_archives(config_folder()).errors
    lines = {c.file: [p for e in errors if str(e).startswith(f"{c.file}: ") for p in _lines(c.file, e)] for c in known}
    return [replace(c, problems=tuple(dict.fromkeys([*c.problems, *lines[c.file]]))) for c in known]


def _lines(file: Path, error: ConfigError) -> tuple[str, ...]:
    return tuple(line.removeprefix(f"{file}: ") for line in str(error).splitlines())
