"""The consent that a person gives before an action that replaces objects or lets records go, with its counts."""

from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, NamedTuple

from kafka_archiver.config import Archive
from kafka_archiver.kafka.cluster import Cluster
from kafka_archiver.messages.advice import restore_dag_id
from kafka_archiver.messages.errors import ArchiverError, ConfigError
from kafka_archiver.messages.policies import POLICIES
from kafka_archiver.model.restore_request import RestoreRequest
from kafka_archiver.orchestration.connections import target_endpoints
from kafka_archiver.orchestration.dag_run.params import Rebuild
from kafka_archiver.orchestration.dag_run.restore_form import restore_request
from kafka_archiver.orchestration.dag_run.schedule import second_before
from kafka_archiver.orchestration.page.actions import Trigger
from kafka_archiver.orchestration.page.archives import BROKER_SECONDS, Observatory
from kafka_archiver.values.documents import isoformat
from kafka_archiver.work.plan import preview
from kafka_archiver.work.rebuild import effective_plans, rebuild_extent, runs_of_hour
from kafka_archiver.work.restore.forecast import Forecast, forecast
from kafka_archiver.work.restore.prepare import known_topics


class Consent(NamedTuple):
    """What a person has to agree to. `lines`: the effects in sentences. `dangers`: those that nothing takes back."""

    title: str = "Start this?"
    lines: Sequence[str] = ()
    dangers: Sequence[str] = ()


def question(observatory: Observatory, archive: Archive, trigger: Trigger) -> Consent | None:
    """Return the effects of an action; None if nobody has to agree to it.

    :raises ArchiverError: it cannot be done, or the ledger does not answer.
    """
    if trigger.dag == restore_dag_id(archive.archive):
        return Consent("Restore this to Kafka?", *restore_effects(observatory, archive, trigger.conf))
    if conf := trigger.conf.get("rebuild"):
        return Consent(dangers=list(_rebuild(observatory, archive, Rebuild.of(conf))))
    policies = trigger.conf.get("policies", {})
    if any(POLICIES[policy].choice(choice).is_for_ever for policy, choice in policies.items()):
        return Consent(dangers=list(_policies(observatory, archive.choosing(policies), policies)))
    return None


def _rebuild(observatory: Observatory, archive: Archive, rebuild: Rebuild) -> Iterator[str]:
    context = observatory.open(archive)
    runs = runs_of_hour(context, rebuild.hour) if rebuild.hour else [rebuild.run]
    target = f"hour {isoformat(rebuild.hour)}" if rebuild.hour else f"run {rebuild.run}"
    extent = rebuild_extent(context, effective_plans(context, runs))
    yield f"The rebuild of {target} replaces {extent}, also those of other hours."
    yield f"It reads {extent.offsets:,} offsets from Kafka again, with today's settings of the archive."
    if not rebuild.keep:
        yield "The replaced objects are removed once the new ones are final."
    if not rebuild.fewer:
        yield "It stops before that if fewer records would be archived than are now."


def _policies(observatory: Observatory, archive: Archive, policies: dict[str, str]) -> Iterator[str]:
    chosen = ", ".join(f"{policy}: {choice}" for policy, choice in policies.items())
    yield f"The run decides by {chosen}. What it records as lost, or as a new generation, stays so for ever."
    try:
        plan = preview(observatory.open(archive), second_before(datetime.now(UTC)), "manual")
    except ArchiverError as error:
        yield f"What it would do is not known now: {error}"
        return
    yield f"It would archive {plan.offsets:,} offsets."
    yield from plan.policies_triggered or ("No policy would decide anything now: nothing would be lost.",)


def restore_effects(observatory: Observatory, archive: Archive, conf: Mapping[str, Any]) -> tuple[list[str], list[str]]:
    """Return what a restore would do, and what of it is dangerous.

    :raises ArchiverError: a parameter is wrong, the target is not ready, or something does not answer.
    """
    ledger = observatory.open(archive).ledger
    request = restore_request(conf, known_topics(ledger), f"{datetime.now(UTC):%Y%m%dT%H%M%SZ}")
    if plan := ledger.restore_plan(request.restore):
        targets = ", ".join(topic.topic for topic in plan.topics)
        return [
            f"Restore {request.restore} is planned already: it goes on as planned, with {plan.records:,} records to "
            f"{targets}. What is written is not written again."
        ], []
    cluster = Cluster(target_endpoints(archive, conf.get("to")).kafka, BROKER_SECONDS)
    outlook = forecast(ledger, cluster, request)
    if refusals := list(_refusals(outlook, bool(conf.get("create")))):
        raise ConfigError("This would not be restored. " + " ".join(refusals))
    return list(_effects(outlook, request, conf)), list(_dangers(archive, request, conf))


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
