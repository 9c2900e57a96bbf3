"""Policies that a person chose for one DAG run, but that would decide nothing."""

from collections.abc import Mapping

from kafka_archiver.context.archive_context import Context
from kafka_archiver.context.line import read_line
from kafka_archiver.messages.errors import ConfigError
from kafka_archiver.values.documents import isoformat
from kafka_archiver.values.intervals import Interval


def refuse_idle_choices(context: Context, interval: Interval, chosen: Mapping[str, str]) -> None:
    """Stop a DAG run whose choices would change nothing, and say when they would.

    Policies decide when an interval is planned or read. A replay of a final run decides nothing, unless it finishes
    unfinished runs first. Such DAG runs were triggered with a date, cleared with another conf, or waited while their
    interval was planned; a DAG run that is triggered without a date gets its own interval if needed.

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
            f"{isoformat(own.planned_at)}, and its run {own.run} is final. {_explain_interval(interval)}"
        )


def _explain_interval(planned: Interval) -> str:
    """Say when the choices of a DAG run would decide something; `planned` is an interval that has a plan."""
    return (
        f"A run of the interval from {isoformat(planned.start)} replays its plan. Trigger the DAG without a date: such "
        "a run plans what is in Kafka now, and so does the next scheduled run"
    )
