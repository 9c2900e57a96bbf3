"""Tells whether bytes are one JSON document. The answer depends on the bytes alone: not on thread, stack or parser
limits.

The grammar is RFC 8259 in UTF-8, without a byte order mark, with at most `DEEPEST` nested arrays and objects. It allows
numbers of any size, escapes of lone surrogates, and repeated names. It does not allow NaN, Infinity, comments and
trailing commas.
"""

import re
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import msgspec

# Jackson's limit, and so Spark's.
DEEPEST = 1000
# A document of this many bytes cannot be nested deeper.
_SHORT = 2 * DEEPEST
# msgspec checks the grammar without building objects, nine times as fast as orjson. It does not check UTF-8.
_CHECK = msgspec.json.Decoder(msgspec.Raw).decode
_HALF_A_PAIR = re.compile(rb"\\u[dD][89a-fA-F]")
_OPENED = {b"]": b"[", b"}": b"{"}
_TOKEN = re.compile(
    rb"[ \t\n\r]*+(?:"
    rb"([\[{])|([\]}])|([,:])|"
    rb'("(?:[^"\\\x00-\x1f]++|\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4}))*+")|'
    rb"(?:-?(?:0|[1-9][0-9]*+)(?:\.[0-9]++)?+(?:[eE][+-]?[0-9]++)?+|true|false|null)|"
    rb"(\Z))"
)


def is_json(value: bytes) -> bool:
    """Return True if the value is exactly one JSON document."""
    return not invalid_documents([value])


@contextmanager
def deep_enough() -> Iterator[None]:
    """Let Python descend `DEEPEST` levels further than usual, so that whatever the caller's stack is, they are read."""
    limit = sys.getrecursionlimit()
    sys.setrecursionlimit(limit + DEEPEST + 100)
    try:
        yield
    finally:
        sys.setrecursionlimit(limit)


def invalid_documents(values: Sequence[bytes | None], utf8: bool = False) -> list[int]:
    """The indexes of the values that are not exactly one JSON document. None values are skipped.

    :param utf8: the caller has checked that all values are UTF-8.
    """
    invalid_rows = []
    # Before Python 3.12, msgspec uses one level of Python's recursion for each nested array or object.
    all_shallow = sys.version_info < (3, 12) and sys.getrecursionlimit() <= DEEPEST
    for number, value in enumerate(values):
        if value is None:
            continue
        try:
            if not utf8:
                value.decode()
            _CHECK(value)
            good = all_shallow or not may_be_deep(value) or _walk(value)
        except UnicodeDecodeError:
            good = False
        except msgspec.DecodeError:
            # msgspec also refuses lone surrogates.
            good = _HALF_A_PAIR.search(value) is not None and _walk(value)
        except RecursionError:
            # The depth that msgspec reaches depends on the caller's stack.
            good = _walk(value)
        if not good:
            invalid_rows.append(number)
    return invalid_rows


def may_be_deep(value: bytes) -> bool:
    """Return False if the value certainly has no more than `DEEPEST` levels."""
    return len(value) > _SHORT and value.count(b"[") + value.count(b"{") > DEEPEST


def _walk(value: bytes) -> bool:
    """The same check for any UTF-8, token by token: without recursion, a hundred times slower."""
    inside = bytearray()
    # The token that may come next. v: a value. e: a value or the end of an array. k: a name. n: a name or the end of
    # an object. ":": the colon after a name. ",": after a value, a comma or the end of the enclosing array or object.
    due = "v"
    at = 0
    while token := _TOKEN.match(value, at):
        at = token.end()
        opened, closed, mark, string, end = token.groups()
        if end is not None:
            return due == "," and not inside
        if opened and due in "ve":
            inside += opened
            due = "e" if opened == b"[" else "n"
            if len(inside) > DEEPEST:
                return False
        elif closed and due in (",e" if closed == b"]" else ",n") and inside.endswith(_OPENED[closed]):
            inside.pop()
            due = ","
        elif mark == b":" and due == ":":
            due = "v"
        elif mark == b"," and due == "," and inside:
            due = "v" if inside.endswith(b"[") else "k"
        elif string and due in "kn":
            due = ":"
        elif not (opened or closed or mark) and due in "ve":
            due = ","
        else:
            return False
    return False
