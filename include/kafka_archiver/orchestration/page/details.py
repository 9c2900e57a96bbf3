"""The page's details of one archive beyond its snapshot: read in the background, kept for seconds."""

import json
from collections.abc import Hashable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, date, datetime, timedelta
from types import MappingProxyType
from typing import Annotated, Any, Generic, NamedTuple, TypeAlias, TypeVar

from fastapi import Depends, Request

from kafka_archiver.config import Archive
from kafka_archiver.context.archive_context import Context
from kafka_archiver.context.history import RunDetails, RunSummary, last_runs, run_details
from kafka_archiver.messages.actions import Action
from kafka_archiver.messages.advice import audit_dag_id, dag_id, restore_dag_id
from kafka_archiver.messages.errors import ArchiverError
from kafka_archiver.orchestration.dag_run.schedule import last_interval, second_before
from kafka_archiver.orchestration.metadata.audit_log import AuditEntry, last_actions
from kafka_archiver.orchestration.metadata.facts import facts_of
from kafka_archiver.orchestration.metadata.restore_runs import RestoreRun, restore_runs
from kafka_archiver.orchestration.page.archives import ArchiveSnapshots, open_for_one_look, open_for_page
from kafka_archiver.orchestration.page.cache import Cache, Near
from kafka_archiver.orchestration.page.consent import Consent, restore_question
from kafka_archiver.state.coverage import Coverage, HourDetail, ProofHeads, read_coverage, read_hour
from kafka_archiver.state.overview import Snapshot
from kafka_archiver.state.overview.history import PartitionHistory, histories, last_plans
from kafka_archiver.state.restores import Restores, last_restores
from kafka_archiver.state.status.facts import Facts
from kafka_archiver.values.ranges import TopicPartition
from kafka_archiver.work.plan import Preview, count_left_out, is_planned_since, preview
from kafka_archiver.work.restore.prepare import known_topics

# An archive's page: the days of its hours, its last runs, and the last actions in Airflow's audit log.
SHOWN_DAYS = 28
SHOWN_RUNS = 10
SHOWN_ACTIONS = 15
# Each partition's history is of so many last plans.
HISTORY_PLANS = 24
# The days of the year's page.
YEAR_DAYS = 366
# No record is older: Kafka's times begin here.
FIRST_DAY = date(1970, 1, 1)
# Seconds for which an answer is kept, and answers that are kept: each hour that somebody looks at is one.
FRESH_SECONDS = 15.0
KEPT_ANSWERS = 500
# Seconds to wait for an answer that nobody has asked for yet; for one that reads the ledger of a whole archive less: a
# page says soon that it is being read.
PATIENCE = 12.0
QUESTION_PATIENCE = 1.0
# Somebody looks at one archive: an answer older than so many seconds is read again at once, and awaited for so many.
NEAR = Near(age=10.0, wait=0.4)
Value = TypeVar("Value")
_Key: TypeAlias = tuple[Hashable, ...]


class Lookup(NamedTuple, Generic[Value]):
    """A value, or the error for which there is none, and what to do. `awaited`: a fresh answer is on its way.

    `at`: the time of the answer; None while the first one is under way.
    """

    value: Value | None = None
    at: datetime | None = None
    error: str | None = None
    actions: tuple[Action, ...] = ()
    awaited: bool = False


class Detail(NamedTuple):
    """One archive as it was at one moment: its figures, hours and runs.

    `unread`: why its hours and runs are unknown; empty if the ledger was read.
    """

    snapshot: Snapshot
    facts: Facts
    coverage: Coverage | None = None
    runs: Sequence[RunSummary] = ()
    histories: Mapping[TopicPartition, PartitionHistory] = MappingProxyType({})
    unread: str = ""
    actions: Sequence[AuditEntry] = ()


class NextRun(NamedTuple):
    """The work of a run that began now. `due`: when the scheduler will start the next one, if it will."""

    preview: Preview
    due: datetime | None


class RestoresDetail(NamedTuple):
    """The restores of one archive in its ledger and in Airflow, and the topics that it has."""

    ledger: Restores
    runs: Sequence[RestoreRun]
    topics: Sequence[str]


