"""What is one JSON document: a function of its bytes alone, whatever the thread, the stack and the parser's limits.

It is the grammar of RFC 8259 in UTF-8, without a byte order mark, with at most `DEEPEST` arrays and objects inside one
another. In it are numbers of any size, halves of surrogate pairs as escapes, and names that repeat. NaN and Infinity,
comments, and commas behind the last item are not.
"""

import re
import sys
from collections.abc import Sequence

import msgspec

# As deep as Jackson reads, and with it Spark.
DEEPEST = 1000
# What is no longer is no deeper.
_SHORT = 2 * DEEPEST
# msgspec checks the grammar without building objects, nine times as fast as orjson. It looks at no UTF-8.
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
    """Whether it is exactly one JSON document."""
    return not others([value])


def others(values: Sequence[bytes | None], utf8: bool = False) -> list[int]:
    """Which of the values are not exactly one JSON document; None is none, and is not looked at.

    :param utf8: somebody has seen that they are.
    """
    found = []
    # msgspec takes a level of Python's recursion for each array and object that it goes down.
    all_shallow = sys.getrecursionlimit() <= DEEPEST
    for number, value in enumerate(values):
        if value is None:
            continue
        try:
            if not utf8:
                value.decode()
            _CHECK(value)
            good = all_shallow or len(value) <= _SHORT or _is_shallow(value)
        except UnicodeDecodeError:
            good = False
        except msgspec.DecodeError:
            # Also because of half a surrogate pair.
            good = _HALF_A_PAIR.search(value) is not None and _walk(value)
        except RecursionError:
            # How deep it gets depends on the caller's stack.
            good = _walk(value)
        if not good:
            found.append(number)
    return found


def _is_shallow(value: bytes) -> bool:
    return value.count(b"[") + value.count(b"{") <= DEEPEST or _walk(value)


def _walk(value: bytes) -> bool:
    """The same of any UTF-8, token by token: a hundred times as slow, and without recursion."""
    inside = bytearray()
    # What may come next: v a value, e a value or the end of an array, k a name, n a name or the end of an object,
    # : the colon behind a name, and behind a value a comma or the end of what it is in.
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
