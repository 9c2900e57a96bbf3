"""The questions before an action that replaces objects or lets records go, and before a restore, with their counts."""

from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, NamedTuple

from kafka_archiver.config import Archive
from kafka_archiver.context.archive_context import Context
from kafka_archiver.kafka.cluster import Cluster
from kafka_archiver.messages.errors import ArchiverError, ConfigError
from kafka_archiver.messages.policies import POLICIES, deeds
from kafka_archiver.messages.wording import count, offset_span, size
from kafka_archiver.model.plan import Plan
from kafka_archiver.model.restore_request import RestoreRequest
from kafka_archiver.model.unsure_hours import unsure_by_plan
from kafka_archiver.orchestration.connections import target_endpoints
from kafka_archiver.orchestration.dag_run.params import Rebuild
from kafka_archiver.orchestration.dag_run.restore_form import restore_request
from kafka_archiver.orchestration.dag_run.schedule import second_before
from kafka_archiver.orchestration.page.actions import Trigger
from kafka_archiver.orchestration.page.archives import BROKER_SECONDS, open_for_page
from kafka_archiver.values.ranges import Range
from kafka_archiver.work.plan import preview
from kafka_archiver.work.rebuild import effective_plans, rebuild_extent, runs_of_hour
from kafka_archiver.work.restore.prepare import Forecast, forecast, known_topics

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


def restore_question(context: Context, conf: Mapping[str, Any]) -> Consent:
    """Return the effects of a restore. Reads the manifests of the whole selection.

    :raises ArchiverError: a parameter is wrong, the target is not ready, or something does not answer.
    """
    archive, ledger, title = context.archive, context.ledger, "Restore this to Kafka?"
    request = restore_request(conf, known_topics(ledger), f"{datetime.now(UTC):%Y%m%dT%H%M%SZ}")
    if plan := ledger.restore_plan(request.restore):
        targets = ", ".join(topic.topic for topic in plan.topics)
        planned = (
            f"Restore {request.restore} is planned already: it goes on as planned, with {plan.records:,} records to "
            f"{targets}. What is written is not written again."
        )
        return Consent(title, [planned])
    cluster = Cluster(target_endpoints(archive, conf.get("to")).kafka, BROKER_SECONDS)
    outlook = forecast(ledger, cluster, request)
    if refusals := list(_refusals(outlook, bool(conf.get("create")))):
        raise ConfigError("This would not be restored. " + " ".join(refusals))
    return Consent(title, list(_effects(outlook, request, conf)), list(_dangers(archive, request, conf)))


def _refusals(outlook: Forecast, create: bool) -> Iterator[str]:
    for finding in outlook.problems(create):
        steps = "; ".join(action.command or action.words for action in finding.actions)
        yield f"{finding.text}." + f" To do: {steps}." * bool(steps)
    if outlook.refused:
        yield outlook.refused


def _effects(outlook: Forecast, request: RestoreRequest, conf: Mapping[str, Any]) -> Iterator[str]:
    yield from outlook.lines(request)
    yield f"The target is {conf['to'] if conf.get('to') else 'the cluster of the archive itself'}."
    if conf.get("create"):
        yield "Topics that are missing are created."
    for finding in outlook.findings:
        if finding.severity == "warning":
            yield f"Mind: {finding.text}"


def _dangers(archive: Archive, request: RestoreRequest, conf: Mapping[str, Any]) -> Iterator[str]:
    own = [topic for topic in request.selection.topics if request.target_of(topic) == topic]
    if own and not conf.get("to"):
        yield f"It writes to {', '.join(own)}, which {archive.archive} archives: its next run archives them again."
    if request.options.append:
        yield "It writes behind the records of topics that are in use. Nobody else may write to them meanwhile."
    if request.options.allow:
        yield f"What is restored need not be exact: {', '.join(request.options.allow)} is allowed."
    if conf.get("replace_groups"):
        yield "Consumer groups lose the offsets that they have in the target."
