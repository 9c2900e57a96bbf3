"""The watchdog: sends the alerts that no run of an archive can send, because none starts.

`state/unattended` decides what is wrong. The watchdog needs nothing of the archives' DAGs. Between its runs it
remembers the archives, and the receivers of their alerts.
"""

import logging
import os
import re
from collections.abc import Callable, Collection, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, field
from datetime import datetime, timedelta
from functools import partial
from typing import Any, NamedTuple

from airflow.sdk import Variable
from airflow.sdk.exceptions import AirflowException

from kafka_archiver.config import Archive
from kafka_archiver.config.alerts import Alerts, default_alerts
from kafka_archiver.config.archives import Archives, WrongFileError, missing
from kafka_archiver.config.last_known import last_known, receivers_of
from kafka_archiver.messages.advice import WATCHDOG, audit_again, audit_dag_id, dag_id, repair
from kafka_archiver.messages.errors import ArchiverError, error_in_words
from kafka_archiver.orchestration.alerts import state_texts
from kafka_archiver.orchestration.alerts.message import Kind, Message, State
from kafka_archiver.orchestration.alerts.reporting import (
    Incident,
    IncidentReporter,
    Incidents,
    MessageOf,
    state_to_report,
)
from kafka_archiver.orchestration.alerts.send import name_of
from kafka_archiver.orchestration.connections import open_archive, open_ledger
from kafka_archiver.orchestration.dags.archive import archive_dag
from kafka_archiver.state.unattended import WatchedArchive, watch
from kafka_archiver.values.documents import isoformat

log = logging.getLogger(__name__)
# Archives that are looked at at the same time, and seconds for each answer of the brokers.
AT_ONCE, BROKER_SECONDS = 8, 8.0
# Seconds for all receivers of one message.
SECONDS = 25.0
VARIABLE = "kafka_archiver_watched"
# In the place of an archive's name: what is wrong with the folder of archives.
FOLDER = "(all)"


@dataclass
class Memory:
    """The watchdog's memory between its runs.

    `archives`: by name. `files`: in whose name it told of files that are of no archive it knows.
    """

    archives: dict[str, dict[str, Any]] = field(default_factory=dict)
    files: list[str] = field(default_factory=list)

    @classmethod
    def read(cls) -> "Memory":
        """Read it from Airflow's variable; empty before the first look."""
        stored = Variable.get(VARIABLE, default=None, deserialize_json=True) or {}
        return cls(dict(stored.get("archives", {})), list(stored.get("files", ())))

    def write(self) -> None:
        description = f"Memory of the DAG {WATCHDOG}: the known archives, and the receivers of their alerts."
        Variable.set(VARIABLE, asdict(self), description=description, serialize_json=True)


