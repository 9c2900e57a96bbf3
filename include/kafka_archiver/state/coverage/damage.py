"""The hours that the last audit found damaged: those of its objects and of its proofs."""

from collections.abc import Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from kafka_archiver.audit.report import OBJECT_DAMAGE
from kafka_archiver.context.archive_context import Context
from kafka_archiver.ledger.ledger import Ledger
from kafka_archiver.messages.errors import DocumentError
from kafka_archiver.model.layouts.registry import hours_by_key
from kafka_archiver.model.object_keys import split_hour_document
from kafka_archiver.state.status.damage import read_head
from kafka_archiver.values.documents import Value

# Manifests that are read to find the hours of objects. The objects of more runs are found by their keys, if these
# have an hour.
RUNS = 24


class DamagedEntry(Value):
    """One object or proof. `run`: whose object it is."""

    key: str
    kind: str
    observed: str
    run: str | None


class Damage(Value):
    """The damage that the last audit found, by hour. `cut`: there is more, of which the hour is not known."""

    hours: Mapping[int, tuple[DamagedEntry, ...]] = {}
    cut: bool = False


def read_damage(context: Context) -> Damage:
    """Return the damage in the last audit's report: one request, and one for each of at most RUNS damaged runs."""
    ledger, settings = context.ledger, context.archive.settings
    try:
        head = read_head(ledger)
    except ValueError:
        head = None
    if head is None:
        return Damage()
    by_hour, cut = dict[int, list[DamagedEntry]](), head.cut and head.verdict == "damaged"
    errors = [
        finding for finding in head.errors if finding["kind"] in OBJECT_DAMAGE or _proved(ledger, finding) is not None
    ]
    hours_of = _hours_of_objects(ledger, errors)
    for finding in errors:
        key = finding["where"]
        hour = _proved(ledger, finding)
        hours = hours_of.get(key) or hours_by_key(settings, key) if hour is None else (hour,)
        cut = cut or not hours
        damaged = DamagedEntry(
            key=key, kind=finding["kind"], observed=str(finding.get("found", "")), run=finding.get("run")
        )
        for hour in hours:
            by_hour.setdefault(hour, []).append(damaged)
    return Damage(hours={hour: tuple(damaged) for hour, damaged in by_hour.items()}, cut=cut)


def _proved(ledger: Ledger, error: Mapping[str, Any]) -> int | None:
    """Return the hour of a finding about a proof; None if it is about something else."""
    place = split_hour_document(ledger.archive, error["where"])
    return place[0] if place else None


def _hours_of_objects(ledger: Ledger, errors: Iterable[Mapping[str, Any]]) -> dict[str, tuple[int, ...]]:
    runs = dict.fromkeys(str(finding["run"]) for finding in errors if finding.get("run"))
    with ThreadPoolExecutor(8) as pool:
        hours_by_run = pool.map(lambda run: _hours_of_run(ledger, run), list(runs)[:RUNS])
        return {key: hours for finding in hours_by_run for key, hours in finding.items()}


def _hours_of_run(ledger: Ledger, run: str) -> dict[str, tuple[int, ...]]:
    try:
        manifest = ledger.manifest(run)
    except DocumentError:
        manifest = None
    stored = manifest.stored if manifest else ()
    return {o.key: tuple(hour for hour in o.hours if hour is not None) for o in stored}
