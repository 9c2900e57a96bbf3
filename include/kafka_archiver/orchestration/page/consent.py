"""The consent that a person gives before an action that replaces objects or lets records go, with its counts."""

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from typing import NamedTuple

from kafka_archiver.config import Archive
from kafka_archiver.messages.errors import ArchiverError
from kafka_archiver.messages.policies import POLICIES
from kafka_archiver.orchestration.dag_run.params import Rebuild
from kafka_archiver.orchestration.dag_run.schedule import second_before
from kafka_archiver.orchestration.page.actions import Trigger
from kafka_archiver.orchestration.page.archives import ArchiveSnapshots
from kafka_archiver.values.documents import isoformat
from kafka_archiver.work.plan import preview
from kafka_archiver.work.rebuild import effective_plans, rebuild_extent, runs_of_hour


class Consent(NamedTuple):
    """A question to a person. `lines`: the effects in sentences. `dangers`: those that nothing takes back."""

    title: str = "Start this?"
    lines: Sequence[str] = ()
    dangers: Sequence[str] = ()


def question(archive_snapshots: ArchiveSnapshots, archive: Archive, trigger: Trigger) -> Consent | None:
    """Return the effects of an action; None if nobody has to agree to it.

    :raises ArchiverError: it cannot be done, or the ledger does not answer.
    """
    if conf := trigger.conf.get("rebuild"):
        return Consent(dangers=list(_rebuild(archive_snapshots, archive, Rebuild.of(conf))))
    policies = trigger.conf.get("policies", {})
    if any(POLICIES[policy].choice(choice).is_for_ever for policy, choice in policies.items()):
        return Consent(dangers=list(_policies(archive_snapshots, archive.choosing(policies), policies)))
    return None


def _rebuild(archive_snapshots: ArchiveSnapshots, archive: Archive, rebuild: Rebuild) -> Iterator[str]:
    context = archive_snapshots.open(archive)
    runs = runs_of_hour(context, rebuild.hour) if rebuild.hour else [rebuild.run]
    target = f"hour {isoformat(rebuild.hour)}" if rebuild.hour else f"run {rebuild.run}"
    extent = rebuild_extent(context, effective_plans(context, runs))
    yield f"The rebuild of {target} replaces {extent}, also those of other hours."
    yield f"It reads {extent.offsets:,} offsets from Kafka again, with today's settings of the archive."
    if not rebuild.keep:
        yield "The replaced objects are removed once the new ones are final."
    if not rebuild.fewer:
        yield "It stops before that if fewer records would be archived than are now."


def _policies(archive_snapshots: ArchiveSnapshots, archive: Archive, policies: dict[str, str]) -> Iterator[str]:
    chosen = ", ".join(f"{policy}: {choice}" for policy, choice in policies.items())
    yield f"The run decides by {chosen}. What it records as lost, or as a new generation, stays so for ever."
    try:
        plan = preview(archive_snapshots.open(archive), second_before(datetime.now(UTC)), "manual")
    except ArchiverError as error:
        yield f"What it would do is not known now: {error}"
        return
    yield f"It would archive {plan.offsets:,} offsets."
    yield from plan.policies_triggered or ("No policy would decide anything now: nothing would be lost.",)
