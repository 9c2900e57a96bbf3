"""The metadata that the archive writes with the group's offsets: which archive and run moved the group."""

import re

_STAMP = re.compile(r"kafka-archiver (?P<archive>\S+) #(?P<number>[1-9]\d*)")


def stamp(archive: str, number: int) -> str:
    """The metadata that a run's commit writes.

    :param number: the run's place in the line.
    """
    return f"kafka-archiver {archive} #{number}"


def number_of(text: str, archive: str) -> int:
    """The place in the line of the run that wrote the metadata; 0 when no run of this archive did."""
    match = _STAMP.fullmatch(text)
    return int(match["number"]) if match and match["archive"] == archive else 0
