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
    found: Any = document
    for name in path:
        if bytes(found).lstrip()[:1] != b"{":
            return None
        found = _OBJECT(found).get(name)
        if found is None:
            return None
    text = bytes(found).strip()
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
        found = json.loads(document, parse_int=_Digits, parse_float=_Digits)
    finally:
        sys.setrecursionlimit(limit)
    for name in path:
        if not isinstance(found, dict) or found.get(name) is None:
            return None
        found = found[name]
    if isinstance(found, dict | list):
        raise NoPlaceError("an object" if isinstance(found, dict) else "an array")
    if isinstance(found, bool):
        return "true" if found else "false"
    return None if found is None else str(found)
