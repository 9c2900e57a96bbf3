"""The documentation of an archive's DAG in Airflow's UI."""

from collections.abc import Iterator, Mapping
from contextlib import suppress
from datetime import datetime, timedelta
from textwrap import shorten
from typing import Any

from pydantic import BaseModel

from kafka_archiver.config import Archive
from kafka_archiver.config.times import longest_interval
from kafka_archiver.messages.errors import ConfigError
from kafka_archiver.messages.secrets import shown
from kafka_archiver.model.object_keys import ledger_prefix
from kafka_archiver.model.schemas import Schema
from kafka_archiver.orchestration.dags.assets import hours_name
from kafka_archiver.records.formats import resolve
from kafka_archiver.values.documents import isoformat
from kafka_archiver.values.intervals import spelt


def doc_md(archive: Archive, text: str) -> str:
    """Return the DAG's documentation: the module's own, then this archive's settings.

    :param text: the docstring of the DAG's module.
    """
    effective = _effective(archive)
    rows = "\n".join(
        f"| `{key}` | {_cell(effective.get(key, value))} | {'YAML' if in_yaml else 'default'} |"
        for key, value, in_yaml in [*_settings(archive), *_of_format(effective)]
    )
    head = f"{archive.description}\n\n" if archive.description else ""
    ledger = f"{archive.store.url.rstrip('/')}/{ledger_prefix(archive.archive)}"
    return (
        f"{head}{text.strip()}\n\n"
        f"**Ledger:** `{ledger}` · **hours as assets:** `{hours_name(archive)}` · "
        f"**on a terminal:** `airflow archive status {archive.archive}`\n\n"
        f"| Setting | Value | From |\n|---|---|---|\n{rows}\n"
    )


def _effective(archive: Archive) -> dict[str, Any]:
    """Return the values in use of settings that the YAML may leave open."""
    values: dict[str, Any] = {"source.group": archive.group}
    if archive.source.reader == "auto":
        values["source.reader"] = "auto (native)"
    if archive.health.max_age is None and archive.schedule:
        values["health.max_age"] = 2 * longest_interval(archive.schedule) + timedelta(hours=1)
    # The lists that are null.
    values |= {
        f"alerts.{key}": "as on_failure"
        for key in type(archive.alerts).model_fields
        if key.startswith("on_") and getattr(archive.alerts, key) is None and archive.alerts.on_failure
    }
    # A wrong format is reported by `plan`, `doctor` and `validate`.
    with suppress(ConfigError):
        settings = resolve(archive.settings, archive.has_columns)
        options = {name: value for name, value in settings.options.items() if name not in archive.store.options}
        values |= {"store.codec": settings.codec, **{f"store.options.{name}": value for name, value in options.items()}}
    return values


def _of_format(effective: Mapping[str, Any]) -> Iterator[tuple[str, Any, bool]]:
    """Yield the format's options that the YAML does not give."""
    yield from ((key, value, False) for key, value in effective.items() if key.startswith("store.options."))


def _settings(section: BaseModel, prefix: str = "") -> Iterator[tuple[str, Any, bool]]:
    """Yield key, value, and whether the YAML has it."""
    for name, field in type(section).model_fields.items():
        key, value, in_yaml = prefix + (field.alias or name), getattr(section, name), name in section.model_fields_set
        if isinstance(value, Schema):
            # On one line: a line break ends the table.
            yield key, shorten(value.text, 200, placeholder=" …"), in_yaml
        elif isinstance(value, BaseModel):
            yield from _settings(value, key + ".")
        elif isinstance(value, Mapping) and value:
            yield from ((f"{key}.{name}", shown(f"{key}.{name}", option), in_yaml) for name, option in value.items())
        elif key != "description":
            yield key, value, in_yaml


def _plain(value: Any) -> str:
    """Return a value as YAML has it."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, timedelta):
        return spelt(value) or ""
    return isoformat(value) if isinstance(value, datetime) else str(value)


def _cell(value: Any) -> str:
    if value is None or value in ((), {}, ""):
        return "—"
    text = ", ".join(map(_plain, value)) if isinstance(value, tuple) else _plain(value)
    # In Markdown, a bar ends a cell even inside code.
    return f"`{text.replace('|', '∣').replace('`', '′')}`"
