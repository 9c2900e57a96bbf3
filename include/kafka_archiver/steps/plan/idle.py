"""Policies that a person chose for one DAG run: when they decide something, and when nothing."""

from collections.abc import Mapping

from kafka_archiver.documents import isoformat
from kafka_archiver.errors import ConfigError
from kafka_archiver.intervals import Interval
from kafka_archiver.steps.context import Context
from kafka_archiver.steps.line import read_line


def refuse_idle_choices(context: Context, interval: Interval, chosen: Mapping[str, str]) -> None:
    """Stop a DAG run whose choices would change nothing, and say when they will.

    A choice is made when an interval is planned, or read. A replay of a run that is final makes none, unless runs
    that are not finished come first: a run that was triggered with a date, cleared with another conf, or waited while
    its interval was planned. One that is triggered without a date has an interval of its own if need be.

    :raises ConfigError: the interval's run is committed, and was planned with other choices.
    """
    if not chosen:
        return
    own = context.ledger.current(interval.id)
    if own is None or context.ledger.commit(own.run) is None or read_line(context).unfinished:
        return
    manifest = context.ledger.manifest(own.run)
    decided = {**own.policies, **(manifest.policies if manifest else {})}
    idle = {policy: choice for policy, choice in chosen.items() if decided.get(policy) != choice}
    if idle:
        raise ConfigError(
            f"the run's `policies` {idle} decide nothing: interval {interval} was planned at "
            f"{isoformat(own.planned_at)} already, and its run {own.run} is final. {_when(interval)}"
        )


def _when(planned: Interval) -> str:
    """When a choice for one DAG run decides something; `planned` is an interval that has a plan."""
    return (
        f"A run of the interval from {isoformat(planned.start)} replays its plan. Trigger the DAG without a date: such "
        "a run plans what there is now, and so does the next one of the schedule"
    )
