"""Explains what is wrong with a YAML, by its keys. Pure. `config/section` refuses a key that does not exist."""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, NamedTuple

from pydantic import ValidationError

from kafka_archiver.messages.errors import ConfigError
from kafka_archiver.messages.secrets import SECRET, key_name


class Fault(NamedTuple):
    """One fault. `keys`: those that lead to it, as in `source.topics`; empty: unknown. `line`: from 1; None: unknown.

    `shown`: that line, without what may be a secret.
    """

    text: str
    keys: str = ""
    line: int | None = None
    shown: str = ""


class FaultyYamlError(ConfigError):
    """A YAML is wrong. `faults`: each with its place."""

    def __init__(self, faults: Iterable[Fault]) -> None:
        self.faults = tuple(faults)
        super().__init__("\n".join(fault.text for fault in self.faults))


def fault_lines(error: ValidationError, unknown: Callable[[str], str], under: tuple[str, ...] = ()) -> Iterator[str]:
    """Yield the faults, one line for each key. Parameters as of `faults_of`."""
    for fault in faults_of(error, unknown, under):
        yield fault.text


def faults_of(
    error: ValidationError,
    unknown: Callable[[str], str],
    under: tuple[str, ...] = (),
    variables: Mapping[str, tuple[str, ...]] | None = None,
) -> Iterator[Fault]:
    """Yield the faults with their keys.

    :param unknown: gives the message for a key that the model does not have.
    :param under: the YAML's keys above the model.
    :param variables: the environment variables that a key's value is of. Such a value is not shown.
    """
    expected: dict[str, list[str]] = {}
    inputs: dict[str, str] = {}
    faults = error.errors()
    for fault in faults:
        if fault["type"] == "too_short" and any(_is_below(other["loc"], fault["loc"]) for other in faults):
            # pydantic does not count the items that are wrong themselves.
            continue
        # pydantic also names the branch of a union; the YAML has only keys.
        where = ".".join(key_name(p) for p in (*under, *fault["loc"]) if not _is_branch(str(p)))
        if fault["type"] == "extra_forbidden":
            yield Fault(unknown(where), where)
        elif fault["type"] == "missing":
            yield Fault(f"`{where}` is required", where)
        elif (expectation := _expectation(fault["type"], fault["msg"])).startswith(f"`{where}."):
            # It names its key itself.
            yield Fault(expectation, where)
        else:
            expected.setdefault(where, []).append(expectation)
            names = (variables or {}).get(where)
            inputs[where] = _of_variables(names) if names else _input(fault["type"], fault["input"])
    for where, expectations in expected.items():
        # A fault of the whole YAML names its keys itself.
        key = f"`{where}`: " if where else ""
        text = " or ".join(dict.fromkeys(expectations))
        yield Fault(f"{key}expected {text}{'' if ', found ' in text else inputs[where]}", where)


def _is_below(loc: tuple[int | str, ...], above: tuple[int | str, ...]) -> bool:
    return len(loc) > len(above) and loc[: len(above)] == above


_PLAIN = {
    "string_type": "text",
    "tuple_type": "a list",
    "dict_type": "a mapping",
    "model_type": "a mapping",
    "too_short": "at least one item",
    "int_type": "a whole number",
    "int_parsing": "a whole number",
    "float_type": "a number",
    "datetime_from_date_parsing": "a time like 2026-11-01T00:00:00Z",
    "datetime_parsing": "a time like 2026-11-01T00:00:00Z",
    "datetime_type": "a time like 2026-11-01T00:00:00Z",
}
# The same by pydantic's message.
_PATTERNS = {"text that matches pattern '^group:.+$'": "group:<consumer group>"}


# How pydantic begins what it expects.
_OPENING = re.compile(r"^(Value error, (expected )?|Input should be |(String|Tuple|List) should have )")


def _input(kind: str, value: Any) -> str:
    """The end of an error: the value that was found, or only its kind if it may be a secret."""
    if kind == "value_error" and isinstance(value, dict | list):
        # The message names the keys or items that do not go together.
        return ""
    if isinstance(value, bool | int | float | str) and kind not in (SECRET, "model_type", "dict_type"):
        return f"; found {value!r}"
    return f"; found {kind_of(value)}"


def _of_variables(names: tuple[str, ...]) -> str:
    return f"; found the value of {' and '.join(names)} (not shown, because it may be a secret)"


def kind_of(value: Any) -> str:
    """The kind of a YAML value, in words."""
    return _KINDS.get(type(value), "something else")


_KINDS = {
    dict: "a mapping",
    list: "a list",
    str: "text (not shown, because it may hold a secret)",
    bool: "true or false",
    int: "a number",
    float: "a number",
    type(None): "nothing",
}


def _expectation(kind: str, message: str) -> str:
    message = _OPENING.sub("", message).replace("String should match", "text that matches", 1)
    return _PLAIN.get(kind) or _PATTERNS.get(message, message)


def _is_branch(part: str) -> bool:
    return "[" in part or part in ("str", "datetime", "constrained-str")
