"""The form "Restore to Kafka": the parameters of the DAG that restores, as fields of a page. Pure."""

from collections.abc import Collection
from typing import Any

from kafka_archiver.messages.errors import ConfigError
from kafka_archiver.orchestration.dag_run.params import utc
from kafka_archiver.orchestration.dag_run.restore_form import FIELDS, FormField
from kafka_archiver.orchestration.page.submitted import SubmittedForm
from kafka_archiver.values.documents import isoformat

# Topics that are offered as boxes; more are a field of text.
BOXES = 20
# The section that is open at first.
FIRST = "Target"
# Lines that are bytes of records: with their spaces, and cut at line feeds alone.
_VERBATIM = frozenset({"keys", "headers"})


def sections(topics: Collection[str]) -> list[tuple[str, list[FormField]]]:
    """Return the fields by section, in the order of the form.

    :param topics: those that the archive has.
    """
    by_section: dict[str, list[FormField]] = {}
    for field in FIELDS:
        if field.key == "topics" and 0 < len(topics) <= BOXES:
            field = field._replace(schema={**field.schema, "items": {"type": "string", "enum": sorted(topics)}})
        by_section.setdefault(field.section, []).append(field)
    return list(by_section.items())


def conf_of_fields(form: SubmittedForm) -> dict[str, Any]:
    """Return the conf of a DAG run: the parameters that differ from their defaults.

    :raises ConfigError: a field is wrong.
    """
    values = {field.key: _value(field, form) for field in FIELDS}
    return {field.key: values[field.key] for field in FIELDS if values[field.key] not in (None, [], field.default)}


def _value(field: FormField, form: SubmittedForm) -> Any:
    kind, text = field.kind, form.get(field.key)
    if field.key in _VERBATIM:
        texts = (value for key, value in form.fields if key == field.key)
        return [line.removesuffix("\r") for text in texts for line in text.split("\n") if line.strip()]
    if kind in ("several", "lines", "numbers"):
        lines = [line.strip() for value in form.all(field.key) for line in value.splitlines() if line.strip()]
        return [_number(field.key, part) for line in lines for part in line.split(",")] if kind == "numbers" else lines
    if kind == "flag":
        return bool(text)
    if not text:
        return field.default
    return _number(field.key, text) if kind == "number" else _time(field.key, text) if kind == "time" else text


def _number(key: str, text: str) -> int:
    if not text.strip().isascii() or not text.strip().isdigit() or len(text) > 19:
        raise ConfigError(f"`{key}`: expected a number from 0 on, found {text[:40]!r}")
    return int(text)


def _time(key: str, text: str) -> str:
    try:
        return isoformat(utc(text.replace(" ", "T")))
    except (ValueError, OverflowError):
        raise ConfigError(f"`{key}`: expected a time like 2026-11-21T05:00, UTC, found {text[:40]!r}") from None
