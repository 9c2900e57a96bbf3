"""Selects the actions of a repair, by the audit's findings, the open plans, and the offsets that Kafka still has."""

from collections.abc import Collection, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import partial

from kafka_archiver.audit.report import OBJECT_DAMAGE, Report
from kafka_archiver.context.archive_context import Context
from kafka_archiver.context.line import Line, read_line
from kafka_archiver.messages.errors import ConfigError, DocumentError
from kafka_archiver.model.findings import Finding
from kafka_archiver.model.manifest import ObjectEntry
from kafka_archiver.model.object_keys import interval_of, split_run_document
from kafka_archiver.model.plan import PartitionPlan, Plan
from kafka_archiver.model.progress import Progress
from kafka_archiver.records.formats import resolve
from kafka_archiver.store.object_check import is_there
from kafka_archiver.values.ranges import Range, TopicPartition
from kafka_archiver.values.threads import refused
from kafka_archiver.work.archive.dead_letters import missing_dead_letters
from kafka_archiver.work.repair.restored_documents import DocumentSources
from kafka_archiver.work.repair.sidecars import sidecar_bytes

_DERIVED_KINDS = frozenset({"proof-missing", "proof-wrong", "progress-missing", "progress-wrong", "settled-wrong"})
Objects = Mapping[str, tuple[ObjectEntry, ...]]


@dataclass(frozen=True, slots=True)
class Repairs:
    """The actions of a repair.

    :ivar to_rewrite: by run, the objects to write again from Kafka or from dead letters.
    :ivar lost: by run, the objects whose records nobody has any more, to record as lost.
    :ivar why_lost: the reason for each of their keys.
    :ivar to_replan: runs that cannot be finished as planned, each with the reason, to plan again.
    :ivar to_derive: keys of documents to compute again.
    :ivar to_restore: keys of documents to restore from a run's other documents.
    :ivar unrepairable: findings that cannot be repaired.
    :ivar sidecars: by run, the sidecars to write again from their objects, because Kafka no longer has the records.
    """

    to_rewrite: Objects
    lost: Objects
    why_lost: Mapping[str, str]
    to_replan: Mapping[str, str]
    to_derive: tuple[str, ...]
    to_restore: tuple[str, ...]
    unrepairable: tuple[Finding, ...]
    sidecars: Objects

    @property
    def lost_rows(self) -> int:
        """The number of records that would be recorded as lost."""
        return sum(o.rows for entries in self.lost.values() for o in entries)

    def __bool__(self) -> bool:
        return bool(
            self.to_rewrite or self.lost or self.to_replan or self.to_derive or self.to_restore or self.sidecars
        )


def find_repairs(context: Context, report: Report, given_up: Collection[str] = ()) -> Repairs:
    """Find the actions of a repair.

    :param report: of an audit of the archive, just now.
    :param given_up: keys of objects that a person has given up, whatever Kafka has.
    :raises ConfigError: one of these objects is not missing or damaged.
    """
    unreadable = [f.subject for f in report.findings if f.kind == "unreadable" and _is_derived(f.subject)]
    derived = (*(f.subject for f in report.findings if f.kind in _DERIVED_KINDS), *unreadable)
    documents = DocumentSources(context.ledger, context.registry)
    restored = tuple(key for key in dict.fromkeys(f.subject for f in report.damage) if documents.give(key) is not None)
    unsound = _unsound_intervals(report, unreadable)
    mended = {*derived, *restored}
    # No run can write an adopted object again.
    blocking = [f for f in report.damage if f.kind not in OBJECT_DAMAGE or not f.run or interval_of(f.run) in unsound]
    left = tuple(f for f in blocking if f.subject not in mended)
    line = _sound_line(context, unsound)
    anew = dict(_unfinishable(context, line))
    damaged = [*_damaged_promises(context, report, unsound), *_damaged_of_unfinished(context, line, anew)]
    on_record = {f.subject for f in report.findings if f.kind == "lost"}
    if unknown := set(given_up) - {entry.key for _, entry in damaged} - on_record:
        raise ConfigError(f"{min(unknown)} is neither missing nor damaged, or not of archive {report.archive}")
    in_kafka = _in_kafka(context, {plan.run: plan for plan, _ in damaged}.values())
    again: dict[str, tuple[ObjectEntry, ...]] = {}
    lost: dict[str, tuple[ObjectEntry, ...]] = {}
    sidecars: dict[str, tuple[ObjectEntry, ...]] = {}
    why_lost: dict[str, str] = {}
    for plan, entry in damaged:
        gone = _why_gone(entry, in_kafka.get((plan.run, TopicPartition(entry.topic, entry.partition))))
        if entry.key in given_up:
            kind, gone = lost, "given up by --lost"
        else:
            has = not gone or _is_in_letters(context, plan, entry)
            kind = again if has else sidecars if _is_in_its_object(context, plan, entry) else lost
        if kind is lost:
            why_lost[entry.key] = gone
        kind[plan.run] = (*kind.get(plan.run, ()), entry)
    return Repairs(again, lost, why_lost, anew, derived, restored, left, sidecars)


