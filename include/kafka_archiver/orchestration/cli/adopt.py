"""`airflow archive adopt`: objects that another tool wrote become readable as an archive."""

from __future__ import annotations

import sys
from argparse import Namespace
from datetime import UTC, datetime
from functools import partial
from typing import TYPE_CHECKING, Any

from airflow.cli.cli_config import ActionCommand, lazy_load_command

from kafka_archiver.messages.errors import ConfigError
from kafka_archiver.messages.wording import count
from kafka_archiver.orchestration.cli.completion import ANSWER
from kafka_archiver.orchestration.terminal.options import OUTPUT, option
from kafka_archiver.orchestration.terminal.output import Answer, Table, in_audit_log, print_answer

if TYPE_CHECKING:
    from kafka_archiver.config import Archive
    from kafka_archiver.model.adopted import Adoption
    from kafka_archiver.work.adopt import Preview

# Those of `model.adopted.Tool`, which each `airflow` call need not load.
TOOLS = ("confluent", "deviantart", "kafkatos3", "lenses", "zooz")

ADOPT = ActionCommand(
    name="adopt",
    help="Make what another tool wrote readable, as it is",
    description=f"""\
Adopt the objects of another tool: list the folder once, read each object once, and write to the ledger what is known of
it: size, checksum, rows, and the offsets of the rows as far as names and contents tell them. The objects stay as they
are. From then on get, print, audit and open_archive().read know them. Their verdict is `unproven`: what they lack
nobody knows, and no hour becomes complete by them.

An offset is given to a row only if the record has it, or if between the names of two files of a folder there is room
for no other record; never by counting on from a name. Files that repeat others are left out by rule, and counted; so
are files that cannot be read, with the reason. A killed command goes on where it was; a second one changes nothing.

The folder is the store.url of an archive, or below it. The archive has no runs of its own: give it a YAML with
`schedule: null`. Zooz' names have no topic, so it needs --topic.

json and yaml: {{archive, adopted (true or false), tool, verdict, unknown (what no object tells), left_out (a number by
reason), examples (a list of {{key, reason}}), partitions: a list of {{topic, partition, objects, bytes, rows, placed
(rows with a known offset), loose (rows without), first_offset, last_offset, unproven (offsets of which nobody knows
whether Kafka had a record there)}}}}; with --dry-run rows and what follows are null.
{ANSWER}""",
    func=lazy_load_command(f"{__name__}.adopt_folder"),
    args=(
        option("folder", metavar="FOLDER", help="s3://bucket/prefix, as the tool was configured, or a part of it"),
        option("--from", dest="tool", choices=TOOLS, required=True, metavar="TOOL", help=" | ".join(TOOLS)),
        option("--archive", metavar="NAME", help="Into which archive (default: the only one above the folder)"),
        option("--topic", metavar="TOPIC", help="Of Zooz: the topic, which names of objects do not have"),
        option("-n", "--dry-run", action="store_true", help="Only list: read no object, and write nothing"),
        OUTPUT,
    ),
)


@print_answer
@in_audit_log
def adopt_folder(args: Namespace) -> Answer:
    """Adopt the objects of a folder, or show what would be adopted."""
    from kafka_archiver.config.archives import read_archives
    from kafka_archiver.orchestration.connections import open_ledger
    from kafka_archiver.orchestration.folder import config_folder
    from kafka_archiver.work.adopt import adopt, preview

    if (args.tool == "zooz") != bool(args.topic):
        raise ConfigError(
            "--topic: expected with --from zooz, whose names have no topic, and with no other tool; "
            f"found {args.topic or 'none'}"
        )
    archive, folder = archive_of(args.folder, args.archive, list(read_archives(config_folder()).valid.values()))
    ledger = open_ledger(archive)
    if args.dry_run:
        return _preview(archive.archive, args.tool, preview(ledger.store, folder, args.tool, args.topic))
    return _answer(adopt(ledger, folder, args.tool, args.topic, datetime.now(UTC), partial(print, file=sys.stderr)))


def archive_of(folder: str, name: str | None, archives: list[Archive]) -> tuple[Archive, str]:
    """Return the archive that adopts a folder, and the folder's prefix below its store.url.

    :raises ConfigError: there is none, or several.
    """
    url = folder.rstrip("/") + "/"
    above = [a for a in archives if url.startswith(_url(a)) and name in (None, a.archive)]
    if len(above) == 1:
        return above[0], url.removeprefix(_url(above[0]))
    if above:
        names = ", ".join(a.archive for a in above)
        raise ConfigError(f"{folder} is below the store.url of {names}: choose one with --archive NAME")
    chosen = name or "NAME"
    raise ConfigError(
        f"{folder} is below the store.url of no archive{f' {name}' if name else ''}. Write "
        f"include/archives/{chosen}.yaml, and adopt again:\n"
        f"archive: {chosen}\nschedule: null\nsource: {{topics: [TOPIC]}}\nstore: {{url: {url.rstrip('/')!r}}}"
    )


def _url(archive: Archive) -> str:
    return archive.store.url.rstrip("/") + "/"


_COLUMNS = (
    "topic", "partition", "objects", "bytes", "rows", "placed", "loose", "first_offset", "last_offset", "unproven",
)  # fmt: skip


def _preview(archive: str, tool: str, outlook: Preview) -> Answer:
    rows: list[dict[str, Any]] = [
        {
            **dict.fromkeys(_COLUMNS),
            "topic": name.topic,
            "partition": name.partition,
            "objects": objects,
            "bytes": outlook.bytes[name],
        }
        for name, objects in sorted(outlook.objects.items())
    ]
    left_out = dict(sorted(outlook.left_out.items()))
    head = {"archive": archive, "adopted": False, "tool": tool, "verdict": None, "unknown": []}
    examples = [example.model_dump() for example in outlook.examples]
    document = {**head, "left_out": left_out, "examples": examples, "partitions": rows}
    columns = _COLUMNS[:4]
    table = Table(
        columns,
        [[row[name] for name in columns] for row in rows],
        f"{archive} would adopt {count(outlook.objects.total(), 'object')} of {tool}; nothing was read or written",
        below=_left_out(left_out, examples),
    )
    return Answer(document, [table])


def _answer(adoption: Adoption) -> Answer:
    rows = [partition.model_dump(include=set(_COLUMNS)) for partition in adoption.partitions]
    examples = [example.model_dump() for example in adoption.examples]
    document = {
        "archive": adoption.archive,
        "adopted": True,
        "tool": adoption.tool,
        "verdict": adoption.verdict,
        "unknown": list(adoption.unknown),
        "left_out": adoption.left_out,
        "examples": examples,
        "partitions": rows,
    }
    table = Table(
        _COLUMNS,
        [[row[name] for name in _COLUMNS] for row in rows],
        f"{adoption.archive}: {count(adoption.objects, 'object')} of {adoption.tool} adopted, {adoption.verdict}",
        below=[*(f"unknown: {what}" for what in adoption.unknown), *_left_out(adoption.left_out, examples)],
    )
    return Answer(document, [table])


def _left_out(reasons: dict[str, int], examples: list[dict[str, Any]]) -> list[str]:
    lines = []
    for reason, number in reasons.items():
        alike = (item["key"] for item in examples if item["reason"].startswith(reason.removesuffix(" another object")))
        example = next(alike, None)
        lines.append(f"left out: {count(number, 'object')}: {reason}{f', as {example}' if example else ''}")
    return lines
