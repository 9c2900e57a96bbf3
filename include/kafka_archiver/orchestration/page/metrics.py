"""`/archiver/metrics`: Prometheus' text format. One set of series for each archive, and one for each of its topics."""

from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from datetime import UTC, datetime, timedelta
from typing import NamedTuple

from fastapi import APIRouter, HTTPException, Request, Response
from prometheus_client import CONTENT_TYPE_LATEST, CollectorRegistry, generate_latest
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.registry import Collector

from kafka_archiver.config import Archive
from kafka_archiver.orchestration.metadata.airflow_health import Services, services
from kafka_archiver.orchestration.page.access import MaybeUser, PageSnapshots, has_token, visible
from kafka_archiver.state.health import verdict_of
from kafka_archiver.state.health.judge import checks_of
from kafka_archiver.state.overview import LastAudit, LastRun, Snapshot
from kafka_archiver.state.overview.incomplete import RECENT

# Prometheus gives up after ten seconds.
PATIENCE = 5.0
_PREFIX = "kafka_archiver_"
_HEALTHY = ("ok", "warning")


class Sample(NamedTuple):
    """One archive at the time of a scrape. `healthy`: by its checks."""

    snapshot: Snapshot
    moment: datetime
    healthy: bool


class _Gauge(NamedTuple):
    """`value` gives None where nothing is known: then there is no sample, which is not the same as zero."""

    name: str
    text: str
    value: Callable[[Sample], float | None]


router = APIRouter()


@router.get("/metrics")
def metrics(request: Request, user: MaybeUser, archive_snapshots: PageSnapshots) -> Response:
    """Expose the archives that the caller may know of: with the token all, else those whose DAGs the user sees."""
    archives, token = archive_snapshots.archives(), has_token(request)
    if not token and user is None:
        raise HTTPException(401, "Give the token", {"WWW-Authenticate": "Bearer"})
    names = sorted(archives.valid if token or user is None else visible(user, archives.valid))
    snapshots = archive_snapshots.current(names, PATIENCE)
    chosen = {name: archives.valid[name] for name in names}
    errors = len(archives.errors) if token else None
    faulty = {name for name in names if archive_snapshots.fault(name)}
    text = exposition(chosen, snapshots, datetime.now(UTC), errors, faulty, services() if token else None)
    return Response(text, media_type=CONTENT_TYPE_LATEST)


def exposition(
    archives: Mapping[str, Archive],
    snapshots: Mapping[str, Snapshot | None],
    moment: datetime,
    wrong: int | None,
    faulty: Collection[str] = (),
    airflow: Services | None = None,
) -> bytes:
    """Return the metrics in text.

    :param wrong: the number of YAML files with errors, if the caller may know.
    :param faulty: the archives whose YAML file is wrong or gone.
    :param airflow: the services of Airflow, if the caller may know.
    """

    def is_healthy(name: str, snapshot: Snapshot) -> bool:
        return name not in faulty and verdict_of(checks_of(archives[name], snapshot, moment)) in _HEALTHY

    samples = [Sample(snapshot, moment, is_healthy(name, snapshot)) for name, snapshot in snapshots.items() if snapshot]
    registry = CollectorRegistry(auto_describe=False)
    registry.register(_Collected([*families(samples), *_of_all(snapshots, wrong), *_of_airflow(airflow)]))
    return generate_latest(registry)


class _Collected(Collector):
    def __init__(self, families: Iterable[GaugeMetricFamily]) -> None:
        self._families = list(families)

    def collect(self) -> Iterator[GaugeMetricFamily]:
        yield from self._families


