"""The documentation of an archive's DAG in Airflow's UI."""

from collections.abc import Iterator, Mapping
from textwrap import shorten
from typing import Any

from pydantic import BaseModel

from kafka_archiver.config import Archive
from kafka_archiver.keys import ledger_prefix
from kafka_archiver.orchestration.dags.assets import hours_name
from kafka_archiver.schemas import Schema
from kafka_archiver.secrets import shown


def doc_md(archive: Archive, text: str) -> str:
    """The DAG's documentation: the module's own, then this archive's settings.

    :param text: the docstring of the DAG's module.
    """
    rows = "\n".join(f"| `{key}` | {_cell(value)} |" for key, value in _settings(archive))
    head = f"{archive.description}\n\n" if archive.description else ""
    ledger = f"{archive.store.url.rstrip('/')}/{ledger_prefix(archive.archive)}"
    return (
        f"{head}{text.strip()}\n\n"
        f"**Ledger:** `{ledger}` · **hours as assets:** `{hours_name(archive)}` · "
        f"**on a terminal:** `airflow archive status {archive.archive}`\n\n"
        f"| Setting | Value |\n|---|---|\n{rows}\n"
    )


def _settings(section: BaseModel, prefix: str = "") -> Iterator[tuple[str, Any]]:
    for name, field in type(section).model_fields.items():
        key, value = prefix + (field.alias or name), getattr(section, name)
        if isinstance(value, Schema):
            # On one line: a line break ends the table.
            yield key, shorten(value.text, 200, placeholder=" …")
        elif isinstance(value, BaseModel):
            yield from _settings(value, key + ".")
        elif isinstance(value, Mapping) and value:
            yield from ((f"{key}.{name}", shown(f"{key}.{name}", found)) for name, found in value.items())
        elif key != "description":
            yield key, value


def _cell(value: Any) -> str:
    if value is None or value in ((), {}):
        return "—"
    text = ", ".join(map(str, value)) if isinstance(value, tuple) else str(value)
    # In Markdown, a bar ends a cell even inside code.
    return f"`{text.replace('|', '∣').replace('`', '′')}`"
