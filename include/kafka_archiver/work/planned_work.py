"""The work of one DAG run, once it is planned."""

import logging
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from typing import Any, Self

from kafka_archiver.context.archive_context import Context
from kafka_archiver.context.run_documents import write_repair_manifest
from kafka_archiver.model.manifest import Manifest
from kafka_archiver.model.plan import Plan

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class PlannedWork:
    """The work of one DAG run. `runs`: the ledger's runs that it finishes, in the line's order, its own run last.

    `archive`: the runs whose offsets have to be read; without any, Spark is skipped. `idle`: no run has offsets or
    objects, so there is nothing to verify either. `final`: those of `runs` that were final before. `replays`: its one
    run was final before, and is only archived again.
    """

    runs: tuple[str, ...]
    archive: tuple[str, ...]
    idle: bool = False
    final: tuple[str, ...] = ()
    replays: bool = False

    def to_dict(self) -> dict[str, Any]:
        """Return the value for XCom, with lists for tuples."""
        return {name: list(value) if isinstance(value, tuple) else value for name, value in asdict(self).items()}

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> Self:
        """Return the inverse of `to_dict`."""
        fields: dict[str, Any] = {n: tuple(value) if isinstance(value, list) else value for n, value in data.items()}
        return cls(**fields)


def prepare_work(context: Context, unfinished: Iterable[Plan], own: Plan) -> PlannedWork:
    """Return the work for the unfinished plans and, last, this plan."""
    plans = [*(p for p in unfinished if p.run != own.run), own]
    for earlier in plans[:-1]:
        log.info("finishing the unfinished run %s first (%s)", earlier.run, describe_plan(earlier))
    # A repair reads nothing: its objects are in the store.
    reads = [p for p in plans if p.count and p.origin != "repair"]
    to_archive = [p.run for p in reads if p is own or context.ledger.commit(p.run) is None]
    for done in plans:
        if done.origin == "repair":
            write_repair_manifest(context, done)
        elif not done.count and context.ledger.manifest(done.run) is None:
            context.ledger.create_manifest(Manifest.of(done, [], []))
    if not to_archive:
        log.info("nothing to read: Spark is skipped")
    idle = not any(p.count or p.origin == "repair" for p in plans)
    return PlannedWork(tuple(p.run for p in plans), tuple(to_archive), idle)


def describe_plan(plan: Plan) -> str:
    """Return a summary of a plan: the number of offsets, and the ranges of the first partitions."""
    ranges = [f"{p.name} {r}" for p in plan.partitions for r in p.offset_ranges]
    shown = ", ".join(ranges[:8]) + (f" and {len(ranges) - 8} more" if len(ranges) > 8 else "")
    return f"{plan.count:,} offsets of {len(plan.partitions)} partitions" + (f": {shown}" if shown else "")