def families(samples: Iterable[Sample]) -> Iterator[GaugeMetricFamily]:
    """Yield all metrics of these archives."""
    all_samples = list(samples)
    for gauge in _GAUGES:
        family = GaugeMetricFamily(_PREFIX + gauge.name, gauge.text, labels=["archive"])
        for sample in all_samples:
            value = gauge.value(sample)
            if value is not None:
                family.add_metric([sample.snapshot.archive], value)
        yield family
    yield from _by_topic(all_samples)
    troubles = GaugeMetricFamily(
        _PREFIX + "troubles", "The findings that are open, by severity.", labels=["archive", "severity"]
    )
    for sample in all_samples:
        for severity in ("problem", "warning"):
            count = sum(trouble.severity == severity for trouble in sample.snapshot.troubles)
            troubles.add_metric([sample.snapshot.archive, severity], count)
    yield troubles


def _by_topic(samples: Iterable[Sample]) -> Iterator[GaugeMetricFamily]:
    lag = GaugeMetricFamily(
        _PREFIX + "topic_lag_records", "Offsets of a topic that are not archived yet.", labels=["archive", "topic"]
    )
    for sample in samples:
        topics: dict[str, int] = defaultdict(int)
        for partition in sample.snapshot.state.partitions if sample.snapshot.state else ():
            topics[partition.topic] += partition.lag
        for topic in sorted(topics):
            lag.add_metric([sample.snapshot.archive, topic], topics[topic])
    yield lag


def _of_all(snapshots: Mapping[str, Snapshot | None], wrong: int | None) -> Iterator[GaugeMetricFamily]:
    yield GaugeMetricFamily(
        _PREFIX + "archives", "Archives, also those whose YAML file is wrong or gone.", value=len(snapshots)
    )
    if wrong is not None:
        yield GaugeMetricFamily(_PREFIX + "wrong_files", "YAML files with an error.", value=wrong)


def _of_airflow(airflow: Services | None) -> Iterator[GaugeMetricFamily]:
    if airflow is None:
        return
    for name, is_alive in airflow.alive.items():
        text = f"1 if Airflow's {name.replace('_', ' ')} has given a sign of life lately."
        yield GaugeMetricFamily(f"{_PREFIX}{name}_alive", text, value=is_alive)
    if airflow.watched_at:
        text = "When the watchdog last looked at all archives."
        yield GaugeMetricFamily(_PREFIX + "watchdog_timestamp_seconds", text, value=_time(airflow.watched_at))


def _seconds(time: timedelta | None) -> float | None:
    return None if time is None else time.total_seconds()


def _time(moment: datetime | None) -> float | None:
    return None if moment is None else moment.timestamp()


def _ledger(read: Callable[[Snapshot], float]) -> Callable[[Sample], float | None]:
    return lambda sample: read(sample.snapshot) if sample.snapshot.ledger_read else None


def _audit(read: Callable[[LastAudit], float | None]) -> Callable[[Sample], float | None]:
    return lambda sample: read(sample.snapshot.audit) if sample.snapshot.audit else None


def _counts(name: str) -> Callable[[Sample], float | None]:
    return _audit(lambda audit: getattr(audit.counts, name) if audit.counts else None)


def _run(read: Callable[[LastRun], float]) -> Callable[[Sample], float | None]:
    return lambda sample: read(sample.snapshot.last_run) if sample.snapshot.last_run else None


