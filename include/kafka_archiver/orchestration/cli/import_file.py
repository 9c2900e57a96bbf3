"""`airflow archive import`: the YAML of archives from another tool's configuration."""

import sys
from argparse import Namespace
from pathlib import Path
from typing import NamedTuple

from kafka_archiver.config import parse_archive
from kafka_archiver.errors import ConfigError
from kafka_archiver.imports.base import Note
from kafka_archiver.imports.registry import import_text
from kafka_archiver.imports.text import to_yaml
from kafka_archiver.orchestration.terminal.failures import plainly
from kafka_archiver.orchestration.terminal.output import show
from kafka_archiver.steps.plan.settings import settings_of

# Notes that a person should not miss.
_TOLD = ("by_hand", "lacks", "unknown")


class Made(NamedTuple):
    """The YAML of one archive. `problems`: why it is not valid."""

    archive: str
    yaml: str
    problems: tuple[str, ...]
    notes: tuple[Note, ...]


@plainly
def import_file(args: Namespace) -> None:
    """Print the YAML, or write it into a folder. What needs a person goes to stderr, too."""
    text, name = _read(args.file)
    imported, keys = import_text(text, name, args.tool, args.group)
    made = [
        Made(str(d.content["archive"]), yaml := to_yaml(imported, d, keys, name), _problems(yaml), d.notes)
        for d in imported.drafts
    ]
    notes = [*imported.notes, *(note for one in made for note in one.notes)]
    if args.output_folder:
        _write(Path(args.output_folder), made)
    if args.output != "table":
        archives = [{"archive": one.archive, "yaml": one.yaml, "problems": one.problems} for one in made]
        listed = [{"kind": note.kind, "key": note.key or None, "text": note.text} for note in notes]
        show(args.output, {"tool": imported.tool, "archives": archives, "notes": listed}, [])
    elif not args.output_folder:
        print("---\n".join(one.yaml for one in made), end="")
        if made[1:]:
            print(f"{len(made)} archives: each needs a file of its own (--output-folder)", file=sys.stderr)
    told = sum(note.kind in _TOLD for note in notes)
    if told:
        print(f"{told} keys or remarks need a look: the comments at the top of the YAML name them", file=sys.stderr)
    if problems := [f"{one.archive}: {problem}" for one in made for problem in one.problems]:
        raise ConfigError("\n".join(["The YAML is not valid yet:", *problems]))


def _read(file: str) -> tuple[str, str]:
    try:
        if file == "-":
            return sys.stdin.read(), "standard input"
        return Path(file).read_text(encoding="utf-8"), file
    except UnicodeDecodeError:
        raise ConfigError(f"{file}: cannot be read: it is not UTF-8") from None
    except OSError as error:
        raise ConfigError(f"{file}: cannot be read: {error.strerror}") from None


def _problems(yaml: str) -> tuple[str, ...]:
    try:
        settings_of(parse_archive(yaml, "", {}))
    except ConfigError as error:
        return tuple(line.removeprefix(": ") for line in str(error).splitlines())
    return ()


def _write(folder: Path, made: list[Made]) -> None:
    for one in made:
        file = folder / f"{one.archive}.yaml"
        try:
            with file.open("x", encoding="utf-8") as opened:
                opened.write(one.yaml)
        except OSError as error:
            raise ConfigError(f"{file}: cannot be written: {error.strerror}") from None
        print(f"wrote {file}", file=sys.stderr)
