"""The YAML of archives, made from another tool's configuration. Pure, except for the environment's variables."""

import os
import re
from collections.abc import Mapping
from typing import Any, NamedTuple

from kafka_archiver.config import parse_archive
from kafka_archiver.imports.base import OPEN, Note
from kafka_archiver.imports.reading import documents_of
from kafka_archiver.imports.registry import ForeignConnectorError, import_text
from kafka_archiver.imports.text import to_yaml, unfilled
from kafka_archiver.messages.errors import ConfigError
from kafka_archiver.messages.foreign_text import in_one_line
from kafka_archiver.planning.given_schemas import require_readable
from kafka_archiver.planning.settings import settings_of

# Notes that a person should not miss.
_TO_SHOW = ("by_hand", "lacks", *OPEN)


class ArchiveYaml(NamedTuple):
    """The YAML of one archive. `problems`: why it is not valid; each line names the key."""

    archive: str
    yaml: str
    problems: tuple[str, ...]


class ImportResult(NamedTuple):
    """The archives of a file.

    `faults`: of what no archive could be made. `left_out`: a note for each connector of another tool.
    """

    tools: tuple[str, ...]
    archives: tuple[ArchiveYaml, ...]
    notes: tuple[Note, ...]
    faults: tuple[str, ...]
    left_out: tuple[Note, ...] = ()

    @property
    def undecided(self) -> list[Note]:
        """The notes that a person has to decide."""
        return [note for note in (*self.notes, *self.left_out) if note.kind in OPEN]

    @property
    def remarks(self) -> int:
        """The number of notes that a person should not miss."""
        return sum(note.kind in _TO_SHOW for note in self.notes)


def archives_of(
    text: str,
    file: str,
    tool: str | None = None,
    group: str | None = None,
    worker: Mapping[str, str] | None = None,
) -> ImportResult:
    """Make the archives of every connector in a file, or of the one configuration that it is.

    Kafka Connect lists all its connectors. Those of other tools are left out of several, with a note for a person.

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
    foreign: list[ForeignConnectorError] = []
    for number, document in enumerate(documents, start=1):
        place = f"{file}, connector {number}" if documents[1:] else file
        try:
            imported, keys = import_text(document, place, tool, group, worker)
        except ForeignConnectorError as error:
            foreign.append(error)
            continue
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
        raise ConfigError("\n".join([*map(str, foreign), *faults]))
    left_out = [
        Note("decide", "", f"left out: {in_one_line(error.connector)} is no sink that is understood")
        for error in foreign
    ]
    return ImportResult(tuple(dict.fromkeys(tools)), tuple(archives), tuple(notes), tuple(faults), tuple(left_out))


def _problems(yaml: str, content: dict[str, Any]) -> list[str]:
    # Their values are known where the archive runs.
    variables = dict.fromkeys(re.findall(r"\$\{(\w+)\}", yaml), "x") | dict(os.environ)
    try:
        archive = parse_archive(yaml, "", variables)
        require_readable(archive, settings_of(archive))
    except ConfigError as error:
        faults = [line.removeprefix(": ") for line in str(error).splitlines()]
    else:
        faults = []
    missing = list(unfilled(content))
    named = {line.partition(":")[0] for line in missing}
    return [*missing, *(line for line in faults if line.partition(":")[0] not in named)]
