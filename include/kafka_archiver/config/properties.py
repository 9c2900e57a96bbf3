"""The values of the YAML that other programs define: connections, mappings of properties, addresses.

Each may hold a secret, perhaps by mistake. So their faults have the type SECRET, and no error shows their input.
"""

import re
from collections.abc import Callable
from typing import Annotated, Any

from pydantic import BeforeValidator, Discriminator, Tag
from pydantic_core import PydanticCustomError

from kafka_archiver.messages.secrets import SECRET, SECRET_NAME
from kafka_archiver.model.object_keys import RESERVED
from kafka_archiver.model.stores import STORES, examples

_ID, _CONNECTION = "the id of an Airflow connection", r"[\w./-]{1,250}"


def _fault(expected: str) -> PydanticCustomError:
    return PydanticCustomError(SECRET, "{expected}", {"expected": expected})


def _only(is_right: Callable[[Any], bool], expected: str) -> BeforeValidator:
    def check(value: Any) -> Any:
        if not is_right(value):
            raise _fault(expected)
        return value

    return BeforeValidator(check)


def _matching(pattern: str, expected: str) -> BeforeValidator:
    return _only(lambda value: isinstance(value, str) and re.fullmatch(pattern, value) is not None, expected)


def property_text(value: Any) -> str:
    """Return a value of YAML or JSON as text, as properties of clients have it."""
    return str(value).lower() if isinstance(value, bool) else str(value)


def _is_plain(value: Any) -> bool:
    return isinstance(value, str | int | float)


def _is_option(value: Any) -> bool:
    return _is_plain(value) or (isinstance(value, list) and all(isinstance(item, str) for item in value))


def without_credentials(key: str, example: str) -> Callable[[Any], Any]:
    """A check of the address under `key` of a mapping.

    :param example: an address like the expected one, for the message.
    :raises ValueError: it has a user, a password, a query or a fragment, or is not an address.
    """

    def check(value: Any) -> Any:
        if isinstance(value, dict) and not is_plain_address(str(value.get(key) or example)):
            raise ValueError(f"`{key}` like {example}, without user, password, query and fragment")
        return value

    return check


def is_plain_address(url: str) -> bool:
    """Return True if it is an HTTP address without user, password, query and fragment."""
    return re.fullmatch(r"https?://[^\s/@?#]+(/[^\s@?#]*)?", url) is not None


def store_url(value: Any) -> Any:
    """A check of the store's address."""
    match = re.fullmatch(r"([a-z0-9]+)://[A-Za-z0-9._-]{1,255}(/[^@?#]*)?", value) if isinstance(value, str) else None
    if match is None or match[1] not in STORES:
        raise _fault(
            f"{examples()}, without credentials (they belong into the connection that store.aws or store.connection "
            "names)"
        )
    # An archive further up would take objects below these names for its own dead letters or documents.
    for name in RESERVED & {*value.split("/")}:
        raise _fault(f"a prefix without the segment `{name}`, which an archive further up uses itself")
    # Servers and clients leave such folders out of a path, and then the next name is a bucket's.
    if {".", ".."} & {*value.split("/")} or not value.isprintable():
        raise _fault("a prefix without the segments `.` and `..`, and of printable characters")
    return value


def no_secret_arguments(conf: dict[str, Any]) -> dict[str, Any]:
    """A check of Spark's settings.

    :raises ValueError: a setting that Spark passes as an argument has a secret.
    """
    for name, value in conf.items():
        options = re.findall(r"-D([^\s=]+)", str(value)) if name.endswith("JavaOptions") else []
        if any(map(SECRET_NAME.search, options)):
            raise ValueError(
                f"no secret in `{name}`: Java's options are arguments, which everybody on the machine can read; "
                "write them into a file that only the job's user can read, and give -XX:VMOptionsFile=<file>"
            )
    return conf


ConnectionId = Annotated[str, _matching(_CONNECTION, _ID)]
# Somebody may have put the secret itself there.
KubernetesName = Annotated[
    str,
    _matching(
        "[a-z0-9]([a-z0-9.-]{0,251}[a-z0-9])?", "the name of a Kubernetes Secret (small letters, digits, `-` and `.`)"
    ),
]
_PropertyName = Annotated[
    str,
    _matching(
        r"[^\s:=]+", "the name of a property, without `:`, `=` and white space (is a space missing after the colon?)"
    ),
]
_MAPPING = _only(lambda value: isinstance(value, dict), "a mapping of properties")
_Property = Annotated[str | int | float | bool, _only(_is_plain, "text, a number, true or false")]
_Option = Annotated[
    str | int | float | bool | list[str], _only(_is_option, "text, a number, true, false, or a list of texts")
]
Properties = Annotated[dict[_PropertyName, _Property], _MAPPING]
# Like properties, but a value may also be a list of texts.
Options = Annotated[dict[_PropertyName, _Option], _MAPPING]
# The brackets mark parts of pydantic's path that are not keys of the YAML.
ConnectionOrProperties = Annotated[
    Annotated[str, _matching(_CONNECTION, f"{_ID} or a mapping of properties"), Tag("[connection]")]
    | Annotated[Properties, Tag("[properties]")],
    Discriminator(lambda value: "[properties]" if isinstance(value, dict) else "[connection]"),
]