def _why_gone(entry: ObjectEntry, log: Range | None) -> str:
    """Return why Kafka does not have an object's records any more; empty if it may have them.

    :param log: the offsets of the same log that Kafka has; None if the topic is another one, or gone.
    """
    place = f"{entry.topic}[{entry.partition}]"
    if log is None:
        return f"topic {entry.topic} was deleted since, perhaps made again"
    if entry.first_offset < log.start:
        return f"the object has offsets from {entry.first_offset} on, the log of {place} now starts at {log.start}"
    if entry.last_offset >= log.end:
        return f"the object has offsets up to {entry.last_offset}, the log of {place} now ends at {log.end}"
    return ""


def _unsound_intervals(report: Report, derived: Collection[str]) -> set[str]:
    """Return the intervals of runs whose own documents have to be repaired first. Without sound documents it is unknown
    which revision's objects count.
    """
    places = (split_run_document(report.archive, f.subject) for f in report.damage if f.subject not in derived)
    known = {f.run for f in report.damage if f.run and f.kind not in OBJECT_DAMAGE}
    return {interval_of(run) for run in known | {place[0] for place in places if place and place[1] != "settled"}}


def _sound_line(context: Context, unsound: Collection[str]) -> Line:
    """Return the line; if the progress cannot be read and is computed again, with all runs as waiting."""
    beginning = Progress(archive=context.archive.archive)
    for settled in None, beginning:
        with suppress(DocumentError):
            line = read_line(context, settled)
            return Line(line.settled, [w for w in line.waiting if w.plan.interval.id not in unsound])
    # A plan in the line cannot be read.
    return Line(beginning, [])


def _is_derived(key: str) -> bool:
    return "/hours/" in key or key.endswith(("/progress.json", "/settled.json"))


def _damaged_promises(context: Context, report: Report, unsound: Collection[str]) -> Iterable[tuple[Plan, ObjectEntry]]:
    """Yield the objects of final runs that are not as promised."""
    manifests: dict[str, tuple[Plan, dict[str, ObjectEntry]]] = {}
    for finding in report.findings:
        run = finding.run
        if (
            finding.severity != "problem"
            or finding.kind not in OBJECT_DAMAGE
            or run is None
            or interval_of(run) in unsound
        ):
            continue
        if run not in manifests:
            plan, manifest = context.ledger.plan(run), context.ledger.manifest(run)
            if plan is None or manifest is None:
                continue
            manifests[run] = plan, {o.key: o for o in manifest.stored}
        plan, entries = manifests[run]
        entry = entries.get(finding.subject)
        # An object with the same bytes but another ETag, as in a copy of the bucket, is as promised.
        if entry and not is_there(context.store, entry):
            yield plan, entry


def _damaged_of_unfinished(context: Context, line: Line, anew: Mapping[str, str]) -> Iterable[tuple[Plan, ObjectEntry]]:
    """Yield the missing and damaged objects of runs that are not final and have a manifest."""
    for waiting in line.waiting:
        plan = waiting.plan
        if waiting.is_open and waiting.outcome is None and plan.run not in anew:
            manifest = context.ledger.manifest(plan.run)
            stored = manifest.stored if manifest else ()
            yield from ((plan, entry) for entry in refused(partial(is_there, context.store), stored))


def _is_in_letters(context: Context, plan: Plan, entry: ObjectEntry) -> bool:
    """Return True if the entry is of a replay whose dead letters are still there."""
    writer = context.ledger.writer_of(plan, entry.key)
    return bool(writer.letters) and not missing_dead_letters(writer, context.store)


def _is_in_its_object(context: Context, plan: Plan, entry: ObjectEntry) -> bool:
    """Return True if the entry is of a sidecar that its object gives."""
    if entry.sidecar_of is None:
        return False
    manifest = context.ledger.manifest(plan.run)
    if manifest is None:
        return False
    writer = context.ledger.writer_of(plan, entry.key)
    key = context.ledger.open_key(writer.data_key) if writer.data_key else None
    return sidecar_bytes(context.store, writer, manifest, entry, key) is not None


def _unfinishable(context: Context, line: Line) -> Iterable[tuple[str, str]]:
    """Yield runs that cannot be finished as planned, each with the reason."""
    for plan in line.unfinished:
        # A written run only needs its commit.
        if line.outcome_of(plan.run) is not None or plan.origin == "repair" or context.ledger.manifest(plan.run):
            continue
        try:
            encoding = resolve(plan.settings, plan.has_columns).encoding
        except ConfigError as error:
            yield plan.run, str(error)
            continue
        if plan.settings.encoding != encoding:
            yield plan.run, f"planned for encoding {plan.settings.encoding}, this release writes {encoding}"


def _in_kafka(context: Context, plans: Iterable[Plan]) -> dict[tuple[str, TopicPartition], Range]:
    """Return the offsets in Kafka that still mean the same records, of each run and partition."""
    partitions: list[tuple[str, PartitionPlan]] = [(plan.run, p) for plan in plans for p in plan.partitions]
    ids = context.cluster.topic_ids({p.topic for _, p in partitions})

    def same(planned: PartitionPlan) -> bool:
        # If the log was cut since, the written bytes will differ.
        return ids[planned.topic] == planned.topic_id

    names = sorted({p.name for _, p in partitions if same(p)})
    starts, ends = context.cluster.log_starts(names), context.cluster.log_ends(names, "read_uncommitted")
    return {(run, p.name): Range(starts[p.name], max(starts[p.name], ends[p.name])) for run, p in partitions if same(p)}
