"""The text of a file as keys and values, whatever its syntax is."""

import configparser
import json
import re
from typing import Any

from kafka_archiver.errors import ConfigError


def read_keys(text: str, file: str) -> dict[str, str]:
    """The keys and values of JSON, properties, an ini file (`section.key`) or a file of environment variables.

    JSON may be the keys themselves or `{"name": …, "config": {…}}`, as Kafka Connect's REST interface takes them.

    :raises ConfigError: it is none of these; the message has no value.
    """
    stripped = text.lstrip("\ufeff \t\r\n")
    if stripped.startswith("{"):
        return _json(stripped, file)
    if re.match(r"(\s*([#;].*)?\n)*\s*\[[\w. -]+\]\s*(\n|$)", stripped):
        return _ini(stripped, file)
    found = _properties(stripped)
    if not found:
        raise ConfigError(f"{file}: expected JSON, properties (key=value), an ini file or variables; found no key")
    return found


def _json(text: str, file: str) -> dict[str, str]:
    try:
        content = json.loads(text)
    except (ValueError, RecursionError) as error:
        where = f"line {error.lineno}: {error.msg}" if isinstance(error, json.JSONDecodeError) else "too deep"
        raise ConfigError(f"{file}: not JSON: {where}") from None
    config = content.get("config") if isinstance(content, dict) else None
    if isinstance(config, dict):
        name = {"name": content["name"]} if "name" in content and "name" not in config else {}
        content = {**name, **config}
    wrong = [key for key, value in content.items() if isinstance(value, dict | list)]
    if wrong:
        raise ConfigError(
            f'{file}: expected the keys of one connector, or {{"name": …, "config": {{…}}}}; found a list or a mapping '
            f"in {', '.join(wrong[:5])}"
        )
    return {key: _text(value) for key, value in content.items() if value is not None}


def _text(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _ini(text: str, file: str) -> dict[str, str]:
    parser = configparser.RawConfigParser(strict=True)
    try:
        parser.read_string(text)
    except configparser.Error as error:
        line = getattr(error, "lineno", None)
        where = f" (line {line})" if isinstance(line, int) else ""
        raise ConfigError(f"{file}: not an ini file: {type(error).__name__}{where}") from None
    return {f"{s}.{key}": _unquoted(value) for s in parser.sections() for key, value in parser.items(s)}


def _properties(text: str) -> dict[str, str]:
    """Java's properties, and `export NAME='value'`. A line that ends with a backslash goes on in the next."""
    found = {}
    for line in re.sub(r"\\\r?\n[ \t]*", "", text).splitlines():
        pair = re.match(r"\s*(?:export\s+)?([^\s#!=:][^\s=:]*)\s*[=:]\s*(.*?)\s*$", line)
        if pair:
            found[pair[1]] = _unquoted(pair[2])
    return found


def _unquoted(value: str) -> str:
    """A value without quotes around it."""
    return value[1:-1] if len(value) > 1 and value[0] == value[-1] and value[0] in "'\"" else value
