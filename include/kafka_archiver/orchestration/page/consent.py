"""The consent that a person gives before an action that replaces objects or lets records go, with its counts."""

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from typing import NamedTuple

from kafka_archiver.config import Archive
from kafka_archiver.messages.errors import ArchiverError
from kafka_archiver.messages.policies import POLICIES, deeds
from kafka_archiver.messages.wording import count, offset_span, size
from kafka_archiver.model.plan import Plan
from kafka_archiver.model.unsure_hours import unsure_by_plan
from kafka_archiver.orchestration.dag_run.params import Rebuild
from kafka_archiver.orchestration.dag_run.schedule import second_before
from kafka_archiver.orchestration.page.actions import Trigger
from kafka_archiver.orchestration.page.archives import open_for_page
from kafka_archiver.values.ranges import Range
from kafka_archiver.work.plan import preview
from kafka_archiver.work.rebuild import effective_plans, rebuild_extent, runs_of_hour

# Partitions that a question names.
PARTITIONS = 20


class Consent(NamedTuple):
    """A question to a person. `lines`: the effects in sentences. `dangers`: those that nothing takes back."""

    title: str = "Start this?"
    lines: Sequence[str] = ()
    dangers: Sequence[str] = ()


def question(archive: Archive, trigger: Trigger) -> Consent | None:
    """Return the effects of an action; None if nobody has to agree to it.

    :raises ArchiverError: it cannot be done, or the ledger does not answer.
    """
    if conf := trigger.conf.get("rebuild"):
        chosen = Rebuild.of(conf)
        title = f"Rebuild {f'hour {chosen.hour:%Y-%m-%d %H:%M}' if chosen.hour else f'run {chosen.run}'}?"
        return Consent(title, dangers=list(_rebuild(archive, chosen)))
    policies = trigger.conf.get("policies", {})
    if any(POLICIES[policy].choice(choice).is_for_ever for policy, choice in policies.items()):
        return _policies(archive.choosing(policies), policies)
    return None


def _rebuild(archive: Archive, rebuild: Rebuild) -> Iterator[str]:
    context = open_for_page(archive)
    runs = runs_of_hour(context, rebuild.hour) if rebuild.hour else [rebuild.run]
    extent = rebuild_extent(context, effective_plans(context, runs))
    only = f" – not only {rebuild.hour:%H:%M}" if rebuild.hour and extent.hours > 1 else ""
    yield (
        f"It rewrites {count(extent.runs, 'run')}: {count(extent.records, 'record')}, "
        f"{count(extent.objects, 'object')} ({size(extent.bytes)}), in {count(extent.hours, 'hour')}{only}."
    )
    yield f"It reads {extent.offsets:,} offsets from Kafka again, with today's settings of the archive."
    if not rebuild.keep:
        yield "The replaced objects are removed once the new ones are final."
    if not rebuild.fewer:
        yield "It stops before that if fewer records would be archived than are now."


def _policies(archive: Archive, policies: dict[str, str]) -> Consent:
    """Return the question before a run whose choices nobody can take back, with what it would do now."""
    deed = deeds({name: choice for name, choice in policies.items() if POLICIES[name].choice(choice).is_for_ever})
    consent = Consent(f"{deed}?")
    try:
        plan = preview(open_for_page(archive), second_before(datetime.now(UTC)), "manual").plan
    except ArchiverError as error:
        return consent._replace(dangers=[f"{_choices(policies)} What it would do is not known now: {error}"])
    decided = [text for partition in plan.partitions for text in partition.decided][:PARTITIONS]
    waiting = f"{count(plan.count, 'waiting offset')} {'is' if plan.count == 1 else 'are'} archived."
    lost = list(_losses(plan))
    if until := unsure_by_plan(plan):
        less = ", unless `timestamp.max_disorder` shows that it lacks nothing" if plan.ordered_within_ms else ""
        lost.append(f"No hour before {until:%Y-%m-%d %H:%M} UTC that is not complete now can become complete{less}.")
    if lost:
        return consent._replace(dangers=lost, lines=[*decided, waiting])
    nothing = f"{_choices(policies)} Now, no policy would decide anything: nothing would be lost."
    return consent._replace(dangers=decided or [nothing], lines=[waiting])


def _choices(policies: dict[str, str]) -> str:
    chosen = ", ".join(f"{policy}: {choice}" for policy, choice in policies.items())
    return f"The run decides by {chosen}. What it records as lost, or as a new generation, stays so for ever."


def _losses(plan: Plan) -> Iterator[str]:
    """Yield what a plan records as lost, by partition."""
    lost = [partition for partition in plan.partitions if partition.lost]
    for partition in lost[:PARTITIONS]:
        ranges = [Range(*pair) for pair in partition.lost]
        number = sum(each.size for each in ranges)
        spans = ", ".join(offset_span(*each) for each in ranges)
        yield (
            f"{count(number, 'offset')} ({partition.topic}, partition {partition.partition}, {spans}) "
            f"{'is' if number == 1 else 'are'} recorded as lost for ever."
        )
    if more := lost[PARTITIONS:]:
        number = sum(Range(*pair).size for partition in more for pair in partition.lost)
        yield f"{count(number, 'offset')} of {count(len(more), 'more partition')} are recorded as lost for ever."
