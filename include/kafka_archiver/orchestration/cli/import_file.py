"""`airflow archive import`: the YAML of archives from another tool's configuration."""

from __future__ import annotations

import sys
from argparse import Namespace
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

from airflow.cli.cli_config import ActionCommand, lazy_load_command

from kafka_archiver.messages.errors import ConfigError
from kafka_archiver.orchestration.cli.completion import ANSWER
from kafka_archiver.orchestration.terminal.options import OUTPUT, option
from kafka_archiver.orchestration.terminal.output import report_errors, show
from kafka_archiver.orchestration.terminal.stdout import data_stream

if TYPE_CHECKING:
    from kafka_archiver.orchestration.cli.imported_yaml import ArchiveYaml

IMPORT = ActionCommand(
    name="import",
    help="The YAML of archives from another tool's configuration",
    description=f"""\
Print the YAML of archives that take over from another tool, from its configuration: Confluent's S3 sink, that of
Confluent Cloud, Aiven's (JSON, bare or as {{name, config}}, properties, or YAML, also of Strimzi), Lenses' S3 sink (one
archive for each KCQL statement), DeviantArt's S3 sink, Zooz' environment variables (NAME=value), kafkatos3.cfg. Nothing
is written or asked but that file.

Comments say, for each of its keys, whether the YAML says the same, what is different on purpose, what has no equivalent
and what a person has to do. Secrets are never printed. The YAML begins where the tool's consumer group has stopped
(source.start), see docs/howto/handover.md.

What decides keys, values or records and is not the same here, or is not known, and each key that is not understood,
ends the command with an error, unless --accept says that a person has seen it. So does a connector of another tool
beside others, of which no archive is made.

json and yaml: {{tool, archives: a list of {{archive, yaml (the text), problems (what `airflow archive validate` would
say)}}, notes: a list of {{kind (kept, differs, lacks, by_hand, decide or unknown), key (null: a remark), text}}}}.
{ANSWER} A YAML with problems gives 1, and so does a note to decide or unknown without --accept.""",
    func=lazy_load_command(f"{__name__}.import_file"),
    args=(
        option("file", metavar="FILE", help="The other tool's configuration; - reads standard input"),
        option(
            "--from",
            dest="tool",
            choices=("confluent", "cloud", "aiven", "lenses", "deviantart", "zooz", "kafkatos3"),
            help="Whose configuration it is (default: known by its keys)",
        ),
        option(
            "--group",
            metavar="GROUP",
            help="The consumer group to take over from (default: the one in the file)",
        ),
        option(
            "--worker",
            metavar="FILE",
            help="The configuration of the connector's worker: its converters count where the connector has none",
        ),
        option(
            "--accept",
            action="store_true",
            help="Exit 0 although something is not the same here, or not understood: a person has seen it",
        ),
        option(
            "--output-folder",
            metavar="FOLDER",
            help="Write a file NAME.yaml for each archive instead; none is overwritten",
        ),
        OUTPUT,
    ),
)


@report_errors
def import_file(args: Namespace) -> None:
    """Print the YAML, or write it into a folder. What needs a person goes to stderr, too."""
    from kafka_archiver.imports.worker import worker_keys
    from kafka_archiver.orchestration.cli.imported_yaml import archives_of

    text, name = _read(args.file)
    worker = worker_keys(*_read(args.worker)) if args.worker else None
    result = archives_of(text, name, args.tool, args.group, worker)
    undecided = [] if args.accept else result.undecided
    if args.output_folder and not undecided:
        _write(Path(args.output_folder), result.archives)
    if args.output != "table":
        archives = [archive._asdict() for archive in result.archives]
        notes = (*result.notes, *result.left_out)
        listed = [{"kind": note.kind, "key": note.key or None, "text": note.text} for note in notes]
        tool = ", ".join(result.tools)
        show(args.output, {"tool": tool, "archives": archives, "notes": listed, "faults": result.faults}, [])
    elif not args.output_folder:
        data_stream().write("---\n".join(archive.yaml for archive in result.archives))
    if args.accept:
        for note in result.left_out:
            print(note.text, file=sys.stderr)
    if result.remarks:
        print(
            f"{result.remarks} keys or remarks need a look: the comments at the top of the YAML name them",
            file=sys.stderr,
        )
    problems = [f"{archive.archive}: {problem}" for archive in result.archives for problem in archive.problems]
    if problems:
        problems = ["The YAML is not valid yet:", *problems]
    if result.archives[1:] and args.output == "table" and not args.output_folder:
        problems += [f"{len(result.archives)} archives: each needs a file of its own (--output-folder)"]
    if result.faults:
        problems += ["No archive is made of these:", *result.faults]
    if undecided:
        written = "Nothing is written. " if args.output_folder else ""
        problems += [f"Not the same here, or not understood ({written}--accept takes the YAML as it is):"]
        problems += [f"{note.key}: {note.text}" if note.key else note.text for note in undecided]
    if problems:
        raise ConfigError("\n".join(problems))


def _read(file: str) -> tuple[str, str]:
    try:
        if file == "-":
            return sys.stdin.read(), "standard input"
        return Path(file).read_text(encoding="utf-8"), file
    except UnicodeDecodeError:
        raise ConfigError(f"{file}: cannot be read: it is not UTF-8") from None
    except OSError as error:
        raise ConfigError(f"{file}: cannot be read: {error.strerror}") from None


def _write(folder: Path, archives: Iterable[ArchiveYaml]) -> None:
    for archive in archives:
        file = folder / f"{archive.archive}.yaml"
        try:
            with file.open("x", encoding="utf-8") as opened:
                opened.write(archive.yaml)
        except OSError as error:
            raise ConfigError(f"{file}: cannot be written: {error.strerror}") from None
        print(f"wrote {file}", file=sys.stderr)
