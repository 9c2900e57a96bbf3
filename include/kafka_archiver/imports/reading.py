"""The text of a file as keys and values, whatever its syntax is."""

import configparser
import json
import re
from collections import Counter
from typing import Any

import javaproperties

from kafka_archiver.config.properties import property_text
from kafka_archiver.imports.hocon import is_hocon, read_hocon
from kafka_archiver.imports.yaml_files import connectors, connectors_in, is_yaml
from kafka_archiver.messages.errors import ConfigError, kind_in_words
from kafka_archiver.messages.secrets import key_name

# A file of variables has nothing else; the keys of properties have dots.
_VARIABLE = re.compile(r"\s*(?:export\s+)?([A-Za-z_]\w*)=(.*)", re.ASCII)


# What people have configurations in.
_PROGRAMS = {
    "Terraform": re.compile(r"^(resource|module|variable|data|locals|provider)\b[^\n=:]*\{\s*$", re.MULTILINE),
    "a shell script": re.compile(r"\A#!|^\s*(\$ )?curl\s", re.MULTILINE),
}
# The first line of an ini file.
_SECTION = re.compile(r"\[[\w. -]+\]")


def _first_line(text: str) -> str:
    """Return the first line that is neither empty nor a comment, without the space around it."""
    lines = (line.strip() for line in text.splitlines())
    return next((line for line in lines if line and line[0] not in "#;"), "")


def documents_of(text: str, file: str) -> list[str]:
    """The text of each connector: a JSON list, Kafka Connect's answer with several, or a YAML has one for each.

    :raises ConfigError: it looks like JSON or YAML and is not.
    """
    stripped = text.lstrip("\ufeff \t\r\n")
    if program := next((name for name, mark in _PROGRAMS.items() if mark.search(stripped)), ""):
        raise ConfigError(
            f"{file}: expected a configuration; found {program}: give the mapping of the connector's keys in it, as "
            "JSON, with the values that variables have"
        )
    if not re.match(r"\{|\[\s*[{\]]", stripped):
        is_list = not is_hocon(stripped) and is_yaml(stripped, file)
        return [json.dumps(connector) for connector in connectors(stripped, file)] if is_list else [text]
    content = _loaded(stripped, file)
    if isinstance(content, dict) and "apiVersion" in content:
        return [json.dumps(connector) for connector in connectors_in([content], file)]
    if isinstance(content, dict):
        # `GET /connectors?expand=info` has the name of each connector as a key.
        infos = [connector.get("info") for connector in content.values() if isinstance(connector, dict)]
        if not infos or len(infos) < len(content) or not all(isinstance(info, dict) for info in infos):
            return [text]
        content = infos
    if not content:
        raise ConfigError(f"{file}: expected a list of connectors; found an empty list")
    return [json.dumps(connector) for connector in content]


