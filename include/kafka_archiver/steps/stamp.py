"""The mark that the archive leaves beside the group's offsets: who put the group there, and with which run."""

import re

_STAMP = re.compile(r"kafka-archiver (?P<archive>\S+) #(?P<number>[1-9]\d*)")


def stamp(archive: str, number: int) -> str:
    """What the commit of a run writes.

    :param number: the run's place in the line.
    """
    return f"kafka-archiver {archive} #{number}"


def number_of(text: str, archive: str) -> int:
    """The place in the line of the run whose commit wrote it; 0 when none of this archive did."""
    found = _STAMP.fullmatch(text)
    return int(found["number"]) if found and found["archive"] == archive else 0
