"""Zeros in the names of Lenses' objects: `connect.s3.padding.*` and PROPERTIES('padding.…'). Pure."""

from collections.abc import Mapping
from typing import NamedTuple

from kafka_archiver.imports.base import whole

# The connector's default: zeros in front of offsets.
_DIGITS = 12
_TYPES = ("leftpad", "rightpad", "noop")
# As many digits as a layout can pad.
_MOST = 40


class Padding(NamedTuple):
    """The digits of offsets and partitions in names; None: as many as they have. `odd`: what is not the same here."""

    offset: int | None = _DIGITS
    partition: int | None = None
    odd: tuple[str, ...] = ()


def padding_of(options: Mapping[str, str], strategy: str, length: str) -> Padding:
    """Return the padding that a statement says, or the connector's keys.

    :param options: PROPERTIES; those that begin with `padding.` count.
    :param strategy: connect.s3.padding.strategy; empty: not given.
    :param length: connect.s3.padding.length.
    """
    own = {name: value for name, value in options.items() if name.startswith("padding.")}
    odd = []
    if strategy.lower() not in _TYPES:
        odd += [f"connect.s3.padding.strategy {strategy!r} is none of LeftPad, RightPad and NoOp"] if strategy else []
        strategy = ""
    if strategy and own:
        odd.append("the connector refuses padding in its keys and in PROPERTIES together; PROPERTIES are taken")
    kind = own.get("padding.type", "" if own else strategy).lower()
    if kind and kind not in _TYPES:
        odd.append(
            f"padding.type {own['padding.type']!r} is none of LeftPad, RightPad and NoOp; LeftPad is the default"
        )
    lengths = {name.removeprefix("padding.length."): text for name, text in own.items() if ".length." in name}
    if not lengths:
        lengths = {"offset": length if strategy and not own and whole(length, 0) is not None else str(_DIGITS)}
    if own.get("padding.char", "0") != "0" and kind != "noop":
        odd.append(f"padding.char {own['padding.char']!r}: only zeros stand in front here")
    odd += [f"{name}: no such option" for name in own if name not in _KNOWN and not name.startswith("padding.length.")]
    if kind == "noop":
        return Padding(None, None, tuple(odd))
    if kind == "rightpad":
        odd.append("RightPad puts zeros behind a number, which makes it another; here they are in front")
    digits = {}
    for name, text in lengths.items():
        number = whole(text, 0)
        if name not in ("offset", "partition"):
            odd.append(f"padding.length.{name}: only offset and partition have a length")
        elif number is None or number > _MOST:
            odd.append(f"padding.length.{name}: expected a whole number up to {_MOST}, found {text!r}; it is left out")
        else:
            digits[name] = number
    return Padding(digits.get("offset") or None, digits.get("partition") or None, tuple(odd))


_KNOWN = ("padding.type", "padding.char")
