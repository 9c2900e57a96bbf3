"""The question before a restore: the counts of its dry run, for the person who is to agree."""

from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, NamedTuple

from kafka_archiver.config import Archive
from kafka_archiver.context.archive_context import Context
from kafka_archiver.kafka.cluster import Cluster
from kafka_archiver.messages.errors import ConfigError
from kafka_archiver.model.restore_request import RestoreRequest
from kafka_archiver.orchestration.connections import target_endpoints
from kafka_archiver.orchestration.dag_run.restore_form import restore_request
from kafka_archiver.orchestration.page.archives import BROKER_SECONDS
from kafka_archiver.work.restore.prepare import Forecast, forecast, known_topics


class Effects(NamedTuple):
    """The effects of a restore, in sentences. `dangers`: those that nothing takes back."""

    lines: Sequence[str]
    dangers: Sequence[str]


def restore_effects(context: Context, conf: Mapping[str, Any]) -> Effects:
    """Return what a restore would do, and what of it is dangerous. Reads the manifests of the whole selection.

    :raises ArchiverError: a parameter is wrong, the target is not ready, or something does not answer.
    """
    archive, ledger = context.archive, context.ledger
    request = restore_request(conf, known_topics(ledger), f"{datetime.now(UTC):%Y%m%dT%H%M%SZ}")
    if plan := ledger.restore_plan(request.restore):
        targets = ", ".join(topic.topic for topic in plan.topics)
        planned = (
            f"Restore {request.restore} is planned already: it goes on as planned, with {plan.records:,} records to "
            f"{targets}. What is written is not written again."
        )
        return Effects([planned], [])
    cluster = Cluster(target_endpoints(archive, conf.get("to")).kafka, BROKER_SECONDS)
    outlook = forecast(ledger, cluster, request)
    if refusals := list(_refusals(outlook, bool(conf.get("create")))):
        raise ConfigError("This would not be restored. " + " ".join(refusals))
    return Effects(list(_effects(outlook, request, conf)), list(_dangers(archive, request, conf)))


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
