"""The figures of one DAG run, in a line for people and as a small value for XCom."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from kafka_archiver.documents import UtcTime, Value
from kafka_archiver.steps.line import read_line

if TYPE_CHECKING:
    from kafka_archiver.steps.close_hours import Changed
    from kafka_archiver.steps.context import Context


class Figures(Value):
    """What a DAG run has done. `runs`: the ledger's runs that it finished; all counts are sums over them.

    `records`: archived offsets. `objects`, `bytes`: in the store, with dead letters and sidecars.
    `hours_closed`: hours that became complete. `closed_until`: every hour before it is judged. `as_of`: every
    record that Kafka had by then is archived. `unfinished`: the runs that still have to be finished.
    """

    runs: tuple[str, ...]
    records: int = 0
    objects: int = 0
    bytes: int = 0
    filtered: int = 0
    dead_letters: int = 0
    lost: int = 0
    hours_closed: int = 0
    closed_until: UtcTime | None = None
    as_of: UtcTime | None = None
    unfinished: tuple[str, ...] = ()

    @property
    def line(self) -> str:
        """One line for people."""
        objects = f" in {_count(self.objects, 'object')} ({size(self.bytes)})" if self.objects else ""
        counts = ((self.filtered, "filtered"), (self.dead_letters, "dead-lettered"), (self.lost, "lost"))
        others = "".join(f", {number:,} {name}" for number, name in counts if number)
        until = f", until {self.closed_until:%Y-%m-%d %H:%M} UTC" if self.closed_until else ""
        closed = _count(self.hours_closed, "hour") if self.hours_closed else "no hour"
        return f"{_count(self.records, 'record')}{objects}{others}; {closed} closed{until}"


def figures(context: "Context", runs: Sequence[str], changed: "Sequence[Changed]") -> Figures:
    """The figures of settled runs. One request for each run, and those for the line.

    :param changed: what `close_hours` returned for these runs.
    """
    line = read_line(context)
    manifests = [found for run in runs if (found := context.ledger.manifest(run))]
    stored = [entry for manifest in manifests for entry in manifest.stored]
    account = {
        fate: sum(m.account[fate] for m in manifests) for fate in ("archived", "filtered", "dead_lettered", "lost")
    }
    return Figures(
        runs=tuple(runs),
        records=account["archived"],
        objects=len(stored),
        bytes=sum(entry.bytes for entry in stored),
        filtered=account["filtered"],
        dead_letters=account["dead_lettered"],
        lost=account["lost"],
        hours_closed=sum(one.proof.closed_by == one.run for one in changed),
        closed_until=line.settled.closed_until,
        as_of=line.settled.as_of,
        unfinished=tuple(plan.run for plan in line.unfinished),
    )


def size(number: int) -> str:
    """Bytes in the largest unit that gives at least 1: "3.4 MB"."""
    if number < 1000:
        return f"{number:,} B"
    value, unit = number / 1000, "kB"
    for unit in ("kB", "MB", "GB", "TB"):
        # Would be shown as 1e+03.
        if value < 999.5 or unit == "TB":
            break
        value /= 1000
    return f"{value:.3g} {unit}" if value < 999.5 else f"{value:,.0f} {unit}"


def _count(number: int, thing: str) -> str:
    return f"{number:,} {thing}{'s' * (number != 1)}"
