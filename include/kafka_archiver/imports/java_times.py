"""Patterns of Java's DateTimeFormatter by the letters of our paths, which are Joda's. Pure."""

import re

from kafka_archiver.model.layouts.date_patterns import split
from kafka_archiver.model.layouts.tokens import Time

# Java's letter: the longest run of it that has an equal, and our letter.
_SAME = {"y": 9, "M": 4, "d": 2, "D": 3, "E": 4, "a": 1, "H": 2, "k": 2, "K": 2, "h": 2, "m": 2, "s": 2, "S": 3, "G": 3}
_LETTERS = {letter: (longest, letter) for letter, longest in _SAME.items()}
_LETTERS |= {"u": (9, "y"), "L": (4, "M"), "Y": (9, "x"), "w": (2, "w")}
_RUNS = {"Z": "Z", "ZZ": "Z", "ZZZ": "Z", "xx": "Z", "xxx": "ZZ"}


def pattern_of(pattern: str) -> str:
    """The same pattern by our letters.

    :raises ValueError: names what has no equal here.
    """
    fields = []
    for token in split(pattern):
        if not isinstance(token, Time):
            if re.search(r"[][{}#]", token.text):
                raise ValueError(f"{token.text!r} in {pattern!r} has no equal here")
            fields.append(re.sub(r"[A-Za-z]+", r"'\g<0>'", token.text.replace("'", "''")))
            continue
        run = token.pattern
        longest, letter = _LETTERS.get(run[0], (0, ""))
        if len(run) > longest and run not in _RUNS:
            raise ValueError(f"{run!r} in {pattern!r} has no equal here")
        fields.append(_RUNS.get(run) or letter * len(run))
    if not fields:
        raise ValueError("it is empty")
    return "".join(fields)
