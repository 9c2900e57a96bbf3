"""Connectors in YAML: resources of Kubernetes (Strimzi, Confluent), Helm's values, plain mappings. Pure."""

import re
from collections.abc import Iterator, Mapping
from itertools import pairwise
from typing import Any

import yaml

from kafka_archiver.messages.errors import ConfigError
from kafka_archiver.messages.secrets import key_name

_MOST = 100_000
# What a resource says of how its connector is run: nothing that decides a key or a byte.
_RUNS = frozenset(
    ["autoRestart", "pause", "state", "version", "connectClusterRef", "restartPolicy", "connectRest", "listOffsets",
     "alterOffsets"]
)  # fmt: skip
_CLASS = "connector.class"
_KINDS = ("KafkaConnector", "Connector")
_KEYED = re.compile(r"[\w.$-]+:(\s|$)")


class _Texts(yaml.SafeLoader):
    """Leaves numbers and dates as they are written: 1_000, 010 and 12:30 are text. Refuses duplicate keys."""

    yaml_implicit_resolvers = {  # noqa: RUF012 - overrides the loader's
        first: [(tag, pattern) for tag, pattern in resolvers if tag.rsplit(":", 1)[-1] in ("bool", "null", "merge")]
        for first, resolvers in yaml.SafeLoader.yaml_implicit_resolvers.items()
    }

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> Any:
        keys = set()
        for key_node, _ in node.value:
            if isinstance(key_node, yaml.ScalarNode):
                if key_node.value in keys and key_node.value != "<<":
                    line = key_node.start_mark.line + 1
                    raise ConfigError(f"line {line}: key `{key_name(key_node.value)}` is given twice")
                keys.add(key_node.value)
        return super().construct_mapping(node, deep)


def is_yaml(text: str, file: str) -> bool:
    """Return True if a text that is no JSON is YAML. Lines of `key: value` alone are also properties."""
    lines = [line.rstrip() for line in text.splitlines() if line.strip() and line.lstrip()[0] not in "#!"]
    if not lines or any(line.lstrip().startswith("[") and line.rstrip().endswith("]") for line in lines[:1]):
        return False
    if file.endswith((".yaml", ".yml")) or lines[0].startswith(("apiVersion:", "kind:", "- ")) or "---" in lines:
        return True
    # A mapping within a mapping, or a value in quotes, is none of properties.
    nested = any(
        line.rstrip().endswith(":") and "=" not in line and below[:1] in (" ", "-") for line, below in pairwise(lines)
    )
    return nested or (all(map(_KEYED.match, lines)) and not file.endswith(".properties") and _is_mapping(text, file))


def _is_mapping(text: str, file: str) -> bool:
    """Return True if lines of `key: value` are YAML, too: then a # ends a value, and quotes are none of it."""
    try:
        return isinstance(documents(text, file)[0], dict)
    except ConfigError:
        return False


def documents(text: str, file: str) -> list[Any]:
    """Return the documents of a YAML text.

    :raises ConfigError: it is not YAML. The message has no value.
    """
    try:
        return [document for document in yaml.load_all(text, _Texts) if document is not None]
    except ConfigError as error:
        raise ConfigError(f"{file}: {error}") from None
    except (yaml.YAMLError, ValueError, RecursionError, TypeError) as error:
        mark = getattr(error, "problem_mark", None)
        where = f" (line {mark.line + 1})" if mark else ""
        hint = "; a template ({{ … }}) has to be rendered first" if "{{" in text else ""
        raise ConfigError(f"{file}: not YAML{where}{hint}") from None


def connectors(text: str, file: str) -> list[dict[str, Any]]:
    """Return each connector of a YAML text as `{"name": …, "config": {…}}`; the name may be missing.

    :raises ConfigError: it is not YAML, or has no connector.
    """
    return connectors_in(documents(text, file), file)


