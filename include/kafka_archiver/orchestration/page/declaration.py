"""The YAML of a new archive, from the fields of a form. Pure."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import yaml

# Layouts that the form offers; with `path` and `fields` come the values of a field.
LAYOUTS = ("hourly", "daily", "topic_partition", "path", "fields")
DECODERS = ("bytes", "string", "json")


class DeclarationForm(NamedTuple):
    """The fields, each with the YAML's default.

    `fields`: paths of the record by which the layout `fields` files, one in a line.
    """

    name: str = ""
    kafka: str = "kafka_default"
    topics: Sequence[str] = ()
    start: str = "earliest"
    decode: str = "bytes"
    schedule: str = "@hourly"
    url: str = ""
    aws: str = "aws_default"
    layout: str = "hourly"
    path: str = ""
    fields: str = ""
    format: str = "jsonl"
    content: str = "value"

    @property
    def is_filled(self) -> bool:
        """True if there is enough for a YAML."""
        return bool(self.name and self.topics and self.url)


def yaml_of(form: DeclarationForm) -> str:
    """Return the YAML, without what is the default."""
    values = {key: value for key, value in form._asdict().items() if value and value != form._field_defaults[key]}
    source = {
        **_some(values, "kafka"),
        "topics": list(form.topics),
        **_some(values, "start"),
        **({"value": {"decode": form.decode}} if "decode" in values else {}),
    }
    layout: Any = {"path": form.path} if form.layout == "path" else None
    if form.layout == "fields":
        layout = {"fields": [line.strip() for line in form.fields.splitlines() if line.strip()]}
    store = {
        "url": form.url,
        **_some(values, "aws"),
        **({"layout": layout} if layout else _some(values, "layout")),
        **_some(values, "format", "content"),
    }
    document = {"archive": form.name, **_some(values, "schedule"), "source": source, "store": store}
    return yaml.safe_dump(document, sort_keys=False, allow_unicode=True, width=1000)


def _some(values: Mapping[str, Any], *keys: str) -> dict[str, Any]:
    return {key: values[key] for key in keys if key in values}
