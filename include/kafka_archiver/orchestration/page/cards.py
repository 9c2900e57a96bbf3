"""What is wrong with an archive, as cards: each cause once, with its commands and buttons. Pure."""

import re
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from kafka_archiver.errors import shape
from kafka_archiver.orchestration.page.buttons import Step, steps_of
from kafka_archiver.steps.health import HealthCheck, Verdict
from kafka_archiver.steps.overview import Snapshot
from kafka_archiver.steps.status.facts import DagRun
from kafka_archiver.steps.status.trouble import Trouble

# Sentences of one card that are shown: a moved group is one trouble for every partition.
SHOWN = 20
_FAILED = ("failed", "failed for good")
_TASK = re.compile(r".*? in task \w+")


# The beginning of a check's text about a failed run, up to the cause.
_TO_CAUSE = re.compile(r"^failed(?: for good)?: .*? in task (\w+)(?: after \d+ attempts?)?: ")


class Card(NamedTuple):
    """One trouble, or one check that is not ok. `told`: a sentence for each place; `more`: how many are not shown."""

    name: str
    verdict: Verdict
    told: Sequence[str]
    more: int
    steps: Sequence[Step]


def cards(found: Snapshot | None, checks: Iterable[HealthCheck]) -> list[Card]:
    """The troubles, problems first, each cause once, then the checks that tell no trouble."""
    troubles = found.troubles if found else ()
    name = found.archive if found else ""
    damaged = found.audit.damaged if found and found.audit else ()
    grouped: dict[tuple[str, tuple[str, ...], Verdict], list[str]] = {}
    # A failed run comes after the cause for which the brokers stand.
    for one in sorted(troubles, key=lambda one: (one.severity != "problem", one.name in _FAILED)):
        cause = _cause_of(one, troubles)
        told, do = (one.found, one.do) if cause is None else (f"{_head(one)}, because of: {cause.name}", ())
        if cause is None and one.name in _FAILED and found and found.error and shape(found.error) in shape(one.found):
            told = f"{_head(one)}, because of: answers"
        verdict: Verdict = "failing" if one.severity == "problem" else "warning"
        grouped.setdefault((one.name, do, verdict), []).append(told)
    made = [
        Card(title, verdict, told[:SHOWN], max(len(told) - SHOWN, 0), steps_of(name, do, damaged))
        for (title, do, verdict), told in grouped.items()
    ]
    starts = [f"{one.name}: {one.found}" for one in troubles]
    untold = [c for c in checks if c.verdict != "ok" and not any(c.found.startswith(start) for start in starts)]
    # What is unknown for one reason is one card.
    same: dict[tuple[str, Verdict, tuple[str, ...]], list[str]] = {}
    for c in untold:
        same.setdefault((c.found, c.verdict, c.do), []).append(c.name)
    return [
        *made,
        *(
            Card(", ".join(names), verdict, [told], 0, steps_of(name, do, damaged))
            for (told, verdict, do), names in same.items()
        ),
    ]


def is_told(run: DagRun, found: Snapshot | None) -> bool:
    """Whether the cards tell why this run failed."""
    cause = (run.failure.cause if run.failure else None) or ""
    troubles = found.troubles if found and cause and run.state == "failed" else ()
    return any(_is_cause(one, cause) or cause in one.found for one in troubles)


def in_short(found: str) -> str:
    """A check's text for one line: of a failed run its task and the cause."""
    return _TO_CAUSE.sub(r"task \1 failed: ", found)


def _cause_of(failed: Trouble, troubles: Iterable[Trouble]) -> Trouble | None:
    """The trouble at the brokers because of which a run failed."""
    if failed.name not in _FAILED:
        return None
    return next((one for one in troubles if one.name not in _FAILED and _is_cause(one, failed.found)), None)


def _is_cause(trouble: Trouble, text: str) -> bool:
    # A policy's message has numbers that change while the trouble stays.
    said = trouble.found.partition(". Choices: ")[0]
    return said in text or f"policies.{trouble.name.replace(' ', '_')}" in text


def _head(failed: Trouble) -> str:
    found = _TASK.match(failed.found)
    return found[0] if found else failed.found
