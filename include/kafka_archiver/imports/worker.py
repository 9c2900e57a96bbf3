"""The worker of a connector: what it does where the connector says nothing. Pure."""

import re
from collections.abc import Iterator, Mapping
from typing import Any

from kafka_archiver.config.properties import property_text
from kafka_archiver.imports.reading import read_keys
from kafka_archiver.imports.yaml_files import documents, is_yaml, walked
from kafka_archiver.messages.errors import ConfigError

COLUMNS = ("key", "value", "header")
_READ = re.compile(r"(key|value|header)\.converter(\..*)?|offset\.flush\.interval\.ms")
_NEEDED = "value.converter"


def worker_keys(text: str, file: str) -> dict[str, str]:
    """Return what a worker's configuration says of converters.

    It may be the worker's properties, its environment (CONNECT_VALUE_CONVERTER, also in Docker Compose or a
    Deployment), or a resource of the kind KafkaConnect.

    :raises ConfigError: it names no converter, or several workers do with different ones.
    """
    workers = [keys for keys in map(_of_converters, _candidates(text, file)) if _NEEDED in keys]
    if not workers:
        raise ConfigError(f"{file}: expected the configuration of a Kafka Connect worker; found no {_NEEDED} in it")
    if any(keys != workers[0] for keys in workers[1:]):
        count = len(workers)
        raise ConfigError(f"{file}: expected one worker; found {count} with different converters: give one alone")
    return workers[0]


def _candidates(text: str, file: str) -> Iterator[Mapping[str, Any]]:
    stripped = text.lstrip("\ufeff \t\r\n")
    if not is_yaml(stripped, file):
        yield read_keys(text, file)
        return
    for document in documents(stripped, file):
        for _, mapping, _ in walked(document, file):
            yield mapping
            for value in mapping.values():
                if isinstance(value, list):
                    yield dict(_variables(value))


def _variables(listed: list[Any]) -> Iterator[tuple[str, Any]]:
    """Yield the environment of a list: of NAME=value, or of mappings with `name` and `value`."""
    for item in listed:
        if isinstance(item, str) and "=" in item:
            name, _, value = item.partition("=")
            yield name, value
        elif isinstance(item, dict) and "name" in item:
            yield str(item["name"]), item.get("value")


def _of_converters(keys: Mapping[str, Any]) -> dict[str, str]:
    named = {_name(key): value for key, value in keys.items() if not isinstance(value, dict | list | None)}
    texts = {key: property_text(value) for key, value in named.items()}
    return {key: value for key, value in texts.items() if _READ.fullmatch(key)}


def _name(key: str) -> str:
    """Return the worker's key of an environment variable; another key is its own."""
    if not re.fullmatch(r"(CONNECT_)?(KEY|VALUE|HEADER|OFFSET)_[A-Z0-9_]+", key):
        return key
    dots = key.removeprefix("CONNECT_").lower()
    return re.sub("_+", lambda run: {1: ".", 2: "_", 3: "-"}.get(len(run[0]), run[0]), dots)


def merged(values: Mapping[str, str], worker: Mapping[str, str]) -> dict[str, str]:
    """Return a connector's keys with its worker's converters where it names none.

    Kafka Connect takes a worker's converter with the worker's options, not with those of the connector.
    """
    keys = dict(values)
    for column in COLUMNS:
        if f"{column}.converter" in values or f"{column}.converter" not in worker:
            continue
        keys = {key: value for key, value in keys.items() if not key.startswith(f"{column}.converter.")}
        keys |= {key: value for key, value in worker.items() if key.startswith(f"{column}.converter")}
    return {key: value for key, value in worker.items() if key.startswith("offset.")} | keys
