"""The YAML of an imported archive, with its notes as comments. Pure."""

import re
import textwrap
from collections.abc import Iterator, Sequence
from typing import Any

import yaml

from kafka_archiver.config.yaml_text import NAME
from kafka_archiver.imports.base import Draft, Imported, Keys, Kind, Note

_TITLES: dict[Kind, str] = {
    "decide": "To decide, because it is not the same here, or not known:",
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
        f"# Made from {_printable(file)} ({imported.tool}) by `airflow archive import`.",
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
            _with_variables(draft.content),
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
            _printable(" ".join(text.split())),
            _WIDTH,
            initial_indent="# - ",
            subsequent_indent="#   ",
            break_long_words=False,
            break_on_hyphens=False,
        )


def _printable(text: str) -> str:
    """A text that ends no comment."""
    return "".join(c if c.isprintable() else ascii(c)[1:-1] for c in text)


def unfilled(value: Any, where: str = "") -> Iterator[str]:
    """Yield the values that a person must fill in: values that something else replaced before the other tool read
    them.
    """
    if isinstance(value, str):
        for variable in dict.fromkeys(re.findall(r"\$\{[^{}]*\}", value)):
            if not _START.fullmatch(variable):
                yield (
                    f"`{where}`: {variable} is not replaced here; write what it stands for, or ${{NAME}}, which is an "
                    "environment variable of Airflow's scheduler, DAG processor and workers"
                )
        return
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, item in items:
        yield from unfilled(item, f"{where}.{key}" if where else str(key))


# A variable of Kafka Connect's EnvVarConfigProvider is one of ours.
_START = re.compile(rf"\$\{{(?:env:({NAME})\}})?")


def _with_variables(value: Any) -> Any:
    """The content with environment variables as our YAML has them; any other `${` is text."""
    if isinstance(value, str):
        return _START.sub(lambda match: f"${{{match[1]}}}" if match[1] else "$${", value)
    if isinstance(value, dict):
        return {key: _with_variables(item) for key, item in value.items()}
    return [_with_variables(item) for item in value] if isinstance(value, list) else value


class _Dumper(yaml.SafeDumper):
    """Without anchors: each value stands where it is used."""

    def ignore_aliases(self, data: Any) -> bool:  # noqa: ARG002 - overrides
        return True

    def text(self, data: str) -> yaml.ScalarNode:
        r"""Write line breaks as `\n`."""
        return self.represent_scalar("tag:yaml.org,2002:str", data, style='"' if "\n" in data else None)


_Dumper.add_representer(str, _Dumper.text)
