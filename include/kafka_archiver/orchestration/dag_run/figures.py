"""The figures of one DAG run, as a small value for XCom, and as metrics of Airflow's own."""

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from pydantic import Field

from kafka_archiver.context.line import Line, read_line
from kafka_archiver.values.documents import UtcTime, Value
from kafka_archiver.values.intervals import hour_start

if TYPE_CHECKING:
    from kafka_archiver.context.archive_context import Context
    from kafka_archiver.model.manifest import Manifest, ObjectEntry
    from kafka_archiver.work.close_hours import ClosedHours

PREFIX = "kafka_archiver"
# Sums over runs. A cleared task counts again, as Airflow's own counters do.
COUNTERS = ("records", "objects", "bytes", "filtered", "dead_letters", "lost", "hours_closed")


class Figures(Value):
    """The figures of a DAG run. `runs`: the ledger's runs that it finished or repaired; `final`: those final before.

    All counts are sums over the others, and of a replay of dead letters only of what it adds.
    `records`: archived offsets. `objects`, `bytes`: in the store, with dead letters and sidecars.
    `unnamed`: records without the properties that their JSON Schema does not name.
    `mended`: objects that the last audit calls wrong and that are whole now.
    `hours_closed`: hours that became complete. `closed_until`: every hour before it is judged. `as_of`: every
    record that Kafka had by then is archived. `unfinished`: the runs that still have to be finished.
    After a loss also: `lost_by`: the lost offsets of each partition. `incomplete`: the hours that lost objects, and the
    incomplete ones of the last closed hours. `unsure_until`: hours before it that are still open will be incomplete.
    """

    runs: tuple[str, ...]
    final: tuple[str, ...] = ()
    records: int = 0
    objects: int = 0
    bytes: int = 0
    filtered: int = 0
    dead_letters: int = 0
    lost: int = 0
    unnamed: int = 0
    mended: int = 0
    lost_by: dict[str, int] = Field(default={})
    incomplete: tuple[UtcTime, ...] = ()
    unsure_until: UtcTime | None = None
    hours_closed: int = 0
    closed_until: UtcTime | None = None
    as_of: UtcTime | None = None
    unfinished: tuple[str, ...] = ()


def figures(
    context: "Context",
    runs: Sequence[str],
    closed: "ClosedHours",
    final: Sequence[str] = (),
    mended: int = 0,
) -> Figures:
    """Sum up settled runs. One request for each run, two more for each revision, and those for the line.

    :param closed: what `close_hours` returned for these runs.
    :param final: those of the runs that were final before.
    :param mended: objects that the last audit calls wrong and that are whole now.
    """
    line = read_line(context)
    manifests = [context.ledger.manifest(run) for run in runs if run not in final]
    additions = [_added(context, manifest) for manifest in manifests if manifest]
    stored = [entry for added in additions for entry in added.stored]
    fates = ("archived", "filtered", "dead_lettered", "lost")
    account = {fate: sum(added.account[fate] for added in additions) for fate in fates}
    return Figures(
        runs=tuple(runs),
        final=tuple(final),
        records=account["archived"],
        objects=len(stored),
        bytes=sum(entry.bytes for entry in stored),
        filtered=account["filtered"],
        dead_letters=account["dead_lettered"],
        lost=account["lost"],
        unnamed=sum(added.unnamed for added in additions),
        mended=mended,
        **(_loss(context, line, [added.manifest for added in additions]) if account["lost"] else {}),
        hours_closed=_hours_closed(closed, final),
        closed_until=line.settled.closed_until,
        as_of=line.settled.as_of,
        unfinished=tuple(plan.run for plan in line.unfinished),
    )


def _hours_closed(closed: "ClosedHours", final: Sequence[str]) -> int:
    proved = sum(hour.proof.closed_by == hour.run for hour in closed.changed if hour.run not in final)
    return proved + sum(stretch.size for stretch in closed.stretches if stretch.run not in final)


class _Added(NamedTuple):
    """The objects and the account that one run has added."""

    manifest: "Manifest"
    stored: "Sequence[ObjectEntry]"
    account: Mapping[str, int]
    unnamed: int


def _added(context: "Context", manifest: "Manifest") -> _Added:
    plan = context.ledger.plan(manifest.run) if manifest.revision else None
    # A rebuild writes all objects; these two keep those of the run that they supersede.
    kept = plan.supersedes if plan and plan.origin in ("dead_letters", "repair") else None
    before = context.ledger.manifest(kept) if kept else None
    if before is None:
        return _Added(manifest, manifest.stored, manifest.account, _unnamed(manifest))
    keys = {entry.key for entry in before.stored}
    account = {fate: max(count - before.account[fate], 0) for fate, count in manifest.account.items()}
    # These were read again, and are dead letters again.
    account["dead_lettered"] = manifest.account["dead_lettered"] if plan and plan.letters else 0
    unnamed = max(_unnamed(manifest) - _unnamed(before), 0)
    return _Added(manifest, [entry for entry in manifest.stored if entry.key not in keys], account, unnamed)


def _unnamed(manifest: "Manifest") -> int:
    return sum(account.unnamed for account in manifest.chunks)


def _loss(context: "Context", line: Line, manifests: "Sequence[Manifest]") -> dict[str, Any]:
    """Return where the loss is, and which hours it leaves incomplete."""
    # It loads clients, and Airflow parses the callers of this module all day.
    from kafka_archiver.state.overview.incomplete import incomplete_hours

    lost_by: Counter[str] = Counter()
    for account in (account for manifest in manifests for account in manifest.chunks if account.lost):
        lost_by[str(account.name)] += account.lost
    objects = (entry for manifest in manifests for entry in manifest.lost_objects)
    hours = {hour_start(hour) for entry in objects for hour in entry.hours if hour is not None}
    hours |= {incomplete.hour_start for incomplete in incomplete_hours(context.ledger, line.settled)}
    return {
        "lost_by": dict(sorted(lost_by.items())),
        "incomplete": tuple(sorted(hours)),
        "unsure_until": line.settled.unsure_until,
    }


def emit(archive: str, figures: Figures) -> None:
    """Count what a run has done, as statsd or OpenTelemetry, whatever Airflow is configured for.

    Plain statsd has no tags, so the name has the archive too.
    """
    from airflow.sdk.observability import stats

    name = stats.normalize_name_for_stats(archive.replace(".", "__"), log_warning=False)
    for counter in COUNTERS:
        number = getattr(figures, counter)
        stats.incr(f"{PREFIX}.{counter}", number, tags={"archive": archive})
        stats.incr(f"{PREFIX}.{name}.{counter}", number)
