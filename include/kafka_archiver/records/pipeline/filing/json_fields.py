"""One field of JSON documents, as its text. Nothing else of the document is built."""

import json
import sys
from collections.abc import Sequence
from typing import Any

import msgspec

_OBJECT = msgspec.json.Decoder(dict[str, msgspec.Raw]).decode
_STRING = msgspec.json.Decoder(str).decode
# json_text.DEEPEST levels, whatever the caller's stack is.
_RECURSION = 10_000


class NoPlaceError(ValueError):
    """The field is an object or an array."""


def text_at(document: bytes, path: Sequence[str]) -> str | None:
    """The text of a field: of a string its characters, of a number its digits as they stand there, true or false.

    :param document: one JSON document. :param path: names, from the outside; without names it is the document itself.
    :returns: None if the field is null, or is not there.
    :raises NoPlaceError: the field is an object or an array.
    """
    try:
        return _quick(document, path)
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError):
        # Half a surrogate pair, or deeply nested.
        return _slow(document, path)


def _quick(document: bytes, path: Sequence[str]) -> str | None:
    value: Any = document
    for name in path:
        if bytes(value).lstrip()[:1] != b"{":
            return None
        value = _OBJECT(value).get(name)
        if value is None:
            return None
    text = bytes(value).strip()
    if text[:1] == b'"':
        return _STRING(text)
    if text[:1] in (b"{", b"["):
        raise NoPlaceError("an object" if text[:1] == b"{" else "an array")
    return None if text == b"null" else text.decode()


class _Digits(str):
    """A number as it stands in the document."""


def _slow(document: bytes, path: Sequence[str]) -> str | None:
    limit = sys.getrecursionlimit()
    sys.setrecursionlimit(max(limit, _RECURSION))
    try:
        value = json.loads(document, parse_int=_Digits, parse_float=_Digits)
    finally:
        sys.setrecursionlimit(limit)
    for name in path:
        if not isinstance(value, dict) or value.get(name) is None:
            return None
        value = value[name]
    if isinstance(value, dict | list):
        raise NoPlaceError("an object" if isinstance(value, dict) else "an array")
    if isinstance(value, bool):
        return "true" if value else "false"
    return None if value is None else str(value)
