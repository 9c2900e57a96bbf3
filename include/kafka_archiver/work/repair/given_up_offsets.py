"""Give up offsets of a run that no client can read, by name. They are lost for ever; the run goes on without them."""

import logging
from typing import NoReturn

from kafka_archiver.ledger.ledger import Ledger
from kafka_archiver.messages.errors import ConfigError, TransientError
from kafka_archiver.model.plan import Plan
from kafka_archiver.model.set_aside import OffsetsAside, SetAside
from kafka_archiver.values.ranges import subtract

log = logging.getLogger(__name__)
TRIES = 5


def give_up_offsets(ledger: Ledger, run: str, offsets: OffsetsAside) -> None:
    """Record that attempts of a run do not read these offsets.

    :raises ConfigError: the run does not read them, or has ended, or everything of it is written.
    :raises TransientError: other processes were faster at every try.
    """
    _require_reads(ledger, _plan_of(ledger, run), offsets)
    for _ in range(TRIES):
        before = ledger.set_aside(run)
        aside = (before.document or SetAside(archive=ledger.archive, run=run)).with_unread(offsets)
        if aside == before.document:
            return
        if ledger.put_set_aside(aside, before):
            log.warning("run %s: the offsets %s of %s are given up", run, offsets.range, offsets.name)
            return
    raise TransientError(f"attempts of run {run} set records aside at the same time; try again")


def _plan_of(ledger: Ledger, run: str) -> Plan:
    plan = ledger.plan(run)
    if plan is None:
        raise ConfigError(
            f"archive {ledger.archive} has no run {run}; expected one of `airflow archive runs {ledger.archive}`"
        )
    return plan


def _require_reads(ledger: Ledger, plan: Plan, offsets: OffsetsAside) -> None:
    def refuse(why: str) -> NoReturn:
        raise ConfigError(f"the offsets {offsets.range} of {offsets.name} cannot be given up: {why}")

    if plan.letters or plan.origin == "repair":
        refuse(f"run {plan.run} reads nothing from Kafka")
    if commit := ledger.commit(plan.run):
        refuse(f"run {plan.run} has ended ({commit.outcome.replace('_', ' ')})")
    if ledger.manifest(plan.run):
        refuse(f"run {plan.run} has read everything, and its manifest says so")
    ranges = [each for p in plan.partitions if p.name == offsets.name for each in p.offset_ranges]
    if left := subtract(offsets.range, ranges):
        refuse(f"run {plan.run} does not read {left[0]}; it reads {', '.join(map(str, ranges)) or 'nothing'} there")
