"""`airflow archive import`: the YAML of archives from another tool's configuration."""

import os
import re
import sys
from argparse import Namespace
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from kafka_archiver.config import parse_archive
from kafka_archiver.imports.base import OPEN, Note
from kafka_archiver.imports.reading import documents_of
from kafka_archiver.imports.registry import import_text
from kafka_archiver.imports.text import to_yaml, unfilled
from kafka_archiver.imports.worker import worker_keys
from kafka_archiver.messages.errors import ConfigError
from kafka_archiver.orchestration.terminal.failures import report_errors
from kafka_archiver.orchestration.terminal.output import show
from kafka_archiver.planning.settings import settings_of

# Notes that a person should not miss.
_TO_SHOW = ("by_hand", "lacks", *OPEN)


class ArchiveYaml(NamedTuple):
    """The YAML of one archive. `problems`: why it is not valid; each line names the key."""

    archive: str
    yaml: str
    problems: tuple[str, ...]


class ImportResult(NamedTuple):
    """The archives of a file. `faults`: of what no archive could be made."""

    tools: tuple[str, ...]
    archives: tuple[ArchiveYaml, ...]
    notes: tuple[Note, ...]
    faults: tuple[str, ...]


@report_errors
def import_file(args: Namespace) -> None:
    """Print the YAML, or write it into a folder. What needs a person goes to stderr, too."""
    text, name = _read(args.file)
    worker = worker_keys(*_read(args.worker)) if args.worker else None
    result = archives_of(text, name, args.tool, args.group, worker)
    undecided = [] if args.accept else [note for note in result.notes if note.kind in OPEN]
    if args.output_folder and not undecided:
        _write(Path(args.output_folder), result.archives)
    if args.output != "table":
        archives = [archive._asdict() for archive in result.archives]
        listed = [{"kind": note.kind, "key": note.key or None, "text": note.text} for note in result.notes]
        tool = ", ".join(result.tools)
        show(args.output, {"tool": tool, "archives": archives, "notes": listed, "faults": result.faults}, [])
    elif not args.output_folder:
        print("---\n".join(archive.yaml for archive in result.archives), end="")
        if result.archives[1:]:
            print(f"{len(result.archives)} archives: each needs a file of its own (--output-folder)", file=sys.stderr)
    remarks = sum(note.kind in _TO_SHOW for note in result.notes)
    if remarks:
        print(f"{remarks} keys or remarks need a look: the comments at the top of the YAML name them", file=sys.stderr)
    problems = [f"{archive.archive}: {problem}" for archive in result.archives for problem in archive.problems]
    if problems:
        problems = ["The YAML is not valid yet:", *problems]
    if result.faults:
        problems += ["No archive is made of these:", *result.faults]
    if undecided:
        written = "Nothing is written. " if args.output_folder else ""
        problems += [f"Not the same here, or not understood ({written}--accept takes the YAML as it is):"]
        problems += [f"{note.key}: {note.text}" if note.key else note.text for note in undecided]
    if problems:
        raise ConfigError("\n".join(problems))


def archives_of(
    text: str,
    file: str,
    tool: str | None = None,
    group: str | None = None,
    worker: Mapping[str, str] | None = None,
) -> ImportResult:
    """Make the archives of every connector in a file, or of the one configuration that it is.

    :param file: the name of the text in messages. :param tool: as of `import_text`, as are `group` and `worker`.
    :raises ConfigError: no archive can be made of it.
    """
    documents = documents_of(text, file)
    if group and documents[1:]:
        raise ConfigError(
            f"{file}: --group {group} is the group of one connector, and the file has {len(documents)}: import each "
            "of them alone"
        )
    tools: list[str] = []
    archives: list[ArchiveYaml] = []
    notes: list[Note] = []
    faults: list[str] = []
    for number, document in enumerate(documents, start=1):
        place = f"{file}, connector {number}" if documents[1:] else file
        try:
            imported, keys = import_text(document, place, tool, group, worker)
        except ConfigError as error:
            faults += str(error).splitlines()
            continue
        tools.append(imported.tool)
        notes += [*imported.notes, *(note for draft in imported.drafts for note in draft.notes)]
        faults += [f"{place}: {fault}" for fault in imported.faults]
        for draft in imported.drafts:
            yaml = to_yaml(imported, draft, keys, place)
            archives.append(ArchiveYaml(str(draft.content["archive"]), yaml, tuple(_problems(yaml, draft.content))))
    names = [archive.archive for archive in archives]
    faults += [
        f"{file}: two connectors become the archive {name}: give each a name of its own, or import each alone"
        for name in dict.fromkeys(names)
        if names.count(name) > 1
    ]
    if not archives:
        raise ConfigError("\n".join(faults))
    return ImportResult(tuple(dict.fromkeys(tools)), tuple(archives), tuple(notes), tuple(faults))


def _read(file: str) -> tuple[str, str]:
    try:
        if file == "-":
            return sys.stdin.read(), "standard input"
        return Path(file).read_text(encoding="utf-8"), file
    except UnicodeDecodeError:
        raise ConfigError(f"{file}: cannot be read: it is not UTF-8") from None
    except OSError as error:
        raise ConfigError(f"{file}: cannot be read: {error.strerror}") from None


def _problems(yaml: str, content: dict[str, Any]) -> list[str]:
    # Their values are known where the archive runs.
    variables = dict.fromkeys(re.findall(r"\$\{(\w+)\}", yaml), "x") | dict(os.environ)
    try:
        settings_of(parse_archive(yaml, "", variables))
    except ConfigError as error:
        faults = [line.removeprefix(": ") for line in str(error).splitlines()]
    else:
        faults = []
    missing = list(unfilled(content))
    named = {line.partition(":")[0] for line in missing}
    return [*missing, *(line for line in faults if line.partition(":")[0] not in named)]


def _write(folder: Path, archives: Iterable[ArchiveYaml]) -> None:
    for archive in archives:
        file = folder / f"{archive.archive}.yaml"
        try:
            with file.open("x", encoding="utf-8") as opened:
                opened.write(archive.yaml)
        except OSError as error:
            raise ConfigError(f"{file}: cannot be written: {error.strerror}") from None
        print(f"wrote {file}", file=sys.stderr)
