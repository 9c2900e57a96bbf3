"""One check of an archive's health."""

from collections.abc import Iterable
from typing import Literal

from kafka_archiver.documents import Value

# failing: the archive is not healthy. warning: it is, but look at it. unknown: nobody knows, so it is not healthy.
Verdict = Literal["ok", "warning", "unknown", "failing"]
_ORDER: tuple[Verdict, ...] = ("ok", "warning", "unknown", "failing")


class HealthCheck(Value):
    """The result of one check. `name`: short and always the same; `found`: the state; `do`: exact commands."""

    name: str
    verdict: Verdict
    found: str
    do: tuple[str, ...] = ()


def worst(verdicts: Iterable[Verdict]) -> Verdict:
    """The worst of some verdicts; ok if there are none."""
    return max(verdicts, key=_ORDER.index, default="ok")
