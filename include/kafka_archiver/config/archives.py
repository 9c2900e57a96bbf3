"""The archives of a folder and of the environment: the valid ones, and the errors of the others."""

import os
import re
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple, Self

from kafka_archiver.config import Archive, declarations, load_archive
from kafka_archiver.messages.advice import dag_id
from kafka_archiver.messages.errors import ConfigError
from kafka_archiver.messages.yaml_faults import Fault, FaultyYamlError
from kafka_archiver.values.documents import Value

# Where a wrong file names its archive, and how much of it is searched.
_NAME = re.compile(
    r"""^archive:[ \t]*["']?(?P<name>[A-Za-z0-9][A-Za-z0-9_.-]{0,199})["']?[ \t]*(#.*)?$""", re.MULTILINE
)
_HEAD = 1 << 16


class Archives(NamedTuple):
    """The archives by name, sorted; the file of each (or the name of its variables); the errors of the others."""

    valid: dict[str, Archive]
    files: dict[str, Path]
    errors: list[ConfigError]


class WrongFileError(ConfigError):
    """A declaration that is wrong. `file`: its file; `archive`: the archive of which it is, as far as can be told.

    `faults`: those with a line.
    """

    def __init__(self, message: str, file: Path, archive: str, faults: Iterable[Fault] = ()) -> None:
        super().__init__(message)
        self.file, self.archive = file, archive
        self.faults = tuple(fault for fault in faults if fault.line)


class ArchiveSummary(Value):
    """A summary of one archive. `topics` or `pattern` is None; `schedule` is None for an archive run by hand only.

    `error`: why no valid file declares it now; the rest is as it was last valid.
    """

    archive: str
    dag_id: str
    topics: tuple[str, ...] | None
    pattern: str | None
    group: str
    store: str
    schedule: str | None
    timezone: str
    file: str
    error: str | None = None

    @classmethod
    def of(cls, archive: Archive, file: Path, error: str | None = None) -> Self:
        """The summary of the archive that a file declares."""
        return cls(
            archive=archive.archive,
            dag_id=dag_id(archive.archive),
            topics=archive.source.topics,
            pattern=archive.source.pattern,
            group=archive.group,
            store=archive.store.url,
            schedule=archive.schedule,
            timezone=archive.timezone,
            file=str(file),
            error=error,
        )


def read_archives(folder: Path) -> Archives:
    """The archives of a folder, and those that the environment describes.

    A wrong file does not affect the others: its error is a WrongFileError. If the folder is missing, that is the only
    error.
    """
    try:
        declared_by = declarations(folder, os.environ)
    except ConfigError as error:
        return Archives({}, {}, [error])
    declared: dict[str, dict[Path, Archive]] = {}
    errors: list[ConfigError] = []
    for file, load in declared_by:
        try:
            archive = load()
        except ConfigError as error:
            faults = error.faults if isinstance(error, FaultyYamlError) else ()
            errors.append(WrongFileError(str(error), file, _name_in(file), faults))
        else:
            declared.setdefault(archive.archive, {})[file] = archive
    chosen: dict[str, Path] = {}
    for name, candidates in sorted(declared.items()):
        keeps = _choose(name, candidates)
        if keeps:
            chosen[name] = keeps
        errors += [
            WrongFileError(_twice(name, file, keeps or next(f for f in candidates if f != file)), file, name)
            for file in candidates
            if file != keeps and len(candidates) > 1
        ]
    return Archives({name: declared[name][file] for name, file in chosen.items()}, chosen, errors)


def read_archive(folder: Path, name: str) -> Archives:
    """The archive of that name as `read_archives` chooses it. Usually only its own file is read."""
    # Such a file keeps its name whatever the others declare: see _choose.
    mine = [file for file in (folder / f"{name}.yaml", folder / f"{name}.yml") if file.is_file()]
    if len(mine) == 1:
        # A wrong file is reported by who reads all.
        with suppress(ConfigError):
            archive = load_archive(mine[0])
            if archive.archive == name:
                return Archives({name: archive}, {name: mine[0]}, [])
    archives, files, errors = read_archives(folder)
    return Archives(
        {n: a for n, a in archives.items() if n == name}, {n: f for n, f in files.items() if n == name}, errors
    )


def declared_names(folder: Path) -> list[str]:
    """Return the names of all archives that are declared, rightly or wrongly. Only the beginning of a file is read.

    :raises ConfigError: there is no such folder, or the environment describes an archive wrongly.
    """
    return sorted(
        {_name_in(file) if file.is_file() else load().archive for file, load in declarations(folder, os.environ)}
    )


def _choose(name: str, candidates: dict[Path, Archive]) -> Path | None:
    """The file that keeps a name: the only file with this name, or the file that is named after it.

    Somebody may copy orders.yaml and save the copy before changing its name: the copy must not take over.
    """
    named = [file for file in candidates if file.stem == name]
    return next(iter(candidates)) if len(candidates) == 1 else named[0] if len(named) == 1 else None


def _twice(name: str, file: Path, other: Path) -> str:
    return f"{file}: `archive`: the name {name!r} is taken by {other}; give each archive its own name"


def missing(archives: Archives) -> dict[str, str]:
    """Return the archives that a wrong file keeps from running, with the errors of their files."""
    errors: dict[str, str] = {}
    for error in archives.errors:
        if isinstance(error, WrongFileError) and error.archive not in archives.valid:
            errors[error.archive] = "\n".join(filter(None, [errors.get(error.archive), str(error)]))
    return errors


def _name_in(file: Path) -> str:
    """The name that a wrong file gives its archive; else the file's own."""
    named = None
    # Not environment variables, nor a pipe.
    if file.is_file():
        with suppress(OSError), file.open(encoding="utf-8", errors="replace") as text:
            named = _NAME.search(text.read(_HEAD))
    return named["name"] if named else file.stem
