"""The actions of the page: each triggers a DAG run, as `airflow dags trigger` and `airflow dags backfill` do."""

from collections.abc import Callable, Mapping
from datetime import datetime, timedelta
from typing import Any, NamedTuple

from kafka_archiver.config import Archive
from kafka_archiver.messages.advice import dag_id, restore_dag_id
from kafka_archiver.messages.errors import ConfigError
from kafka_archiver.messages.policies import POLICIES
from kafka_archiver.orchestration.dag_run.params import checked_run
from kafka_archiver.orchestration.dag_run.schedule import last_interval
from kafka_archiver.orchestration.page.restore_fields import conf_of_fields
from kafka_archiver.orchestration.page.submitted import SubmittedForm
from kafka_archiver.values.documents import isoformat

# Intervals of one backfill. Airflow makes all its runs while the browser waits, 20 or 50 a second.
MOST = 750


class Trigger(NamedTuple):
    """A DAG run to start. `backfill`: the first and the last interval's start, and which existing runs to run again."""

    dag: str
    conf: dict[str, Any]
    backfill: tuple[datetime, datetime, str] | None = None


def choices() -> dict[str, tuple[str, ...]]:
    """Return the choices of each policy."""
    return {policy.name: policy.names for policy in POLICIES.values()}


def trigger_of(action: str, archive: Archive, form: SubmittedForm) -> Trigger:
    """Return the DAG run that an action starts. Pure.

    :raises ConfigError: there is no such action, or a field is wrong.
    """
    if action not in _ACTIONS:
        raise ConfigError(f"expected one of {', '.join(_ACTIONS)}, found {action!r}")
    return _ACTIONS[action](archive, form)


def _run(archive: Archive, form: SubmittedForm) -> Trigger:
    policies = {name: chosen for name in POLICIES if (chosen := form.get(f"policy.{name}"))}
    archive.choosing(policies)
    return Trigger(dag_id(archive.archive), {"policies": policies} if policies else {})


def _backfill(archive: Archive, form: SubmittedForm) -> Trigger:
    if archive.schedule is None:
        raise ConfigError(f"archive {archive.archive} has no schedule, so it has no intervals to backfill")
    first, last = form.hours()
    # All intervals with a part of these hours: the first one may start before them.
    start = min(last_interval(archive, first).end, first)
    interval = last_interval(archive, last)
    if (last - first) / (interval.end - interval.start) >= MOST:
        raise ConfigError(
            f"expected at most {MOST} intervals at once, found those from {isoformat(first)} to {isoformat(last)}. "
            f"Backfill them in parts, or on a terminal: airflow dags backfill {dag_id(archive.archive)} "
            f"-s {isoformat(first)} -e {isoformat(last)}"
        )
    again = "failed" if form.get("failed") else "none"
    return Trigger(dag_id(archive.archive), {}, (start, last + timedelta(minutes=59), again))


def _fill(archive: Archive, form: SubmittedForm) -> Trigger:
    selection = {"from": isoformat(form.hour("from"))} if form.get("from") else {"all": True}
    return Trigger(dag_id(archive.archive), {"fill": selection})


def _audit(archive: Archive, form: SubmittedForm) -> Trigger:
    return Trigger(f"audit_{archive.archive}", {"deep": True} if form.get("deep") else {})


def _rebuild(archive: Archive, form: SubmittedForm) -> Trigger:
    chosen = {key: True for key in ("keep", "fewer") if form.get(key)}
    run = form.get("run")
    target = {"run": checked_run(run, "rebuild")} if run else {"hour": isoformat(form.hour("hour"))}
    return Trigger(dag_id(archive.archive), {"rebuild": {**target, **chosen}})


def _repair(archive: Archive, form: SubmittedForm) -> Trigger:
    runs = [checked_run(run) for run in form.all("run")]
    if not runs:
        raise ConfigError("no run is chosen")
    return Trigger(dag_id(archive.archive), {"repair": runs})


def _dead_letters(archive: Archive, form: SubmittedForm) -> Trigger:
    if runs := [checked_run(run, "dead_letters") for run in form.all("run")]:
        return Trigger(dag_id(archive.archive), {"dead_letters": {"runs": runs}})
    if not form.get("first") and not form.get("last"):
        return Trigger(dag_id(archive.archive), {"dead_letters": {"all": True}})
    hours = [isoformat(moment) for moment in form.hours()]
    return Trigger(dag_id(archive.archive), {"dead_letters": {"hours": hours}})


def _restore(archive: Archive, form: SubmittedForm) -> Trigger:
    return Trigger(restore_dag_id(archive.archive), conf_of_fields(form))


def dag_to_unpause(action: str, name: str) -> str | None:
    """Return the DAG that an action unpauses; None: it is another action."""
    return {"unpause": dag_id(name), "unpause-audit": f"audit_{name}"}.get(action)


_ACTIONS: Mapping[str, Callable[[Archive, SubmittedForm], Trigger]] = {
    "run": _run,
    "backfill": _backfill,
    "audit": _audit,
    "rebuild": _rebuild,
    "repair": _repair,
    "dead-letters": _dead_letters,
    "fill": _fill,
    "restore": _restore,
}