class Watchdog:
    """One look at all archives.

    :param is_paused: tells whether a DAG is paused; None: Airflow does not know it.
    :param link: the log of this look.
    """

    def __init__(
        self,
        is_paused: Callable[[str], bool | None],
        memory: Memory,
        link: str,
        moment: datetime,
        incidents: Incidents | None = None,
    ) -> None:
        self._is_paused, self._memory, self._link, self._now = is_paused, memory, link, moment
        self._incidents = incidents or Incidents()
        self._default = default_alerts(os.environ)

    def look(self, archives: Archives) -> list[str]:
        """Look at all archives, and send alerts. Return the errors of those that could not be looked at."""
        wrong = {**missing(archives), **_refused_by_airflow(archives.valid.values())}
        failures: list[str] = []
        with ThreadPoolExecutor(AT_ONCE) as pool:
            looks = {name: pool.submit(self._watch, archive) for name, archive in archives.valid.items()}
        for name, archive in archives.valid.items():
            try:
                watched = looks[name].result()
            except Exception as error:  # noqa: BLE001 - one archive must not hide the others
                failures.append(f"{name}: {error_in_words(error)}")
                watched = None
            self._report(archive, watched, wrong.get(name))
            self._remember(archive, watched)
        self._strangers(archives, {name: error for name, error in wrong.items() if name not in archives.valid})
        if not self._folder(archives):
            failures += self._gone(archives, wrong)
        return failures

    def _watch(self, archive: Archive) -> WatchedArchive | None:
        before = self._memory.archives.get(archive.archive, {})
        since = datetime.fromisoformat(before["since"]) if "since" in before else self._now
        is_paused = bool(self._is_paused(dag_id(archive.archive)))
        audit_is_paused = bool(self._is_paused(audit_dag_id(archive.archive)))
        try:
            return watch(
                archive,
                open_ledger(archive),
                is_paused,
                audit_is_paused,
                partial(_lag, archive),
                before.get("lag"),
                since,
                self._now,
            )
        except ArchiverError as error:
            # Its runs meet the same, and tell.
            log.warning("archive %s cannot be looked at: %s", archive.archive, error)
            return None

    def _report(self, archive: Archive, watched: WatchedArchive | None, error: str | None) -> None:
        name, link = archive.archive, self._link
        incidents = self._incidents_of(name, archive.alerts)
        self._wrong_file(incidents, name, error)
        incidents.report("gone", None, state_texts.gone(name, "", link))
        if watched is None:
            return
        # A broker that does not answer ends no incident.
        if watched.paused or not watched.lag_is_unknown:
            incidents.report(
                "paused", "paused" if watched.paused else None, state_texts.paused(name, watched.paused, link)
            )
        if watched.limit is not None and (watched.late or watched.paused is None):
            incidents.report("late_hour", "late" if watched.late else None, self._late(archive, watched, watched.limit))
        unaudited = None if watched.damage else watched.audit
        incidents.report("unaudited", "late" if unaudited else None, state_texts.unaudited(name, unaudited, link))
        # The alerts of the audit itself know the findings better: told here is only what nobody was told, and the end.
        known = incidents.opened.get("audit")
        if watched.damage is None or known is None or known.untold:
            cause = watched.audit.text if watched.audit else ""
            do = (repair(name), audit_again(name))

            def damage(state: State, _: Incident | None) -> Message:
                return state_texts.of_audit("audit", name, state, cause, watched.report, do, link)

            incidents.report("audit", watched.damage, damage)

    def _late(self, archive: Archive, watched: WatchedArchive, max_age: timedelta) -> MessageOf:
        limit = "alerts.max_age" if archive.alerts.max_age is not None else "health.max_age"
        return lambda state, _: state_texts.late_hour(
            archive.archive, state, watched.closed_until, self._now, max_age, self._link, limit
        )

    def _remember(self, archive: Archive, watched: WatchedArchive | None) -> None:
        before = self._memory.archives.get(archive.archive, {})
        # The first one of this pause: what waits more since then is growth.
        first = before.get("lag")
        if watched is None or watched.lag_is_unknown:
            lag = first
        else:
            lag = None if watched.lag is None else watched.lag if first is None else first
        self._memory.archives[archive.archive] = {
            "known": last_known(archive),
            "since": before.get("since", isoformat(self._now)),
            "lag": lag,
        }

    def _strangers(self, archives: Archives, wrong: Mapping[str, str]) -> None:
        """Alert on wrong files of archives that do not run, and on copies that have taken another one's name."""
        copies = {
            re.sub(r"[^\w.-]", "_", error.file.name): str(error)
            for error in archives.errors
            if isinstance(error, WrongFileError) and error.archive in archives.valid
        }
        for name, error in {**wrong, **copies}.items():
            self._wrong_file(self._incidents_of(name, self._last_alerts(name)), name, error)
        unknown = {name for name in wrong if name not in self._memory.archives} | set(copies)
        for name in set(self._memory.files) - unknown - set(archives.valid) - set(wrong):
            # The file is right, or gone.
            self._wrong_file(self._incidents_of(name, Alerts()), name, None)
        self._memory.files = sorted(unknown)

    def _wrong_file(self, incidents: "_OpenIncidents", name: str, error: str | None) -> None:
        incidents.report("wrong_file", error, state_texts.wrong_file(name, error or "", self._link))

    def _gone(self, archives: Archives, wrong: Collection[str]) -> list[str]:
        failures = []
        for name in sorted(set(self._memory.archives) - set(archives.valid) - set(wrong)):
            file = self._memory.archives[name].get("known", {}).get("file", "")
            try:
                has_ended = self._is_paused(dag_id(name)) is None
            except ArchiverError as error:
                failures.append(f"{name}: {error}")
                continue
            if has_ended:
                # Somebody has deleted its DAG, too.
                self._incidents.write(name, {})
                del self._memory.archives[name]
                continue
            incidents = self._incidents_of(name, self._last_alerts(name))
            self._wrong_file(incidents, name, None)
            incidents.report("gone", "gone", state_texts.gone(name, file, self._link))
        return failures

    def _folder(self, archives: Archives) -> bool:
        """Alert if the folder of archives cannot be read. Return whether that is so."""
        error = "; ".join(str(error) for error in archives.errors if not isinstance(error, WrongFileError))
        receivers = (receiver for name in self._memory.archives for receiver in self._last_alerts(name).on_failure)
        by_name = {name_of(receiver): receiver for receiver in receivers}
        incidents = self._incidents_of(FOLDER, Alerts(on_failure=tuple(by_name.values())))
        self._wrong_file(incidents, FOLDER, error or None)
        return bool(error)

    def _last_alerts(self, name: str) -> Alerts:
        return receivers_of(self._memory.archives.get(name, {}).get("known"))

    def _incidents_of(self, name: str, alerts: Alerts) -> "_OpenIncidents":
        reporter = IncidentReporter(name, alerts if alerts.all else self._default, self._incidents)
        reporter.seconds = SECONDS
        return _OpenIncidents(reporter, self._incidents.read(name))


class _OpenIncidents(NamedTuple):
    """The open incidents of an archive, read once: with many archives, each request counts."""

    reporter: IncidentReporter
    opened: Mapping[str, Incident]

    def report(self, kind: Kind, key: str | None, message_of: MessageOf) -> None:
        before = self.opened.get(kind)
        if state_to_report(before, key):
            self.reporter.report(kind, key, "", message_of)


def _lag(archive: Archive) -> int | None:
    from kafka_archiver.state.status.condition import lag_of, observe

    try:
        context = open_archive(archive)
        context.cluster.timeout = min(getattr(context.cluster, "timeout", BROKER_SECONDS), BROKER_SECONDS)
        return lag_of(context, observe(context))
    except ArchiverError as error:
        log.warning("the lag of archive %s is unknown: %s", archive.archive, error)
        return None


def _refused_by_airflow(archives: Iterable[Archive]) -> dict[str, str]:
    """Return the archives of which Airflow cannot make a DAG, and why."""
    refused = {}
    for archive in archives:
        try:
            archive_dag(archive)
        except (AirflowException, ValueError, TypeError) as error:
            refused[archive.archive] = f"{archive.file}: Airflow cannot make a DAG of it: {error}"
    return refused