class Details:
    """Reads details. Each method gives an empty answer while the first one is under way, or an old answer."""

    def __init__(self, archive_snapshots: ArchiveSnapshots) -> None:
        self._archive_snapshots = archive_snapshots
        self._heads = ProofHeads()
        self._cache: Cache[_Key, Lookup[Any]] = Cache(self._read, FRESH_SECONDS, most=KEPT_ANSWERS)

    def of(self, archive: str, last: date) -> Lookup[Detail]:
        """Return the archive's hours of the days up to `last`, and its last runs."""
        return self._get((self._detail, archive, last))

    def again(self, archive: str) -> None:
        """Read everything of this archive again at the next request."""
        self._cache.forget(lambda key: key[1] == archive)

    def year(self, archive: str, last: date) -> Lookup[Coverage]:
        """Return the hours of the year up to `last`."""
        return self._get((self._year, archive, last))

    def hour(self, archive: str, hour: int) -> Lookup[HourDetail]:
        """Return one hour in full."""
        return self._get((self._hour, archive, hour))

    def run(self, archive: str, run: str) -> Lookup[RunDetails]:
        """Return one run of the ledger with its documents."""
        return self._get((self._run, archive, run))

    def restores(self, archive: str) -> Lookup[RestoresDetail]:
        return self._get((self._restores, archive))

    def restore_question(self, archive: str, conf: Mapping[str, Any]) -> Lookup[Consent]:
        """Return what a restore would do."""
        key = (self._restore_question, archive, json.dumps(conf, sort_keys=True))
        return self._cache.get(key, QUESTION_PATIENCE) or Lookup()

    def plan(self, archive: str) -> Lookup[NextRun]:
        """Preview the run that would be triggered now."""
        return self._get((self._plan, archive))

    def _get(self, key: _Key) -> Lookup[Any]:
        lookup = self._cache.get(key, PATIENCE, NEAR)
        return lookup._replace(awaited=self._cache.is_awaited(key)) if lookup else Lookup()

    def _read(self, key: _Key, _: Lookup[Any] | None) -> Lookup[Any]:
        read, name, *more = key
        archive, moment = self._archive_snapshots.archives().valid.get(str(name)), datetime.now(UTC)
        assert callable(read)
        try:
            return Lookup(read(archive, *more) if archive else None, moment)
        except ArchiverError as error:
            return Lookup(None, moment, str(error), error.actions)

    def _detail(self, archive: Archive, last: date) -> Detail:
        moment = datetime.now(UTC)
        facts = facts_of(archive, moment)
        dags = (dag_id(archive.archive), audit_dag_id(archive.archive), restore_dag_id(archive.archive))
        detail = Detail(
            Snapshot(archive=archive.archive, taken_at=moment), facts, actions=last_actions(dags, SHOWN_ACTIONS)
        )
        try:
            context = open_for_one_look(archive)
        except ArchiverError as error:
            unknown = detail.snapshot.model_copy(update={"error": str(error)})
            return detail._replace(snapshot=unknown, unread=str(error))
        with ThreadPoolExecutor(1) as pool:
            # The brokers may take long. Both read each document once: neither says what the other denies.
            figures = pool.submit(self._archive_snapshots.look_at, context, facts)
            try:
                detail = self._with_ledger(detail, context, last)
            except ArchiverError as error:
                detail = detail._replace(unread=str(error))
            return detail._replace(snapshot=figures.result())

    def _with_ledger(self, detail: Detail, context: Context, last: date) -> Detail:
        facts, moment = detail.facts, datetime.now(UTC)
        progress = context.ledger.progress()
        runs = last_runs(context.ledger, SHOWN_RUNS)
        newest = max([run.number for run in runs], default=progress.settled if progress else 0)
        past = {history.name: history for history in histories(last_plans(context.ledger, newest, HISTORY_PLANS))}
        at_work = facts.silent is not None or any(run.state == "running" for run in facts.at_work(moment))
        coverage = read_coverage(context, last, SHOWN_DAYS, self._heads, at_work)
        return detail._replace(coverage=coverage, runs=runs, histories=past)

    def _year(self, archive: Archive, last: date) -> Coverage:
        return read_coverage(open_for_page(archive), last, YEAR_DAYS, self._heads)

    def _hour(self, archive: Archive, hour: int) -> HourDetail:
        context = open_for_page(archive)
        detail = read_hour(context, hour)
        if not detail.is_left_out:
            return detail
        try:
            has_more = bool(count_left_out(context, None))
        except ArchiverError:
            # Whoever starts a fill hears why.
            has_more = True
        return detail.model_copy(update={"kafka_has_more": has_more})

    def _run(self, archive: Archive, run: str) -> RunDetails:
        return run_details(open_for_page(archive).ledger, run)

    def _restores(self, archive: Archive) -> RestoresDetail:
        ledger = open_for_page(archive).ledger
        return RestoresDetail(
            last_restores(ledger), restore_runs(restore_dag_id(archive.archive)), known_topics(ledger)
        )

    def _restore_question(self, archive: Archive, conf: str) -> Consent:
        return restore_question(open_for_page(archive), json.loads(conf))

    def _plan(self, archive: Archive) -> NextRun:
        context, moment = open_for_page(archive), datetime.now(UTC)
        interval = last_interval(archive, moment)
        if is_planned_since(context, interval, moment) is False:
            interval = second_before(moment)
        facts = facts_of(archive, moment)
        return NextRun(preview(context, interval, "scheduled"), None if facts.paused else facts.next_due)


def _details_of(request: Request) -> Details:
    details: Details = request.app.state.details
    return details


PageDetails: TypeAlias = Annotated[Details, Depends(_details_of)]


def window(last: date, today: date) -> tuple[date, date, date | None]:
    """Return the last day that is shown, that of the window before, and that of the window after, if there is one."""
    last = max(min(last, today), FIRST_DAY)
    after = min(last + timedelta(days=SHOWN_DAYS), today)
    return last, last - timedelta(days=SHOWN_DAYS), after if last < today else None