def read_keys(text: str, file: str) -> dict[str, str]:
    """The keys and values of JSON, properties, YAML, HOCON, an ini file (`section.key`) or environment variables.

    JSON may be the keys themselves or `{"name": …, "config": {…}}`, as Kafka Connect's REST interface takes them.

    :raises ConfigError: it is none of these; the message has no value.
    """
    stripped = text.lstrip("\ufeff \t\r\n")
    if stripped.startswith("{"):
        values = _json(stripped, file)
    elif is_hocon(stripped):
        values = read_hocon(stripped, file)
    elif is_yaml(stripped, file):
        several = connectors(stripped, file)
        if several[1:]:
            raise ConfigError(f"{file}: expected one connector; found {len(several)}")
        values = _json(json.dumps(several[0]), file)
    elif _SECTION.fullmatch(_first_line(stripped)):
        values = _ini(stripped, file)
    else:
        values = _variables(stripped) or _properties(stripped, file)
    if not values:
        raise ConfigError(
            f"{file}: expected JSON, YAML, properties (key=value), an ini file or variables; found no key"
        )
    if halves := [key for key, value in values.items() if re.search("[\ud800-\udfff]", key + value)]:
        shown = halves[0].encode("ascii", "backslashreplace").decode()
        raise ConfigError(f"{file}: {shown}: expected text; found one half of a surrogate pair (\\ud800 to \\udfff)")
    return values


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Return a JSON object's content.

    :raises ConfigError: a key is there twice: programs differ in which counts. The message has no value.
    """
    content = dict(pairs)
    if len(content) < len(pairs):
        counts = Counter(name for name, _ in pairs)
        twice = next(name for name, count in counts.items() if count > 1)
        raise ConfigError(f"key `{key_name(twice)}` is given twice: remove the one that does not count")
    return content


def _loaded(text: str, file: str) -> Any:
    try:
        return json.loads(text, object_pairs_hook=_unique)
    except ConfigError as error:
        raise ConfigError(f"{file}: {error}") from None
    except (ValueError, RecursionError) as error:
        where = (
            f"line {error.lineno}: {error.msg}"
            if isinstance(error, json.JSONDecodeError)
            else "a number or the nesting is too long"
        )
        raise ConfigError(f"{file}: not JSON: {where}") from None


def _json(text: str, file: str) -> dict[str, str]:
    content = _loaded(text, file)
    config = content.get("config")
    if isinstance(config, dict):
        named = content.get("name", config.get("name"))
        if config.get("name", named) != named:
            raise ConfigError(
                f"{file}: expected one name of the connector; found {named!r}, and {config['name']!r} in its config"
            )
        name = {"name": named} if named is not None else {}
        content = {**name, **config}
    wrong = [key for key, value in content.items() if isinstance(value, dict | list)]
    if wrong:
        raise ConfigError(
            f'{file}: expected the keys of one connector, or {{"name": …, "config": {{…}}}}; found a list or a mapping '
            f"in {', '.join(wrong[:5])}"
        )
    return {key: property_text(value) for key, value in content.items() if value is not None}


def _ini(text: str, file: str) -> dict[str, str]:
    parser = configparser.RawConfigParser(strict=True)
    try:
        parser.read_string(text)
    except configparser.Error as error:
        line = getattr(error, "lineno", None)
        where = f" (line {line})" if isinstance(line, int) else ""
        raise ConfigError(f"{file}: not an ini file: {kind_in_words(error)}{where}") from None
    return {f"{s}.{key}": _unquoted(value) for s in parser.sections() for key, value in parser.items(s)}


def _properties(text: str, file: str) -> dict[str, str]:
    if re.search(r"^[#!]---\s*$", text, re.MULTILINE):
        raise ConfigError(f"{file}: expected one configuration; found several, divided by #---: give one alone")
    try:
        pairs: list[tuple[str, str]] = javaproperties.loads(text, object_pairs_hook=list)
    except javaproperties.InvalidUEscapeError as error:
        raise ConfigError(f"{file}: not Java properties: expected \\u and four hexadecimal digits; {error}") from None
    values = dict(pairs)
    # Java takes the last value of a key that is there twice. A second class or name is another connector.
    for key, value in pairs:
        if key in ("connector.class", "name") and value != values[key]:
            raise ConfigError(f"{file}: expected one connector; found `{key}` twice: give each a file of its own")
    return values


def _variables(text: str) -> dict[str, str]:
    """`NAME=value`, also with `export` and quotes; nothing if a line is anything else."""
    joined = re.sub(r"\\\r?\n[ \t]*", "", text)
    lines = [line for line in joined.splitlines() if line.strip() and not line.lstrip().startswith("#")]
    pairs = [_VARIABLE.fullmatch(line) for line in lines]
    return {pair[1]: _unquoted(pair[2].strip()) for pair in pairs if pair} if all(pairs) else {}


def _unquoted(value: str) -> str:
    """A value without quotes around it."""
    return value[1:-1] if len(value) > 1 and value[0] == value[-1] and value[0] in "'\"" else value
