"""The YAML of an imported archive, with its notes as comments. Pure."""

import textwrap
from collections.abc import Iterator, Sequence
from typing import Any

import yaml

from kafka_archiver.imports.base import Draft, Imported, Keys, Kind, Note

_TITLES: dict[Kind, str] = {
    "by_hand": "To do by hand:",
    "lacks": "Without an equivalent:",
    "unknown": "Not understood, and left out:",
    "differs": "Different on purpose:",
    "kept": "The same here:",
}
_WIDTH = 120


def to_yaml(imported: Imported, draft: Draft, keys: Keys, file: str) -> str:
    """The text of one archive's file."""
    lines = [
        f"# Made from {file} ({imported.tool}) by `airflow archive import`.",
        "# Stop the tool before the first run. If its objects are below store.url, choose another prefix or move them.",
    ]
    notes = [*imported.notes, *draft.notes]
    for kind, title in _TITLES.items():
        if mine := [note for note in notes if note.kind == kind]:
            lines += ["#", f"# {title}", *_comments(mine, keys)]
    return (
        "\n".join(lines)
        + "\n\n"
        + yaml.dump(
            _escaped(draft.content),
            Dumper=_Dumper,
            sort_keys=False,
            allow_unicode=True,
            width=_WIDTH,
            default_flow_style=None,
        )
    )


def _comments(notes: Sequence[Note], keys: Keys) -> Iterator[str]:
    for note in notes:
        text = f"{keys.shown(note.key)}: {note.text}" if note.key else note.text
        yield from textwrap.wrap(
            text,
            _WIDTH,
            initial_indent="# - ",
            subsequent_indent="#   ",
            break_long_words=False,
            break_on_hyphens=False,
        )


def _escaped(value: Any) -> Any:
    """The content without environment variables: `${` is text."""
    if isinstance(value, str):
        return value.replace("${", "$${")
    if isinstance(value, dict):
        return {key: _escaped(item) for key, item in value.items()}
    return [_escaped(item) for item in value] if isinstance(value, list) else value


class _Dumper(yaml.SafeDumper):
    """Without anchors: each value stands where it is used."""

    def ignore_aliases(self, data: Any) -> bool:  # noqa: ARG002 - overrides
        return True
