"""The topics of each statement: the connector takes the first statement that fits a topic. Pure."""

import re
from collections.abc import Mapping
from typing import Any

from kafka_archiver.imports.kcql import Statement

_ALL = "*"


def shares_of(
    statements: Mapping[int, Statement], source: Mapping[str, Any]
) -> tuple[dict[int, dict[str, Any]], list[str]]:
    """Return the topics (or the pattern) of each statement by its number, and what a person has to decide.

    :param source: the section, with the topics or the pattern of the connector.
    """
    topics, pattern = list(source.get("topics", [])), source.get("pattern")
    shares: dict[int, dict[str, Any]] = {}
    odd: list[str] = []
    taken: list[str] = []
    for number, statement in statements.items():
        topic = statement.topic
        if topic != _ALL:
            shares[number] = {"topics": [topic]}
            if not pattern and topic not in topics:
                odd.append(f"KCQL, statement {number}: `topics` has no {topic}, so the connector never read it")
        elif pattern:
            lookahead = f"(?!(?:{'|'.join(map(re.escape, taken))})$)" if taken else ""
            shares[number] = {"pattern": f"{lookahead}(?:{pattern})" if lookahead else pattern}
        else:
            shares[number] = {"topics": [name for name in topics if name not in taken]}
        if topic in taken or _ALL in taken:
            odd.append(
                f"KCQL, statement {number}: an earlier one has {topic}, so the connector never used this one: remove it"
            )
        taken.append(topic)
    if unnamed := [name for name in topics if name not in taken and _ALL not in taken]:
        odd.append(
            f"`topics` has {', '.join(unnamed)}, which no statement names: the connector stops at it; no archive has it"
        )
    return shares, odd
