"""Where archives are declared: the YAML files of a folder, and environment variables."""

import re
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from kafka_archiver.config.archive import Archive
from kafka_archiver.config.kinds import items_of, place_of
from kafka_archiver.config.load import archive_files, load_archive, make_archive
from kafka_archiver.config.yaml_text import Read, read_yaml
from kafka_archiver.messages.errors import ConfigError

PREFIX = "ARCHIVER_"
PREFIXES = "ARCHIVER_PREFIXES"
# Other variables that begin so: of this package, and those that Kubernetes sets for a service called `archiver`.
_OTHERS = re.compile(
    r"ARCHIVER_(CONFIG_DIR|PREFIXES|WATCHDOG_ALERTS|PAGE_RECORDS)"
    r"|.*_?(SERVICE_HOST|SERVICE_PORT(_\w+)?|PORT(_\d+_(TCP|UDP|SCTP)(_\w+)?)?)"
)
FOLDER = "ARCHIVER_CONFIG_DIR"


def place(prefix: str) -> str:
    """The name, in messages and lists, of the variables that describe an archive."""
    return f"environment variables {prefix}*"


def prefixes(environ: Mapping[str, str]) -> tuple[str, ...]:
    """The prefixes of the archives that the environment describes."""
    more = re.split(r"[,\s]+", environ.get(PREFIXES, "").strip())
    keys = tuple(f"{PREFIX}{name.upper()}" for name in Archive.model_fields)
    described = any(name == key or name.startswith(f"{key}__") for name in environ for key in keys)
    return tuple(dict.fromkeys([*([PREFIX] if described else []), *filter(None, more)]))


def archive_of(prefix: str, environ: Mapping[str, str], folder: Path) -> Archive:
    """The archive that the variables with a prefix describe: `ARCHIVER_SOURCE__TOPICS=orders` is `source: {topics:
    [orders]}`.

    :param folder: of the files of schemas.
    :raises ConfigError: they are not an archive; the message names each wrong variable, and no value.
    """
    # Not those of a longer prefix.
    longer = tuple(p for p in prefixes(environ) if p != prefix and p.startswith(prefix))
    content: dict[str, Any] = {}
    variables: dict[str, tuple[str, ...]] = {}
    faults: list[str] = []
    for name in sorted(environ):
        if not name.startswith(prefix) or _OTHERS.fullmatch(name) or (longer and name.startswith(longer)):
            continue
        keys = tuple(name.removeprefix(prefix).lower().split("__"))
        try:
            path, value = _value(keys, environ[name])
        except ValueError as error:
            faults.append(f"{name}: {error}")
            continue
        if not _put(content, path, value):
            faults.append(f"{name}: `{'.'.join(path)}` is given twice, by another variable too")
        variables |= _named(path, value, name)
    if faults:
        raise ConfigError("\n".join(f"{place(prefix)}: {line}" for line in faults))
    return make_archive(Read(content, variables), place(prefix), folder)


def _put(content: dict[str, Any], path: tuple[str, ...], value: Any) -> bool:
    """Put a value in its place; false if the place is taken."""
    inner: Any = content
    for key in path[:-1]:
        inner = inner.setdefault(key, {})
        if not isinstance(inner, dict):
            return False
    return inner.setdefault(path[-1], value) is value


def _value(keys: tuple[str, ...], text: str) -> tuple[tuple[str, ...], Any]:
    """The YAML's keys of a variable, and its value: a list or mapping as YAML in brackets, a list also with commas,
    `null` as none, else text. The types of numbers take text too.

    :raises ValueError: no archive has these keys, or the value is not YAML.
    """
    place = place_of(keys)
    if text[:1] in ("[", "{") and place.is_structure:
        try:
            # The value of a variable names no other variable.
            return place.keys, read_yaml(text.replace("${", "$${"), {}).content
        except ConfigError as error:
            raise ValueError(str(error)) from None
    if text == "null":
        return place.keys, None
    return place.keys, items_of(text) if place.is_list else text


def _named(path: tuple[str, ...], value: Any, name: str) -> dict[str, tuple[str, ...]]:
    """The variable for each place of its value."""
    names: dict[str, tuple[str, ...]] = {".".join(path): (name,)}
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, item in items:
        names |= _named((*path, str(key)), item, name)
    return names


class Declaration(NamedTuple):
    """A place that declares one archive. `file`: the YAML file, or `environment variables ARCHIVER_*`."""

    file: Path
    load: Callable[[], Archive]


def declarations(folder: Path, environ: Mapping[str, str]) -> list[Declaration]:
    """The places that declare archives: the files by name, then the environment.

    :raises ConfigError: there is no such folder, and either somebody chose it or the environment has no archive.
    """
    described = [
        Declaration(Path(place(prefix)), partial(archive_of, prefix, environ, folder)) for prefix in prefixes(environ)
    ]
    if described and not folder.is_dir() and not environ.get(FOLDER):
        return described
    return [*(Declaration(file, partial(load_archive, file)) for file in archive_files(folder)), *described]