_GAUGES = (
    _Gauge("up", "1 if the store and the brokers answered.", lambda sample: sample.snapshot.error is None),
    _Gauge("healthy", "1 if every health check is ok or a warning.", lambda sample: sample.healthy),
    _Gauge("looked_timestamp_seconds", "When these values were read.", lambda sample: _time(sample.snapshot.taken_at)),
    _Gauge("lag_records", "Offsets that are not archived yet.", lambda sample: sample.snapshot.lag),
    _Gauge(
        "lag_seconds",
        "How long the oldest record that waits has waited.",
        lambda sample: _seconds(sample.snapshot.behind(sample.moment)),
    ),
    _Gauge(
        "closed_until_timestamp_seconds",
        "The end of the last hour with a verdict, complete or incomplete.",
        lambda sample: _time(sample.snapshot.closed_until),
    ),
    _Gauge(
        "age_seconds",
        "Since the end of the last hour with a verdict.",
        lambda sample: _seconds(sample.snapshot.age(sample.moment)),
    ),
    _Gauge(
        "proofs_open",
        "Ended hours without a verdict yet.",
        lambda sample: sample.snapshot.hours_open(sample.moment) if sample.snapshot.ledger_read else None,
    ),
    _Gauge(
        "proofs_incomplete",
        f"Incomplete hours among the last {RECENT} with a verdict, without those of an accepted loss.",
        lambda sample: (
            None
            if sample.snapshot.incomplete is None
            else sum(not hour.accepted for hour in sample.snapshot.incomplete)
        ),
    ),
    _Gauge("lost_offsets", "Offsets ever lost.", _ledger(lambda snapshot: snapshot.lost)),
    _Gauge("dead_letters", "Records that are dead letters now.", _ledger(lambda snapshot: snapshot.dead_letters)),
    _Gauge(
        "accepted_findings",
        "Findings that a person has accepted.",
        _ledger(lambda snapshot: sum(bool(finding.name) for finding in snapshot.accepted)),
    ),
    _Gauge(
        "unfinished_runs", "Planned runs that are not finished.", _ledger(lambda snapshot: len(snapshot.unfinished))
    ),
    _Gauge("audit_timestamp_seconds", "When the last audit was.", _audit(lambda audit: _time(audit.at))),
    _Gauge(
        "audit_damaged",
        "1 if the last audit found damage in the store.",
        _audit(lambda audit: audit.verdict == "damaged"),
    ),
    _Gauge("audit_errors", "Errors in the store that the last audit found.", _audit(lambda audit: audit.errors)),
    _Gauge("stored_records", "Rows in the store, by the last audit.", _counts("rows")),
    _Gauge("stored_bytes", "Bytes in the store, by the last audit.", _counts("bytes")),
    _Gauge("stored_objects", "Objects in the store, by the last audit.", _counts("objects")),
    _Gauge("stored_proofs", "Hours with a proof, by the last audit.", _counts("hours")),
    _Gauge(
        "last_run_timestamp_seconds", "When the last run was committed.", _run(lambda run: run.committed_at.timestamp())
    ),
    _Gauge("last_run_records", "Rows that the last run wrote.", _run(lambda run: run.rows)),
    _Gauge("last_run_offsets", "Offsets of the last run.", _run(lambda run: run.offsets)),
    _Gauge("last_run_bytes", "Bytes that the last run wrote.", _run(lambda run: run.bytes)),
    _Gauge("last_run_objects", "Objects that the last run wrote.", _run(lambda run: run.objects)),
    _Gauge("last_run_dead_letters", "Dead letters of the last run.", _run(lambda run: run.dead_letters)),
    _Gauge("last_run_lost_offsets", "Offsets that the last run recorded as lost.", _run(lambda run: run.lost)),
    _Gauge(
        "last_run_duration_seconds",
        "Duration of the DAG run that finished the last run.",
        lambda sample: _seconds(sample.snapshot.duration),
    ),
    _Gauge(
        "last_run_cpu_seconds",
        "CPU of spark-submit and its children in that DAG run; all of Spark only on one machine.",
        lambda sample: sample.snapshot.effort.cpu_seconds if sample.snapshot.effort else None,
    ),
    _Gauge(
        "last_run_retries",
        "Attempts after the first of that DAG run's tasks.",
        lambda sample: sample.snapshot.effort.retries if sample.snapshot.effort else None,
    ),
)
_OTHERS = ("troubles", "topic_lag_records", "archives", "wrong_files")
_OF_AIRFLOW = ("scheduler_alive", "dag_processor_alive", "watchdog_timestamp_seconds")
NAMES = frozenset(_PREFIX + name for name in (*(gauge.name for gauge in _GAUGES), *_OTHERS, *_OF_AIRFLOW))