def connectors_in(content: list[Any], file: str) -> list[dict[str, Any]]:
    """Return each connector of some documents, as `connectors` does.

    :raises ConfigError: there is none.
    """
    of_classes = [connector for document in content for connector in _of(document, file)]
    if of_classes:
        return of_classes
    plain = [document for document in content if isinstance(document, dict)]
    if len(plain) == 1 and not {"apiVersion", "kind", "services"} & set(plain[0]):
        return [{"config": dict(_flat(plain[0], file))}]
    kinds = sorted({str(document["kind"]) for document in plain if "kind" in document})
    what = f"resources of the kind {', '.join(kinds)}" if kinds else f"{len(content)} documents without {_CLASS}"
    if any("services" in document for document in plain):
        what = "services of Docker Compose: their environment is the worker's, which --worker takes"
    raise ConfigError(
        f"{file}: expected a connector: a resource of the kind KafkaConnector, or a mapping with {_CLASS}; found {what}"
    )


def _of(document: Any, file: str) -> Iterator[dict[str, Any]]:
    for names, mapping, above in walked(document, file):
        if mapping.get("kind") in _KINDS and isinstance(mapping.get("spec"), dict):
            yield _resource(mapping, file)
        elif _is_spec(mapping, above):
            # A part of a resource, or an item of Helm's values.
            metadata = above.get("metadata") if names[-1:] == ("spec",) and isinstance(above, dict) else None
            yield _resource({"spec": mapping, "metadata": metadata}, file)
        elif _CLASS in mapping and names[-2:] not in (("spec", "config"), ("spec", "configs")):
            # The name may stand beside a mapping `config`.
            name = above.get("name") if names[-1:] == ("config",) and isinstance(above, dict) else None
            yield {"config": dict(_flat(mapping, file))} | ({"name": name} if isinstance(name, str) else {})


def _is_spec(mapping: Mapping[str, Any], above: Any) -> bool:
    """Return True if a mapping says by itself what the `spec` of a resource says."""
    if isinstance(above, dict) and above.get("kind") in _KINDS:
        return False
    config = mapping.get("config")
    return isinstance(mapping.get("class"), str) and isinstance(config, dict) and _CLASS not in config


def _resource(resource: Mapping[str, Any], file: str) -> dict[str, Any]:
    """Return the connector of a resource of Strimzi or Confluent for Kubernetes."""
    spec = resource["spec"]
    metadata = resource.get("metadata")
    own = {"class": _CLASS, "tasksMax": "tasks.max", "taskMax": "tasks.max"}
    config: dict[str, Any] = {own[key]: value for key, value in spec.items() if key in own}
    for key in ("config", "configs"):
        config |= dict(_flat(spec[key], file)) if isinstance(spec.get(key), dict) else {}
    known = {*own, *_RUNS, "config", "configs", "name"}
    config |= {f"spec.{key}": str(value) for key, value in spec.items() if key not in known}
    name = spec.get("name") or (metadata.get("name") if isinstance(metadata, dict) else None)
    return {"name": name, "config": config} if name else {"config": config}


def walked(content: Any, file: str) -> Iterator[tuple[tuple[str, ...], dict[str, Any], Any]]:
    """Yield each mapping with the names that lead to it, and what it is in.

    :raises ConfigError: there are too many: references within a YAML can stand for any number.
    """
    waiting: list[tuple[tuple[str, ...], Any, Any]] = [((), content, None)]
    visited = 0
    while waiting:
        names, value, above = waiting.pop()
        visited += 1
        if visited > _MOST or len(names) > 100:
            raise ConfigError(f"{file}: expected at most {_MOST} values, 100 deep; found more")
        if isinstance(value, dict):
            yield names, {str(key): item for key, item in value.items()}, above
        items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
        waiting += [((*names, str(key)), item, value) for key, item in reversed(list(items))]


def _flat(content: Mapping[str, Any], file: str) -> Iterator[tuple[str, Any]]:
    """Yield nested keys with dots between them."""
    for names, mapping, _ in walked(content, file):
        for key, value in mapping.items():
            if not isinstance(value, dict | list):
                yield ".".join((*names, key)), value
            elif isinstance(value, list):
                yield ".".join((*names, key)), ",".join(map(str, value))
