"""The tools whose configurations are understood, and whose a file is. One line for each tool."""

from collections.abc import Callable, Mapping
from types import ModuleType
from typing import NamedTuple

from kafka_archiver.imports import aiven, confluent, confluent_cloud, deviantart, kafkatos3, lenses, zooz
from kafka_archiver.imports.base import Imported, Keys
from kafka_archiver.imports.reading import read_keys
from kafka_archiver.imports.worker import merged
from kafka_archiver.messages.errors import ConfigError


class ForeignConnectorError(ConfigError):
    """The configuration is a connector's, and of none of the tools. `connector`: its name and class."""

    def __init__(self, message: str, keys: Keys) -> None:
        super().__init__(message)
        kind = keys.get("connector.class")
        self.connector = f"{keys.get('name')} ({kind})" if "name" in keys else kind


class Tool(NamedTuple):
    """A tool. `is_of`: whether keys are of it; `known_by`: what it is known by, for messages."""

    name: str
    draft: Callable[[Keys], Imported]
    is_of: Callable[[Keys], bool]
    known_by: str


def _of_class(tool: ModuleType) -> Tool:
    """Return a tool that is known by its connector's class."""
    return Tool(
        tool.TOOL,
        tool.draft,
        lambda keys: keys.get("connector.class") == tool.CLASS,
        f"connector.class {tool.CLASS}",
    )


_LENSES = (
    "io.lenses.streamreactor.connect.aws.s3.sink.S3SinkConnector",
    "com.datamountaineer.streamreactor.connect.aws.s3.sink.S3SinkConnector",
)
# Names by which Kafka Connect finds a class, whichever package it is in.
_SHORT = ("S3SinkConnector", "S3Sink")
TOOLS = {
    "confluent": _of_class(confluent),
    "cloud": _of_class(confluent_cloud),
    "aiven": _of_class(aiven),
    "lenses": Tool(
        lenses.TOOL,
        lenses.draft,
        lambda keys: keys.get("connector.class") in _LENSES or lenses.KCQL in keys,
        lenses.KCQL,
    ),
    "deviantart": _of_class(deviantart),
    "zooz": Tool(zooz.TOOL, zooz.draft, zooz.is_of, "SOURCE_KAFKA_TOPIC and S3_BUCKET_NAME"),
    "kafkatos3": Tool(
        kafkatos3.TOOL,
        kafkatos3.draft,
        lambda keys: "consumer.kafka_consumer_group" in keys,
        "[consumer] kafka_consumer_group",
    ),
}


def import_text(
    text: str, file: str, tool: str | None = None, group: str | None = None, worker: Mapping[str, str] | None = None
) -> tuple[Imported, Keys]:
    """The archives of another tool's configuration.

    :param file: the name of the text in messages.
    :param tool: whose it is, a key of `TOOLS`; None: known by its keys.
    :param group: the consumer group to take over from; None: the one that the file tells.
    :param worker: the converters of the connector's worker, as `worker.worker_keys` gives them.
    :returns: with the file's keys.
    :raises ForeignConnectorError: it is a connector of no known tool.
    :raises ConfigError: the file is of no known tool, or not as the tool documents it.
    """
    keys = Keys(merged(read_keys(text, file), worker or {}), group or "")
    chosen = TOOLS[tool] if tool else _tool_of(keys, file)
    if worker and chosen in (TOOLS["zooz"], TOOLS["kafkatos3"]):
        raise ConfigError(f"{file}: --worker is for connectors of Kafka Connect; {chosen.name} is none")
    if keys.get("connector.class") not in ("", *_SHORT) and not chosen.is_of(keys):
        keys.decide("connector.class", f"it is read as the {chosen.name}, which is known by {chosen.known_by}")
    try:
        imported = chosen.draft(keys)
    except ConfigError as error:
        raise ConfigError("\n".join(f"{file}: {line}" for line in str(error).splitlines())) from None
    if group:
        for draft in imported.drafts:
            draft.content["source"]["start"] = f"group:{group}"
    return imported, keys


def _tool_of(keys: Keys, file: str) -> Tool:
    for tool in TOOLS.values():
        if tool.is_of(keys):
            return tool
    known = "; ".join(f"{tool.name}: {tool.known_by}" for tool in TOOLS.values())
    if keys.get("connector.class") in _SHORT:
        raise ConfigError(
            f"{file}: connector.class {keys.get('connector.class')} is a short name, which several tools have; "
            f"say whose it is with --from {'|'.join(TOOLS)}"
        )
    if "source" in keys.get("connector.class").lower():
        raise ForeignConnectorError(
            f"{file}: expected a connector that writes to S3; found {keys.get('connector.class')}, which reads", keys
        )
    what = f"connector.class {keys.get('connector.class')}" if "connector.class" in keys else _first(keys)
    message = (
        f"{file}: the configuration of no known tool; found {what}. Understood are, by their keys: {known}. If it is "
        f"one of these, say so with --from {'|'.join(TOOLS)}"
    )
    raise ForeignConnectorError(message, keys) if "connector.class" in keys else ConfigError(message)


def _first(keys: Keys) -> str:
    names = keys.starting("")
    return f"the keys {', '.join(names[:5])}" + (" …" if names[5:] else "")
